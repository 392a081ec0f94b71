r"""Companions $q_k$: normalised densities of the parameters that model k does not own, so that $\int J_k = Z_k$.

By default they are the priors of the parameters' owners (the paper's choice); a pseudo-prior near the owner's posterior
keeps those parameters from wandering while another model has the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from supermodel.errors import ModelError, PriorError
from supermodel.jax_scope import in_float64
from supermodel.models.priors import Bijected, as_prior

if TYPE_CHECKING:
    from supermodel.embedding.supermodel import Supermodel


class Companions:
    """{parameter: distribution, or function of other parameters that returns one}; what is not named has its prior."""

    def __init__(self, supermodel: Supermodel, given: str | Mapping[str, Any]):
        self.labels, self.owners = supermodel.labels, supermodel.owners
        self.models, self.names = supermodel.models, supermodel.names
        self.given = {} if isinstance(given, str) and given == "prior" else self._checked(given)

    def log_density(self, label: str, k: int, u: Any, values: Any) -> Any:
        """ln q of the parameter `label` beside model `k`; `values()` gives all parameters at the point `u`."""
        prior, mine = self.prior(label), u[self.labels[label]]
        given = self.given.get(label)
        if given is None:
            return prior.log_density(mine)
        distribution = given.distribution if isinstance(given, Bijected) else self._called(label, k, given, values())
        # A density of the value, turned into one of the owner's unconstrained coordinate.
        return distribution.log_prob(prior.constrain(mine)).sum() + prior.log_jacobian(mine)

    def prior(self, label: str) -> Any:
        """The prior of the parameter's first owner."""
        owner, parameter = next(iter(self.owners[label].items()))
        return self.models[owner].priors[parameter]

    def _called(self, label: str, k: int, function: Any, values: Mapping[str, Any]) -> Any:
        """A conditional pseudo-prior. It sees what model `k` owns and the labels before its own.

        More would not be a density: q(a | b) q(b | a) does not integrate to 1.
        """
        before = list(self.owners)[: list(self.owners).index(label)]
        visible = {n: values[n] for n in self.owners if self.names[k] in self.owners[n] or n in before}
        try:
            return function(visible)
        except KeyError as missing:
            raise ModelError(
                f"the companion of {label!r} asks for the parameter {missing}, but beside model {self.names[k]!r} it "
                f"may only depend on {sorted(visible)}: what that model owns, and parameters listed before {label!r}."
            ) from None

    # -- checks ---------------------------------------------------------------------------------------------------

    def _checked(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise ModelError(f'`companions` must be "prior" or a dict of parameter to distribution; got {given!r}.')
        unknown = sorted(set(given) - set(self.labels))
        if unknown:
            raise ModelError(
                f"`companions` names {unknown}, which are no parameters here; those are {sorted(self.labels)}."
            )
        return {label: self._checked_one(label, one) for label, one in given.items()}

    @in_float64
    def _checked_one(self, label: str, given: Any) -> Any:
        if callable(given) and not hasattr(given, "log_prob"):
            return given  # its distribution depends on the point; only its user can vouch for the support
        companion, prior = as_prior(label, given), self.prior(label)
        if not isinstance(companion, Bijected) or companion.shape != prior.shape:
            raise PriorError(
                f"the companion of {label!r}, {companion.description}, must be a numpyro distribution (or a scipy one "
                f"with a numpyro twin) of shape {prior.shape}; it is evaluated inside compiled code."
            )
        if not _inside(companion, prior):
            raise PriorError(
                f"the companion of {label!r}, {companion.description}, has values outside the support of its prior "
                f"{prior.description}. The part outside would be lost and the evidence with it. Choose one inside."
            )
        return companion


def _inside(companion: Bijected, prior: Any) -> bool:
    """Whether draws of the companion survive the way to the prior's unconstrained coordinate and back."""
    import jax

    values = np.asarray(companion.distribution.sample(jax.random.key(0), (64,)))
    back = np.stack([np.asarray(prior.constrain(np.asarray(prior.unconstrain(value)))) for value in values])
    return bool(np.allclose(back, values, rtol=1e-6, atol=1e-9))
