"""Moments of one or two views: all that the objectives of this family need, and all that machines must exchange."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """First and second moments of the columns of Z1 and Z2 (n x d).

    Attributes
    ----------
    n
        Number of rows.
    means
        Column means, one vector a view.
    scatter
        Zc' Zc of the centred columns (d x d), one matrix a view.
    cross
        Column-wise products of the two centred views, ``sum_i Zc1_ij Zc2_ij`` (d); None for one view.
    """

    n: int
    means: tuple[Tensor, ...]
    scatter: tuple[Tensor, ...]
    cross: Tensor | None


def moments(z1: Tensor, z2: Tensor | None = None) -> Moments:
    """Compute the moments of one view or two; differentiable in ``scatter`` and ``cross``.

    Cost: one product of n d^2 a view forward, another backward; no other n x d work than centring.
    """
    if z2 is None:
        mean, scatter = _One.apply(z1)  # type: ignore[no-untyped-call]
        return Moments(z1.shape[0], (mean,), (scatter,), None)
    mean1, mean2, scatter1, scatter2, cross = _Two.apply(z1, z2)  # type: ignore[no-untyped-call]
    return Moments(z1.shape[0], (mean1, mean2), (scatter1, scatter2), cross)


class CollapseWarning(UserWarning):
    """The representation has lost dimensions, or cannot have them."""


def deviations(scatter: Tensor, mean: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return the column deviations s (ddof 1) and 1/s; a constant column gets s = 1 and 1/s = 0, so nothing is NaN.

    A column counts as constant when its deviation cannot be told from the rounding of its mean.
    """
    variance = scatter.diagonal() / max(n - 1, 1)
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


def correlation(scatter: Tensor, inverse_deviation: Tensor, n: int) -> Tensor:
    """Return R = diag(1/s) Zc'Zc / (n-1) diag(1/s)."""
    return scatter * (inverse_deviation / max(n - 1, 1)).unsqueeze(1) * inverse_deviation


class _One(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor) -> tuple[Tensor, Tensor]:
        mean = z.mean(0)
        centred = z - mean
        ctx.save_for_backward(centred)
        ctx.mark_non_differentiable(mean)
        return mean, centred.t() @ centred

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, _mean: Tensor, scatter: Tensor) -> Tensor:
        # Centring needs no further term: the columns of `centred` sum to zero, and so do those of the result.
        centred: Tensor = ctx.saved_tensors[0]
        return centred @ (scatter + scatter.t())


class _Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z1: Tensor, z2: Tensor) -> tuple[Tensor, ...]:
        mean1, mean2 = z1.mean(0), z2.mean(0)
        c1, c2 = z1 - mean1, z2 - mean2
        ctx.save_for_backward(c1, c2)
        ctx.mark_non_differentiable(mean1, mean2)
        return mean1, mean2, c1.t() @ c1, c2.t() @ c2, (c1 * c2).sum(0)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        _, _, scatter1, scatter2, cross = gradients
        c1, c2 = ctx.saved_tensors
        return (
            torch.addcmul(c1 @ (scatter1 + scatter1.t()), c2, cross),
            torch.addcmul(c2 @ (scatter2 + scatter2.t()), c1, cross),
        )
