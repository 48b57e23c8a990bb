"""Moments of one or two views: sums over nodes, the only input of moment-based objectives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ssge.ops.collective import total, world
from ssge.ops.row_stream import RowStream, streamed_moments

_ROWS = 2048
_BLOCK = 128


class Moments(NamedTuple):
    """First and second moments of the columns of Z1 and Z2 (n x d).

    Attributes
    ----------
    n
        Number of rows, summed over all processes.
    means
        Column means, one vector per view.
    scatter
        Zc' Zc of the centered columns (d x d), one matrix per view.
    cross
        Column-wise products of the two centered views, ``sum_i Zc1_ij Zc2_ij`` (d); None for one view.
    """

    n: int
    means: tuple[Tensor, ...]
    scatter: tuple[Tensor, ...]
    cross: Tensor | None


def moments(z1: Tensor, z2: Tensor | None = None, weight: Tensor | None = None) -> Moments:
    """Compute the moments of one view or two; differentiable in ``scatter`` and ``cross``.

    In distributed training each process has some rows, and the moments are those of all rows.

    Cost: one product of n d^2 per view forward, of which symmetry saves a third, another backward; Z is centered in
    chunks, never as a whole. For views in bfloat16, products are in bfloat16; means, centering and sums in float32.

    Parameters
    ----------
    z1, z2
        The views, n x d; for graphs larger than memory, row streams instead of matrices.
    weight
        W (d x e): compute the moments of the two views Z W, without forming them. For S = Zc1 + Zc2 the scatter
        matrices of Zc1, of Zc2 and of S suffice: forward and backward take three products of n d^2 each, of which
        symmetry saves a third forward, instead of ten (the layer itself, its two gradients and the moments, twice).
    """
    if z2 is None:
        n, (mean,) = column_means(z1)
        centered = _centered(z1, mean)
        (scatter,) = total((centered.t() @ centered).to(mean.dtype), same=True)
        return Moments(n, (mean,), (scatter,), None)
    if isinstance(z1, RowStream) and isinstance(z2, RowStream):  # streams instead of matrices
        n, (mean1, mean2, scatter1, scatter2, both) = z1.shape[0], streamed_moments(z1, z2, weight is not None)
    else:
        n, (mean1, mean2) = column_means(z1, z2)
        local = _Two.apply(z1, z2, mean1, mean2, weight is not None)  # type: ignore[no-untyped-call]
        scatter1, scatter2, both = total(*local, same=True)
    if weight is None:
        return Moments(n, (mean1, mean2), (scatter1, scatter2), both)
    means, scatters = (mean1, mean2), (scatter1, scatter2)
    with torch.autocast(z1.device.type, enabled=False):
        return Moments(
            n,
            tuple(mean @ weight.detach() for mean in means),
            tuple(weight.t() @ (scatter @ weight) for scatter in scatters),
            (((both - scatter1 - scatter2) / 2 @ weight) * weight).sum(0),
        )


class CrossMoments(NamedTuple):
    """Cross moments of every column of Z1 with every column of Z2 (n x d).

    Attributes
    ----------
    n
        Number of rows.
    means
        Column means, one vector per view.
    squares
        Sum of squares of each centered column (d), one vector per view: the diagonal of its scatter.
    cross
        Zc1' Zc2 of the centered columns (d x d).
    """

    n: int
    means: tuple[Tensor, Tensor]
    squares: tuple[Tensor, Tensor]
    cross: Tensor


def cross_moments(z1: Tensor, z2: Tensor, weight: Tensor | None = None) -> CrossMoments:
    """Compute the cross moments of two views; differentiable in ``squares`` and ``cross``.

    Cost: one product of n d^2 forward and two backward; Z is centered in chunks, never as a whole.

    Parameters
    ----------
    z1, z2
        The views, n x d.
    weight
        W (d x e): compute the moments of the two views Z W, without forming them. Their squares need the scatter of
        both views, so we compute the scatter of [Z1 Z2]: slightly more than two products of n d^2 forward, because it
        is symmetric, and four backward, instead of nine (the layer itself and its two gradients twice, and three).
    """
    n, (mean1, mean2) = column_means(z1, z2)
    if weight is None:
        local = _Cross.apply(z1, z2, mean1, mean2)  # type: ignore[no-untyped-call]
        squares1, squares2, cross = total(*local, same=True)
        return CrossMoments(n, (mean1, mean2), (squares1, squares2), cross)
    local = _Joint.apply(z1, z2, mean1, mean2)  # type: ignore[no-untyped-call]
    scatter1, scatter2, cross = total(*local, same=True)
    fixed = weight.detach()
    with torch.autocast(z1.device.type, enabled=False):
        return CrossMoments(
            n,
            (mean1 @ fixed, mean2 @ fixed),
            (((scatter1 @ weight) * weight).sum(0), ((scatter2 @ weight) * weight).sum(0)),
            weight.t() @ (cross @ weight),
        )


def column_means(*matrices: Tensor) -> tuple[int, list[Tensor]]:
    """Return the number of rows and the means of the columns of matrices, over all processes; without gradient."""
    with torch.no_grad():
        if world() == 1:
            return matrices[0].shape[0], [_mean(matrix) for matrix in matrices]
        rows = torch.tensor([matrices[0].shape[0]], dtype=torch.float64, device=matrices[0].device)
        n, *sums = total(rows, *(matrix.sum(0, dtype=torch.float64) for matrix in matrices))
        return int(n), [(each / n).to(_sum_dtype(matrix)) for each, matrix in zip(sums, matrices, strict=True)]


class CollapseWarning(UserWarning):
    """Warning: the representation has collapsed dimensions, or too few rows for its width."""


def deviations(scatter: Tensor, mean: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return the column standard deviations s (ddof 1) and 1/s; a constant column gets s = 1 and 1/s = 0, never NaN.

    A column is constant if its standard deviation is within the rounding error of its mean. ``scatter`` is Zc'Zc or its
    diagonal.
    """
    variance = (scatter.diagonal() if scatter.dim() == 2 else scatter) / max(n - 1, 1)
    with torch.no_grad():
        rounding = 8 * torch.finfo(mean.dtype).eps * mean.abs()
        constant = variance <= rounding.square().clamp_min(torch.finfo(mean.dtype).tiny)
        if bool(constant.any()):
            warnings.warn(
                f"{int(constant.sum())} of {constant.numel()} columns of the representation are constant: "
                "they carry no information and get no gradient.",
                CollapseWarning,
                stacklevel=2,
            )
    deviation = torch.where(constant, torch.ones_like(variance), variance).sqrt()
    return deviation, (~constant) / deviation


def inverse_deviations(m: Moments | CrossMoments) -> list[Tensor]:
    """Return 1/s of each view, as in `deviations`."""
    scatters = m.scatter if isinstance(m, Moments) else m.squares
    return [deviations(scatter, mean, m.n)[1] for scatter, mean in zip(scatters, m.means, strict=True)]


def correlation(scatter: Tensor, inverse_deviation: Tensor, n: int) -> Tensor:
    """Return R = diag(1/s) Zc'Zc / (n-1) diag(1/s)."""
    return scatter * (inverse_deviation / max(n - 1, 1)).unsqueeze(1) * inverse_deviation


class _Two(torch.autograd.Function):
    """Scatter of both views, and their column-wise cross products or the scatter of their sum.

    Centering adds no term to the gradient: centered columns sum to zero, and so do those of the result.
    """

    @staticmethod
    def forward(ctx: Any, z1: Tensor, z2: Tensor, mean1: Tensor, mean2: Tensor, whole: bool) -> tuple[Tensor, ...]:
        scatter1, scatter2, both = (mean1.new_zeros(z1.shape[1], z1.shape[1]) for _ in range(3))
        both = both if whole else both[0]
        for rows1, rows2 in _pieces(z1, z2):
            c1, c2 = _centered(rows1, mean1), _centered(rows2, mean2)
            _add_upper(scatter1, c1)
            _add_upper(scatter2, c2)
            if whole:
                _add_upper(both, c1.add_(c2))
            else:
                both += c1.mul_(c2).sum(0, dtype=both.dtype)
        ctx.save_for_backward(z1, z2, mean1, mean2)
        ctx.whole = whole
        return _mirrored(scatter1), _mirrored(scatter2), _mirrored(both) if whole else both

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scatter1, scatter2, both = gradients
        z1, z2, mean1, mean2 = ctx.saved_tensors
        g12 = both + both.t() if ctx.whole else both
        g1, g2, g12 = (g.to(z1.dtype) for g in (scatter1 + scatter1.t(), scatter2 + scatter2.t(), g12))
        d1, d2 = torch.empty_like(z1), torch.empty_like(z2)
        for rows1, rows2, out1, out2 in _pieces(z1, z2, d1, d2):
            c1, c2 = _centered(rows1, mean1), _centered(rows2, mean2)
            if ctx.whole:
                out2.copy_(torch.mm(c1 + c2, g12, out=out1))
                out1.addmm_(c1, g1)
                out2.addmm_(c2, g2)
            else:
                torch.mm(c1, g1, out=out1).addcmul_(c2, g12)
                torch.mm(c2, g2, out=out2).addcmul_(c1, g12)
        return d1, d2, None, None, None


class _Cross(torch.autograd.Function):
    """Squared norms of the columns of both views, and all cross products."""

    @staticmethod
    def forward(ctx: Any, z1: Tensor, z2: Tensor, mean1: Tensor, mean2: Tensor) -> tuple[Tensor, ...]:
        squares1, squares2, cross = (
            torch.zeros_like(mean1),
            torch.zeros_like(mean2),
            mean1.new_zeros(z1.shape[1], z2.shape[1]),
        )
        for rows1, rows2 in _pieces(z1, z2):
            c1, c2 = _centered(rows1, mean1), _centered(rows2, mean2)
            _add_product(cross, c1, c2)
            squares1 += c1.square_().sum(0, dtype=mean1.dtype)
            squares2 += c2.square_().sum(0, dtype=mean2.dtype)
        ctx.save_for_backward(z1, z2, mean1, mean2)
        return squares1, squares2, cross

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        z1, z2, mean1, mean2 = ctx.saved_tensors
        squares1, squares2, cross = (gradient.to(z1.dtype) for gradient in gradients)
        d1, d2 = torch.empty_like(z1), torch.empty_like(z2)
        for rows1, rows2, out1, out2 in _pieces(z1, z2, d1, d2):
            c1, c2 = _centered(rows1, mean1), _centered(rows2, mean2)
            torch.mm(c2, cross.t(), out=out1).addcmul_(c1, squares1, value=2)
            torch.mm(c1, cross, out=out2).addcmul_(c2, squares2, value=2)
        return d1, d2, None, None


class _Joint(torch.autograd.Function):
    """The scatter of the concatenated columns of both views: within each view and across views."""

    @staticmethod
    def forward(ctx: Any, z1: Tensor, z2: Tensor, mean1: Tensor, mean2: Tensor) -> tuple[Tensor, ...]:
        d = z1.shape[1]
        scatter = mean1.new_zeros(2 * d, 2 * d)
        for rows1, rows2 in _pieces(z1, z2):
            _add_upper(scatter, _side_by_side(rows1, rows2, mean1, mean2))
        ctx.save_for_backward(z1, z2, mean1, mean2)
        cross = scatter[:d, d:].contiguous()
        return _mirrored(scatter[:d, :d]), _mirrored(scatter[d:, d:]), cross

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scatter1, scatter2, cross = gradients
        z1, z2, mean1, mean2 = ctx.saved_tensors
        g1 = torch.cat([scatter1 + scatter1.t(), cross.t()]).to(z1.dtype)
        g2 = torch.cat([cross, scatter2 + scatter2.t()]).to(z1.dtype)
        d1, d2 = torch.empty_like(z1), torch.empty_like(z2)
        for rows1, rows2, out1, out2 in _pieces(z1, z2, d1, d2):
            both = _side_by_side(rows1, rows2, mean1, mean2)
            torch.mm(both, g1, out=out1)
            torch.mm(both, g2, out=out2)
        return d1, d2, None, None


def _pieces(*matrices: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Yield the same rows of all matrices, in chunks that fit into the cache."""
    for start in range(0, matrices[0].shape[0], _ROWS):
        yield tuple(matrix[start : start + _ROWS] for matrix in matrices)


def _side_by_side(rows1: Tensor, rows2: Tensor, mean1: Tensor, mean2: Tensor) -> Tensor:
    """Return the concatenated centered rows of both views."""
    d = rows1.shape[1]
    both = rows1.new_empty(rows1.shape[0], 2 * d)
    torch.sub(rows1, mean1, out=both[:, :d])
    torch.sub(rows2, mean2, out=both[:, d:])
    return both


def _mean(z: Tensor) -> Tensor:
    """Return the column means; for bfloat16, in float32."""
    return z.mean(0, dtype=_sum_dtype(z))


def _sum_dtype(z: Tensor) -> torch.dtype:
    return torch.promote_types(z.dtype, torch.float32)


def _centered(rows: Tensor, mean: Tensor) -> Tensor:
    """Return the rows minus the mean, in the precision of the rows."""
    return rows - mean if rows.dtype == mean.dtype else rows.to(mean.dtype).sub_(mean).to(rows.dtype)


def _add_upper(scatter: Tensor, centered: Tensor) -> None:
    """Add Zc'Zc to the upper triangle, by blocks of rows; entries below the blocks are skipped."""
    for start in range(0, centered.shape[1], _BLOCK):
        _add_product(scatter[start : start + _BLOCK, start:], centered[:, start : start + _BLOCK], centered[:, start:])


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left' right to a sum, which has a higher precision if both are in bfloat16."""
    if left.dtype == total.dtype:
        total.addmm_(left.t(), right)
    else:
        total += left.t() @ right


def _mirrored(upper: Tensor) -> Tensor:
    return upper.triu() + upper.triu(1).t()
