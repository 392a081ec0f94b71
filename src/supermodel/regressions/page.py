"""The report of a regression: one HTML page, in the dress of every other report."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from supermodel.regressions import words
from supermodel.report import regression_plots as plots
from supermodel.report.html import rendered, section
from supermodel.report.scales import DEFAULT
from supermodel.results.fingerprint import versions
from supermodel.verdict.next_steps import next_steps
from supermodel.verdict.verdict import WORDS

if TYPE_CHECKING:
    from supermodel.regressions.result import Regression

CITE = """@article{rouder2012, author={Rouder, J. N. and Morey, R. D. and Speckman, P. L. and Province, J. M.},
  title={Default {Bayes} factors for {ANOVA} designs}, journal={Journal of Mathematical Psychology}, volume={56}, year={2012}}
@article{liang2008, author={Liang, F. and Paulo, R. and Molina, G. and Clyde, M. A. and Berger, J. O.},
  title={Mixtures of g priors for {Bayesian} variable selection}, journal={Journal of the American Statistical Association},
  volume={103}, year={2008}}"""


def raised(text: str) -> Markup:
    """The text with its powers of ten set as powers."""
    return Markup(re.sub(r"10\^(-?\d+)", r"10<sup>\1</sup>", str(escape(text))))


def page(result: Regression, scale: Any = DEFAULT) -> str:
    """The whole report as one HTML text."""
    k, many = min(len(result.names) - 1, plots.MOST), len(result.names) > 2
    tests = [words.inclusion_cells(result)] if many else []
    built = [
        section(
            "Models", words.about(result), [result.table(most=30)],
            [(partial(plots.models, result), "ln B against the null; thick ± 1σ, thin ± 2σ.", (6.4, 1.0 + 0.4 * k))],
        ),
        section(
            "Terms", "What the data say about a term, over all models and over matched ones.", tests,
            [(partial(plots.inclusion, result), "", (6.4, 1.0 + 0.7 * len(result.inclusion())))] if many else [],
        ),
        section(
            "Effects", "Averaged over models; zero where a model does not have the effect.", [result.summary()],
            [(partial(plots.effects, result), "Mean ± 1 and 2 standard deviations.", (6.4, 3.4))],
        ),
    ]  # fmt: skip
    if result.refit is not None and result.comparison is None and len(result.names) <= 64:
        robust = result.sensitivity()
        built.append(section("Robustness", "ln B if all scales of the default priors were changed.", [robust.cells()],
                             [(robust.plot, "", (6.4, 3.4))]))  # fmt: skip
    made = ", ".join(f"{library} {version}" for library, version in versions().items())
    return rendered(
        title=f"{result.kind}: {result.formula}", headline=raised(result.sentence(scale)), meaning=raised(result.apa()),
        odds=" ".join(map(str, result.hypotheses)), level=result.verdict.level, verdict=WORDS[result.verdict.level],
        reasons=result.verdict.reasons, steps=next_steps(result.verdict, result.names),
        sections=[s for s in built if s.tables or s.pictures],
        methods=f"{result.method}. Priors: {result.priors}.", bibtex=CITE,
        facts=[("rows", str(result.n_rows)), ("dropped", str(result.n_dropped)), ("versions", made)],
    )  # fmt: skip
