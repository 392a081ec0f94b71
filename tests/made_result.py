"""A comparison whose every number is known: linear models with Gaussian noise, and independent draws on their ladders.

Each model hangs on the reference N(u; 0, I) through x = m + C u with a factor C that is wrong on purpose, so that
weights vary. All rungs of the product path are then Gaussian and are sampled exactly: no chain, nothing compiled.
"""

import numpy as np
import numpyro.distributions as dist

from supermodel.estimation.estimate import Evidences
from supermodel.estimation.mbar import multistate, rung_log_densities
from supermodel.exact import LinearGaussian, polynomial
from supermodel.models.model import Model
from supermodel.models.noise import Gaussian
from supermodel.results.comparison import Comparison
from supermodel.results.posterior import ModelPosterior
from supermodel.results.record import EdgeRecord
from supermodel.verdict.verdict import Verdict

REFERENCE = "reference N(0, I)"
TABLE = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
PRIOR_SD = {"a": 1.3, "b": 0.8, "c": 0.6}
POWERS = {"a": 0, "b": 1, "c": 2}


def made_data(n: int = 24, seed: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.linspace(-1, 1.4, n)
    return {"x": x, "y": 0.4 + 0.7 * x + 0.7 * x**2 + 0.6 * rng.standard_normal(n), "sigma": np.full(n, 0.6)}


def exact(data, names: str, **sd: float) -> LinearGaussian:
    """The closed form of the model with the parameters `names`, prior widths changed by `sd`."""
    widths = {**PRIOR_SD, **sd}
    design = polynomial(data["x"], [POWERS[p] for p in names])
    return LinearGaussian(design, data["y"], data["sigma"], np.array([widths[p] ** 2 for p in names]), 0.1)


def model(names: str) -> Model:
    priors = {p: dist.Normal(0.1, PRIOR_SD[p]) for p in names}
    return Model(priors, predict=lambda p, x: sum(p[q] * x ** POWERS[q] for q in names), noise=Gaussian("sigma"))


def made_result(
    seed: int = 0,
    models: dict[str, str] | None = None,
    chains: int = 8,
    draws: int = 150,
    verdict: Verdict | None = None,
) -> Comparison:
    """`models`: {name: its parameters, e.g. "abc"}."""
    models = {"line": "ab", "curve": "abc"} if models is None else models
    data, rng = made_data(), np.random.default_rng(seed)
    edges, posteriors, values, variances = [], {}, [], []
    for name, parameters in models.items():
        edge, posterior = _edge(rng, name, exact(data, parameters), parameters, chains, draws, len(edges))
        edges.append(edge)
        posteriors[name] = posterior
        values.append(edge.report["value"])
        variances.append(edge.report["error"] ** 2)
    return Comparison(
        evidences=Evidences(tuple(models), np.array(values), np.diag(variances), True),
        verdict=verdict or Verdict(),
        evaluations={"likelihood": 1234, "gradient": 56},
        posteriors=posteriors,
        edges=tuple(edges),
        seed=seed,
        prior_odds=dict.fromkeys(models, 1.0 / len(models)),
        settings={"target_error": 0.05, "ended": "target"},
        seconds=1.5,
        models={name: model(parameters) for name, parameters in models.items()},
        data=data,
    )


def _edge(rng, name: str, truth: LinearGaussian, parameters: str, chains: int, draws: int, number: int):
    d = truth.n_parameters
    factor = np.linalg.cholesky(truth.posterior_covariance) * 1.25
    mean = truth.posterior_mean + 0.3 * np.sqrt(np.diag(truth.posterior_covariance))
    # In u the posterior is normal too: precision P1 about m1; the reference has precision 1 about 0.
    inverse = np.linalg.inv(factor)
    p1 = np.linalg.inv(inverse @ truth.posterior_covariance @ inverse.T)
    m1 = inverse @ (truth.posterior_mean - mean)
    rung = rng.integers(len(TABLE), size=(chains, draws))
    u = np.empty((chains, draws, d))
    for r, (w, rest) in enumerate(TABLE):
        precision = w * p1 + rest * np.eye(d)
        centre = np.linalg.solve(precision, w * p1 @ m1)
        root = np.linalg.cholesky(np.linalg.inv(precision))
        here = rung == r
        u[here] = centre + rng.standard_normal((here.sum(), d)) @ root.T
    x = mean + u @ factor.T
    log_likelihood, log_prior = truth.log_likelihood(x), truth.log_prior(x)
    first = log_likelihood + log_prior + np.log(np.diag(factor)).sum()
    log_joints = np.stack([first, -0.5 * (u**2 + np.log(2 * np.pi)).sum(axis=-1)], axis=-1)
    fit = multistate(log_joints, rung, TABLE)
    value, error = fit.difference(2, 0)
    counts = np.bincount(rung.ravel(), minlength=3)
    mixture = np.logaddexp.reduce(np.log(counts) - fit.log_z + rung_log_densities(log_joints, TABLE), axis=-1)
    log_weights = (first - mixture).ravel()
    log_weights -= np.logaddexp.reduce(log_weights)
    # Counting draws (all rungs were equally likely) plays the second estimator.
    second = np.log(counts[2] / counts[0]) + value
    report = {
        "value": value, "error": error, "second_value": second, "second_error": error, "ess": float(rung.size),
        "rhat": 1.0, "crossings": 321.0, "n_draws": float(rung.size), "start_z": 0.3, "drift_z": 0.4,
    }  # fmt: skip
    # The balance under which every rung is visited alike: p(m) is proportional to 1 / Z_m.
    balance = -(fit.log_z - fit.log_z[0])
    edge = EdgeRecord(name, REFERENCE, TABLE, balance, rung, log_joints, report)
    flat = x.reshape(-1, d)
    posterior = ModelPosterior(
        name, {p: flat[:, i] for i, p in enumerate(parameters)}, log_weights, log_likelihood.ravel(), log_prior.ravel(),
        np.repeat(np.arange(chains), draws), number,
    )  # fmt: skip
    return edge, posterior
