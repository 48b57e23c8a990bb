r"""InfoNCE: contrast the two views of a node with all other nodes.

Let u_i, v_i be the rows of two views (n x d), normalized to unit length, and f(a, b) = exp(a'b / tau). For an anchor
u_i

    P_i = f(u_i, v_i) + sum over (i, j) in E1 of w_ij f(u_i, u_j)
    N_i = sum over j of f(u_i, v_j) [j != i, (i, j) not in E2] + sum over j of f(u_i, u_j) [j != i, (i, j) not in E1]
    loss_i = -log P_i / (P_i + N_i)

The first sum of N_i has the inter-view negatives, the second the intra-view negatives. E1 and E2 are optional sets of
pairs, one per view, with weights w >= 0. Their pairs are soft positives and not negatives. A pair of weight 0 is
neither. For an anchor v_i the views swap roles. The loss is the mean of loss_i over the anchors of both views.

- GRACE, GCA: the default, -log f(u_i, v_i) / (sum_j f(u_i, v_j) + sum_{j != i} f(u_i, u_j)).
- COSTA, DirectCLR, and the paper of gCooL: ``intra=False``. The released code of gCooL: ``symmetric=False`` as well.
- MERIT: the default between the online predictions, and ``intra=False, symmetric=False`` against the constant targets.
- HomoGCL: ``pairs`` are the edges of each view with their saliency (`ssge.objectives.homophily`) as weights.

The negatives are sums over the 2n x 2n similarities of all pairs of rows. This matrix is symmetric and never formed:
each tile of its upper triangle serves the anchors of its rows and those of its columns, and is recomputed for the
gradient. Both passes together take 8 n^2 d multiply-adds, 4 n^2 d without intra-view negatives, and O(n d +
tile^2) memory.

Differences from the released codes: they hold four n x n matrices, that of HomoGCL about ten. That of HomoGCL also
counts f(u_i, v_i) among the negatives. Here a row of zeros stays zero and gets a bounded gradient. If tau is below 1/60
in float32, the exponentials would overflow, and the computation uses float64.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.objectives.reconstruction import pair_scores
from ssge.ops.precision import in_float32
from ssge.ops.sampling import Pairs
from ssge.ops.sparse import CSR, row_indices, transpose

TILE = 1024
"""Side of the tiles of similarities. Narrower ones slow down the products, wider ones leave the cache."""

_EXPONENT = {torch.float32: 60.0, torch.float64: 600.0}
"""Largest 1/tau at which sums of exponentials over all nodes, and their inverses, neither overflow nor underflow."""


@in_float32
def infonce(
    u: Tensor,
    v: Tensor,
    temperature: float,
    intra: bool = True,
    symmetric: bool = True,
    pairs: tuple[CSR, CSR] | None = None,
    tile: int = TILE,
) -> Tensor:
    """Return the mean InfoNCE loss of two views.

    Parameters
    ----------
    u, v
        Rows of the two views, n x d; their norms are ignored. If ``v`` needs no gradient, none is computed.
    temperature
        tau, at least 1/600.
    intra
        Whether the other nodes of an anchor's own view are also negatives.
    symmetric
        Whether the rows of both views are anchors, or those of ``u`` only.
    pairs
        E1 and E2 as n x n matrices, each pair once, with the weights w as values. The weights may have a gradient.
    tile
        Side of the tiles of similarities. It affects memory and time, not the loss.
    """
    if not temperature >= 1 / _EXPONENT[torch.float64]:
        raise InputError(f"temperature must be at least 1/600; received {temperature}.")
    dtype = u.dtype
    if 1 / temperature > _EXPONENT[dtype]:
        u, v = u.double(), v.double()
    u, v = unit_rows(u), unit_rows(v)
    negative: Tensor = _Negatives.apply(  # type: ignore[no-untyped-call]
        u, v, temperature, _tiles(u.shape[0], intra, symmetric, tile), _excluded(u.shape[0], pairs, u.device)
    )
    score = (u * v).sum(1) / temperature
    losses = []
    for view, rows in enumerate((u, v) if symmetric else (u,)):
        if pairs is None:
            losses.append((score.exp() + negative[view]).log() - score)
        else:
            positive = score.exp() + _soft_positives(rows, pairs[view], temperature)
            losses.append((positive + negative[view]).log() - positive.log())
    return torch.stack(losses).mean().to(dtype)


def direct_infonce(u: Tensor, v: Tensor, width: int, temperature: float = 0.1, tile: int = TILE) -> Tensor:
    """Return the objective of DirectCLR: inter-view `infonce` of the first ``width`` columns, without a projector.

    The other columns get no direct gradient. They learn through the shared layers.
    """
    if not 1 <= width <= u.shape[1]:
        raise InputError(f"width must be from 1 to {u.shape[1]}, the number of columns; received {width}.")
    return infonce(u[:, :width], v[:, :width], temperature, intra=False, tile=tile)


def unit_rows(x: Tensor) -> Tensor:
    """Normalize rows to unit length; a row of zeros stays zero, with a bounded gradient."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return x / norm.masked_fill(norm == 0, 1)


def _soft_positives(rows: Tensor, pairs: CSR, temperature: float) -> Tensor:
    """Return the sum over (i, j) in E of w_ij f(u_i, u_j) per node i."""
    scores = pair_scores(rows, Pairs(pairs, *transpose(pairs, rows.shape[0]))) / temperature
    weighted = pairs.values.to(rows.dtype) * scores.exp()
    return rows.new_zeros(rows.shape[0]).index_add(0, row_indices(pairs.indptr), weighted)


class _Excluded(NamedTuple):
    """Entries of the 2n x 2n similarities that are not negatives, in the order of the rows.

    Attributes
    ----------
    start
        Where each row begins.
    row, column
        Positions.
    to_row, to_column
        0 if the entry is not a negative of its row, or of its column; else 1.
    """

    start: Tensor
    row: Tensor
    column: Tensor
    to_row: Tensor
    to_column: Tensor

    def within(self, top: int, bottom: int, left: int, right: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the entries in a tile, their positions relative to it."""
        part = slice(int(self.start[top]), int(self.start[bottom]))
        column = self.column[part]
        inside = ((column >= left) & (column < right)).nonzero().squeeze(1)
        to_row, to_column = self.to_row[part][inside], self.to_column[part][inside]
        return self.row[part][inside] - top, column[inside] - left, to_row, to_column


def _excluded(n: int, pairs: tuple[CSR, CSR] | None, device: torch.device) -> _Excluded:
    """Exclude node i itself in both views, and its pairs in each view, from the negatives of both u_i and v_i."""
    node = torch.arange(n, device=device)
    anchors, others = [node, node], [node, node + n]
    for view, rows in enumerate(pairs or ()):
        anchors.append(row_indices(rows.indptr).long())
        others.append(rows.indices.long() + view * n)
    anchor, other, size = torch.cat(anchors), torch.cat(others), 2 * n
    keys = torch.cat([anchor * size + other, (anchor + n) * size + other])
    mirrored = keys % size * size + keys // size
    both: Tensor = torch.unique(torch.cat([keys, mirrored]))
    row = both // size
    start = torch.searchsorted(row, torch.arange(size + 1, device=device))
    return _Excluded(start, row, both % size, ~torch.isin(both, keys), ~torch.isin(both, mirrored))


def _tiles(n: int, intra: bool, symmetric: bool, side: int) -> list[tuple[int, int, int, int]]:
    """Return disjoint tiles (top, bottom, left, right) of the upper triangle that cover all negatives.

    A tile on the diagonal is square and contains both (i, j) and (j, i); all other tiles are strictly above it.
    """
    edges = [*range(0, n, side), *range(n, 2 * n, side), 2 * n]
    spans = list(pairwise(edges))
    return [
        (*rows, *columns)
        for place, rows in enumerate(spans)
        for columns in spans[place:]
        if (intra or rows[0] < n <= columns[0]) and (symmetric or rows[0] < n)
    ]


class _Negatives(torch.autograd.Function):
    r"""N as a 2 x n matrix: the sums over the negatives of the anchors in u, and of those in v.

    Let z be the rows of u above those of v, K_ij = f(z_i, z_j), M_ij = 1 where j is a negative of i and 0 elsewhere,
    and g the gradient of N as a vector of 2n numbers. Then dz = (1/tau) (K * (g_i M_ij + g_j M_ji)) z, the product of
    a symmetric matrix with z.
    """

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, v: Tensor, temperature: float, tiles: list[tuple[int, int, int, int]], excluded: _Excluded
    ) -> Tensor:
        ctx.save_for_backward(u, v)
        ctx.setting = temperature, tiles, excluded
        z = torch.cat([u, v])
        scaled, room = z / temperature, z.new_empty(_largest(tiles))
        total = z.new_zeros(z.shape[0])
        for top, bottom, left, right in tiles:
            kernel = _product(scaled[top:bottom], z[left:right], room).exp_()
            row, column, to_row, to_column = excluded.within(top, bottom, left, right)
            entries = kernel[row, column]
            kernel[row, column] = entries * to_row
            total[top:bottom] += kernel.sum(1)
            if left > top:
                kernel[row, column] = entries * to_column
                total[left:right] += kernel.sum(0)
        return total.view(2, -1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        u, v = ctx.saved_tensors
        temperature, tiles, excluded = ctx.setting
        z, g = torch.cat([u, v]), gradient.reshape(-1)
        scaled, (room, other_room) = z / temperature, z.new_empty(2, _largest(tiles))
        slope = torch.zeros_like(z)
        end = z.shape[0] if ctx.needs_input_grad[1] else u.shape[0]  # rows beyond it need no gradient
        for top, bottom, left, right in tiles:
            kernel = _product(scaled[top:bottom], z[left:right], room).exp_()
            row, column, to_row, to_column = excluded.within(top, bottom, left, right)
            entries = kernel[row, column] * (g[top:bottom][row] * to_row + g[left:right][column] * to_column)
            kernel *= torch.add(g[top:bottom, None], g[left:right], out=other_room[: kernel.numel()].view_as(kernel))
            kernel[row, column] = entries
            if top < end:
                slope[top:bottom].addmm_(kernel, scaled[left:right])
            if top < left < end:
                slope[left:right].addmm_(kernel.t(), scaled[top:bottom])
        return *slope.view(2, *u.shape), None, None, None


def _product(a: Tensor, b: Tensor, room: Tensor) -> Tensor:
    """Return a b' in reused memory, because allocating each tile takes longer than the sums."""
    return torch.mm(a, b.t(), out=room[: a.shape[0] * b.shape[0]].view(a.shape[0], b.shape[0]))


def _largest(tiles: list[tuple[int, int, int, int]]) -> int:
    return max((bottom - top) * (right - left) for top, bottom, left, right in tiles)
