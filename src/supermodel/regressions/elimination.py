r"""$\ln B(g)$ with the effects of one grouping taken out group by group, which is quick where groups are many.

Rows of different groups share no column of $Z$, the group-level part of the design, so that $M = I + D Z^T Z D$ falls into a
small block for each group. With $F$ the other columns, the intercept and y among them, what is left is the Schur complement
$F^T F - F^T Z D M^{-1} D Z^T F$, as small as if there were no groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supermodel.regressions.blocks import Block

CHUNK = 4e6  # numbers in a batch of matrices


class Elimination:
    """ln B given g of a design of which at least one block is a group-level one; y is centred and of length 1."""

    def __init__(self, y: np.ndarray, blocks: Sequence[Block], intercept: bool):
        codes = max((b.groups for b in blocks if b.groups is not None), key=lambda groups: groups.max())
        inside, outside = [b for b in blocks if b.groups is codes], [b for b in blocks if b.groups is not codes]
        self.n, self.dof, self.intercept = len(y), len(y) - intercept, intercept
        self.n_groups = int(codes.max()) + 1
        # One column for each effect that a group has: the row's own group is the only one whose column is not zero there.
        rows = np.arange(self.n)
        z = np.hstack([b.columns.values.reshape(self.n, -1, self.n_groups)[rows, :, codes] for b in inside])
        f = np.column_stack([np.ones((self.n, int(intercept))), *(b.columns.values for b in outside), y])
        if intercept:
            f[:, 1:] -= f[:, 1:].mean(axis=0)
        order = {id(b): k for k, b in enumerate(blocks)}
        self.inside = np.repeat([order[id(b)] for b in inside], [b.size // self.n_groups for b in inside])
        self.outside = np.repeat([order[id(b)] for b in outside], [b.size for b in outside]).astype(int)
        self.ff, self.zz, self.zf = f.T @ f, *self._by_group(z, f, codes)

    def _by_group(self, z: np.ndarray, f: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Z'Z and Z'F of every group."""
        zz, zf = np.zeros((self.n_groups, z.shape[1], z.shape[1])), np.zeros((self.n_groups, z.shape[1], f.shape[1]))
        np.add.at(zz, codes, z[:, :, None] * z[:, None, :])
        np.add.at(zf, codes, z[:, :, None] * f[:, None, :])
        return zz, zf

    def log_bayes_factor_at(self, log_g: np.ndarray) -> np.ndarray:
        """ln B given g: (m, blocks) to (m,)."""
        batch = max(int(CHUNK / (self.zz.size + self.zf.size)), 1)
        return np.concatenate([self._batch(log_g[i : i + batch]) for i in range(0, len(log_g), batch)])

    def _batch(self, log_g: np.ndarray) -> np.ndarray:
        root_g, one = np.exp(0.5 * log_g), np.ones((len(log_g), 1))
        inner = root_g[:, self.inside]  # (m, k)
        outer = np.hstack([*([one] if self.intercept else []), root_g[:, self.outside], one])  # (m, f)
        small = inner[:, None, :, None] * self.zz * inner[:, None, None, :] + np.eye(len(self.inside))
        factor = np.linalg.cholesky(small)
        half = np.linalg.solve(factor, inner[:, None, :, None] * self.zf * outer[:, None, None, :])
        half = half.reshape(len(log_g), -1, outer.shape[1])
        left = outer[:, :, None] * self.ff * outer[:, None, :] - half.swapaxes(1, 2) @ half
        own = np.arange(len(self.outside)) + self.intercept
        left[:, own, own] += 1.0
        pivots = np.log(np.diagonal(np.linalg.cholesky(left), axis1=1, axis2=2))
        log_det = np.log(np.diagonal(factor, axis1=2, axis2=3)).sum(axis=(1, 2))
        flat = 0.5 * np.log(self.n) if self.intercept else 0.0  # the intercept's pivot without any effects
        return flat - log_det - pivots[:, :-1].sum(axis=1) - self.dof * pivots[:, -1]
