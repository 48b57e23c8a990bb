r"""Held-out scores: how well a block of columns predicts held-out features and neighbors, without labels.

Feature columns and edges are split at random into two halves each. A block B (n x d) is computed from one half of both,
by propagation or by a trained encoder. The other half, features X_b and edges E_b, gives two targets: the node's own
X_b, and N, the mean of X_b over its neighbors in E_b. The kernels of block and target, both with centered columns, are
compared over pairs of different nodes:

.. math:: \rho(B, T) = \frac{\langle K, L \rangle}{\sqrt{\langle K, K \rangle \langle L, L \rangle}}, \qquad
   \langle K, L \rangle = \sum_{i \ne j} K_{ij} L_{ij}, \quad K = B B', \; L = T T',

which is centered kernel alignment (Cortes et al., 2012) with held-out data instead of labels. The score of a block is

.. math:: s(B) = \rho(B, X_b) + 2 \rho(B, N).

Neighbors have twice the weight, because both halves of a node's own columns share properties of the node, such as the
length of its text. For the same reason the halves of the features have a flatter spectrum, :math:`X (X' X)^{-1/4}`, so
that no single direction dominates. With heterophily N is noise: it adds nothing to any block, and the first term
decides. Without the diagonal, noise has an alignment of 0 on average. Moments suffice,
:math:`\langle K, L \rangle = \|B' T\|_F^2 - \sum_i \|b_i\|^2 \|t_i\|^2`: the cost is linear in the nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from ssge.ops.adjacency import Adjacency
from ssge.ops.features import Features
from ssge.ops.random import Key
from ssge.ops.reduction import right_singular_vectors
from ssge.ops.sparse import spmm

Maker: TypeAlias = Callable[[Features, Adjacency, Tensor], Iterable[Tensor]]
"""Computes blocks (n x d) from half of the features, half of the edges, and the reduced features."""

NEIGHBORS = 2.0
"""Weight of the alignment with neighbors, relative to that with the node's own features."""
_COLUMNS = 256
_ROWS = 1 << 13
_ITERATIONS = 2


@torch.no_grad()
def held_out_scores(features: Features, adjacency: Adjacency, make: Maker) -> Tensor:
    """Return the score of each block, from 0 to 3 (float64).

    The two halves swap roles, and the mean of both folds is returned. Halves of the features are first reduced to at
    most 256 columns. At most 8,192 nodes are compared.
    """
    found = []
    for fold in _folds(features, adjacency):
        blocks = make(fold.features, fold.adjacency, fold.given)
        found.append([sum(target.alignment(block) for target in fold.targets) for block in blocks])
    return torch.tensor(found, dtype=torch.float64).mean(0)


def noise(num_nodes: int) -> float:
    r"""Return the standard deviation of the score of a block that is independent of the targets.

    The alignment of n nodes in random order has the standard deviation :math:`\sqrt 2 / n`. The two alignments have the
    weights 1 and 2, and the score is the mean of two folds: :math:`\sqrt{(1 + 2^2) \cdot 2 / 2} / n`.
    """
    return math.sqrt(1 + NEIGHBORS**2) / min(num_nodes, _ROWS)


class Kernel:
    """The kernel of the rows of a matrix with centered columns, over pairs of different rows."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows - rows.mean(0)
        if self.rows.square().sum() <= (10 * torch.finfo(rows.dtype).eps) ** 2 * rows.square().sum():
            self.rows.zero_()  # rounding noise of constant columns
        self.squares = self.rows.square().sum(1).double()
        self.size = self.inner(self)

    def inner(self, other: Kernel) -> float:
        """Return the sum of products of the two kernels."""
        product = (self.rows.T @ other.rows).double()
        return float(product.square().sum() - self.squares @ other.squares)

    def alignment(self, other: Kernel) -> float:
        """Return the normalized inner product of the two kernels; 0 if one is zero."""
        if min(self.size, other.size) <= 0:
            return 0.0
        return self.inner(other) / math.sqrt(self.size * other.size)


class _Target(NamedTuple):
    """A target: the kernel of some nodes, and its weight."""

    nodes: Tensor
    kernel: Kernel
    weight: float

    def alignment(self, block: Tensor) -> float:
        """Return the weighted alignment of a block, clipped at 0."""
        return self.weight * max(0.0, Kernel(block[self.nodes]).alignment(self.kernel))


class _Fold(NamedTuple):
    """Half of a graph with its reduced features, and the targets from the other half."""

    features: Features
    adjacency: Adjacency
    given: Tensor
    targets: tuple[_Target, ...]


def _folds(features: Features, adjacency: Adjacency) -> Iterator[_Fold]:
    (n, p), device, key = features.shape, features.device, Key(0).fold_in("held out")
    columns = torch.zeros(p, dtype=torch.bool, device=device)
    columns[key.fold_in("columns").permutation(p, device)[: p // 2]] = True
    ids = adjacency.pattern.edge_ids
    source, target = ids >> 32, ids & 0xFFFFFFFF
    pairs = torch.minimum(source, target) << 32 | torch.maximum(source, target)  # both directions are in the same half
    edges = key.fold_in("edges").keep(pairs, 0.5)
    order = key.fold_in("nodes").permutation(n, device)
    halves = [features.mask(columns), features.mask(~columns)]
    reduced = [_flattened(half @ right_singular_vectors(half, min(_COLUMNS, p), _ITERATIONS)) for half in halves]
    for half, given, held, gone in zip(halves, reduced, reduced[::-1], (~edges, edges), strict=True):
        part, rest = (adjacency.drop_edges(key, dropped.to(torch.float32)) for dropped in (gone, ~gone))
        neighbors, means = _neighbor_means(rest, held, order)
        own = order[:_ROWS]
        targets = _Target(own, Kernel(held[own]), 1.0), _Target(neighbors, Kernel(means), NEIGHBORS)
        yield _Fold(half, part, given, targets)


def _flattened(x: Tensor) -> Tensor:
    """Return x (x'x)^(-1/4) of centered columns, without directions that are rounding noise."""
    centered = x - x.mean(0)
    values, vectors = torch.linalg.eigh((centered.T @ centered).double())
    eps = torch.finfo(x.dtype).eps
    kept = values > max((10 * eps) ** 2 * float(x.square().sum()), 10 * eps * float(values[-1:].sum()))
    powers = torch.where(kept, values.clamp_min(torch.finfo(values.dtype).tiny).rsqrt().sqrt(), 0)
    flattened: Tensor = centered @ (vectors * powers).to(x.dtype)
    return flattened


def _neighbor_means(adjacency: Adjacency, x: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first nodes of an order with in-neighbors, and their weighted neighbor means of x."""
    edges = adjacency.entries[0]
    nodes = order[(edges.indptr.diff() > 1)[order]][:_ROWS]  # one entry is the self-loop
    sums = spmm(edges, torch.cat([x, x.new_ones(x.shape[0], 1)], 1))
    sums[:, :-1] -= x
    sums[:, -1] -= 1
    return nodes, (sums[:, :-1] / sums[:, -1:])[nodes]
