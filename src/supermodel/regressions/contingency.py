r"""Are two categories dependent? $\ln B = \ln m_1(y) - \ln m_0(y)$, a closed form for each way of sampling (Gunel & Dickey 1974).

With $D(\alpha) = \prod_k \Gamma(\alpha_k) / \Gamma(\sum_k \alpha_k)$, R rows and C columns, the counts y and the concentration a
of the prior, $\alpha_r = Ca - C + 1$ for each row and $\alpha_c = Ra - R + 1$ for each column (Dickey's conditioning of the
dependent prior on independence):

- *poisson*: rates $\lambda_{ij} \sim$ Gamma(a, b), against $\lambda p_i q_j$; $b = R C a / N$, so that N is what is expected;
- *joint multinomial* (N fixed): $\pi \sim$ Dirichlet(a), against $p_i q_j$ with $p \sim D(\alpha_r)$, $q \sim D(\alpha_c)$:
  $B = \frac{D(y + a)}{D(a)} \frac{D(\alpha_r)}{D(y_{i \cdot} + \alpha_r)} \frac{D(\alpha_c)}{D(y_{\cdot j} + \alpha_c)}$;
- *independent multinomial* (rows fixed): each row has shares $\sim$ Dirichlet(a), against one q $\sim$ Dirichlet($\alpha_c$);
- *hypergeometric* (both margins fixed, 2 x 2): the dependent joint multinomial given both margins, which is a sum over all
  tables that have them, against the hypergeometric distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from supermodel.errors import DataError, SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.regressions.crosstab import as_crosstab
from supermodel.regressions.dependence import Dependence

SAMPLINGS = ("poisson", "joint multinomial", "independent multinomial", "hypergeometric")
ALIASES = {"joint": "joint multinomial", "jointmulti": "joint multinomial", "multinomial": "joint multinomial",
           "independent": "independent multinomial", "indepmulti": "independent multinomial",
           "product multinomial": "independent multinomial", "hypergeom": "hypergeometric"}  # fmt: skip
FIXED = {"rows": "rows", "row": "rows", "columns": "columns", "column": "columns", "cols": "columns"}
EPS = float(np.finfo(float).eps)


def contingency(
    table: Any,
    rows: Any = None,
    columns: Any = None,
    *,
    sampling: str = "joint multinomial",
    fixed: str | None = None,
    prior_concentration: float = 1.0,
    missing: str = "raise",
    seed: int = 0,
) -> Dependence:
    r"""ln B that rows and columns of a table of counts depend on each other, against independence (Gunel & Dickey 1974).

    `contingency([[12, 5], [4, 9]])`, a frame of counts (`pandas.crosstab`), or a table of observations with two of its columns:
    `contingency(data, "treatment", "outcome")`.

    `sampling`, what was fixed before the counts were made: "poisson" (nothing), "joint multinomial" (their total), "independent
    multinomial" (the totals of the rows, or with `fixed="columns"` of the columns), "hypergeometric" (both, 2 x 2 only).
    `prior_concentration`: a, all parameters of the Dirichlet prior of the dependent model; 1 is uniform, larger is closer to
    independence.
    `missing`: "raise", or "drop" to leave out observations with missing values. `seed` is that of the posterior draws.
    """
    crosstab = as_crosstab(table, rows, columns, missing)
    plan = ALIASES.get(str(sampling).lower(), str(sampling).lower())
    if plan not in SAMPLINGS:
        raise SupermodelError(f"`sampling` is one of {', '.join(SAMPLINGS)}; got {sampling!r}.")
    margin = _margin(plan, fixed)

    def asked(a: float) -> Dependence:
        found = log_bayes_factor(crosstab.counts, plan, margin, _concentration(a, crosstab.counts.shape, plan, margin))
        return Dependence(crosstab, plan, margin, float(a), found, asked, seed)

    return asked(prior_concentration)


def _margin(plan: str, fixed: str | None) -> str:
    if plan != "independent multinomial":
        if fixed is not None:
            raise SupermodelError(
                f'`fixed` names the margin of sampling="independent multinomial"; {plan!r} leaves no choice. Leave it out.'
            )
        return ""
    if str(fixed).lower() not in FIXED:
        raise SupermodelError(
            'sampling="independent multinomial" needs to know whose totals were fixed: fixed="rows" or fixed="columns"; got '
            f"{fixed!r}. The answers differ."
        )
    return FIXED[str(fixed).lower()]


def _concentration(a: Any, shape: tuple[int, ...], plan: str, fixed: str) -> float:
    """a, refused where the prior of the independent model, which follows from it, is none."""
    n_rows, n_columns = shape
    if plan == "hypergeometric" and (n_rows, n_columns) != (2, 2):
        raise DataError(
            f'sampling="hypergeometric" is for 2 x 2 tables; this one is {n_rows} x {n_columns}. Of a larger one take "independent '
            'multinomial" (one margin fixed) or "joint multinomial".'
        )
    if isinstance(a, bool) or not isinstance(a, int | float | np.number) or not 0 < float(a) < np.inf:
        raise SupermodelError(f"`prior_concentration` is a positive number, 1 where the prior is uniform; got {a!r}.")
    met = {"independent multinomial": n_rows if fixed == "rows" else n_columns, "hypergeometric": 1}
    needed = 1.0 - 1.0 / met.get(plan, max(n_rows, n_columns))
    if not a > needed:
        raise SupermodelError(
            f"`prior_concentration` is {a:g}, but the prior of the independent model, which follows from it, exists above "
            f"{needed:.3g} only for {n_rows} x {n_columns} counts and sampling={plan!r}. Take a larger one; 1 is uniform."
        )
    return float(a)


def log_bayes_factor(counts: np.ndarray, plan: str, fixed: str, a: float) -> Estimate:
    """ln B of dependence against independence; the error is that of rounding."""
    y = counts.T.astype(float) if fixed == "columns" else counts.astype(float)
    terms = {"poisson": _poisson, "joint multinomial": _joint, "independent multinomial": _independent,
             "hypergeometric": _hypergeometric}[plan](y, a)  # fmt: skip
    # Each term is a difference of logarithms of factorials as large as N ln N, all rounded.
    size = gammaln(y.sum() + a * y.size + 1.0) + np.abs(terms).sum()
    return Estimate(float(np.sum(terms)), float(4 * EPS * abs(size)))


def _log_d(alpha: np.ndarray) -> float:
    r"""$\ln D(\alpha)$."""
    return float(gammaln(alpha).sum() - gammaln(alpha.sum()))


def _gain(y: np.ndarray, alpha: float) -> float:
    r"""$\ln D(y + \alpha) - \ln D(\alpha)$: what a Dirichlet prior gives the counts y."""
    flat = np.ravel(y)
    return _log_d(flat + alpha) - _log_d(np.full(flat.shape, alpha))


def _nulls(y: np.ndarray, a: float) -> tuple[float, float]:
    n_rows, n_columns = y.shape
    return n_columns * a - n_columns + 1.0, n_rows * a - n_rows + 1.0


def _poisson(y: np.ndarray, a: float) -> Sequence[float]:
    """Given N the shares are those of the joint multinomial; N itself is told by a Gamma of another shape in each model."""
    n_rows, n_columns = y.shape
    b, total = y.size * a / y.sum(), y.sum()
    of_dependent = y.size * a
    of_independent = of_dependent - (n_rows - 1) * (n_columns - 1)

    def log_total(shape: float) -> float:  # ln P(N) up to what both have
        return float(gammaln(total + shape) - gammaln(shape) + shape * np.log(b / (1.0 + b)))

    return (*_joint(y, a), log_total(of_dependent), -log_total(of_independent))


def _joint(y: np.ndarray, a: float) -> Sequence[float]:
    row, column = _nulls(y, a)
    return _gain(y, a), -_gain(y.sum(axis=1), row), -_gain(y.sum(axis=0), column)


def _independent(y: np.ndarray, a: float) -> Sequence[float]:
    """Rows fixed."""
    return (*(_gain(row, a) for row in y), -_gain(y.sum(axis=0), _nulls(y, a)[1]))


def _hypergeometric(y: np.ndarray, a: float) -> Sequence[float]:
    r"""With x the first count $P(x) \propto \prod_{ij} \Gamma(y_{ij} + a) / y_{ij}!$, against $\propto \prod_{ij} 1 / y_{ij}!$."""
    row, column = y.sum(axis=1), y.sum(axis=0)
    x = np.arange(max(0.0, row[0] - column[1]), min(row[0], column[0]) + 1.0)
    tables = np.stack([x, row[0] - x, column[0] - x, row[1] - column[0] + x])
    null = -gammaln(tables + 1.0).sum(axis=0)
    dependent = null + gammaln(tables + a).sum(axis=0)
    here = int(y[0, 0] - x[0])
    return dependent[here] - logsumexp(dependent), logsumexp(null) - null[here]
