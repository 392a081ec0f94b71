"""The parameters of one model, packed into one flat vector of unconstrained coordinates."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from supermodel.errors import ModelError
from supermodel.jax_scope import in_float64
from supermodel.models.alike import Bundle, bundles
from supermodel.models.priors import Prior, as_prior


def check_names(names: Sequence[str], values: Mapping[str, Any]) -> None:
    """Refuse values that are not of exactly these parameters."""
    missing, unknown = set(names) - set(values), set(values) - set(names)
    if missing or unknown:
        raise ModelError(
            f"values are needed for exactly {sorted(names)}; missing {sorted(missing)}, unknown {sorted(unknown)}."
        )


def check_name(name: Any, what: str) -> None:
    """Refuse a name that no table, file or picture could show."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"{what} must be a non-empty string; got {name!r}.")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise ModelError(
            f"{what} must hold no control characters; got {name!r}. Results are stored and shown under it: rename it."
        )


class Space:
    r"""Names, priors and places: $x \in R^d \leftrightarrow \{name: value\}$, with $\ln \pi(x)$ normalised in $x$."""

    def __init__(self, priors: Mapping[str, Any]):
        for name in priors:
            check_name(name, "a parameter name")
        self.priors: dict[str, Prior] = {name: as_prior(name, d) for name, d in priors.items()}
        ends = np.cumsum([0] + [prior.size for prior in self.priors.values()])
        self.dimension = int(ends[-1])
        self.slices = {name: slice(int(a), int(b)) for name, a, b in zip(self.priors, ends, ends[1:], strict=False)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.priors)

    def reordered(self, names: Sequence[str]) -> Space:
        """The same space with its parameters packed in another order."""
        return Space({name: self.priors[name] for name in names})

    def with_gaussian_tails(self) -> Space:
        """The same parameters in coordinates in which every scalar prior has Gaussian tails, for samplers without gradients.

        Such samplers propose from a Gaussian; a posterior with heavier tails would hold their chains fast, out there.
        """
        turn = {
            name: getattr(prior, "with_gaussian_tails", lambda prior=prior: prior)()
            for name, prior in self.priors.items()
        }
        return Space(turn)

    @cached_property
    def _bundles(self) -> list[Bundle]:
        return bundles(self.priors, self.slices)

    @cached_property
    def _alone(self) -> dict[str, Prior]:
        together = {name for bundle in self._bundles for name in bundle.names}
        return {name: prior for name, prior in self.priors.items() if name not in together}

    def constrain(self, x) -> dict[str, Any]:
        """Values in the user's coordinates at one point; JAX can trace it."""
        values = {name: prior.constrain(x[self.slices[name]]) for name, prior in self._alone.items()}
        for bundle in self._bundles:
            together = bundle.prior.constrain(x[bundle.places])
            values |= {name: together[i] for i, name in enumerate(bundle.names)}
        return {name: values[name] for name in self.priors}

    def log_prior(self, x):
        r"""$\ln \pi(x)$, Jacobian included; JAX can trace it."""
        alone = sum((prior.log_density(x[self.slices[name]]) for name, prior in self._alone.items()), 0.0)
        return sum((bundle.prior.log_density(x[bundle.places]) for bundle in self._bundles), alone)

    @in_float64
    def unconstrain(self, values: Mapping[str, Any]) -> np.ndarray:
        """The point whose values are `values`."""
        check_names(self.names, values)
        parts = [np.asarray(prior.unconstrain(values[name])) for name, prior in self.priors.items()]
        return np.concatenate(parts) if parts else np.zeros(0)

    @in_float64
    def points_of(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The points (n, dimension) of many values (n, ...)."""
        n = len(next(iter(values.values())))
        return np.stack([self.unconstrain({name: values[name][i] for name in self.names}) for i in range(n)])

    def sample_prior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`n` prior draws, (n, dimension), unconstrained."""
        parts = [prior.sample(rng, n) for prior in self.priors.values()]
        return np.concatenate(parts, axis=1) if parts else np.zeros((n, 0))

    @in_float64
    def values_at(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """`constrain` of many points (n, dimension), as NumPy arrays (n, ...)."""
        values = {name: prior.values_at(points[:, self.slices[name]]) for name, prior in self._alone.items()}
        for bundle in self._bundles:
            together = bundle.prior.values_at(points[:, bundle.places])
            values |= {name: together[:, i] for i, name in enumerate(bundle.names)}
        return {name: values[name] for name in self.priors}

    @in_float64
    def log_prior_at(self, points: np.ndarray) -> np.ndarray:
        """`log_prior` of many points (n, dimension)."""
        parts = [prior.log_density_at(points[:, self.slices[name]]) for name, prior in self._alone.items()]
        parts += [bundle.prior.log_density_at(points[:, bundle.places]) for bundle in self._bundles]
        return np.sum(parts, axis=0) if parts else np.zeros(len(points))
