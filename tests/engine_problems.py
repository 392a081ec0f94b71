"""Problems for the engine with exact answers, written as users write them, and runs that are made by hand."""

import functools
import importlib.resources
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from scipy import stats

import supermodel as sm
from supermodel.embedding.reference import standard_normal
from supermodel.embedding.warp import Warp
from supermodel.engine.arm import Arm
from supermodel.engine.explore import Look, Pilot
from supermodel.engine.goals import Goals
from supermodel.engine.meter import Meter
from supermodel.engine.run import Run
from supermodel.models.joint import Joint
from supermodel.verdict.examine import LADDER, Report

SINE = 5.0222648001
LINEAR = 4.8792471984


def data(name):
    with (importlib.resources.files("supermodel.data") / f"{name}.csv").open() as file:
        table = np.genfromtxt(file, delimiter=",", names=True)
    return {column: table[column] for column in table.dtype.names}


def sine():
    fixed = sm.Model({"omega": dist.Normal(1, 2)}, predict=lambda p, x: jnp.sin(p["omega"] * x))
    free = sm.Model(
        {"omega": dist.Normal(1, 2), "phi": dist.Normal(0, 0.05)},
        predict=lambda p, x: jnp.sin(p["omega"] * x + p["phi"]),
    )
    return {"free": free, "fixed": fixed}


def polynomial(powers, scale=1.0):
    return sm.Model(
        {f"t{i}": dist.Normal(0, scale) for i in powers},
        predict=lambda p, x: sum(p[f"t{i}"] * x**i for i in powers),
    )


def linear():
    return {"M2": polynomial((0, 1, 4)), "M1": polynomial((0, 1, 2, 4))}


def gamma_rates(counts=(3, 9, 4, 7), shape=2.3, rate=0.4, constant=0.0):
    """Black boxes: one Poisson rate each, against one for all; closed evidences."""
    from scipy.special import gammaln

    counts = np.asarray(counts)
    labels = [f"r{j}" for j in range(len(counts))]

    def separate(p):
        r = np.stack([p[n] for n in labels], axis=-1)
        return constant + np.sum(counts * np.log(r) - r - gammaln(counts + 1), axis=-1)

    def pooled(p):
        r = np.asarray(p["r"])[:, None]
        return constant + np.sum(counts * np.log(r) - r - gammaln(counts + 1), axis=-1)

    def closed(n, t):
        return shape * np.log(rate) - gammaln(shape) + gammaln(shape + n) - (shape + n) * np.log(rate + t)

    norm = -np.sum(gammaln(counts + 1))
    truth = {"separate": norm + np.sum(closed(counts, 1.0)), "pooled": norm + closed(counts.sum(), float(len(counts)))}
    prior = stats.gamma(shape, scale=1 / rate)
    models = {
        "separate": sm.Model(dict.fromkeys(labels, prior), separate, vectorized=True),
        "pooled": sm.Model({"r": prior}, pooled, vectorized=True),
    }
    return models, {name: float(value) + constant for name, value in truth.items()}


def assert_within(estimate, truth, most=0.1, planted=0.5, errors=5.0):
    """Within five errors of the truth (6e-7 of false alarms if it is normal), an error that is positive and below `most`.

    The same rule must refuse a truth that is off by `planted` nats to either side: it does not follow from the rest (an
    error of 0.09 would let it pass), and bounds what the rule can see.
    """

    def is_within(value):
        return abs(estimate.value - value) < errors * estimate.error

    assert 0 < estimate.error < most, (estimate, most)
    assert is_within(truth), (estimate, truth)
    assert not is_within(truth + planted) and not is_within(truth - planted), (estimate, truth, planted)


# -- parts of the engine, made by hand --------------------------------------------------------------------------------


def meter(most=None, seconds=None):
    return Meter(Goals(max_evaluations=most, max_seconds=seconds))


class Conjugate:
    """x_i ~ N(0, 1), y_i ~ N(x_i, s^2): a posterior that is normal, and an evidence in closed form.

    `traced` or a black box; `calls` counts the points at which the black box has been asked.
    """

    def __init__(self, d, sigma=0.5, traced=False, name="m"):
        self.d, self.sigma, self.calls = d, sigma, 0
        self.y = np.linspace(-1.0, 1.5, d)
        self.names = [f"x{i:02d}" for i in range(d)]
        priors = dict.fromkeys(self.names, dist.Normal(0, 1))
        self.model = sm.Model(priors, self.traced if traced else self.black_box, vectorized=not traced)
        self.joint = Joint(name, self.model)
        self.mean, self.sd = self.y / (1 + sigma**2), sigma / np.hypot(1, sigma)
        self.log_evidence = stats.norm.logpdf(self.y, 0, np.hypot(1, sigma)).sum()

    def traced(self, p):
        x = jnp.stack([p[n] for n in self.names])
        return jnp.sum(-0.5 * ((self.y - x) / self.sigma) ** 2 - np.log(self.sigma * np.sqrt(2 * np.pi)))

    def black_box(self, p):
        x = np.stack([np.asarray(p[n]) for n in self.names], axis=-1)
        self.calls += len(x)
        return stats.norm.logpdf(self.y, x, self.sigma).sum(-1)

    def posterior(self, rng, n):
        return self.mean + self.sd * rng.standard_normal((n, self.d))

    def pilot(self, rng, n=64, off=0.0):
        """A pilot as it should be; its warp is `off` posterior widths off in every coordinate."""
        x = self.posterior(rng, n)
        warp = Warp(self.mean + off * self.sd, self.sd * np.eye(self.d))
        log_joint = self.joint.log_joint_at(x)
        self.calls -= n
        return Pilot(self.joint, warp, standard_normal(self.d), x, log_joint, abs(off) * np.sqrt(self.d))


def good_report(value, error=0.02, **planted):
    """What an edge without fault says of itself."""
    figures = {"ess": 900.0, "rhat": 1.01, "crossings": 400, "pareto_k": 0.2, "second_value": value, "rungs": 5}
    return Report(LADDER, value, error, 16, 4000, **figures | {"second_error": error, "start_z": 1.0} | planted)


def made_run(edges, looks=None, ended="target", prior_share=0.05, **goals):
    """A run between blocks. `edges`: {(first, second or None): Report, or (Report, whether it is used)}, by number."""
    numbers = sorted({k for pair in edges for k in pair if k is not None})
    models = {f"m{k}": sm.Model({}, lambda p: 0.0) for k in numbers}
    run = Run(models, None, 0, goals=Goals(**goals), ended=ended)
    for k, (name, model) in enumerate(models.items()):
        found = [Look("look", *look, 100) for look in (looks or {}).get(k, [])]
        pilot = Pilot(Joint(name, model), None, standard_normal(0), np.zeros((1, 0)), np.zeros(1), 0.0, found)
        run.pilots.append(pilot)
    for (i, j), report in edges.items():
        report, used = report if isinstance(report, tuple) else (report, True)
        names = (f"m{i}", "reference" if j is None else f"m{j}")
        reference = None if j is not None else standard_normal(0)._replace(prior_share=prior_share)
        edge = SimpleNamespace(pair=SimpleNamespace(names=names, reference=reference), evaluations=1000, blocks=[1])
        run.arms.append(Arm(i, j, edge, None, None, report, used))
    return run


class Box:
    """A black box on the plane or the line: x_i ~ N(0, wide^2), and any ln L of (n, d) points; ln Z by quadrature."""

    def __init__(self, log_likelihood, d=2, wide=4.0):
        self.d, self.wide, self.calls, self.inner = d, wide, 0, log_likelihood
        names = [f"x{i}" for i in range(d)]
        self.model = sm.Model(dict.fromkeys(names, stats.norm(0, wide)), self.black_box, vectorized=True)
        self.joint = Joint("box", self.model)

    def black_box(self, p):
        x = np.stack([np.asarray(value) for value in p.values()], axis=-1)
        self.calls += len(x)
        return self.inner(x)

    def grid(self):
        """Points, and the posterior mass of each with its sum, on a grid that reaches six widths of the prior."""
        return _grid(self.inner, self.d, self.wide)

    @property
    def log_evidence(self):
        return float(np.log(self.grid()[1].sum()))

    def share(self, where):
        """Posterior probability of a set."""
        x, mass = self.grid()
        return mass[where(x)].sum() / mass.sum()


@functools.lru_cache(maxsize=4)
def _grid(log_likelihood, d, wide):
    axis = np.linspace(-6, 6, 48_001 if d == 1 else 1201) * wide
    x = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
    log_mass = log_likelihood(x) + stats.norm.logpdf(x, 0, wide).sum(1) + d * np.log(axis[1] - axis[0])
    return x, np.exp(log_mass)


def log_normal(x, mean, sd):
    """ln N(x; mean, sd^2 I) at (n, d) points."""
    return stats.norm.logpdf(x, mean, sd).sum(1)


def two_modes(x):
    """A wide mode with 0.7 of the likelihood and a narrow one with 0.3."""
    middle = np.full(x.shape[1], 2.5)
    return np.logaddexp(np.log(0.7) + log_normal(x, -middle, 0.8), np.log(0.3) + log_normal(x, middle, 0.15))
