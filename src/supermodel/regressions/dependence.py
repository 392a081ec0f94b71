"""What `contingency` gives back: the Bayes factor, the counts beside those expected, posteriors of the shares, and words."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import escape
from scipy.special import expit

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.regressions.crosstab import Crosstab
from supermodel.regressions.words import bayes_factor, favours
from supermodel.report.numbers import probability, shown
from supermodel.report.scales import DEFAULT
from supermodel.report.scales import scale as chosen_scale
from supermodel.report.tables import Cells
from supermodel.report.text import WIDTH, verdict_lines
from supermodel.results.export import finite, plain
from supermodel.verdict.verdict import WORDS, Verdict

DRAWS = 20_000
CONCENTRATIONS = (1.0, 1.5, 2.0, 5.0, 10.0)
NAMES = ("independent", "dependent")
FIXED = {"poisson": "nothing was fixed", "joint multinomial": "the total was fixed", "independent multinomial":
         "the totals of the {} were fixed", "hypergeometric": "all totals were fixed"}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Dependence:
    """ln B of dependence against independence of two categories; natural logarithms."""

    crosstab: Crosstab
    sampling: str
    fixed: str  # "rows" or "columns" of an independent multinomial, else ""
    prior_concentration: float
    estimate: Estimate  # ln B; the error is that of rounding
    refit: Callable[[float], Dependence]  # the same with another prior concentration
    seed: int = 0

    # -- the numbers ------------------------------------------------------------------------------------------------

    names = NAMES

    def log_bayes_factor(self, first: str = "dependent", second: str = "independent") -> Estimate:
        """ln Z_first - ln Z_second; the error is that of rounding."""
        for name in (first, second):
            if name not in NAMES:
                raise SupermodelError(f"there is no model {name!r}; there are {', '.join(NAMES)}.")
        if first == second:
            return Estimate(0.0, 0.0)
        return self.estimate if first == "dependent" else -self.estimate

    @property
    def value(self) -> float:
        """ln B of dependence against independence."""
        return self.log_bayes_factor().value

    @property
    def error(self) -> float:
        """What rounding may have done to it."""
        return self.log_bayes_factor().error

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probabilities at even prior odds."""
        return {"dependent": float(expit(self.value)), "independent": float(expit(-self.value))}

    @property
    def verdict(self) -> Verdict:
        """Always "ok": a closed form has nothing that could fail."""
        return Verdict()

    @property
    def expected(self) -> np.ndarray:
        """The counts that independence expects, given both margins."""
        return self.crosstab.expected

    @property
    def residuals(self) -> np.ndarray:
        r"""Pearson's $(y - e) / \\sqrt e$."""
        return (self.crosstab.counts - self.expected) / np.sqrt(self.expected)

    def posterior(self, n: int = DRAWS, model: str = "dependent") -> np.ndarray:
        """Posterior draws (n, R, C) of the probabilities of the cells, of a fixed margin given the row or the column.

        They sum to one over all cells; with rows (columns) fixed, over each row (column).
        """
        if model not in NAMES:
            raise SupermodelError(f"there is no model {model!r}; there are {', '.join(NAMES)}.")
        if n < 1:
            raise SupermodelError(f"`n` is the number of draws, at least 1; got {n!r}.")
        rng, counts, a = np.random.default_rng(self.seed), self.crosstab.counts, self.prior_concentration
        if self.fixed == "columns":
            counts = counts.T
        n_rows, n_columns = counts.shape
        if model == "dependent":
            found = rng.standard_gamma(counts + a, (n, n_rows, n_columns))
            found = found / found.sum(axis=2 if self.fixed else (1, 2), keepdims=True)
        elif self.sampling == "hypergeometric":
            raise SupermodelError(
                "where both margins are fixed, independence leaves no probability free: it has no posterior."
            )
        else:
            column = rng.dirichlet(counts.sum(axis=0) + n_rows * a - n_rows + 1.0, n)
            row = np.ones((n, n_rows))
            if not self.fixed:
                row = rng.dirichlet(counts.sum(axis=1) + n_columns * a - n_columns + 1.0, n)
            found = row[:, :, None] * column[:, None, :]
        return np.swapaxes(found, 1, 2) if self.fixed == "columns" else found

    def log_odds_ratio(self, n: int = DRAWS) -> np.ndarray:
        """Posterior draws of the log odds ratio of a 2 x 2 table, if the two depend on each other."""
        if self.crosstab.counts.shape != (2, 2):
            raise SupermodelError(
                f"a table of {' x '.join(map(str, self.crosstab.counts.shape))} counts has several odds ratios: take them from "
                "`.posterior()`."
            )
        p = np.log(self.posterior(n))
        return p[:, 0, 0] + p[:, 1, 1] - p[:, 0, 1] - p[:, 1, 0]

    def sensitivity(self, concentrations: Sequence[float] = CONCENTRATIONS) -> Cells:
        """ln B for other concentrations of the prior."""
        rows = [(f"{a:g}", shown(self.refit(float(a)).estimate, sign=True)) for a in concentrations]
        return Cells(("prior concentration", "ln B (dependent : independent)"), tuple(rows))

    # -- showing ----------------------------------------------------------------------------------------------------

    def table(self) -> Cells:
        """The counts, with those that independence expects in brackets, and their sums."""
        tab = self.crosstab
        body = [
            (label, *(f"{y} ({e:.1f})" for y, e in zip(counts, expected, strict=True)), str(counts.sum()))
            for label, counts, expected in zip(tab.rows, tab.counts, tab.expected, strict=True)
        ]
        sums = ("total", *map(str, tab.counts.sum(axis=0)), str(tab.total))
        return Cells((f"{tab.row_name} \\ {tab.column_name}", *tab.columns, "total"), (*body, sums))

    def sentence(self, scale: Any = DEFAULT) -> str:
        """The answer in plain language, in the words of a scale: "trotta", "jeffreys", "kass_raftery", or your own."""
        return favours(chosen_scale(scale), self.log_bayes_factor(), "dependent", "independent")

    def apa(self) -> str:
        """The answer as journals of psychology want it."""
        tab = self.crosstab
        how = f"{self._plan()}, a = {self.prior_concentration:g}"
        said = f"A Bayesian test of association ({how}) of {self._title()}, N = {tab.total}"
        return (
            f"{said}, gave {bayes_factor(self.log_bayes_factor())} for dependence against independence{self._odds()}."
        )

    def methods(self) -> str:
        """A paragraph for a paper."""
        tab, a = self.crosstab, self.prior_concentration
        prior = "uniform" if a == 1 else f"Dirichlet, of concentration {a:g},"
        of = {"poisson": "on the rates of the cells the prior was a gamma distribution whose mean total is that of the counts, "
                         f"and thus on their shares {prior}", "independent multinomial":
              f"the prior on the shares within each of the {self.fixed} was {prior}"}.get(
                  self.sampling, f"the prior on the probabilities of the cells was {prior}")  # fmt: skip
        return (
            f"Dependence of {self._title()} was weighed against independence in {tab.counts.shape[0]} x {tab.counts.shape[1]} "
            f"counts (N = {tab.total}) by the Bayes factor of Gunel and Dickey (1974) for {self.sampling} sampling: "
            f"{FIXED[self.sampling].format(self.fixed)}, and {of.rstrip(',')}. The prior under independence is the one that "
            f"follows from it. The Bayes factor is a closed form, without sampling: ln B = {shown(self.log_bayes_factor())} in "
            "favour of dependence."
        )  # fmt: skip

    def _title(self) -> str:
        return f"{self.crosstab.row_name} and {self.crosstab.column_name}"

    def _plan(self) -> str:
        return f"{self.sampling}, {self.fixed} fixed" if self.fixed else self.sampling

    def _odds(self) -> str:
        if self.crosstab.counts.shape != (2, 2):
            return ""
        low, middle, high = np.quantile(self.log_odds_ratio(), (0.025, 0.5, 0.975))
        return f", median log odds ratio = {middle:.2f}, 95% CI [{low:.2f}, {high:.2f}]"

    def __str__(self) -> str:
        tab = self.crosstab
        dropped = f" ({tab.n_dropped} incomplete ones dropped)" if tab.n_dropped else ""
        head = (
            f"contingency: {self._title()}, {tab.counts.shape[0]} x {tab.counts.shape[1]}, {tab.total} counts{dropped}"
        )
        p = self.probabilities
        facts = (
            f"ln B (dependent : independent) = {shown(self.log_bayes_factor(), sign=True)}, "
            f"P(dependent|data) = {probability(p['dependent'])} at even prior odds{self._odds()}."
        )
        parts = [
            "\n".join([head, *_wrapped(self.sentence())]),
            "\n".join(_wrapped(facts)),
            textwrap.indent(self.table().text(), "  ") + "\n  in brackets: what independence expects",
            verdict_lines(self.verdict, WORDS["ok"], NAMES),
            "\n".join(textwrap.wrap(f"Closed form (Gunel & Dickey 1974). Sampling: {self._plan()}. Prior concentration: "
                                    f"{self.prior_concentration:g}.", WIDTH)),
        ]  # fmt: skip
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        said = [self._title(), self.sentence(), f"Sampling: {self._plan()}. a = {self.prior_concentration:g}."]
        return "".join(f"<p>{escape(line)}</p>" for line in said) + self.table().html()

    def asdict(self) -> dict[str, Any]:
        """The answer as plain numbers, lists and strings."""
        tab, found = self.crosstab, self.log_bayes_factor()
        return {
            "kind": "contingency", "rows": {"name": tab.row_name, "levels": list(tab.rows)},
            "columns": {"name": tab.column_name, "levels": list(tab.columns)}, "counts": tab.counts.tolist(),
            "expected": tab.expected.tolist(), "residuals": self.residuals.tolist(), "total": tab.total, "dropped": tab.n_dropped,
            "sampling": self.sampling, "fixed": self.fixed, "prior_concentration": self.prior_concentration,
            "log_bayes_factor": {"first": "dependent", "second": "independent", "value": found.value, "error": found.error},
            "probabilities": self.probabilities, "verdict": {"level": self.verdict.level, "reasons": []},
        }  # fmt: skip

    def to_json(self, indent: int | None = 2) -> str:
        """`asdict` as JSON text."""
        return json.dumps(finite(plain(self.asdict())), indent=indent, allow_nan=False, ensure_ascii=False)

    def to_dataframe(self) -> Any:
        """The counts as a pandas table."""
        import pandas as pd

        tab = self.crosstab
        index, columns = pd.Index(tab.rows, name=tab.row_name), pd.Index(tab.columns, name=tab.column_name)
        return pd.DataFrame(tab.counts, index=index, columns=columns)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH - 2, initial_indent="  ", subsequent_indent="  ")
