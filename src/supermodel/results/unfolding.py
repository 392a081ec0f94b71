r"""Posteriors of symmetric models: what was found, which parameters go round, and all images of the one that was kept.

A posterior in one labelling has the weights and the evidence of the whole. Where each draw is replaced by one of its images, any
of them with one probability, it is the symmetric posterior again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.jax_scope import in_float64
from supermodel.models.circle import is_round, turn_of
from supermodel.models.symmetry import Canonical, Circle, Exchange, Reflection, Symmetry, from_data, points_at
from supermodel.results.posterior import ModelPosterior


def with_symmetries(
    posteriors: Mapping[str, ModelPosterior], settings: Mapping[str, Any], priors: Mapping[str, Mapping[str, Any]],
    models: Mapping[str, Any] | None,
) -> dict[str, ModelPosterior]:  # fmt: skip
    """The same posteriors, which know their symmetries; a file of an earlier version tells of none."""
    found = {}
    for name, posterior in posteriors.items():
        pilot = settings.get("pilots", {}).get(name, {})
        known = [_read(row) for row in pilot.get("folds", ())]
        circles = _declared_circles(priors.get(name, {}), getattr((models or {}).get(name), "periodic", None))
        circles |= {s.name: (s.low, s.turn) for s in known if isinstance(s, Circle)}
        circles = {p: turn for p, turn in circles.items() if p in posterior.parameters}
        unfold = partial(images, priors.get(name, {}), [s for s in known if s.is_used])
        found[name] = replace(
            posterior, circles=circles, symmetries=tuple(pilot.get("symmetries", ())),
            unfolder=unfold if any(s.is_used and getattr(s, "images", 2) > 1 for s in known) else None,
        )  # fmt: skip
    return found


def _read(row: Mapping[str, Any]) -> Symmetry:
    """A canonical form without its function: how many images it has is all that a file tells."""
    if row.get("kind") == "Canonical":
        return Canonical(dict, int(row["images"]))
    return from_data(row)


def _declared_circles(priors: Mapping[str, Any], periodic: Any) -> dict[str, tuple[float, float]]:
    """Of parameters whose prior is on a circle, or that the user says go round."""
    if periodic is False:
        return {}
    found = {}
    for name, prior in priors.items():
        turn = turn_of(prior) if name in (periodic or ()) or is_round(prior) else None
        if turn is not None:
            found[name] = turn[:2]
    return found


@in_float64
def images(
    priors: Mapping[str, Any], symmetries: Sequence[Symmetry], parameters: Mapping[str, np.ndarray], seed: int
) -> dict[str, np.ndarray]:
    """Each draw as one of its images, any of them with one probability."""
    rng = np.random.default_rng(seed)
    values = {name: np.array(each, float) for name, each in parameters.items()}
    n = len(next(iter(values.values())))
    for symmetry in symmetries:
        if isinstance(symmetry, Canonical):
            raise SupermodelError(
                "the symmetry of this posterior was declared by a canonical form, which tells which image is kept and not what the "
                "others are: apply them to `draws` yourself."
            )
        if isinstance(symmetry, Exchange):
            orders = np.argsort(rng.random((n, len(symmetry.blocks))), axis=1)
            for column in zip(*symmetry.blocks, strict=True):
                seen = np.stack([values[name][(slice(None), *index)] for name, index in column], axis=1)
                seen = np.take_along_axis(seen, orders, axis=1)
                for i, (name, index) in enumerate(column):
                    values[name][(slice(None), *index)] = seen[:, i]
            _reflect(priors, values, symmetry.mirrored, symmetry.centres, orders[:, 0] == 1)
        elif isinstance(symmetry, Reflection):
            _reflect(priors, values, symmetry.entries, symmetry.centres, rng.random(n) < 0.5)
        elif isinstance(symmetry, Circle) and symmetry.parts > 1:
            steps = rng.integers(symmetry.parts, size=n) * symmetry.turn / symmetry.parts
            values[symmetry.name] = symmetry.low + np.mod(values[symmetry.name] - symmetry.low + steps, symmetry.turn)
    return values


def _reflect(priors: Mapping[str, Any], values: dict[str, np.ndarray], entries: Any, centres: Any, rows: Any) -> None:
    """In the coordinates in which the prior is symmetric about a centre."""
    for (name, index), centre in zip(entries, centres, strict=True):
        prior = priors.get(name)
        if not hasattr(prior, "values_at"):
            raise SupermodelError(
                f"the prior of {name!r} was read from a file and is known by its name only, so that its reflection cannot be told. "
                "Load with load(path, models={...}) to have the models back."
            )
        points = np.array(points_at(prior, values[name]))
        place = int(np.ravel_multi_index(index, prior.shape)) if index else 0
        points[rows, place] = 2 * centre - points[rows, place]
        values[name] = np.asarray(prior.values_at(points)).reshape(values[name].shape)
