r"""A hard problem whose $\ln Z$ is known: its models written once, for JAX and for NumPy alike.

A log likelihood is a function `f(p, xp)`, where `xp` is `numpy` or `jax.numpy`. A scalar parameter is `p["a"]`; a vector is
the last axis of `p["x"]`. Traced, `p` holds one point; as a black box it holds n points in front, and f returns n.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import supermodel as sm

LogLikelihood = Callable[[Mapping[str, Any], Any], Any]


@dataclass(frozen=True)
class Side:
    """One model. `priors` is called when the model is built: numpyro is slow to import, and 60 problems are listed."""

    priors: Callable[[], Mapping[str, Any]] | None
    log_likelihood: LogLikelihood | None
    log_evidence: Callable[[], float]  # the exact ln Z
    made: Callable[[str], sm.Model] | None = None  # the model of a kind, where it is more than priors and likelihood

    def model(self, kind: str) -> sm.Model:
        """As JAX can trace it, or as a black box."""
        if self.made is not None:
            return self.made(kind)
        return self.build() if kind == "traced" else self.black()

    def build(self) -> sm.Model:
        """The model as JAX can trace it."""
        import jax.numpy as jnp

        return sm.Model(self.priors(), lambda p: self.log_likelihood(p, jnp))

    def black(self) -> sm.Model:
        """The same as a black box that takes many points."""

        def log_likelihood(p):
            # np.asarray of a tracer raises, so that what is written for both kinds is not traced here.
            p = {name: np.asarray(value, float) for name, value in p.items()}
            with np.errstate(all="ignore"):
                return np.asarray(self.log_likelihood(p, np), float)

        return sm.Model(self.priors(), log_likelihood, vectorized=True)


@dataclass(frozen=True)
class Problem:
    """Models with their exact evidences, and the class of trouble that they stand for."""

    name: str
    trouble: str
    sides: Mapping[str, Side]

    @cached_property
    def log_evidences(self) -> dict[str, float]:
        return {name: float(side.log_evidence()) for name, side in self.sides.items()}

    @property
    def truth(self) -> float:
        """ln Z of the only model, or ln B of the first against the second."""
        first, *others = self.log_evidences.values()
        return first - others[0] if others else first

    def models(self, kind: str) -> dict[str, sm.Model]:
        """{name: model}; `kind` is "traced" or "black"."""
        return {name: side.model(kind) for name, side in self.sides.items()}


def one(name: str, trouble: str, priors, log_likelihood: LogLikelihood, log_evidence) -> Problem:
    """A problem of one model; `log_evidence` is a number or a function that works it out."""
    exact = log_evidence if callable(log_evidence) else lambda: log_evidence
    return Problem(name, trouble, {"model": Side(priors, log_likelihood, exact)})


# -- priors and densities that many problems share ---------------------------------------------------------------------


def box(d: int, half: float, name: str = "x"):
    """Uniform on [-half, half]^d: a vector, or scalars x0, x1, ... up to five, since users write both."""

    def priors():
        import numpyro.distributions as dist

        if d <= 5:
            return {f"{name}{i}": dist.Uniform(-half, half) for i in range(d)}
        return {name: dist.Uniform(-half, half).expand([d])}

    return priors


def vector(p: Mapping[str, Any], xp: Any, name: str = "x") -> Any:
    """The coordinates of `box` on the last axis."""
    if name in p:
        return p[name]
    labels = [label for label in p if label.startswith(name) and label[len(name) :].isdigit()]
    return xp.stack([p[f"{name}{i}"] for i in range(len(labels))], axis=-1)


def normal(x: Any, mean: Any, sd: Any, xp: Any) -> Any:
    """ln N(x; mean, sd), number by number."""
    return -0.5 * ((x - mean) / sd) ** 2 - xp.log(sd) - 0.5 * np.log(2 * np.pi)


def ball(x: Any, mean: Any, sd: float, xp: Any) -> Any:
    """ln of the round Gaussian density about `mean`, over the last axis."""
    d = x.shape[-1]
    return -0.5 * xp.sum((x - mean) ** 2, axis=-1) / sd**2 - d * np.log(sd * np.sqrt(2 * np.pi))


def special(xp: Any) -> Any:
    """scipy.special, or its namesake in JAX."""
    if xp is np:
        import scipy.special as functions
    else:
        import jax.scipy.special as functions
    return functions
