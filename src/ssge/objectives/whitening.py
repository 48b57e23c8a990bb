r"""W-MSE: align two views after whitening, which prevents collapse.

For each view with rows h_i, mean mu, covariance C (ddof 1) and shrinkage e, L is the Cholesky factor of
(1 - e) C + e diag(C) = L L', and

- whitened rows w_i = L^(-1) (h_i - mu), of which the covariance is I at e = 0
- `w_mse` = mean over nodes of |w1_i / |w1_i| - w2_i / |w2_i||^2 = 2 - 2 mean cos(w1_i, w2_i)

Each view is whitened separately. The released code whitens random parts of a batch, several times per step, because its
batches are small; on a full graph one whitening of all rows suffices. Its default e is 0, which fails if the rows do
not span all d dimensions. It shrinks toward I, which would dominate the covariance of rows of small numbers; with
shrinkage toward diag(C), the result does not depend on the scale of the columns. Cost O(n d^2 + d^3) time, O(n d + d^2)
memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.objectives.infonce import unit_rows


def w_mse(h1: Tensor, h2: Tensor, shrinkage: float = 1e-3) -> Tensor:
    """Return the mean squared distance of the whitened rows of two views.

    Parameters
    ----------
    h1, h2
        Rows of the two views, n x d; at least 2 rows.
    shrinkage
        e, from 0 to 1.
    """
    w1, w2 = whiten(h1, shrinkage), whiten(h2, shrinkage)
    return 2 - 2 * (unit_rows(w1) * unit_rows(w2)).sum(1).mean()


def whiten(h: Tensor, shrinkage: float = 1e-3) -> Tensor:
    """Return the rows L^(-1) (h_i - mu), n x d."""
    if not 0 <= shrinkage <= 1:
        raise InputError(f"shrinkage must be from 0 to 1; received {shrinkage}.")
    if h.shape[0] < 2:
        raise InputError(f"Whitening takes at least 2 rows; received {h.shape[0]}.")
    centered = h - h.mean(0)
    covariance = centered.t() @ centered / (h.shape[0] - 1)
    target = covariance.diagonal()
    target = target.clamp_min(torch.finfo(h.dtype).eps * target.max().detach())  # a constant column stays zero
    factor, failed = torch.linalg.cholesky_ex((1 - shrinkage) * covariance + shrinkage * target.diag())
    if failed.item():
        raise InputError(
            f"The covariance of {h.shape[0]} rows in {h.shape[1]} dimensions is singular; "
            f"shrinkage must be larger than {shrinkage}."
        )
    whitened: Tensor = torch.linalg.solve_triangular(factor, centered.t(), upper=False).t()
    return whitened
