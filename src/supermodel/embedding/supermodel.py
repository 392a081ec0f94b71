r"""The supermodel: two or more models embedded in one density of $(\alpha, u)$.

$J_k(u) = L_k(\theta_k)\,\pi_k(\theta_k)\,q_k(\text{rest})$, where $q_k$ is a normalised companion over the parameters
that model k does not own, so $\int J_k = Z_k$. With the weights $w = f(\alpha)$ and tilts $\eta_k$ (constants that
balance unequal evidences, undone exactly by every estimator):

| combine | $J(u; w)$ |
|---|---|
| `mixture` | $\sum_k w_k e^{\eta_k} J_k$ |
| `product` | $\prod_k (e^{\eta_k} J_k)^{w_k}$ |
| `index` | one of the $e^{\eta_k} J_k$ |
| `blend` | $L(D \mid \sum_k w_k \mu_k)\,\sum_k w_k \pi_k q_k$ |
| `blend_product` | the same with $\prod_k \mu_k^{w_k}$ |
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from supermodel.embedding import coordinate as coordinates
from supermodel.embedding.combine import weighted
from supermodel.embedding.companions import Companions
from supermodel.embedding.coordinate import Coordinate, Ladder, Line
from supermodel.embedding.reference import Reference
from supermodel.embedding.warp import Warp
from supermodel.errors import DataError, ModelError, SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.models.columns import as_columns
from supermodel.models.joint import Joint
from supermodel.models.model import Model
from supermodel.models.noise import total
from supermodel.models.priors import LOG_ROOT_2PI
from supermodel.models.space import check_name
from supermodel.options import checked

COMBINATIONS = ("mixture", "product", "index", "blend", "blend_product")


class Supermodel:
    """Models, the rule that combines them, the coordinate alpha, and who shares which parameter.

    `share`: True shares parameters of equal name, False replicates them, a list shares only those names.
    `companions`: "prior" (the paper's choice: parameters that a model does not own follow their owner's prior), or
    a dict {parameter: distribution, or function of the other parameters that returns one} of pseudo-priors.
    `warps`: one `Warp` per model; companions are then standard normal in the warped coordinates.
    `reference`: the density of the last model, which has no parameters and no data: then its evidence is 1.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        *,
        combine: str = "mixture",
        coordinate: Coordinate | None = None,
        share: bool | str | Sequence[str] = True,
        data: Any = None,
        tilt: Sequence[float] | None = None,
        companions: str | Mapping[str, Any] = "prior",
        warps: Sequence[Any] | None = None,
        reference: Reference | None = None,
    ):
        check_models(models)
        if combine not in COMBINATIONS:
            raise SupermodelError(f"`combine` must be one of {', '.join(COMBINATIONS)}; got {combine!r}.")
        self.models = dict(models)
        self.names = tuple(models)
        self.combine = combine
        self.data = as_columns(data)
        self.joints = tuple(Joint(name, model, self.data) for name, model in models.items())
        self.coordinate = coordinate or _default_coordinate(combine, len(models))
        self.tilt = np.zeros(len(models)) if tilt is None else np.asarray(tilt, float)
        self.warps: Any = None if warps is None else tuple(warps)
        self.reference = reference
        self._lay_out(checked("share", share))
        self._companions = Companions(self, companions)
        self._check_fit()

    # -- layout: who owns which coordinate ------------------------------------------------------------------------

    def _lay_out(self, share: bool | Sequence[str]) -> None:
        shared = shared_names(self.models, share)
        self.labels: dict[str, slice] = {}  # label -> place in the union vector
        self.owners: dict[str, dict[str, str]] = {}  # label -> {model: its own name for it}
        self.places: list[np.ndarray] = []  # per model: where its own coordinates are in the union vector
        counts = {n: sum(n in m.space.names for m in self.models.values()) for n in _all_names(self.models)}
        end = 0
        for model_name, model in self.models.items():
            place = np.zeros(model.space.dimension, int)
            for parameter, prior in model.priors.items():
                alone = parameter in shared or counts[parameter] == 1
                label = parameter if alone else f"{model_name}.{parameter}"
                if label not in self.labels:
                    self.labels[label] = slice(end, end + prior.size)
                    end += prior.size
                where = self.labels[label]
                if where.stop - where.start != prior.size:
                    first = next(iter(self.owners[label]))
                    raise ModelError(
                        f"models {first!r} and {model_name!r} share the parameter {parameter!r}, but it has "
                        f"{where.stop - where.start} numbers in one and {prior.size} in the other. "
                        "Rename it in one of them, or replicate parameters with share=False."
                    )
                self.owners.setdefault(label, {})[model_name] = parameter
                place[model.space.slices[parameter]] = np.arange(where.start, where.stop)
            self.places.append(place)
        self.dimension = end
        self.rest = [np.setdiff1d(np.arange(end), place) for place in self.places]

    def sharing_table(self) -> str:
        """Who shares what, as text: one row per parameter, its prior in every model that has it."""
        width = max([len(label) for label in self.labels] + [9])
        rows = [f"{'parameter':<{width}}  " + "  ".join(f"{name:<24}" for name in self.names)]
        for label, owners in self.owners.items():
            cells = [
                self.models[name].priors[owners[name]].description if name in owners else "-" for name in self.names
            ]
            note = "  (shared, priors differ)" if len(set(cells) - {"-"}) > 1 else ""
            rows.append(f"{label:<{width}}  " + "  ".join(f"{cell:<24}" for cell in cells) + note)
        return "\n".join(row.rstrip() for row in rows)

    # -- checks ---------------------------------------------------------------------------------------------------

    def _check_fit(self) -> None:
        k = len(self.models)
        if self.coordinate.n_models != k:
            raise SupermodelError(f"the coordinate weighs {self.coordinate.n_models} models, but there are {k}.")
        if self.tilt.shape != (k,):
            raise SupermodelError(f"`tilt` needs one number per model ({k}); got shape {self.tilt.shape}.")
        if self.combine == "index" and not (
            isinstance(self.coordinate, Ladder) and np.array_equal(self.coordinate.table, np.eye(k))
        ):
            raise SupermodelError("`index` has only the corners: leave `coordinate` out, or use coordinate.index(K).")
        if isinstance(self.coordinate, Line) and self.coordinate.is_enlarged and not self.is_blend:
            raise SupermodelError(
                "an enlarged interval gives weights outside [0, 1]; a mixture of likelihoods is then negative. "
                "Only `blend` can use it."
            )
        if self.is_blend:
            self._check_blend()

    @property
    def is_blend(self) -> bool:
        return self.combine in ("blend", "blend_product")

    def _check_blend(self) -> None:
        for name, model in self.models.items():
            if model.predict is None:
                raise ModelError(
                    f"`{self.combine}` mixes predictions, but model {name!r} has none. "
                    "Write it as Model(priors, predict=..., noise=Gaussian(sigma))."
                )
        noises = [model.noise for model in self.models.values()]
        if not all(n is noises[0] or getattr(noises[0], "same_as", lambda o: False)(n) for n in noises[1:]):
            raise ModelError("a blend has one likelihood, so all its models need the same `noise`.")
        if not isinstance(self.data, Mapping) or "y" not in self.data:
            raise DataError('a blend needs `data`, e.g. data={"x": x, "y": y, "sigma": sigma}.')

    # -- densities at one point, traced ---------------------------------------------------------------------------

    def own(self, k: int, u: Any, warps: Sequence[Warp] | None = None) -> Any:
        """The unconstrained vector of model `k` at the point `u` of the supermodel."""
        mine = u[self.places[k]]
        warps = self.warps if warps is None else warps
        return mine if warps is None else warps[k](mine)

    def log_companion(self, k: int, u: Any, warps: Sequence[Warp] | None = None) -> Any:
        r"""$\ln q_k$ of the coordinates that model `k` does not own."""
        import jax.numpy as jnp

        if (self.warps if warps is None else warps) is not None:
            return -0.5 * jnp.sum(u[self.rest[k]] ** 2) - LOG_ROOT_2PI * len(self.rest[k])
        name = self.names[k]
        labels = [label for label, owners in self.owners.items() if name not in owners]
        return sum((self._companions.log_density(n, k, u, lambda: self.constrain_point(u)) for n in labels), 0.0)

    def is_reference(self, k: int) -> bool:
        """Whether the k-th model is the reference: no likelihood to pay for, evidence 1."""
        return self.reference is not None and k == len(self.names) - 1

    def log_joint(self, k: int, u: Any, warps: Sequence[Any] | None = None) -> Any:
        r"""$\ln J_k(u)$."""
        import jax.numpy as jnp

        warps = self.warps if warps is None else warps
        if self.reference is not None and self.is_reference(k):
            return self.reference.log_density(jnp, u[None], self._log_prior_in(u, warps)[None])[0]
        log_det = 0.0 if warps is None else warps[k].log_det(u[self.places[k]])
        return self.joints[k](self.own(k, u, warps)) + log_det + self.log_companion(k, u, warps)

    def _log_prior_in(self, u: Any, warps: Sequence[Any]) -> Any:
        """The first model's prior as a density of u."""
        import jax.numpy as jnp

        return jnp.asarray(self.joints[0].log_prior(self.own(0, u, warps)) + warps[0].log_det(u), float)

    def log_joints(self, u: Any, warps: Sequence[Any] | None = None) -> Any:
        r"""$(\ln J_1, \dots, \ln J_K)$."""
        import jax.numpy as jnp

        return jnp.stack([self.log_joint(k, u, warps) for k in range(len(self.names))])

    def log_joint_at(self, k: int, u: np.ndarray, evaluate: Callable[[Joint, np.ndarray], np.ndarray]) -> np.ndarray:
        r"""$\ln J_k$ at many points (n, D) of a warped supermodel, in NumPy; `evaluate(joint, x)` gives $\ln L$."""
        joint, warp, mine = self.joints[k], self.warps[k], u[:, self.places[k]]
        if self.reference is not None and self.is_reference(k):
            first = self.warps[0]
            prior = self.joints[0].space.log_prior_at(first.points(u)) + first.log_det_at(u)
            return self.reference.log_density(np, u, prior)
        x = warp.points(mine)
        return evaluate(joint, x) + joint.space.log_prior_at(x) + warp.log_det_at(mine) + self.log_companion_at(k, u)

    def log_companion_at(self, k: int, u: np.ndarray) -> np.ndarray:
        r"""$\ln q_k$ at many points of a warped supermodel, in NumPy."""
        return -0.5 * np.sum(u[:, self.rest[k]] ** 2, axis=1) - LOG_ROOT_2PI * len(self.rest[k])

    def log_extended_priors(self, u: Any) -> Any:
        r"""$\ln (\pi_k q_k)$ for every model, with the Jacobian of its warp: densities of $u$ that integrate to 1."""
        import jax.numpy as jnp

        log_dets: list[Any] = [0.0] * len(self.names)
        if self.warps is not None:
            log_dets = [warp.log_det(u[place]) for warp, place in zip(self.warps, self.places, strict=True)]
        parts = [
            self.joints[k].log_prior(self.own(k, u)) + log_dets[k] + self.log_companion(k, u)
            for k in range(len(self.names))
        ]
        return jnp.stack([jnp.asarray(part, float) for part in parts])

    def predictions(self, u: Any) -> Any:
        r"""$\mu_k$ for every model: (K, n_data)."""
        import jax.numpy as jnp

        each = [jnp.asarray(joint.prediction(self.own(k, u))) for k, joint in enumerate(self.joints)]
        return jnp.stack([jnp.broadcast_to(mean, np.shape(self.data["y"])) for mean in each])

    def combined(self, weights: Any, log_joints: Any) -> Any:
        r"""$\ln J(u; w)$ from $\ln J_k$, for the combinations that need no more."""
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        tilted = log_joints + self.tilt
        if self.combine == "mixture":
            return logsumexp(tilted, axis=-1, b=weights)
        return weighted(jnp, weights, tilted)

    def log_blend(self, weights: Any, predictions: Any, log_extended_priors: Any) -> Any:
        r"""$\ln J(u; w)$ of a blend, from stored predictions."""
        import jax.numpy as jnp
        from jax.scipy.special import logsumexp

        noise: Any = self.joints[0].model.noise
        if self.combine == "blend":
            mean = jnp.tensordot(weights, predictions, axes=1)
        else:
            mean = jnp.exp(jnp.tensordot(weights, jnp.log(predictions), axes=1))
        likelihood = total(noise.pointwise(mean, self.data))
        # An enlarged interval has weights below 0: the priors are then combined as at the nearest end.
        inside = jnp.clip(weights, 0.0, 1.0)
        return likelihood + jnp.sum(weights * self.tilt) + logsumexp(log_extended_priors, b=inside / inside.sum())

    def log_density(self, alpha: Any, u: Any) -> tuple[Any, Any]:
        r"""$\ln p(\alpha) + \ln J(u; f(\alpha))$, and $(\ln J_k)$ as a by-product."""
        weights = self.coordinate.weights(alpha)
        log_joints = self.log_joints(u)
        if self.is_blend:
            inner = self.log_blend(weights, self.predictions(u), self.log_extended_priors(u))
        else:
            inner = self.combined(weights, log_joints)
        return self.coordinate.log_prior(alpha) + inner, log_joints

    # -- coordinates ----------------------------------------------------------------------------------------------

    def constrain_point(self, u: Any) -> dict[str, Any]:
        """{label: value} at one point; a shared parameter is shown as its first owner sees it."""
        values = [joint.space.constrain(self.own(k, u)) for k, joint in enumerate(self.joints)]
        return {
            label: values[self.names.index(owner)][parameter]
            for label, owners in self.owners.items()
            for owner, parameter in [next(iter(owners.items()))]
        }

    @in_float64
    def constrain(self, position: np.ndarray) -> dict[str, np.ndarray]:
        """{label: values} of an array of points (..., D)."""
        lead = position.shape[:-1]
        flat = np.asarray(position).reshape(-1, self.dimension)
        values = [self.values_of(k, flat) for k in range(len(self.names))]
        return {
            label: values[self.names.index(owner)][parameter].reshape(
                lead + values[self.names.index(owner)][parameter].shape[1:]
            )
            for label, owners in self.owners.items()
            for owner, parameter in [next(iter(owners.items()))]
        }

    def values_of(self, k: int, points: np.ndarray) -> dict[str, np.ndarray]:
        """{parameter: values} of model `k` at the points (n, D) of the supermodel."""
        mine = points[:, self.places[k]]
        return self.joints[k].space.values_at(mine if self.warps is None else self.warps[k].points(mine))

    @in_float64
    def check_positive_predictions(self, rng: np.random.Generator, n: int = 256) -> None:
        """A product of predictions needs positive ones at all prior draws; other combinations need nothing."""
        import jax

        if self.combine != "blend_product":
            return
        for joint in self.joints:
            means = np.asarray(jax.vmap(joint.prediction)(joint.space.sample_prior(rng, n)))
            share = float(np.mean(np.any(~(means.reshape(n, -1) > 0), axis=1)))
            if share > 0:
                raise ModelError(
                    f"`blend_product` takes powers of predictions, but those of model {joint.name!r} are not positive "
                    f"at {share:.0%} of prior draws. Such points would be lost from the supermodel though not from the "
                    "model, and the Bayes factor with them. Use `blend`, or priors that keep predictions positive."
                )

    def sample_prior(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """`n` points of the supermodel from the priors of the parameters' first owners (identity warps)."""
        points = np.zeros((n, self.dimension))
        for label, owners in self.owners.items():
            owner, parameter = next(iter(owners.items()))
            points[:, self.labels[label]] = self.models[owner].priors[parameter].sample(rng, n)
        return points

    def with_coordinate(self, coordinate: Coordinate) -> Supermodel:
        """The same supermodel with another coordinate."""
        twin = copy.copy(self)
        twin.coordinate = coordinate
        twin._check_fit()
        return twin

    def __repr__(self) -> str:
        return f"Supermodel({' | '.join(self.names)}, combine={self.combine!r}, {self.dimension} coordinates)"


def shared_names(models: Mapping[str, Model], share: bool | Sequence[str]) -> set[str]:
    """The parameters that may be shared; names that no model has are refused."""
    known = _all_names(models)
    if isinstance(share, bool):
        return set(known) if share else set()
    unknown = set(share) - set(known)
    if unknown:
        raise ModelError(f"`share` names {sorted(unknown)}, which no model has; parameters are {known}.")
    return set(share)


def _all_names(models: Mapping[str, Model]) -> list[str]:
    return list(dict.fromkeys(n for m in models.values() for n in m.space.names))


def check_models(models: Mapping[str, Model], least: int = 2) -> None:
    """Refuse what is not a dict of at least `least` named models."""
    if not isinstance(models, Mapping) or not models:
        raise ModelError('models are given as a dict {name: Model}, e.g. {"fixed": fixed, "free": free}.')
    for name, model in models.items():
        check_name(name, "a model's name")
        if not isinstance(model, Model):
            raise ModelError(f"model {name!r} is a {type(model).__name__}, not a supermodel.Model.")
    if len(models) < least:
        raise ModelError(f"a comparison needs at least two models; got only {next(iter(models))!r}.")


def _default_coordinate(combine: str, n_models: int) -> Coordinate:
    if combine == "index":
        return coordinates.index(n_models)
    return coordinates.identity() if n_models == 2 else coordinates.Simplex(n_models)
