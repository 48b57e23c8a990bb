r"""Decorrelation: canonical correlation (CCA-SSG) and Barlow Twins (G-BT).

With Z1, Z2 (n x d) the raw outputs of the encoder and H1, H2 their standardized columns (ddof 1):

- `cca` = -(1/n) sum_ij H1_ij H2_ij + lambda (|H1'H1 / n - I|_F^2 + |H2'H2 / n - I|_F^2)
- `barlow` = sum_i (1 - C_ii)^2 + w sum_(i != j) C_ij^2 with C = H1'H2 / n and by default w = 1/d

Neither needs H: the first is a function of `ssge.ops.moments.Moments`, like the objective of SSGE, the second of
`ssge.ops.moments.CrossMoments`. Both cost O(n d^2) time and O(d^2) memory in addition to Z, without an
eigendecomposition.

As in the released codes, standard deviations have ddof 1 and products are divided by n, so that the diagonals reach
(n-1)/n and not 1: `cca` is at least -d (n-1)/n + 2 lambda d/n^2, `barlow` at least d/n^2. The paper of CCA-SSG has
|H1 - H2|_F^2 instead of the alignment, twice as much up to a constant; the lambdas of its experiments are for the form
given here. A constant column gives NaN there; here it is treated as zeros, gets no gradient, and warns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ssge.objectives import Losses
from ssge.objectives.gaussian import aligned_moments, warn_if_wide
from ssge.ops.moments import correlation, cross_moments, inverse_deviations, moments


def cca(z1: Tensor, z2: Tensor, decorrelation_weight: float, weight: Tensor | None = None) -> Losses:
    """Return the objective of CCA-SSG: alignment + lambda * decorrelation of both views, from one set of moments.

    Parameters
    ----------
    z1, z2
        Raw encoder outputs, n x d.
    decorrelation_weight
        Lambda of the paper.
    weight
        Weight of a skipped last linear layer: the objective is that of ``z1 @ weight`` and ``z2 @ weight``, which are
        never formed. Cheaper unless the layer reduces the width; see `ssge.ops.moments.moments`.

    Returns
    -------
    Losses
        The terms are ``alignment`` and ``decorrelation``.
    """
    m = moments(z1, z2, weight)
    warn_if_wide(m.n, m.means[0].numel())
    inverses = inverse_deviations(m)
    aligned = aligned_moments(m, inverses)
    share = max(m.n - 1, 1) / m.n
    correlations = [correlation(c, inverse, m.n) * share for c, inverse in zip(m.scatter, inverses, strict=True)]
    decorrelated = sum((_distance_to_identity(c) for c in correlations), torch.zeros_like(aligned))
    total = aligned + decorrelation_weight * decorrelated
    return Losses(total, {"alignment": aligned.detach(), "decorrelation": decorrelated.detach()})


def barlow(z1: Tensor, z2: Tensor, redundancy_weight: float | None = None, weight: Tensor | None = None) -> Losses:
    """Return the objective of Barlow Twins: invariance + w * redundancy, from one set of cross moments.

    Parameters
    ----------
    z1, z2
        Raw encoder outputs, n x d.
    redundancy_weight
        w, the weight of the off-diagonal correlations; None: 1/d.
    weight
        Weight of a skipped last linear layer: the objective is that of ``z1 @ weight`` and ``z2 @ weight``, which are
        never formed. Cheaper unless the layer reduces the width; see `ssge.ops.moments.cross_moments`.

    Returns
    -------
    Losses
        The terms are ``invariance`` and ``redundancy``, the latter without its weight.
    """
    m = cross_moments(z1, z2, weight)
    d = m.means[0].numel()
    warn_if_wide(m.n, d)
    inverse1, inverse2 = inverse_deviations(m)
    c = m.cross * (inverse1 / m.n).unsqueeze(1) * inverse2
    diagonal = c.diagonal()
    invariance = (1 - diagonal).square().sum()
    redundancy = c.square().sum() - diagonal.square().sum()
    total = invariance + (1 / d if redundancy_weight is None else redundancy_weight) * redundancy
    return Losses(total, {"invariance": invariance.detach(), "redundancy": redundancy.detach()})


def _distance_to_identity(c: Tensor) -> Tensor:
    """Return |C - I|_F^2."""
    return (c - torch.eye(c.shape[0], dtype=c.dtype, device=c.device)).square().sum()
