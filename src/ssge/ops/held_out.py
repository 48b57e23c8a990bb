r"""Held-out features: how well the rows of a block tell which nodes have similar features that it was not made of.

The columns of X fall at random into two halves, X_a and X_b. A block B is made of X_a alone, by propagation or by a
trained encoder whose input lacks X_b. The kernels of B and X_b, both with centered columns, are compared over pairs of
different nodes:

.. math:: \rho = \frac{\langle K, L \rangle}{\sqrt{\langle K, K \rangle \langle L, L \rangle}}, \qquad
   \langle K, L \rangle = \sum_{i \ne j} K_{ij} L_{ij}, \quad K = B B', \; L = X_b X_b'.

This is centered kernel alignment (Cortes et al., 2012) with held-out features in place of labels. Where neighbors are
alike, propagated features are better aligned than a node's own; where edges join strangers, they are worse, and so is
an encoder that has washed the features out. Without the diagonal, noise has an alignment of 0 on average. It needs
moments only, :math:`\langle K, L \rangle = \|B' X_b\|_F^2 - \sum_i \|b_i\|^2 \|x_i\|^2`: linear in the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from ssge.ops.features import Features
from ssge.ops.random import Key
from ssge.ops.reduction import right_singular_vectors

Maker: TypeAlias = Callable[[Features, Tensor], Tensor]
"""Makes a block (n x d) of the features without the held-out columns, and of the same reduced to few columns."""

_COLUMNS = 256
_ROWS = 1 << 13
_ITERATIONS = 2


@torch.no_grad()
def held_out_alignments(features: Features, makers: Sequence[Maker]) -> list[tuple[float, float]]:
    """Return the alignment of each block as it is, and with rows of unit length; between 0 and 1.

    Both halves of the columns play both parts, and the mean of the two is returned. The held-out features come as they
    are and with rows of unit length, and the geometric mean of the two alignments counts. Halves are reduced to at most
    256 columns first. At most 8,192 nodes are compared.
    """
    n, p = features.shape
    if p < 2 or n < 4:
        return [(0.0, 0.0)] * len(makers)
    key = Key(0).fold_in("held out")
    half = torch.zeros(p, dtype=torch.bool, device=features.device)
    half[key.fold_in("columns").permutation(p, features.device)[: p // 2]] = True
    sample = key.fold_in("rows").permutation(n, features.device)[:_ROWS]
    few = [right_singular_vectors(features.mask(kept), min(_COLUMNS, p), _ITERATIONS) for kept in (half, ~half)]
    found = torch.zeros(len(makers), 2, dtype=torch.float64)
    for seen, own, other in ((half, *few), (~half, *few[::-1])):
        given, targets = features @ own, _both(features.select(sample) @ other)
        for index, make in enumerate(makers):
            for scaling, kernel in enumerate(_both(make(features.mask(seen), given)[sample])):
                aligned = [max(0.0, kernel.alignment(target)) for target in targets]
                found[index, scaling] += math.sqrt(math.prod(aligned)) / 2
    return [(plain, unit) for plain, unit in found.tolist()]


class Kernel:
    """The kernel of the rows of a matrix with centered columns, over pairs of different rows."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows - rows.mean(0)
        self.squares = self.rows.square().sum(1).double()
        self.size = self.inner(self)

    def inner(self, other: Kernel) -> float:
        """Return the sum of products of the two kernels."""
        product = (self.rows.T @ other.rows).double()
        return float(product.square().sum() - self.squares @ other.squares)

    def alignment(self, other: Kernel) -> float:
        """Return the sum of products over the sizes of the two kernels; 0 for one that vanishes."""
        if min(self.size, other.size) <= 0:
            return 0.0
        return self.inner(other) / math.sqrt(self.size * other.size)


def unit_rows(rows: Tensor) -> Tensor:
    """Divide each row by its length; a row of zeros stays one."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows / lengths.clamp_min(torch.finfo(rows.dtype).tiny)


def _both(rows: Tensor) -> tuple[Kernel, Kernel]:
    """Return the kernels of rows as they are and of unit length."""
    return Kernel(rows), Kernel(unit_rows(rows))
