"""What all loaders do to a feature matrix before it becomes part of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ssge.graph import FeatureMatrix

SPARSE_BELOW = 0.10
"""Matrices with a smaller share of non-zero entries stay sparse. The product with a weight matrix costs as
much dense as sparse at about 15 % (one thread); a tenth keeps to the side on which sparse surely pays."""


def compact(matrix: Any) -> FeatureMatrix:
    """Return the matrix as float32, sparse or dense by its density; sparse indices have 32 bits."""
    sparse = sp.csr_array(matrix, dtype=np.float32)
    sparse.eliminate_zeros()
    if sparse.nnz >= SPARSE_BELOW * sparse.shape[0] * sparse.shape[1]:
        return sparse.toarray()
    if max(sparse.nnz, sparse.shape[1]) < np.iinfo(np.int32).max:  # scikit-learn takes no 64-bit indices
        sparse.indices, sparse.indptr = sparse.indices.astype(np.int32), sparse.indptr.astype(np.int32)
    sparse.sort_indices()
    return sparse


def rows_of_sum_one(matrix: Any) -> sp.csr_array:
    """Divide each row by its sum, in float64; a row of zeros stays as it is."""
    sparse = sp.csr_array(matrix, dtype=np.float64)
    sums = np.asarray(abs(sparse).sum(axis=1)).ravel()
    sums[sums == 0] = 1
    return sp.csr_array(sp.diags_array(1 / sums) @ sparse)
