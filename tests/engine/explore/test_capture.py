"""Capture and recapture: what sealed replicates share tells how likely all have missed a mode."""

import numpy as np
import pytest

from engine_problems import Box, two_modes
from supermodel.embedding.reference import one_hill
from supermodel.embedding.warp import identity
from supermodel.engine.explore.capture import Capture, captured
from supermodel.engine.explore.cloud import Cloud, Warped
from supermodel.engine.policy import CAPTURE_PRIOR

WIDE, NARROW = (-2.5, 0.8), (2.5, 0.15)
BOX = Box(two_modes, 2)
DRAWS = 1500


def cloud(rng, *hills, n=DRAWS):
    """Some draws of each hill: none of a mode that is not among them."""
    made = Cloud(BOX.joint, BOX.joint.log_likelihood_at)
    with np.errstate(all="ignore"):
        for centre, sd in hills:
            made.grow(Warped(identity(2), one_hill(np.full(2, centre), 1.1 * sd * np.eye(2), 5.0)), n, rng)
    return made


def of(clouds, rng, counts=None):
    with np.errstate(all="ignore"):
        union = clouds[0]
        for other in clouds[1:]:
            union = union.merged(other)
        return captured(union, clouds, counts or [True] * len(clouds), rng, None)


def missed(hits, k, rng, n=400_000):
    """By simulation: the chance p that a replicate finds an island, given what came about, and that k more do not find it."""
    a, b = CAPTURE_PRIOR
    draws = (1 - rng.beta(a + hits, b + k - hits, n)) ** k
    return draws.mean(), draws.std() / np.sqrt(n)


def test_two_that_share_both_modes_leave_little(rng):
    found = of([cloud(rng, WIDE, NARROW), cloud(rng, WIDE, NARROW)], rng)
    expected, error = missed(2.0, 2, rng)
    assert found.replicates == 2 and abs(found.missed - expected) < 5 * error < 1e-3


@pytest.mark.parametrize("k", [3, 4])
def test_more_that_share_all_leave_less(k, rng):
    found = of([cloud(rng, WIDE, NARROW) for _ in range(k)], rng)
    expected, error = missed(float(k), k, rng)
    assert abs(found.missed - expected) < 5 * error
    assert found.missed < missed(k - 1.0, k - 1, rng)[0]


@pytest.mark.parametrize("mode, side", [(WIDE, 1), (NARROW, -1)])
def test_what_one_alone_has_found_counts_by_its_share_of_the_evidence(mode, side, rng):
    """Found twice: the share w of one mode; once, the rest: h = 1 + w."""
    found = of([cloud(rng, WIDE, NARROW), cloud(rng, mode)], rng)
    share = BOX.share(lambda x: side * x[:, 0] < 0)
    expected, error = missed(1 + share, 2, rng)
    # Shares of 1 500 draws of each hill, of weights that vary by about one: 0.03 at five errors, and the slope in h.
    slope = abs(missed(1 + share - 0.03, 2, rng)[0] - expected)
    assert abs(found.missed - expected) < slope + 5 * error
    shared = of([cloud(rng, WIDE, NARROW), cloud(rng, WIDE, NARROW)], rng)
    assert found.missed > shared.missed + 2 * slope  # negative control


def test_those_that_are_vague_have_captured_nothing(rng):
    clouds = [cloud(rng, WIDE, NARROW), cloud(rng, WIDE, NARROW)]
    for counts, hits in (([True, False], 1.0), ([False, False], 0.0)):
        expected, error = missed(hits, 2, rng)
        assert abs(of(clouds, rng, counts).missed - expected) < 5 * error
    assert of(clouds, rng, [False, False]).scatter == 0.0


def test_without_replicates_nothing_is_said():
    assert Capture() == (0, 0.0, 0.0)


def test_scatter_is_that_of_their_evidences_about_the_union(rng):
    """One that says 0.3 nats too much: root mean square of 0.3 and 0, to five errors of the evidences."""
    clouds = [cloud(rng, WIDE, NARROW), cloud(rng, WIDE, NARROW)]
    error = np.hypot(*(each.log_evidence()[1] for each in clouds))
    assert 0 < of(clouds, rng).scatter < 5 * error < 0.15
    union = clouds[0].merged(clouds[1])
    clouds[1].log_likelihood = clouds[1].log_likelihood + 0.3
    planted = captured(union, clouds, [True, True], rng, None).scatter
    assert abs(planted - 0.3 / np.sqrt(2)) < 5 * error


def test_scatter_is_on_the_islands_that_each_has_captured(rng):
    """What misses a mode is compared on the other alone: its ln Z is low by 0.36, its scatter is not."""
    clouds = [cloud(rng, WIDE, NARROW), cloud(rng, WIDE)]
    error = np.hypot(*(each.log_evidence()[1] for each in clouds))
    apart = clouds[0].log_evidence()[0] - clouds[1].log_evidence()[0]
    assert apart > 5 * error and of(clouds, rng).scatter < 5 * error
