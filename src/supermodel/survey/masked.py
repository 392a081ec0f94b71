r"""A model on padded data: $\ln L = \sum_{i < n} \ln p(y_i \mid \theta)$, where columns are longer than the n data in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supermodel.models.model import Model

LENGTH = "length"  # what tells how many points are data


def masked(model: Model) -> Model | None:
    """The model with padding left out of its likelihood; None where data are not known one by one, or hang together.

    Its data have the scalar `length` beside their columns.
    """
    if model.noise is None or getattr(model.noise, "is_correlated", False):
        return None
    return Model.from_space(model.space, _Masked(model)).with_on_error(model.on_error)


class _Masked:
    """A log likelihood; a class, so that it can be sent to workers."""

    def __init__(self, model: Model):
        self.model = model

    def __call__(self, values: Mapping[str, Any], data: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        columns = {name: column for name, column in data.items() if name != LENGTH}
        each = jnp.asarray(self.model.pointwise_log_likelihood(values, columns))
        return jnp.sum(jnp.where(jnp.arange(len(each)) < data[LENGTH], each, 0.0))
