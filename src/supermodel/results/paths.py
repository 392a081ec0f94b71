"""Which edges a difference of evidences runs through: ln Z_a - ln Z_b is a sum of edges, each with a sign."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

Node = TypeVar("Node", bound=Hashable)


def paths(edges: Sequence[tuple[Node, Node]], root: Node) -> dict[Node, np.ndarray]:
    """{node: (n_edges,)}: +1 for each edge (first, second) that ln Z_node - ln Z_root goes along, -1 against, else 0.

    Nodes that no edge joins to the root are left out.

    >>> paths([("a", "root"), ("b", "a")], "root")["b"].tolist()
    [1.0, 1.0]
    """
    reached = {root: np.zeros(len(edges))}
    grew = True
    while grew:
        grew = False
        for e, (first, second) in enumerate(edges):
            for new, old, sign in ((first, second, 1.0), (second, first, -1.0)):
                if old in reached and new not in reached:
                    reached[new] = reached[old].copy()
                    reached[new][e] += sign
                    grew = True
    return reached
