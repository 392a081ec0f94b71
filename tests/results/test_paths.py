"""ln Z_a - ln Z_b as a signed sum of edges."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from supermodel.results.paths import paths


@given(st.integers(2, 9), st.randoms(use_true_random=False))
def test_signed_sums_along_any_tree_give_every_difference(n, random):
    """Planted values on the nodes of a random tree: the sum of the edges' differences is that of the ends."""
    value = np.arange(n) ** 2.0
    edges = [(k, random.randrange(k)) if random.random() < 0.5 else (random.randrange(k), k) for k in range(1, n)]
    gap = np.array([value[a] - value[b] for a, b in edges])
    for root in range(n):
        found = paths(edges, root)
        assert len(found) == n
        assert all(found[k] @ gap == value[k] - value[root] for k in range(n))
        assert any(-found[k] @ gap != value[k] - value[root] for k in range(n))  # a sign turned is seen


def test_what_no_edge_reaches_is_left_out():
    assert set(paths([("a", "b"), ("c", "d")], "a")) == {"a", "b"}
