r"""Alignment of two views and the Wasserstein distance to the isotropic Gaussian.

With Z1, Z2 (n x d) the raw outputs of the encoder, Zc their centered columns, s the column standard deviations (ddof 1)
and R = diag(1/s) Zc'Zc / (n-1) diag(1/s) the correlation matrix of a view:

- alignment = -(1/n) sum_ij Zc1_ij Zc2_ij / (s1_j s2_j)
- uniformity of a view = W2^2(N(0, R), N(0, I)) = 2d - 2 tr(R^(1/2))

Both are functions of the moments only, so the objective costs O(n d^2 + d^3) time and O(d^2) memory in addition to Z.

Differences from the paper: its last form of the alignment lacks the minus sign (a typo, because it is minimized).
Differences from the released code: the code drops the constant 2d, and clamps eigenvalues at 1e-8, so that collapsed
directions get no gradient; ``floor_mode="clamp", floor=1e-8`` reproduces it. With the default floor the uniformity is
W2^2 if all eigenvalues of R are above it, and a lower bound of W2^2 otherwise (see `trace_sqrt`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from ssge.objectives import Losses
from ssge.ops.moments import CollapseWarning, Moments, correlation, deviations, inverse_deviations, moments

FloorMode: TypeAlias = Literal["tangent", "clamp"]
EIGENVALUE_FLOOR = 0.1
"""Bounds the slope of the root by 1.6, three times that at the optimum. On Cora and CiteSeer, validation accuracy
varies less between floors from 1e-8 to 0.3 than between seeds; on Cora, NMI is highest at 0.1: 60.6 against 59.4 to
59.9 (``benchmarks/eigenvalue_floor.py``). In float32, eigenvalues have errors of about 1e-5, which a much lower floor
would
amplify."""


def alignment(z1: Tensor, z2: Tensor) -> Tensor:
    """Return the alignment term: minus the summed correlation of equal columns of two views, times (n-1)/n."""
    m = moments(z1, z2)
    return aligned_moments(m, inverse_deviations(m))


def wasserstein_uniformity(z: Tensor, floor: float = EIGENVALUE_FLOOR, floor_mode: FloorMode = "tangent") -> Tensor:
    """Return the squared 2-Wasserstein distance of the standardized columns of one view to N(0, I).

    Exact if no eigenvalue of their correlation matrix is below ``floor``, a lower bound otherwise.
    """
    m = moments(z)
    warn_if_wide(m.n, z.shape[1])
    inverse = deviations(m.scatter[0], m.means[0], m.n)[1]
    root, _ = trace_sqrt(correlation(m.scatter[0], inverse, m.n), floor, floor_mode)
    return 2 * (z.shape[1] - root)


def gaussian(
    z1: Tensor,
    z2: Tensor,
    uniformity_weight: float,
    alignment_weight: float = 1.0,
    floor: float = EIGENVALUE_FLOOR,
    floor_mode: FloorMode = "tangent",
    weight: Tensor | None = None,
    running: Callable[[Moments], Moments] | None = None,
) -> Losses:
    """Return the objective of SSGE, alignment + lambda * mean uniformity of the two views, from one set of moments.

    Parameters
    ----------
    z1, z2
        Raw encoder outputs, n x d.
    uniformity_weight
        Lambda of the paper.
    alignment_weight
        1; 0 leaves only the uniformity, as in the paper's ablation.
    floor, floor_mode
        See `trace_sqrt`.
    weight
        Weight of a skipped last linear layer: the objective is that of ``z1 @ weight`` and ``z2 @ weight``, which are
        never formed. Cheaper unless the layer reduces the width; see `ssge.ops.moments.moments`.
    running
        Replaces the moments of these rows by those of many steps, such as `ssge.nn.running.RunningCovariance`.

    Returns
    -------
    Losses
        The terms are ``alignment``, ``uniformity`` and ``effective_rank`` (exp of the entropy of R's eigenvalues).
    """
    m = moments(z1, z2, weight)
    d = m.means[0].numel()
    if running is None:
        warn_if_wide(m.n, d)
    else:
        m = running(m)
    inverses = inverse_deviations(m)
    aligned = aligned_moments(m, inverses)
    roots, spectra = zip(
        *(
            trace_sqrt(correlation(c, inverse, m.n), floor, floor_mode)
            for c, inverse in zip(m.scatter, inverses, strict=True)
        ),
        strict=True,
    )
    uniform = 2 * d - (roots[0] + roots[1])
    total = alignment_weight * aligned + uniformity_weight * uniform
    share = (spectra[0] + spectra[1]).clamp_min(0) / (spectra[0] + spectra[1]).clamp_min(0).sum().clamp_min(1e-12)
    rank = torch.special.entr(share).sum().exp()
    terms = {"alignment": aligned.detach(), "uniformity": uniform.detach(), "effective_rank": rank}
    return Losses(total, terms)


def trace_sqrt(matrix: Tensor, floor: float, floor_mode: FloorMode = "tangent") -> tuple[Tensor, Tensor]:
    r"""Return tr(R^(1/2)) of a symmetric matrix, and its eigenvalues (ascending, detached).

    The gradient is 1/2 R^(-1/2) in closed form, from one ``eigh``. Differentiating through eigenvectors would give NaN
    for repeated eigenvalues, that is, at the optimum R = I.

    Parameters
    ----------
    matrix
        R, d x d, symmetric, positive semi-definite up to rounding.
    floor
        Below this eigenvalue the root is replaced.
    floor_mode
        ``tangent`` continues the root by its tangent at ``floor``: the gradient is bounded by 1/(2 sqrt(floor)) and
        never zero, so that collapsed directions recover. ``clamp`` replaces the eigenvalue by ``floor``: no gradient
        below it, as in the released code (with 1e-8).
    """
    root, eigenvalues = _TraceSqrt.apply(matrix, floor, floor_mode)  # type: ignore[no-untyped-call]
    return root, eigenvalues


class _TraceSqrt(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, floor: float, floor_mode: FloorMode) -> tuple[Tensor, Tensor]:
        if not bool(torch.isfinite(matrix).all()):  # eigh would raise; the trainer reports the epoch and the terms
            eigenvalues, vectors = torch.full_like(matrix[0], torch.nan), torch.full_like(matrix, torch.nan)
        else:
            eigenvalues, vectors = torch.linalg.eigh(matrix)
        root = eigenvalues.clamp_min(floor).sqrt()
        slope = 0.5 / root
        below = eigenvalues < floor
        if floor_mode == "tangent":
            root = root + torch.where(below, (eigenvalues - floor) * slope, 0)
        else:
            slope = torch.where(below, 0, slope)
        ctx.save_for_backward(vectors, slope)
        ctx.mark_non_differentiable(eigenvalues)
        return root.sum(), eigenvalues

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        vectors, slope = ctx.saved_tensors
        return (vectors * (gradient * slope)) @ vectors.t(), None, None


def aligned_moments(m: Moments, inverses: list[Tensor]) -> Tensor:
    """Return the alignment of two views from their moments and 1/s."""
    assert m.cross is not None
    return -(m.cross * inverses[0] * inverses[1]).sum() / m.n


def warn_if_wide(n: int, d: int) -> None:
    """Warn if n rows are too few for d uncorrelated columns."""
    if n <= d:
        warnings.warn(
            f"{n} nodes cannot fill {d} dimensions: the correlation matrix has rank {max(n - 1, 0)} at most; "
            "use a smaller output width.",
            CollapseWarning,
            stacklevel=3,
        )
