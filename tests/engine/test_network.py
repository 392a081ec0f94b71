"""Which pairs are joined: the tree of least cost, and gaps that are known."""

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from engine_problems import Conjugate, meter
from supermodel.embedding.reference import standard_normal
from supermodel.engine.network import candidates, grow, joined, measure


def test_the_tree_of_a_made_graph():
    """Nodes 0, 1, 2 and the reference 3: 0 is near it, 1 is near 0, 2 is far from all."""
    costs = {(0, 3): 1.0, (1, 3): 9.0, (2, 3): 50.0, (0, 1): 2.0, (1, 2): 40.0, (0, 2): 60.0}
    assert grow(3, costs) == [(0, 3), (0, 1), (1, 2)]
    assert grow(3, costs | {(2, 3): 30.0}) == [(0, 3), (0, 1), (2, 3)]


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_tree_costs_no_more_than_any_other(n, rng):
    """SciPy's minimum spanning tree of a random graph in which every model is joined to the reference."""
    costs = {(i, n): float(rng.uniform(1, 9)) for i in range(n)}
    costs |= {(i, j): float(rng.uniform(1, 9)) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6}
    matrix = np.zeros((n + 1, n + 1))
    for pair, cost in costs.items():
        matrix[pair] = cost
    tree = grow(n, costs)
    assert len(tree) == n and {k for pair in tree for k in pair} == set(range(n + 1))
    assert sum(costs[pair] for pair in tree) == pytest.approx(minimum_spanning_tree(matrix).sum())


def test_an_exact_pilot_leaves_no_gap(rng):
    problem = Conjugate(3)
    pilot = problem.pilot(rng)
    found = measure(joined(pilot, None), pilot, None, rng, meter())
    assert found.gap.length < 1e-6 and pilot.acceptance > 1 - 1e-6
    assert found.gap.mean_first == pytest.approx(problem.log_evidence) == found.gap.mean_second
    assert problem.calls == 64  # at draws of the reference; those of the model have been evaluated already


def test_a_pilot_that_is_off_leaves_a_gap_of_as_many_nats(rng):
    r"""$\ln J - \ln r = \ln Z + \delta u - \delta^2/2$: the spread is delta at either end.

    64 draws: a standard deviation is known to 1/sqrt(128) = 9%; 4.9 of these are one false alarm in 1e6.
    """
    problem, delta = Conjugate(1), 1.5
    pilot = problem.pilot(rng, off=delta)
    found = measure(joined(pilot, None), pilot, None, rng, meter()).gap
    for spread in (found.spread_first, found.spread_second):
        assert abs(np.log(spread / delta)) < 4.9 / np.sqrt(128)
    assert found.mean_first > problem.log_evidence > found.mean_second
    assert pilot.acceptance < 0.6


def test_two_models_with_each_other(rng):
    """ln J_a - ln J_b is ln B everywhere, if both warps are exact; the draws are those of either model."""
    one, two = Conjugate(2, name="one"), Conjugate(2, sigma=0.9, name="two")
    first, second = one.pilot(rng), two.pilot(rng)
    pair = joined(first, second)
    found = measure(pair, first, second, rng, meter())
    assert pair.names == ("one", "two") and pair.dimension == 2 and found.gap.length < 1e-6
    assert found.gap.mean_first == pytest.approx(one.log_evidence - two.log_evidence)
    assert np.allclose(found.starts[0], (first.points - one.mean) / one.sd)
    assert np.allclose(found.starts[1], (second.points - two.mean) / two.sd)
    assert joined(first, second, share=False).dimension == 4
    assert joined(first, second, share=["x00", "unknown"]).dimension == 3


def test_only_models_that_are_far_and_share_parameters_are_joined_directly(rng):
    near, far, other = (Conjugate(2, name=name).pilot(rng) for name in ("near", "far", "other"))
    stranger = Conjugate(2, name="stranger").pilot(rng)
    stranger.joint.space.__dict__["priors"] = {"z": None}
    near.spread, far.spread, other.spread, stranger.spread = 0.01, 9.0, 8.0, 9.0
    pilots = [near, far, other, stranger]
    to_reference = [(i, 4) for i in range(4)]
    assert candidates(pilots, 0.1) == [*to_reference, (1, 2)]
    hilly = standard_normal(2)
    far.reference = hilly._replace(
        hills=hilly.hills._replace(log_weights=np.zeros(3))
    )  # hills: no common whitened shape
    assert candidates(pilots, 0.1) == to_reference
