"""Fewer columns: the leading right singular vectors V of X, so that X V keeps most of what X says.

By hand, because scikit-learn's randomized SVD and PyTorch's ``svd_lowrank`` need tall factors (n x d) and their QR;
here only products X'(X Q) are formed, a chunk of rows at a time, and what is decomposed has p rows.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ssge.ops.features import Features
from ssge.ops.random import Key

_ROWS = 1 << 16
"""Rows that decide V; of more, so many are drawn."""
_SPARE = 32
"""Directions that are sought beyond those that are kept: the last ones found are the least exact."""
_ITERATIONS = 4


@torch.no_grad()
def right_singular_vectors(features: Features, count: int) -> Tensor:
    """Return V (p x count): the right singular vectors of X, not centered, to its largest singular values.

    Subspace iteration on X'X from a random start of fixed seed. Four iterations: where singular values fall slowly, as
    those of counts of words do, the space that is found is not the best one, but keeps the sum of squares to within a
    percent of it. Columns are signed so that their sum of cubes is not below zero. Missing ones, of X with fewer rows
    than ``count``, are zero.
    """
    n, p = features.shape
    if n > _ROWS:
        features = features.select(Key(0).fold_in("rows").permutation(n, features.device)[:_ROWS].sort().values)
    width = min(count + _SPARE, n, p)
    dtype = features.dtype
    start = torch.randn(p, width, generator=Key(0).fold_in("directions").generator(), dtype=torch.float64)
    basis = _orthonormal(start.to(features.device, dtype))
    for _ in range(_ITERATIONS):
        basis = _orthonormal(features.gram(basis))
    turn = torch.linalg.eigh(basis.T @ features.gram(basis)).eigenvectors
    vectors: Tensor = basis @ turn.flip(1)[:, :count]
    vectors = vectors * torch.where(vectors.pow(3).sum(0) < 0, -1.0, 1.0).to(dtype)
    return functional.pad(vectors, (0, count - vectors.shape[1]))


def _orthonormal(columns: Tensor) -> Tensor:
    found: Tensor = torch.linalg.qr(columns)[0]
    return found
