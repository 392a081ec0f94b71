"""What a paper must say about how a number was made: a methods paragraph and what to cite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from supermodel.report.numbers import shown

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison

BIBTEX = """@article{Mootoovaloo2016,
  author  = {Mootoovaloo, A. and Bassett, Bruce A. and Kunz, M.},
  title   = {{Bayes Factors via Savage-Dickey Supermodels}},
  journal = {Astronomy and Computing},
  year    = {2016},
  note    = {arXiv:1609.02186},
}

@article{ShirtsChodera2008,
  author  = {Shirts, Michael R. and Chodera, John D.},
  title   = {{Statistically optimal analysis of samples from multiple equilibrium states}},
  journal = {The Journal of Chemical Physics},
  volume  = {129},
  pages   = {124105},
  year    = {2008},
}
"""


def cite(result: Comparison) -> str:
    """BibTeX of the method, of its estimator, and of this package in the version that made the result."""
    version = result.versions.get("supermodel", "unknown")
    return f"""{BIBTEX}
@software{{supermodel,
  author  = {{{{The supermodel developers}}}},
  title   = {{{{supermodel: Bayes factors via Savage-Dickey supermodels}}}},
  version = {{{version}}},
}}
"""


def methods(result: Comparison) -> str:
    """A paragraph for the methods section, with the numbers of this run."""
    version = result.versions.get("supermodel", "")
    draws = int(sum(edge.rung.size for edge in result.edges))
    chains = int(max((edge.rung.shape[0] for edge in result.edges), default=0))
    rungs = sorted({len(edge.table) for edge in result.edges})
    ladder = f"{rungs[0]}" if len(rungs) == 1 else f"{rungs[0]} to {rungs[-1]}" if rungs else "several"
    what = (
        "The evidence of the model" if len(result.names) == 1 else f"Bayes factors between {len(result.names)} models"
    )
    verb = "was" if len(result.names) == 1 else "were"
    parts = [
        f"{what} {verb} computed with supermodel {version} (seed {result.seed}), after the method of Savage-Dickey "
        "supermodels (Mootoovaloo, Bassett & Kunz 2016): pairs of models, in coordinates in which each posterior is "
        "close to a unit normal density, are embedded in a supermodel through a coordinate α whose prior balances the "
        "two, the supermodel is sampled, and the ratio of evidences is read off the posterior of α at its two ends."
    ]
    plural = len(result.edges) > 1
    if draws:
        parts.append(
            f"{len(result.edges)} such {'supermodels' if plural else 'supermodel'} on {ladder} rungs of α "
            f"{'were' if plural else 'was'} sampled with {chains} chains each and {draws:,} draws in all".replace(
                ",", " "
            )
            + f", at {result.evaluations.get('likelihood', 0):,} likelihood evaluations".replace(",", " ")
            + "; the ratios are multistate (MBAR) estimates (Shirts & Chodera 2008), checked against the "
            "Rao-Blackwellised posterior of α; errors allow for autocorrelation and for the scatter between chains."
        )
    odds = list(result.prior_odds.values())
    if len(result.names) > 1:
        equal = np.allclose(odds, odds[0])
        parts.append(
            "Model probabilities are for "
            + (
                "equal prior odds."
                if equal
                else "prior probabilities " + ", ".join(f"{n}: {p:.3g}" for n, p in result.prior_odds.items()) + "."
            )
        )
        parts.append(f"The result is {result.interpret().headline} (natural logarithm; one standard error).")
    else:
        parts.append(f"The result is ln Z = {shown(result.log_evidence(result.best))}.")
    parts.append(f"All checks of the run gave the verdict “{result.verdict.level}”.")
    return " ".join(parts)
