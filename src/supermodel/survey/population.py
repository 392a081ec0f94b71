r"""What fraction of the objects are of each model: a hierarchical mixture of their evidences.

With fractions $f$ on the simplex, $p(\mathrm{data} \mid f) = \prod_i \sum_k f_k Z_{ik}$, and $f \sim$ Dirichlet($\alpha$). An
object is of model k with probability $r_{ik} = f_k Z_{ik} / \sum_j f_j Z_{ij}$.

Evidences are estimates: $\ln \hat Z$ scatters about $\ln Z$, and $s_{kj}$ is the error of $\ln Z_{ik} - \ln Z_{ij}$. Three
things follow to second order in s from one sum over pairs, $V = \sum_{k<j} r_k r_j s_{kj}^2$, so that errors of ln B suffice:

- $\ln \sum_k f_k \hat Z_k$ is too high by V / 2 on average, for every object alike. More objects would not cure it, so it is
  taken off.
- The mean of f moves with $\ln Z_{ik}$ by the posterior covariance of f and $r_{ik}$; what that makes of the errors is added
  to its variance.
- A membership averaged over $\ln Z$ given $\ln \hat Z$ is $r_k (1 + \frac12 \sum_j r_j s_{kj}^2 - V)$: less certain than $r_k$.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.report.numbers import mean_and_sd, probability, thousands
from supermodel.report.tables import Cells, dressed
from supermodel.survey import table
from supermodel.verdict.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

LARGEST_ERROR = 1.0  # of ln B: beyond it the second order is not enough, and the object tells little
LEAST_ALPHA = 0.05
DEPTH = 30.0  # the quadrature ends where the density is exp(-DEPTH) of its peak
SPACING, LEAST_POINTS = 0.1, 128  # of the quadrature, in ln f_1 / f_2; 128 are about eight to a standard deviation
N_POINTS, N_TRIAL, ROUNDS, FREEDOM = 2048, 256, 8, 5  # of importance sampling, by a Student t of that freedom
BLOCK = 4_000_000  # numbers in memory at once
TAIL = 0.025  # on either side of an interval


class Known(NamedTuple):
    """What is known of n objects and K models."""

    log_z: np.ndarray  # (n, K), each row up to a constant
    squares: np.ndarray  # (n, K, K): squared errors of ln Z_k - ln Z_j


class Fit(NamedTuple):
    """The posterior of the fractions: points of the simplex with weights, and what follows from them."""

    points: np.ndarray  # (n_points, K)
    weights: np.ndarray
    sd: np.ndarray  # (K,), all told
    error: np.ndarray  # (K,), the part of it that comes of the errors of ln B
    probabilities: np.ndarray  # (n, K): memberships

    @property
    def mean(self) -> np.ndarray:
        """(K,)."""
        return self.weights @ self.points

    @property
    def ess(self) -> float:
        """How many equal weights would be worth as much, in importance sampling."""
        return 1.0 / float(np.sum(self.weights**2))

    def quantile(self, q: float) -> np.ndarray:
        """(K,): of the posterior, spread about its mean as much as the errors of ln B spread it."""
        found = []
        for values in self.points.T:
            order = np.argsort(values)
            below = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
            found.append(np.interp(q, below, values[order]))
        with np.errstate(invalid="ignore", divide="ignore"):
            wider = np.nan_to_num(self.sd / np.sqrt(self.sd**2 - self.error**2), nan=1.0, posinf=1.0)
        return np.clip(self.mean + wider * (np.array(found) - self.mean), 0.0, 1.0)


def fitted(known: Known, alpha: np.ndarray, seed: int = 0) -> Fit:
    """The posterior of the fractions: by quadrature for two models, by importance sampling for more."""
    points, weights = (_quadrature if len(alpha) == 2 else _importance)(known, alpha, seed)
    mean = weights @ points
    leverage = weights[:, None] * (points - mean)
    variance, probabilities = np.zeros(len(alpha)), []
    for z, squares in blocks(known, len(points)):
        r = shares(z, points)[1]
        scatter = [
            sum(s[:, None] * share for s, share in zip(row, r, strict=True)) for row in squares.transpose(1, 2, 0)
        ]
        excess = 0.5 * sum(share * part for share, part in zip(r, scatter, strict=True))  # V
        probabilities.append(
            np.column_stack([(r[k] * (1 + 0.5 * scatter[k] - excess)) @ weights for k in range(len(r))])
        )
        slope = np.stack([share @ leverage for share in r], axis=-1)  # (n, K of f, K of ln Z)
        variance -= 0.5 * np.einsum("nmk,nmj,nkj->m", slope, slope, squares)
    variance = np.maximum(variance, 0.0)
    sd = np.sqrt(weights @ (points - mean) ** 2 + variance)
    return Fit(points, weights, sd, np.sqrt(variance), np.concatenate(probabilities))


def blocks(known: Known, n_points: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some rows at a time: evidences relative to the largest of the row, and squared errors."""
    size = max(BLOCK // (n_points * known.log_z.shape[1]), 1)
    for start in range(0, len(known.log_z), size):
        logs = known.log_z[start : start + size]
        yield np.exp(logs - logs.max(axis=1, keepdims=True)), known.squares[start : start + size]


def shares(z: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The mixture of each object at each point, (n, n_points), and the share r of each model in it."""
    mixed = z @ points.T
    return mixed, [np.outer(z[:, k], points[:, k]) / mixed for k in range(points.shape[1])]


def _log_posterior(eta: np.ndarray, known: Known, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Points f = softmax(eta, 0), and the log density of eta there: $\sum_k \alpha_k \ln f_k + \ln p(\mathrm{data} \mid f)$."""
    logits = np.column_stack([eta, np.zeros(len(eta))])
    logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    points = np.exp(logs)
    density = logs @ alpha
    for z, squares in blocks(known, len(points)):
        mixed, r = shares(z, points)
        density += np.log(mixed).sum(0)
        for k, j in zip(*np.triu_indices(len(alpha), 1), strict=True):
            density -= 0.5 * np.einsum("n,np,np->p", squares[:, k, j], r[k], r[j])
    return points, density


def _mode(known: Known, alpha: np.ndarray, steps: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Near the mode in eta, by expectation and maximisation, and the curvature there, (K - 1, K - 1)."""
    f, n = alpha / alpha.sum(), len(known.log_z)
    z = np.exp(known.log_z - known.log_z.max(axis=1, keepdims=True))
    for _ in range(steps):
        r = z * f
        r /= r.sum(axis=1, keepdims=True)
        f = (alpha + r.sum(0)) / (alpha.sum() + n)
    curvature = (n + alpha.sum()) * (np.diag(f) - np.outer(f, f)) - np.diag(r.sum(0)) + r.T @ r
    return np.log(f[:-1] / f[-1]), curvature[:-1, :-1]


def _quadrature(known: Known, alpha: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two models: the trapezoidal rule in ln f_1 / f_2, which for such a density converges exponentially."""
    centre, curvature = _mode(known, alpha)
    width = 1.0 / np.sqrt(max(float(curvature[0, 0]), 1e-12))
    ends = []
    for sign in (-1.0, 1.0):
        steps = centre + sign * np.concatenate([[0.0], np.geomspace(0.5 * min(width, 1.0), DEPTH / alpha.min(), 24)])
        density = _log_posterior(steps[:, None], known, alpha)[1]
        alive = np.flatnonzero(density > density.max() - DEPTH)
        ends.append(steps[min(alive[-1] + 1, len(steps) - 1)])
    n = max(LEAST_POINTS, int((ends[1] - ends[0]) / SPACING))
    points, density = _log_posterior(np.linspace(ends[0], ends[1], n)[:, None], known, alpha)
    return points, _normalised(density)


def _importance(known: Known, alpha: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three models or more: draws of a Student t in eta, which takes on the moments of the posterior round by round."""
    centre, curvature = _mode(known, alpha)
    d, rng = len(centre), np.random.default_rng(seed)
    covariance = np.linalg.pinv(curvature + 1e-9 * np.trace(curvature) * np.eye(d), hermitian=True)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        scaled = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(FREEDOM, size=(n, 1)) / FREEDOM)
        eta = centre + scaled @ np.linalg.cholesky(covariance).T
        points, density = _log_posterior(eta, known, alpha)
        return eta, points, _normalised(density + 0.5 * (FREEDOM + d) * np.log1p((scaled**2).sum(1) / FREEDOM))

    for _ in range(ROUNDS):
        eta, _, weights = drawn(N_TRIAL)
        if np.sum(weights**2) < 2 / N_TRIAL:  # half of the draws count
            break
        centre = weights @ eta
        covariance = (weights[:, None] * (eta - centre)).T @ (eta - centre) + 1e-12 * np.eye(d)
    return drawn(N_POINTS)[1:]


def _normalised(logs: np.ndarray) -> np.ndarray:
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


# -- from the table, and back to frames -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Population:
    """The fractions of a population, and to which model each of its objects belongs.

    Objects without a usable answer are left out, as if they were like the others: true where an object is flagged for
    reasons that have nothing to do with its model, and to be doubted where it is not.
    """

    models: tuple[str, ...]
    alpha: dict[str, float]  # of the Dirichlet prior of the fractions
    fit: Fit
    rows: pd.DataFrame  # row and dataset of those that are in it
    n_left_out: int

    @property
    def fractions(self) -> pd.DataFrame:
        """One row per model: `fraction` ± `sd`, 95% from `low` to `high`; `error` is the part of `sd` from errors of ln B."""
        import pandas as pd

        low, high = self.fit.quantile(TAIL), self.fit.quantile(1 - TAIL)
        columns = {"fraction": self.fit.mean, "sd": self.fit.sd, "error": self.fit.error, "low": low, "high": high}
        return pd.DataFrame({"model": self.models, **columns})

    @property
    def members(self) -> pd.DataFrame:
        """One row per object: `row`, `dataset`, and p(model | its data, all the others) in a column for each model."""
        return self.rows.assign(**dict(zip(self.models, self.fit.probabilities.T, strict=True)))

    def cells(self) -> Cells:
        """The fractions, ready to be printed."""
        rows = [
            (f.model, mean_and_sd(f.fraction, f.sd), f"{f.low:.4f} to {f.high:.4f}", probability(f.error))
            for f in self.fractions.itertuples()
        ]
        return Cells(("model", "fraction", "95%", "from errors of ln B"), tuple(rows))

    def _head(self) -> str:
        left = f"; {thousands(self.n_left_out)} without a usable answer left out, as if like the others"
        return f"Population of {thousands(len(self.rows))} objects{left if self.n_left_out else ''}"

    def __str__(self) -> str:
        return f"{self._head()}\n{self.cells().text()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return dressed(self._head(), "", self.cells().html())


def known_of(found: pd.DataFrame, models: Sequence[str]) -> tuple[Known, pd.DataFrame, int]:
    """What a table knows, which objects that is, and how many have no answer that can be used."""
    pairs, k = table.pairs_of(models), len(models)
    logs, errors = (found[name].to_numpy(float).reshape(-1, len(pairs)) for name in ("log_bayes_factor", "error"))
    first = found.iloc[:: len(pairs)]
    usable = (
        found["verdict"].map(lambda level: Verdict(level).is_reliable).to_numpy(bool).reshape(-1, len(pairs)).all(1)
    )
    usable = usable & np.isfinite(logs).all(1) & (errors <= LARGEST_ERROR).all(1)
    if not usable.any():
        raise SupermodelError(
            f"none of {len(first)} data sets has a verdict of ok or caution and errors of ln B up to {LARGEST_ERROR:g}, so that "
            "nothing is known of the population. The column `reason` of the table tells why."
        )
    logs, errors = logs[usable], errors[usable]
    squares = np.zeros((len(logs), k, k))
    for p, (a, b) in enumerate(pairs):
        i, j = models.index(a), models.index(b)
        squares[:, i, j] = squares[:, j, i] = errors[:, p] ** 2
    log_z = np.column_stack(
        [np.zeros(len(logs)), -logs[:, : k - 1]]
    )  # the first K - 1 pairs are those of the first model
    kept = first[usable][["row", "dataset"]].reset_index(drop=True)
    return Known(log_z, squares), kept, int((~usable).sum())


def population(found: pd.DataFrame, models: Sequence[str], alpha: Mapping[str, float], seed: int = 0) -> Population:
    """The population behind a table of `compare_many`."""
    known, kept, n_left_out = known_of(found, models)
    fit = fitted(known, np.array([alpha[name] for name in models]), seed)
    return Population(tuple(models), dict(alpha), fit, kept, n_left_out)


def checked_alpha(prior: Any, models: Sequence[str], odds: Mapping[str, float] | None) -> dict[str, float]:
    """The Dirichlet prior {model: alpha}: as given, or as many objects as there are models, shared out by the prior odds."""
    if prior is None:
        shares = odds or dict.fromkeys(models, 1.0)
        prior = {name: len(models) * shares[name] / sum(shares.values()) for name in models}
    given = dict(prior) if isinstance(prior, Mapping) else dict.fromkeys(models, prior)
    is_number = all(isinstance(a, int | float | np.number) for a in given.values())
    if set(given) != set(models) or not is_number or not all(LEAST_ALPHA <= a < np.inf for a in given.values()):
        raise SupermodelError(
            f"`prior` must be the alpha of a Dirichlet prior of the fractions, a number from {LEAST_ALPHA} up, or one for each of "
            f"the models {', '.join(map(repr, models))}; got {given!r}. 1 is uniform; below 1 it pulls fractions to 0."
        )
    return {name: float(given[name]) for name in models}
