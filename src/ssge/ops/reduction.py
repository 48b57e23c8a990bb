"""Dimension reduction: the leading right singular vectors V of X, so that X V keeps most of the variance of X.

A custom implementation, because scikit-learn's randomized SVD and PyTorch's ``svd_lowrank`` need tall factors (n x d)
and their QR. Here only products X'(X Q) are formed, in chunks of rows, and the decomposed matrices have p rows.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ssge.ops.features import Features
from ssge.ops.random import Key

_ROWS = 1 << 16
"""Maximum number of rows to compute V from; a larger X is subsampled."""
_NARROW = 4096
"""Maximum number of columns of dense X for which X'X is formed."""
_SPARE = 32
"""Oversampling: additional directions of the iteration, because the last ones are the least exact."""


@torch.no_grad()
def right_singular_vectors(features: Features, count: int, iterations: int = 4) -> Tensor:
    """Return V (p x count): the right singular vectors of X, not centered, to its largest singular values.

    Subspace iteration on X'X from a random start with a fixed seed. If singular values decay slowly, as for word
    counts, a few iterations do not find the best subspace, but one with nearly the same sum of squares. Rows of masked
    columns are zero. The sign of a column makes its sum of cubes nonnegative. If X has fewer rows than ``count``, the
    missing columns are zero.
    """
    n, p = features.shape
    if n > _ROWS:
        features = features.select(Key(0).fold_in("rows").permutation(n, features.device)[:_ROWS].sort().values)
    width = min(count + _SPARE, n, p if features.kept is None else int(features.kept.sum()))
    start = torch.randn(p, width, generator=Key(0).fold_in("directions").generator(), dtype=torch.float64)
    start = start.to(features.device, features.dtype)
    basis = _orthonormal(start if features.kept is None else start * features.kept.unsqueeze(1))
    gram: Callable[[Tensor], Tensor] = features.gram
    if isinstance(features.matrix, Tensor) and p <= _NARROW:
        gram = features.gram(torch.eye(p, dtype=features.dtype, device=features.device)).matmul
    for _ in range(iterations):
        basis = _orthonormal(gram(basis))
    turn = torch.linalg.eigh(basis.T @ gram(basis)).eigenvectors
    vectors = basis @ turn.flip(1)[:, :count]
    padded = torch.zeros(p, count, dtype=vectors.dtype, device=vectors.device)
    padded[:, : vectors.shape[1]] = vectors * torch.where(vectors.pow(3).sum(0) < 0, -1.0, 1.0)
    if features.kept is not None:
        padded *= features.kept.unsqueeze(1)  # exactly zero, without rounding noise
    return padded


def _orthonormal(columns: Tensor) -> Tensor:
    basis: Tensor = torch.linalg.qr(columns)[0]
    return basis
