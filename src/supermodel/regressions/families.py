r"""Regressions as models for the engine: families without a closed form, and priors of the user's own.

$\eta = \mu + \sum_b X_b \theta_b$ is the mean of y on the scale of the link, with X centred. The blocks are those of the
closed form: $\theta_b = s\, \delta_b$, where $\delta_b$ is Cauchy of scale $r_b$, written without a centre as
$\delta = r z / w$, $z \sim N(0, I)$, $w \sim |N(0, 1)|$; one column alone is Cauchy at once. s is $\sigma$ for gaussian and
student, $\pi / \sqrt 3$ (the standard deviation of a logistic variable) for bernoulli, binomial, cumulative logit and
multinomial, and 1 for the log link and cumulative probit.

A multinomial response of K categories has K - 1 sets of coefficients. Each of the K categories has its own, which sum to
zero, and the prior is turned by no exchange of categories: with an orthonormal basis C of the contrasts,
$\theta_k = s r\, C_k Z / (\sqrt 2 w)$, $Z \sim N(0, I)$. The difference of any two is then that of a logistic regression
between the two, so that with K = 2 it is one.

In place of the improper priors that all models share stand proper ones so wide that they cancel: $\mu$ normal about the
mean of the data (ten s or ten standard deviations), $\ln \sigma$ uniform from 10^-4 to 10 standard deviations of y;
$\nu \sim$ Gamma(2, 0.1), and 1/shape of a negative binomial is exponential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.jax_scope import numpyro_distributions
from supermodel.models.model import Model
from supermodel.models.noise import Binomial, Gaussian, Poisson, StudentT
from supermodel.models.priors import as_prior
from supermodel.regressions.blocks import Block
from supermodel.regressions.categories import Nominal, Ordered, told_cuts
from supermodel.regressions.contrasts import orthonormal
from supermodel.regressions.response import Response
from supermodel.results.posterior import ModelPosterior

LOGISTIC = float(np.pi / np.sqrt(3))


@dataclass(frozen=True, eq=False)
class NegativeBinomial:
    r"""Counts of mean $e^\eta$ and variance $\mu + \mu^2 /$ shape; `overdispersion` is 1/shape."""

    def pointwise(self, prediction: Any, data: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp
        from jax.scipy.special import gammaln

        y, shape = data["y"], 1.0 / data["overdispersion"]
        ways = gammaln(y + shape) - gammaln(shape) - gammaln(y + 1.0)
        total = jnp.logaddexp(jnp.log(shape), prediction)
        return ways + shape * (jnp.log(shape) - total) + y * (prediction - total)


def _shared(family: str, response: Response) -> tuple[Any, dict[str, Any], float | None]:
    """The noise, the priors that all models have, and s; None where s is sigma."""
    dist = numpyro_distributions()
    y, sd = response.y - response.offset, float(np.std(response.y - response.offset))
    if family in ("gaussian", "student"):
        priors = {"Intercept": dist.Normal(float(y.mean()), 10 * sd), "sigma": dist.LogUniform(1e-4 * sd, 10 * sd)}
        if family == "gaussian":
            return Gaussian("sigma"), priors, None
        return StudentT("nu", "sigma"), priors | {"nu": dist.Gamma(2.0, 0.1)}, None
    if response.levels:
        noise = Nominal() if family == "multinomial" else Ordered(family.removeprefix("cumulative "))
        return noise, {"shares": dist.Dirichlet(np.ones(len(response.levels)))}, _latent_spread(family)
    if family in ("bernoulli", "binomial"):
        share = (response.y.sum() + 0.5) / (response.trials.sum() + 1.0)
        centre = float(np.log(share / (1 - share)))
        return Binomial(response.trials), {"Intercept": dist.Normal(centre, 10 * LOGISTIC)}, LOGISTIC
    centre = float(np.log(response.y.sum() + 0.5) - np.log(np.exp(response.offset).sum()))
    priors = {"Intercept": dist.Normal(centre, 10.0)}
    if family == "poisson":
        return Poisson("log"), priors, 1.0
    return NegativeBinomial(), priors | {"overdispersion": dist.Exponential(1.0)}, 1.0


def _latent_spread(family: str) -> float:
    """The standard deviation of the noise behind a category."""
    return 1.0 if family == "cumulative probit" else LOGISTIC


@dataclass(frozen=True, eq=False)
class Linear:
    """One block in the engine: its priors, and its coefficients of the values of its parameters."""

    block: Block
    own: Any = None  # a prior of the user's: on each coefficient, or on the standard deviation of a group-level term
    levels: tuple[str, ...] = ()  # the categories of a multinomial response, which have a set of coefficients each

    @property
    def size(self) -> int:
        """How many coefficients there are."""
        return self.block.size * max(len(self.levels) - 1, 1)

    @property
    def names(self) -> tuple[str, ...]:
        name = self.block.name
        if self.own is not None and self.block.kind == "random":
            return f"sd{name}", f"z{name}"
        if self.own is not None:
            columns = [name] if self.block.size == 1 else [f"{name}.{i + 1}" for i in range(self.block.size)]
            return tuple(column + suffix for column in columns for suffix in suffixes(self.levels))
        return (f"effect {name}",) if self.size == 1 and self.block.kind != "random" else (f"w {name}", f"z {name}")

    @property
    def priors(self) -> dict[str, Any]:
        dist = numpyro_distributions()
        z = dist.Normal(0.0, 1.0).expand([self.size]).to_event(1)
        if self.own is not None:
            return dict(zip(self.names, (self.own, z) if self.block.kind == "random" else [self.own] * self.size,
                            strict=True))  # fmt: skip
        if len(self.names) == 1:
            return {self.names[0]: dist.Cauchy(0.0, self.block.rscale)}
        return dict(zip(self.names, (dist.HalfNormal(1.0), z), strict=True))

    def spread(self, values: Mapping[str, Any], s: Any) -> Any:
        """The standard deviation of a group-level term."""
        first = values[self.names[0]]
        return first if self.own is not None else self.block.unit * s * self.block.rscale / first

    def coefficients(self, values: Mapping[str, Any], s: Any, stack: Any) -> Any:
        """(..., p), of a multinomial response (..., p, K - 1) against the first; `stack` joins scalars along a last axis."""
        is_own = self.own is not None and self.block.kind != "random"
        if is_own:
            found = stack([values[name] for name in self.names])
        elif len(self.names) == 1:
            found = stack([s * values[self.names[0]]])
        else:
            found = stack([self.spread(values, s) / self.block.unit]) * values[self.names[1]]
        if not self.levels:
            return found
        sets = found.reshape(*found.shape[:-1], self.block.size, len(self.levels) - 1)
        return sets if is_own else sets @ self._against_first

    @property
    def _against_first(self) -> np.ndarray:
        r"""(K - 1, K - 1): from the coordinates of contrasts to the differences $(C_0 - C_k) / \sqrt 2$, each of norm one."""
        basis = orthonormal(len(self.levels))
        return (basis[0] - basis[1:]).T / np.sqrt(2.0)


def suffixes(levels: Sequence[str]) -> tuple[str, ...]:
    """What stands behind the name of an effect: nothing, or the category whose log odds against the first it changes."""
    return tuple(f"[{level}]" for level in levels[1:]) or ("",)


@dataclass(frozen=True, eq=False)
class Regressor:
    """A family with its blocks: the model for the engine, and the effects that its parameters mean."""

    family: str
    response: Response
    parts: tuple[Linear, ...]
    intercept: bool
    own: Mapping[str, Any]

    @property
    def model(self) -> Model:
        """`Model` with the mean on the scale of the link; its data are {"y": y}."""
        import jax.numpy as jnp

        noise, priors, s = _shared(self.family, self.response)
        if not self.intercept:
            del priors["Intercept"]
        priors |= {name: prior for name, prior in self.own.items() if name in priors}
        for part in self.parts:
            priors |= part.priors
        x = [self._centred(part.block) for part in self.parts]
        offset = self.response.offset
        start = np.zeros((len(offset), len(suffixes(self.levels)))) if self.levels else offset

        def predict(p):
            eta = start + p.get("Intercept", 0.0)
            for part, columns in zip(self.parts, x, strict=True):
                eta = eta + columns @ part.coefficients(p, p["sigma"] if s is None else s, jnp.stack)
            return eta

        return Model(priors, predict=predict, noise=noise)

    @property
    def levels(self) -> tuple[str, ...]:
        """The categories that have a set of coefficients each; none but of a multinomial response."""
        return self.response.levels if self.family == "multinomial" else ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The effects of all terms but group-level ones."""
        blocks = [part.block for part in self.parts if part.block.kind != "random"]
        return tuple(label + end for block in blocks for label in block.columns.labels for end in suffixes(self.levels))

    def _centred(self, block: Block) -> np.ndarray:
        values = block.columns.values
        return values - values.mean(axis=0) if self.intercept else values

    def effects(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Draws of the parameters as draws of the effects that a reader knows."""
        s = _shared(self.family, self.response)[2]
        size = values["sigma"] if s is None else s * np.ones(len(next(iter(values.values()))))
        found: dict[str, np.ndarray] = {}
        ends = suffixes(self.levels)
        shift: dict[str, Any] = dict.fromkeys(ends, 0.0)
        for part in self.parts:
            theta = part.coefficients(values, size, lambda v: np.stack(v, axis=-1))
            sets = dict(zip(ends, np.moveaxis(theta, -1, 0) if self.levels else [theta], strict=True))
            told = {end: dict(zip(part.block.columns.labels, (each @ part.block.columns.readout.T).T, strict=True))
                    for end, each in sets.items()}  # fmt: skip
            found |= {label + end: told[end][label] for label in part.block.columns.labels for end in ends}
            if part.block.kind == "random":
                found[f"sd{part.block.name}"] = part.spread(values, size)
            shift = {end: shift[end] + each @ part.block.columns.values.mean(axis=0) for end, each in sets.items()}
        if "Intercept" in values:
            found["Intercept"] = values["Intercept"] - shift[""]
        if self.levels:
            log_shares = np.log(values["shares"])
            found |= {
                f"Intercept{end}": log_shares[:, k] - log_shares[:, 0] - shift[end] for k, end in enumerate(ends, 1)
            }
        elif self.response.levels:
            link = self.family.removeprefix("cumulative ")
            found |= told_cuts(values["shares"], link, self.response.levels, shift[""])
        return found | {name: values[name] for name in ("sigma", "nu", "overdispersion") if name in values}


def check_own(own: Mapping[str, Any], terms: Sequence[str], family: str, response: Response) -> None:
    """Refuse priors on what no model has."""
    known = (*_shared(family, response)[1], *terms)
    for name in own:
        if name not in known:
            raise SupermodelError(f"`priors` has {name!r}, which no model has; there are {', '.join(known)}.")
    if "shares" in own and tuple(as_prior("shares", own["shares"]).shape) != (len(response.levels),):
        k = len(response.levels)
        raise SupermodelError(
            f"the prior of `shares` must be of {k} shares that sum to one, those of {', '.join(response.levels)}, e.g. numpyro's "
            f"Dirichlet(np.full({k}, 2.0)); it has the shape {tuple(as_prior('shares', own['shares']).shape)}."
        )


@dataclass(frozen=True, eq=False)
class EngineFit:
    """One model as the engine left it: ln Z against the null's, and weighted draws."""

    regressor: Regressor
    log_bayes_factor: Estimate
    posterior: ModelPosterior

    @property
    def labels(self) -> tuple[str, ...]:
        return self.regressor.labels

    @property
    def effective_size(self) -> float:
        return self.posterior.effective_size

    def draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Posterior draws of every effect."""
        chosen = rng.choice(len(self.posterior.weights), n, p=self.posterior.weights)
        return self.regressor.effects({name: v[chosen] for name, v in self.posterior.parameters.items()})

    def prior_draws(self, n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Prior draws of every effect."""
        space = self.regressor.model.space
        return self.regressor.effects(space.values_at(space.sample_prior(rng, n)))
