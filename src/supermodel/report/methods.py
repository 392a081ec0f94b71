"""What a paper must say about how a number was made: a methods paragraph and what to cite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from supermodel.report.numbers import shown, thousands
from supermodel.report.tables import is_plain_circle
from supermodel.report.text import joined, odds_words

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison

BIBTEX = """@misc{Mootoovaloo2016,
  author  = {Mootoovaloo, A. and Bassett, Bruce A. and Kunz, M.},
  title   = {{Bayes Factors via Savage-Dickey Supermodels}},
  year    = {2016},
  eprint  = {1609.02186},
  archivePrefix = {arXiv},
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
    return citation(result.versions.get("supermodel", "unknown"))


def citation(version: str) -> str:
    """The same for a version of this package."""
    return f"""{BIBTEX}
@software{{supermodel,
  author  = {{{{The supermodel developers}}}},
  title   = {{{{supermodel: Bayes factors via Savage-Dickey supermodels}}}},
  version = {{{version}}},
}}
"""


def methods(result: Comparison) -> str:
    """A paragraph for the methods section, with the numbers of this run."""
    one = len(result.names) == 1
    what = "The evidence of the model was" if one else f"Bayes factors between {len(result.names)} models were"
    parts = [
        f"{what} computed with supermodel {result.versions.get('supermodel', '')} (seed {result.seed}), after the method of "
        "Savage-Dickey supermodels (Mootoovaloo, Bassett & Kunz 2016): "
        + (_of_edges(result) if result.chain is None else _of_chain(result))
    ]
    folded = [f"{name}: {s}" for name, found in result.symmetries.items() for s in found if not is_plain_circle(s)]
    if folded:
        parts.append(
            "Symmetries of the posteriors, found by the likelihood at draws of the prior and checked in the posterior, or "
            f"declared, are counted in the evidence and sampled in one labelling ({'; '.join(folded)})."
        )
    if not one:
        among = f", among {joined(result.weighed)}" if result.excluded else ""
        parts.append(f"Model probabilities are for {odds_words(result)}{among}.")
        parts.append(f"The result is {result.interpret().headline} (natural logarithm; one standard error).")
    else:
        parts.append(f"The result is ln Z = {shown(result.log_evidence(result.best))}.")
    if result.excluded:
        level = result.verdict_between(*result.pair()).level
        parts.append(
            f"The checks gave the verdict “{result.verdict.level}” for {joined(result.excluded)}, whose numbers are not used, and "
            f"“{level}” for this one."
        )
    else:
        parts.append(f"All checks of the run gave the verdict “{result.verdict.level}”.")
    return " ".join(parts)


def _of_edges(result: Comparison) -> str:
    if not result.edges and "pilots" not in result.settings:  # a method of the paper, in a file that kept no record
        return "the models are embedded in one supermodel, which is sampled."
    if not result.edges:
        return f"{_explored(result)} The run ended before any supermodel was sampled: what it shows is this rough look."
    told = (
        f"{_explored(result)} Pairs of models, or of a model and its reference, are embedded in a supermodel through a "
        "coordinate α whose prior balances the two, the supermodel is sampled, and the ratio of evidences is read off the "
        "posterior of α at its two ends."
    )
    rungs = sorted({len(edge.table) for edge in result.edges})
    ladder = f"{rungs[0]}" if len(rungs) == 1 else f"{rungs[0]} to {rungs[-1]}"
    were = "supermodels on {} rungs of α were" if len(result.edges) > 1 else "supermodel on {} rungs of α was"
    chains = max(edge.rung.shape[0] for edge in result.edges)
    return (
        f"{told} {len(result.edges)} such {were.format(ladder)} sampled with {chains} chains each and "
        f"{thousands(sum(edge.rung.size for edge in result.edges))} draws in all, at "
        f"{thousands(result.evaluations.get('likelihood', 0))} likelihood evaluations; the ratios are multistate (MBAR) "
        "estimates (Shirts & Chodera 2008), checked against the Rao-Blackwellised posterior of α; errors allow for "
        "autocorrelation and for the scatter between chains."
    )


def _explored(result: Comparison) -> str:
    """How the posteriors were found (a file of version 0.1.0 has one way for each model, and no word of the effort)."""
    pilots = [p for p in result.settings.get("pilots", {}).values() if p["method"] != "no parameters"]
    looks = [str(pilot["method"]).split(", ") for pilot in pilots]
    calls = thousands(sum(int(pilot["evaluations"]) for pilot in pilots))
    told = "each posterior is first explored"
    if looks:
        names = ", ".join(sorted({look for some in looks for look in some}))
        often = (
            "at least two looks at it" if min(map(len, looks)) > 1 and "explore" in result.settings else "a look at it"
        )
        told = f"{told} by {often} ({names}; {calls} likelihood evaluations in all)"
    if "explore" not in result.settings:
        return f"{told}, and taken to coordinates in which it is close to a reference of evidence 1."
    return (
        f"{told}, and a reference of evidence 1 is fitted to what was found, with a share of the prior mixed in unless the "
        "posterior is normal to rounding."
    )


COMBINED = {
    "mixture": "a mixture Σ w J of the models' likelihoods and priors",
    "product": "a product Π J^w of the models' likelihoods and priors",
    "index": "a discrete index, one of the models at a time",
    "blend": "one likelihood of the models' mean prediction Σ w μ",
    "blend_product": "one likelihood of the models' prediction Π μ^w",
}


def _of_chain(result: Comparison) -> str:
    method = str(result.settings.get("method"))
    assert result.chain is not None
    chains, draws, _ = result.chain.weights.shape
    tempered = "" if method == "index" else ", with parallel tempering"
    return (
        f"all models are embedded in one supermodel, {COMBINED.get(method, method)}, with weights w given by a coordinate α "
        f"under a flat prior, which is sampled together with the parameters by random-walk Metropolis{tempered}, as in that "
        f"paper: {chains} chains of {thousands(draws)} draws each, at "
        f"{thousands(result.evaluations.get('likelihood', 0))} likelihood evaluations. The ratios are read off the "
        "Rao-Blackwellised posterior of α (each draw is shared among the models by its own conditional); errors allow for "
        "autocorrelation and for the scatter between chains."
    )
