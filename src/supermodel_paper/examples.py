r"""The two data sets of the paper and their models, with their exact answers.

M1 is the first model (weight 1), M2 the second; the paper's $\ell = \ln B_{21}$ is `log_bayes_factor("M2", "M1")`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.models.model import Model
from supermodel.models.noise import Gaussian

LINEAR = 4.8792471984  # ln B21 of linear.csv, closed form
SINE = 5.0222648001  # ln B21 of sine.csv, quadrature
POWERS = {"M1": (0, 1, 2, 4), "M2": (0, 1, 4), "full": (0, 1, 2, 3, 4)}
CUTOFF = -4.0
NOISE = Gaussian("sigma")


@cache
def data(name: str) -> dict[str, np.ndarray]:
    """Columns x, y, sigma of "linear" or "sine"."""
    with resources.as_file(resources.files("supermodel") / "data" / f"{name}.csv") as path:
        table = np.loadtxt(path, delimiter=",", skiprows=1)
    return dict(zip(("x", "y", "sigma"), table.T, strict=True))


# -- the linear example -----------------------------------------------------------------------------------------------


@cache
def linear_models() -> dict[str, Model]:
    """M1, M2 and the full quartic; every coefficient is N(0, 1)."""
    import numpyro.distributions as dist

    return {
        name: Model({f"theta{k}": dist.Normal(0.0, 1.0) for k in powers}, predict=polynomial(powers), noise=NOISE)
        for name, powers in POWERS.items()
    }


def polynomial(powers: tuple[int, ...]) -> Callable[..., Any]:
    """The prediction sum_k theta_k x^k."""
    return lambda p, x: sum(p[f"theta{k}"] * x**k for k in powers)


@cache
def linear_exact(name: str = "M1") -> exact.LinearGaussian:
    """The same in closed form."""
    d = data("linear")
    return exact.LinearGaussian(exact.polynomial(d["x"], POWERS[name]), d["y"], d["sigma"], 1.0)


THETA2 = (2,)  # its column in M1


# -- the sine example -------------------------------------------------------------------------------------------------


@cache
def sine_models() -> dict[str, Model]:
    r"""M1: sin(omega x), M2: sin(omega x + phi); omega ~ N(1, 2^2), phi ~ N(0, 0.05^2)."""
    import jax.numpy as jnp
    import numpyro.distributions as dist

    omega, phi = dist.Normal(1.0, 2.0), dist.Normal(0.0, 0.05)
    return {
        "M1": Model({"omega": omega}, predict=lambda p, x: jnp.sin(p["omega"] * x), noise=NOISE),
        "M2": Model({"omega": omega, "phi": phi}, predict=lambda p, x: jnp.sin(p["omega"] * x + p["phi"]), noise=NOISE),
    }


def sine_log_likelihood(theta: np.ndarray) -> np.ndarray:
    """ln L at points (n, 1), omega alone, or (n, 2), omega and phi; in NumPy."""
    d = data("sine")
    phase = theta[:, :1] * d["x"] + (theta[:, 1:] if theta.shape[1] > 1 else 0.0)
    return normal(d["y"] - np.sin(phase), 0.0, d["sigma"])


def sine_log_joint(theta: np.ndarray) -> np.ndarray:
    """ln L + ln prior, for one or two columns."""
    return sine_log_likelihood(theta) + normal(theta[:, :1], 1.0, 2.0) + normal(theta[:, 1:], 0.0, 0.05)


def normal(x: np.ndarray, mean: Any, sd: Any) -> np.ndarray:
    """Sum over the last axis of ln N(x; mean, sd^2)."""
    z = (x - mean) / sd
    return -0.5 * (z * z).sum(axis=-1) - (np.log(sd) + 0.5 * np.log(2 * np.pi) + 0.0 * z).sum(axis=-1)


SINE_BOXES = {"M1": np.array([[0.6, 1.4]]), "M2": np.array([[0.6, 1.4], [-0.5, 0.5]])}


@cache
def sine_evidence(name: str) -> exact.LogEvidence:
    """ln Z by quadrature; beyond |omega - 1| = 0.4 the likelihood is below e^-843 of it."""
    return exact.log_evidence_by_quadrature(sine_log_joint, SINE_BOXES[name])


def models(example: str) -> dict[str, Model]:
    """M1 and M2 of "linear" or "sine"."""
    found = linear_models() if example == "linear" else sine_models()
    return {name: found[name] for name in ("M1", "M2")}
