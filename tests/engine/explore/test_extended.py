"""What a smaller model knows, with more besides: a normalised density of labelled points, whatever is new and however folded."""

from dataclasses import replace

import numpy as np
import numpyro.distributions as dist
import pytest

import supermodel as sm
from supermodel.embedding.reference import Reference, one_hill
from supermodel.embedding.warp import Warp, identity
from supermodel.engine.explore.cloud import Warped
from supermodel.engine.explore.extended import drawn, extended
from supermodel.engine.explore.pilot import Pilot
from supermodel.engine.policy import BLIND, DOF
from supermodel.models.folded import Folded
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Exchange

N = 40_000
SIGMAS = 5  # false alarms of 1e-6


def names(k):
    return ["c", *(f"{p}{i}" for i in range(1, k + 1) for p in "sa")]


def joint(k):
    """A background c and k components (s, a), labelled by s where there are several."""
    priors = {name: dist.Normal(0, 1 if name == "c" else 2) for name in names(k)}
    whole = Joint(f"{k}", sm.Model(priors, lambda p: -0.5 * p["c"] ** 2))
    if k < 2:
        return whole, ()
    exchange = Exchange(tuple(tuple((f"{p}{i}", ()) for p in "sa") for i in range(1, k + 1)), 0)
    return whole.folded(Folded(whole.space, [exchange])), (exchange,)


def pilot(k, rng):
    """A reference that the prior's part keeps from being normal, and of which a part is out of order."""
    own, found = joint(k)
    d = own.dimension
    mean = np.concatenate([[0.3], *([2.5 * i - 2, 0.4] for i in range(k))]) if k else np.array([0.3])
    reference = Reference(one_hill(np.zeros(d), np.eye(d), DOF), 0.1)
    x = own.space.sample_prior(rng, 64)
    return Pilot(own, Warp(mean, 0.7 * np.eye(d)), reference, x, np.zeros(64), 0.1, symmetries=found)


NEW = (Warped(identity(2), one_hill(np.array([1.0, -0.5]), 0.6 * np.eye(2), DOF)),)


def proposal(smaller, larger, new, rng, is_folded=True):
    known = pilot(smaller, rng)
    own, found = joint(larger)
    if not is_folded:
        own, found = own.origin, (found[0]._replace(by=-1),)
    return replace(extended(own, known, found), new=new)


CASES = [(0, 1, True), (1, 2, True), (1, 2, False), (1, 3, True), (2, 3, True), (2, 4, True)]


@pytest.mark.parametrize("new", [(), NEW, (*NEW, *NEW)], ids=["prior", "fit", "two fits"])
@pytest.mark.parametrize(("smaller", "larger", "is_folded"), CASES)
def test_draws_have_the_density(smaller, larger, is_folded, new, rng):
    """Prior over proposal is at most 1 / BLIND: its mean over draws is 1, and with it that of s1 the prior's."""
    found = proposal(smaller, larger, new, rng, is_folded)
    x = found.draw(rng, N)
    log_prior = found.joint.space.log_prior_at(x)
    assert np.all(np.isfinite(log_prior))  # in order
    weight = np.exp(log_prior - found.log_density(x))
    assert weight.max() <= 1 / BLIND + 1e-9
    assert abs(weight.mean() - 1) < SIGMAS * weight.std() / np.sqrt(N) < 0.1
    first = x[:, found.joint.space.slices["s1"]][:, 0]
    told = found.joint.space.sample_prior(rng, N)[:, found.joint.space.slices["s1"]][:, 0]
    error = np.hypot((weight * first).std(), told.std()) / np.sqrt(N)
    assert abs((weight * first).mean() - told.mean()) < SIGMAS * error


def test_a_choice_that_is_forgotten_is_noticed(rng):
    found = proposal(2, 3, NEW, rng)
    x = found.draw(rng, N)
    wrong = replace(found, choices=found.choices[:1], _known={})
    weight = np.exp(found.joint.space.log_prior_at(x) - wrong.log_density(x))
    assert abs(weight.mean() - 1) > SIGMAS * weight.std() / np.sqrt(N)


def test_only_the_part_of_a_reference_that_is_in_order_is_drawn(rng):
    base = pilot(2, rng)
    y = drawn(base, rng, 4000)
    assert np.all(np.isfinite(base.joint.space.log_prior_at(y)))
    assert -1.0 < proposal(2, 3, (), rng).log_inside < -1e-3


def test_a_poor_model_is_passed_over_for_what_it_extends(rng):
    base = pilot(1, rng)
    poor = replace(pilot(2, rng), base=base, new=NEW)
    own, found = joint(3)
    over = extended(own, poor.base, found, poor.new)
    assert over.base is base and over.new == NEW and len(over.names) == 2 and len(over.choices) == 3


def test_points_are_weighed_as_the_proposals_that_drew_them(rng):
    """A fit to draws of a known law of the new component is that law, to the noise of its draws."""
    from supermodel.engine.explore.cloud import Cloud

    found = proposal(0, 1, (), rng)
    cloud = Cloud(found.joint, lambda x: -0.5 * np.sum(((x[:, 1:] - [1.0, -0.5]) / 0.5) ** 2, axis=1))
    cloud.grow(found, 20_000, rng)
    (fitted,) = found.fitted(cloud, rng).new
    drawn_new = fitted.draw(rng, 20_000)
    sd = 1 / np.sqrt(1 / 0.25 + 1 / 4)
    assert np.allclose(np.median(drawn_new, axis=0), np.array([1.0, -0.5]) * sd**2 / 0.25, atol=0.1)
