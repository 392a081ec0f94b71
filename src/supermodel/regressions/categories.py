r"""Responses that are categories: ordered ones by cut points on a latent scale, unordered ones by log odds.

Ordered: $P(y \le k) = F(c_k - \eta)$, F logistic or normal. Unordered: $P(y = k) \propto \pi_k e^{\eta_k}$, $\eta_0 = 0$.

In both $\pi$ are the shares of the categories at the mean of the predictors, $c_k = F^{-1}(\pi_1 + \dots + \pi_k)$, and a
priori $\pi \sim$ Dirichlet(1, ..., 1): proper without a look at the data, blind to the order and the names of categories, and
the same for every model, link and family. Hence the nulls of all three families are one model, with the evidence
$\ln Z_0 = \ln \Gamma(K) + \sum_k \ln n_k! - \ln \Gamma(n + K)$ known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

TINY = 1e-290  # a share that underflows: its logarithm stays finite, and so do gradients


def cut_points(shares: Any, link: str) -> Any:
    r"""$c_k = F^{-1}(\pi_1 + \dots + \pi_k)$ from shares (..., K), each from the smaller of its two tails."""
    import jax.numpy as jnp
    from jax.scipy.special import ndtri

    below, above = _tails(jnp.asarray(shares))
    if link == "logit":
        return jnp.log(below) - jnp.log(above)
    # Where a tail rounds to 1 its quantile is infinite, which would make gradients NaN even if it is not taken.
    return jnp.where(below < above, ndtri(jnp.minimum(below, 0.5)), -ndtri(jnp.minimum(above, 0.5)))


def _tails(shares: Any) -> tuple[Any, Any]:
    """The probability below and above each cut."""
    import jax.numpy as jnp

    safe = jnp.maximum(shares, TINY)
    return jnp.cumsum(safe, axis=-1)[..., :-1], jnp.cumsum(safe[..., ::-1], axis=-1)[..., ::-1][..., 1:]


@dataclass(frozen=True, eq=False)
class Ordered:
    r"""$P(y = k) = F(c_k - \eta) - F(c_{k-1} - \eta)$; `y` counts categories from 0, `shares` are $\pi$."""

    link: str

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any:
        import jax
        import jax.numpy as jnp

        shares = jnp.asarray(data["shares"])
        cuts, last = cut_points(shares, self.link), shares.shape[-1] - 1
        y = jnp.asarray(data["y"])
        is_of = (
            y[:, None] == jnp.arange(last + 1.0)
        ) * 1.0  # products with it, not lookups: those differentiate slowly
        low, high = is_of[:, 1:] @ cuts - prediction, is_of[:, :-1] @ cuts - prediction
        if self.link == "logit":
            # sigma(b) - sigma(a) = sigma(b) sigma(-a) (1 - e^(a-b)); the last factor is pi_k / (F(c_k) (1 - F(c_{k-1}))).
            below, above = _tails(shares)
            ends = jnp.zeros(1)
            width = jnp.log(jnp.maximum(shares, TINY))
            width = width - jnp.append(jnp.log(below), ends) - jnp.append(ends, jnp.log(above))
            upper, lower = jax.nn.log_sigmoid(high), jax.nn.log_sigmoid(-low)
            return is_of @ width + jnp.where(y < last, upper, 0.0) + jnp.where(y > 0, lower, 0.0)
        inside = (y > 0) & (y < last)
        between = _log_between(jnp.where(inside, low, -1.0), jnp.where(inside, high, 1.0))
        return jnp.where(inside, between, _log_normal(jnp.where(y == last, -low, high)))


def _log_normal(x: Any) -> Any:
    from jax.scipy.special import log_ndtr

    return log_ndtr(x)


def _log_between(low: Any, high: Any) -> Any:
    r"""$\ln [\Phi(b) - \Phi(a)]$, taken in the lower tail, where both have all their digits."""
    import jax.numpy as jnp

    flip = low + high > 0
    a, b = _log_normal(jnp.where(flip, -high, low)), _log_normal(jnp.where(flip, -low, high))
    return b + jnp.log(jnp.maximum(-jnp.expm1(a - b), TINY))


@dataclass(frozen=True, eq=False)
class Nominal:
    r"""$\ln P(y = k) = \ln \pi_k + \eta_k - \ln \sum_j \pi_j e^{\eta_j}$; predicted are the K - 1 after $\eta_0 = 0$."""

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any:
        import jax
        import jax.numpy as jnp

        shares, y = jnp.asarray(data["shares"]), jnp.asarray(data["y"])
        eta = jnp.log(jnp.maximum(shares, TINY)) + jnp.pad(prediction, ((0, 0), (1, 0)))
        is_of = y[:, None] == jnp.arange(float(shares.shape[-1]))
        return jnp.where(is_of, jax.nn.log_softmax(eta, axis=-1), 0.0).sum(axis=-1)


def told_cuts(shares: np.ndarray, link: str, levels: tuple[str, ...], shift: Any) -> dict[str, np.ndarray]:
    """Draws of the cut points where the predictors are 0, and not at their mean."""
    cuts = np.asarray(cut_points(shares, link), float)
    names = [f"cut[{a}|{b}]" for a, b in zip(levels[:-1], levels[1:], strict=True)]
    return {name: cuts[:, k] + shift for k, name in enumerate(names)}
