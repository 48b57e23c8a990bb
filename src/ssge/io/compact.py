"""The one form of feature matrices: float32, sparse where few entries are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ssge.graph import FeatureMatrix

SPARSE_BELOW = 0.10
"""Share of nonzero entries below which a matrix is stored sparse. On one thread, the product with a weight matrix
takes the same time dense and sparse at about 15 %; below a tenth, sparse is always faster."""


def compact(*blocks: Any) -> FeatureMatrix:
    """Put blocks of features side by side as one float32 matrix; sparse indices have 32 bits where they fit."""
    n, p = int(blocks[0].shape[0]), sum(int(block.shape[1]) for block in blocks)
    # Not block.count_nonzero(), which sorts the indices of the matrix that was given.
    filled = sum(np.count_nonzero(sp.csr_array(b).data if sp.issparse(b) else b) for b in blocks)
    with np.errstate(over="ignore"):  # the validator names a value that float32 cannot hold
        if filled >= SPARSE_BELOW * n * p:
            arrays = [block.toarray() if sp.issparse(block) else block for block in blocks]
            joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1, dtype=np.float32)
            return np.ascontiguousarray(joined, dtype=np.float32)
        matrix = sp.hstack([sp.csr_array(block, dtype=np.float32) for block in blocks], format="csr")
    matrix = sp.csr_array(matrix, copy=len(blocks) == 1)  # one block comes back as it was given
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if max(matrix.nnz, p) < np.iinfo(np.int32).max:  # scikit-learn takes no 64-bit indices
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix
