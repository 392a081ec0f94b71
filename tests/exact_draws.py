"""Independent draws from supermodels whose every part is Gaussian: nothing has to be trusted but linear algebra."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpyro.distributions as dist

from supermodel.embedding import coordinate as coordinates
from supermodel.embedding.supermodel import Supermodel
from supermodel.models.model import Model
from supermodel.models.noise import Gaussian
from supermodel.sampling.draws import Draws


@dataclass(frozen=True)
class Problem:
    r"""Models $y = X_k u + N(0, \sigma^2)$ on one vector u of shared parameters, $u \sim N(m, s^2)$.

    A column of zeros is a parameter that the model does not have (its companion is then the prior).
    """

    designs: tuple  # of (n, D)
    y: np.ndarray
    sigma: float
    mean: np.ndarray
    sd: np.ndarray

    @property
    def names(self):
        return tuple(f"model {k}" for k in "abcdef"[: len(self.designs)])

    @cached_property
    def models(self):
        return {name: self._model(x) for name, x in zip(self.names, self.designs, strict=True)}

    def _model(self, design):
        priors = {f"u{i}": dist.Normal(self.mean[i], self.sd[i]) for i in np.flatnonzero(np.any(design != 0, axis=0))}
        return Model(
            priors,
            predict=lambda p: sum(p[n] * design[:, int(n[1:])] for n in p),
            noise=Gaussian(self.sigma),
        )

    def supermodel(self, combine, coordinate=None, tilt=None):
        data = {"y": self.y}
        return Supermodel(self.models, combine=combine, coordinate=coordinate, tilt=tilt, data=data)

    # -- closed forms ---------------------------------------------------------------------------------------------

    def posterior(self, weights, combine):
        """ln Z, mean and covariance at points (..., K) of the simplex (for all but the mixture)."""
        designs, power = np.array(self.designs) / self.sigma, np.asarray(weights, float)
        if combine == "blend":
            designs, power = (
                np.einsum("...k,knd->...nd", power, designs)[..., None, :, :],
                np.ones((*power.shape[:-1], 1)),
            )
        y = self.y / self.sigma
        precision = np.einsum("...k,...knd,...kne->...de", power, designs, designs) + np.diag(self.sd**-2)
        h = np.einsum("...k,...knd,n->...d", power, designs, y) + self.mean / self.sd**2
        covariance = np.linalg.inv(precision)
        mean = np.einsum("...de,...e->...d", covariance, h)
        constant = power.sum(-1) * (-0.5 * y @ y - len(y) * math.log(self.sigma * math.sqrt(2 * math.pi)))
        log_z = constant + 0.5 * (h * mean).sum(-1) + 0.5 * np.linalg.slogdet(covariance)[1]
        return log_z - 0.5 * np.sum((self.mean / self.sd) ** 2) - np.log(self.sd).sum(), mean, covariance

    @cached_property
    def log_evidences(self):
        return np.array([self.posterior(w, "product")[0] for w in np.eye(len(self.designs))])

    def log_bayes_factor(self, a=0, b=1):
        return self.log_evidences[a] - self.log_evidences[b]

    def balance(self):
        """Tilts that make the models even."""
        return -self.log_evidences

    # -- draws ----------------------------------------------------------------------------------------------------

    def draws(self, supermodel, rng, n_chains, n_draws, stay=0.0):
        """Exact draws; each repeats the last with probability `stay`, which makes tau = (1 + stay)/(1 - stay)."""
        n = n_chains * n_draws
        alpha, u = (self._mixture if supermodel.combine == "mixture" else self._path)(supermodel, rng, n)
        kept = np.arange(n).reshape(n_chains, n_draws)
        for t in range(1, n_draws if stay else 0):
            kept[:, t] = np.where(rng.random(n_chains) < stay, kept[:, t - 1], kept[:, t])
        return self.record(supermodel, alpha[kept], u[kept])

    def record(self, supermodel, alpha, u):
        predictions = np.stack([u @ x.T for x in self.designs], axis=-2)
        residuals = (self.y - predictions) / self.sigma
        log_l = -0.5 * (residuals**2).sum(-1) - len(self.y) * math.log(self.sigma * math.sqrt(2 * math.pi))
        log_prior = (-0.5 * ((u - self.mean) / self.sd) ** 2 - np.log(self.sd * math.sqrt(2 * math.pi))).sum(-1)
        blend = predictions if supermodel.is_blend else None
        return Draws(supermodel, alpha, log_l + log_prior[..., None], u, {"likelihood": alpha.size}, blend)

    def _mixture(self, supermodel, rng, n):
        coordinate = supermodel.coordinate
        grid, mass, weights = prior_grid(coordinate, rng, n)
        mean = mass @ weights / mass.sum()
        share = np.log(mean) + self.log_evidences + supermodel.tilt
        share = np.exp(share - share.max())
        k = rng.choice(len(share), size=n, p=share / share.sum())
        u = np.zeros((n, len(self.mean)))
        alpha = np.zeros((n, *np.shape(grid)[1:]), grid.dtype)
        for j, w in enumerate(np.eye(len(share))):
            here = k == j
            _, m, c = self.posterior(w, "product")
            u[here] = rng.multivariate_normal(m, c, here.sum(), method="cholesky")
            alpha[here] = pick(coordinate, grid, mass * weights[:, j], rng, here.sum(), j)
        return alpha, u

    def _path(self, supermodel, rng, n):
        coordinate = supermodel.coordinate
        grid, mass, weights = prior_grid(coordinate, rng, n)
        log_z = self.posterior(weights, supermodel.combine)[0] + weights @ supermodel.tilt
        alpha = pick(coordinate, grid, mass * np.exp(log_z - log_z.max()), rng, n)
        w = coordinate.table[alpha] if coordinate.is_discrete else coordinate.weights_of(alpha)
        _, mean, covariance = self.posterior(w, supermodel.combine)
        step = np.linalg.cholesky(covariance) @ rng.standard_normal((n, len(self.mean), 1))
        return alpha, mean + step[..., 0]


def prior_grid(coordinate, rng, n):
    """Points of alpha, the prior mass each stands for, and the weights there."""
    if coordinate.is_discrete:
        return np.arange(coordinate.n_rungs), np.exp(coordinate.log_prior_table), coordinate.table
    if coordinate.is_simplex:
        corners = np.eye(coordinate.n_models)
        return corners, np.full(coordinate.n_models, 1.0 / coordinate.n_models), corners
    grid = np.linspace(coordinate.low, coordinate.high, 4001)
    mass = np.exp(coordinate.log_prior_of(grid))
    mass[[0, -1]] *= 0.5
    return grid, mass / mass.sum(), coordinate.weights_of(grid)


def pick(coordinate, grid, mass, rng, n, k=None):
    """Draws of alpha from masses on a grid: by number, by Dirichlet(1 + e_k), or by the inverse cumulative function."""
    if coordinate.is_discrete:
        return rng.choice(grid, size=n, p=mass / mass.sum())
    if coordinate.is_simplex:
        return rng.dirichlet(np.ones(coordinate.n_models) + np.eye(coordinate.n_models)[k], n)
    density = mass.copy()
    density[[0, -1]] *= 2
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return np.interp(rng.random(n) * below[-1], below, grid)


def example(n_models=2, seed=11, gap=1.0):
    """A problem where nothing is 0 or 1: shared and unshared parameters, unequal priors, ln B of order one."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.2, 2.3, 9)
    columns = [np.ones(9), x, x**2 - 1.7]
    owned = [(0, 1), (0, 2), (0,)][:n_models]
    designs = tuple(np.stack([c * (i in own) for i, c in enumerate(columns)], axis=1) for own in owned)
    y = 0.7 + 0.25 * gap * x + 0.6 * rng.standard_normal(9)
    return Problem(designs, y, 0.6, np.array([0.3, -0.2, 0.1]), np.array([1.3, 0.8, 0.5]))


def swapped(problem):
    return replace(problem, designs=problem.designs[::-1])


def linear_csv():
    """The paper's linear example: powers (0, 1, 2, 4) against (0, 1, 4)."""
    from importlib.resources import files

    table = np.loadtxt(files("supermodel") / "data" / "linear.csv", delimiter=",", skiprows=1)
    x, y, sigma = table.T
    full = np.stack([x**p for p in (0, 1, 2, 4)], axis=1)
    reduced = full * np.array([1.0, 1.0, 0.0, 1.0])
    return Problem((full, reduced), y, float(sigma[0]), np.zeros(4), np.ones(4))


__all__ = ["Problem", "coordinates", "example", "linear_csv", "swapped"]


# -- tolerances from false-alarm rates --------------------------------------------------------------------------------

FALSE_ALARM = 1e-6


def is_within(estimate, truth):
    """Whether an estimate is within its own error of the truth, at the false-alarm rate (normal)."""
    from scipy.stats import norm

    return abs(estimate.value - truth) < norm.isf(FALSE_ALARM / 2) * estimate.error


def is_calibrated(z):
    """Whether z-scores have the mean 0 and the spread 1: chi-square and normal bounds at the false-alarm rate.

    The spread may be less by the third that conservative errors (the larger of two) can take.
    """
    from scipy.stats import chi2, norm

    z = np.asarray(z)
    upper, lower = chi2.isf(FALSE_ALARM, len(z)) / len(z), 0.67**2 * chi2.ppf(FALSE_ALARM, len(z)) / len(z)
    return bool(lower < np.mean(z**2) < upper and abs(z.mean()) < norm.isf(FALSE_ALARM / 2) / math.sqrt(len(z)))


def z_scores(problem, supermodel, estimator, rng, n=60, n_chains=8, n_draws=300, stay=0.7):
    """(estimate - truth)/error over repetitions, with correlated chains."""
    scores = []
    for _ in range(n):
        found = estimator(problem.draws(supermodel, rng, n_chains, n_draws, stay)).log_bayes_factor(*problem.names[:2])
        scores.append((found.value - problem.log_bayes_factor()) / found.error)
    return np.array(scores)


def shifted(draws, amount, k=0):
    """The same draws with ln J of one model off by `amount`: the planted error."""
    return replace(draws, log_joints=draws.log_joints + amount * np.eye(draws.log_joints.shape[-1])[k])
