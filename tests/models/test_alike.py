"""Scalar priors of one family, traced as one vector: the same values and densities as each by itself."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from supermodel.jax_scope import in_float64
from supermodel.models.alike import ALIKE
from supermodel.models.space import Space

KINDS = {
    "Normal": lambda i: dist.Normal(0.1 * i, 1 + 0.2 * i),
    "Uniform": lambda i: dist.Uniform(-1 - i, 2 + i),
    "LogNormal": lambda i: dist.LogNormal(0.1 * i, 0.5),
    "Gamma": lambda i: dist.Gamma(1.5 + i, 2.0),
    "Beta": lambda i: dist.Beta(1.0 + i, 2.5),
    "StudentT": lambda i: dist.StudentT(3.0 + i, 0.2, 1.1),
}


def priors(kind, n):
    """The scalars of one family among others, so that their places have gaps."""
    one = {f"a{i}": KINDS[kind](i) for i in range(n)}
    names = list(one)
    return {**{k: one[k] for k in names[:3]}, "vector": dist.Normal(np.zeros(2), 2.0), **{k: one[k] for k in names[3:]}}


@pytest.mark.parametrize("kind", KINDS)
@in_float64
def test_together_is_what_each_is_alone(kind, rng):
    space = Space(priors(kind, ALIKE))
    assert [bundle.names for bundle in space._bundles] == [tuple(f"a{i}" for i in range(ALIKE))]
    x = rng.standard_normal(space.dimension)
    each = sum(float(prior.log_density(x[space.slices[name]])) for name, prior in space.priors.items())
    assert float(space.log_prior(x)) == pytest.approx(each, rel=1e-13)
    found = space.constrain(x)
    assert list(found) == list(space.priors)
    for name, prior in space.priors.items():
        np.testing.assert_allclose(found[name], prior.constrain(x[space.slices[name]]), rtol=1e-14)


def test_few_are_left_alone():
    assert Space(priors("Normal", ALIKE - 1))._bundles == []


@in_float64
def test_a_hundred_names_are_one_prior_to_trace():
    space = Space({f"a{i}": dist.Normal(0, 1 + i) for i in range(100)})
    few = Space({"a": dist.Normal(np.zeros(100), 1.0 + np.arange(100))})
    sizes = [len(jax.make_jaxpr(s.log_prior)(np.zeros(100)).jaxpr.eqns) for s in (space, few)]
    assert sizes[0] < 2 * sizes[1]
