r"""The two data sets of the paper and their models, with their exact answers.

M1 is the first model (weight 1), M2 the second; the paper's $\ell = \ln B_{21}$ is `log_bayes_factor("M2", "M1")`.
"""

from __future__ import annotations

from functools import cache, partial
from importlib import resources
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.embedding import coordinate as coordinates
from supermodel.embedding.supermodel import Supermodel
from supermodel.models.model import Model
from supermodel.models.noise import Gaussian

LINEAR = 4.8792471984  # ln B21 of linear.csv, closed form
SINE = 5.0222648001  # ln B21 of sine.csv, quadrature
FULL_QUARTIC = 215.1998539561  # ln Z
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


def _polynomial(p, x, powers):
    return sum(p[f"theta{k}"] * x**k for k in powers)


@cache
def linear_models(sd: float = 1.0) -> dict[str, Model]:
    """M1, M2 and the full quartic; every coefficient is N(0, sd^2)."""
    import numpyro.distributions as dist

    return {
        name: Model({f"theta{k}": dist.Normal(0.0, sd) for k in powers}, predict=_with_powers(powers), noise=NOISE)
        for name, powers in POWERS.items()
    }


def _with_powers(powers):
    return lambda p, x: _polynomial(p, x, powers)


@cache
def linear_exact(name: str = "M1", sd: float = 1.0) -> exact.LinearGaussian:
    """The same in closed form."""
    d = data("linear")
    return exact.LinearGaussian(exact.polynomial(d["x"], POWERS[name]), d["y"], d["sigma"], sd**2)


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
    return _gaussian(d["y"] - np.sin(phase), d["sigma"])


def sine_log_joint(theta: np.ndarray) -> np.ndarray:
    """ln L + ln prior, for one or two columns."""
    return sine_log_likelihood(theta) + normal(theta[:, :1], 1.0, 2.0) + normal(theta[:, 1:], 0.0, 0.05)


def _gaussian(residual: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return normal(residual, 0.0, sigma)


def normal(x: np.ndarray, mean: Any, sd: Any) -> np.ndarray:
    """Sum over the last axis of ln N(x; mean, sd^2)."""
    z = (x - mean) / sd
    return -0.5 * (z * z).sum(axis=-1) - (np.log(sd) + 0.5 * np.log(2 * np.pi) + 0.0 * z).sum(axis=-1)


SINE_BOXES = {"M1": np.array([[0.6, 1.4]]), "M2": np.array([[0.6, 1.4], [-0.5, 0.5]])}


@cache
def sine_evidence(name: str) -> exact.LogEvidence:
    """ln Z by quadrature; beyond |omega - 1| = 0.4 the likelihood is below e^-843 of it."""
    return exact.log_evidence_by_quadrature(sine_log_joint, SINE_BOXES[name])


# -- supermodels, one of each kind so that compiled code is used again ------------------------------------------------

_COORDINATES = {
    "alpha": coordinates.identity,
    "exponential": partial(coordinates.exponential, CUTOFF),
    "long exponential": partial(coordinates.exponential, -10.0),
    "enlarged": partial(coordinates.enlarged, 0.1),
    "tanh": partial(coordinates.tanh, 5.0),
}


@cache
def supermodel(
    example: str, combine: str = "mixture", coordinate: str = "alpha", tilt: float = 0.0, share: bool = True
) -> Supermodel:
    """M1 and M2 of "linear" or "sine" in one supermodel; `tilt` raises M1."""
    models = linear_models() if example == "linear" else sine_models()
    where = None if combine == "index" else _COORDINATES[coordinate]()
    return Supermodel(
        {name: models[name] for name in ("M1", "M2")},
        combine=combine,
        coordinate=where,
        data=data(example),
        tilt=(tilt, 0.0),
        share=share,
    )
