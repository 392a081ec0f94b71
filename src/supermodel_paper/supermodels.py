"""Every supermodel of the paper's experiments; each is made once, so that compiled code is used again."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from supermodel import exact
from supermodel.embedding import coordinate as coordinates
from supermodel.embedding.supermodel import Supermodel
from supermodel.models.model import Model
from supermodel_paper import examples
from supermodel_paper.examples import CUTOFF, LINEAR, linear_exact

COMMON = ("theta0", "theta1", "theta4")  # of M1 and M2 of the linear example
ORDER = ("M2", "M1", "full")  # of three models: the one shared by its neighbours stands between them


@cache
def supermodel(
    example: str, combine: str = "mixture", coordinate: str = "alpha", tilt: float = 0.0, share: bool = True
) -> Supermodel:
    """M1 and M2 of "linear" or "sine" in one supermodel; `tilt` raises M1."""
    where = {
        "alpha": coordinates.identity(),
        "exponential": coordinates.exponential(CUTOFF),
        "enlarged": coordinates.enlarged(0.1),
    }[coordinate]
    return Supermodel(
        examples.models(example),
        combine=combine,
        coordinate=None if combine == "index" else where,
        data=examples.data(example),
        tilt=(tilt, 0.0),
        share=share,
    )


# -- companions: pseudo-priors of what a model does not use -----------------------------------------------------------


class Companion(NamedTuple):
    """A Gaussian pseudo-prior of theta2: its mean is that of M1's posterior plus a regression on the other parameters."""

    mean: float
    sd: float
    slope: np.ndarray  # on theta0, theta1, theta4
    centre: np.ndarray

    def location(self, p: Any) -> Any:
        """The mean at parameters {name: value}."""
        return self.mean + sum(s * (p[n] - c) for s, n, c in zip(self.slope, COMMON, self.centre, strict=True))


def companion(kind: str) -> Companion:
    """Of "prior" (the paper's), "posterior" (M1's posterior of theta2) or "conditional" (the same given the rest)."""
    mean, covariance = linear_exact("M1").posterior
    rest = [0, 1, 3]
    slope = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, 2])
    if kind == "prior":
        return Companion(0.0, 1.0, np.zeros(3), mean[rest])
    if kind == "posterior":
        return Companion(float(mean[2]), math.sqrt(covariance[2, 2]), np.zeros(3), mean[rest])
    return Companion(float(mean[2]), math.sqrt(covariance[2, 2] - slope @ covariance[rest, 2]), slope, mean[rest])


def _balanced(companions: dict[str, Any], share: bool = True) -> Supermodel:
    """The linear mixture, tilted to balance, with these companions."""
    models, data = examples.models("linear"), examples.data("linear")
    return Supermodel(models, data=data, tilt=(LINEAR, 0.0), share=share, companions=companions)


@cache
def with_companions(kind: str) -> Supermodel:
    """The balanced linear mixture with a pseudo-prior for theta2 where M2 lacks it."""
    import numpyro.distributions as dist

    q = companion(kind)
    given = (lambda p: dist.Normal(q.location(p), q.sd)) if kind == "conditional" else dist.Normal(q.mean, q.sd)
    return _balanced({"theta2": given})


@cache
def replicated_with_companions() -> Supermodel:
    """All parameters twice; each copy follows its own model's posterior while the other model is in charge."""
    given = {}
    for name, model in examples.models("linear").items():
        mean, covariance = linear_exact(name).posterior
        labels = [p if p == "theta2" else f"{name}.{p}" for p in model.priors]
        for i, label in enumerate(labels):
            slope = np.linalg.solve(covariance[:i, :i], covariance[:i, i]) if i else np.zeros(0)
            sd = 1.2 * math.sqrt(covariance[i, i] - slope @ covariance[:i, i])  # wider: a user's pilot is not perfect
            given[label] = _given(labels[:i], slope, mean, sd)
    return _balanced(given, share=False)


def _given(before: list[str], slope: np.ndarray, mean: np.ndarray, sd: float) -> Any:
    import numpyro.distributions as dist

    def companion(p: Any) -> Any:
        shift = sum(s * (p[label] - m) for s, label, m in zip(slope, before, mean, strict=False))
        return dist.Normal(mean[len(before)] + shift, sd)

    return companion


# -- three models -----------------------------------------------------------------------------------------------------


@cache
def three(kind: str) -> Supermodel:
    """M2, M1 and the full quartic on "hats" or a "simplex", tilted so that each has about a third."""
    models, tilts = examples.linear_models(), -log_evidences()
    where = coordinates.Hats(3) if kind == "hats" else coordinates.Simplex(3)
    tilts = np.round(tilts - tilts[0])  # whole numbers: a guess such as a user might make
    return Supermodel({n: models[n] for n in ORDER}, coordinate=where, data=examples.data("linear"), tilt=tilts)


def log_evidences() -> np.ndarray:
    """Exact ln Z of the three."""
    return np.array([linear_exact(n).log_evidence for n in ORDER])


# -- products ---------------------------------------------------------------------------------------------------------


def on_path(w: float) -> tuple[float, float]:
    """ln Z(w) of L1^w L2^(1-w) up to a constant, and E_w[ln L1 - ln L2], linear data, both in closed form."""
    m1 = linear_exact("M1")
    D1, b = m1.scaled_design, m1.y / m1.sigma
    D2 = D1 * np.array([1.0, 1.0, 0.0, 1.0])
    precision = np.eye(4) + w * D1.T @ D1 + (1 - w) * D2.T @ D2
    rhs = (w * D1 + (1 - w) * D2).T @ b
    covariance = np.linalg.inv(precision)
    mean = covariance @ rhs
    chi = [float(np.sum((b - D @ mean) ** 2) + np.sum((D @ covariance) * D)) for D in (D1, D2)]
    return 0.5 * float(rhs @ mean - np.linalg.slogdet(precision)[1]), -0.5 * (chi[0] - chi[1])


@cache
def product_of_likelihoods(example: str) -> Supermodel:
    """The product on rungs: geometric ones for the linear data, even ones for the sine."""
    f, balance = np.linspace(0, 1, 25), None
    if example == "linear":
        # Even in logit alpha, for Z(alpha) is steep at both ends; and balanced, each rung by its own evidence.
        f = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, 24), 1 - np.geomspace(0.5, 1e-3, 14)[1:], [1.0]])
        balance = -np.array([on_path(w)[0] for w in f])
    rungs = coordinates.Ladder(np.stack([f, 1 - f], axis=1), balance)
    return Supermodel(examples.models(example), combine="product", coordinate=rungs, data=examples.data(example))


@cache
def product_of_predictions() -> tuple[Supermodel, float]:
    """M1 and M2 with priors close enough to the truth for positive predictions, and their exact ln B21."""
    import numpyro.distributions as dist

    d = examples.data("linear")
    means, sds = {0: 1.0, 1: 0.2, 2: 0.0, 4: 0.1}, {0: 0.1, 1: 0.05, 2: 0.05, 4: 0.01}
    models, evidences = {}, {}
    for name in ("M1", "M2"):
        powers = examples.POWERS[name]
        priors = {f"theta{k}": dist.Normal(means[k], sds[k]) for k in powers}
        models[name] = Model(priors, predict=examples.polynomial(powers), noise=examples.NOISE)
        mean, sd = (np.array([table[k] for k in powers]) for table in (means, sds))
        closed = exact.LinearGaussian(exact.polynomial(d["x"], powers), d["y"], d["sigma"], sd**2, mean)
        evidences[name] = closed.log_evidence
    rungs = coordinates.ladder(6, 2.0)
    return Supermodel(models, combine="blend_product", coordinate=rungs, data=d), evidences["M2"] - evidences["M1"]
