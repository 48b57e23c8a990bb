"""The one form of feature matrices keeps every value and never changes what was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ssge.io.features import SPARSE_BELOW, compact


@pytest.mark.parametrize("given", [np.asarray, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize(("filled", "sparse"), [(SPARSE_BELOW, False), (SPARSE_BELOW - 0.01, True)])
def test_density_decides(given: Any, filled: float, sparse: bool) -> None:
    values = np.zeros(1000)
    values[: round(1000 * filled)] = np.arange(1, 1 + round(1000 * filled))
    dense = np.random.default_rng(0).permutation(values).reshape(50, 20)
    matrix = compact(given(dense))
    assert sp.issparse(matrix) == sparse
    assert matrix.dtype == np.float32
    assert np.array_equal(matrix.toarray() if sp.issparse(matrix) else matrix, dense)


def test_blocks_stand_side_by_side_and_zeros_are_not_stored() -> None:
    left = sp.csr_array((np.array([0.0, 3.0]), np.array([1, 0]), np.array([0, 2, 2])), shape=(2, 40))
    left.indices, left.indptr = left.indices.astype(np.int64), left.indptr.astype(np.int64)
    before = left.copy()
    matrix = compact(left, np.array([[5.0], [0.0]]))
    assert sp.issparse(matrix)
    assert matrix.nnz == 2 and matrix.indices.dtype == np.int32 and matrix.has_sorted_indices
    assert np.array_equal(matrix.toarray()[:, [0, 1, 40]], [[3, 0, 5], [0, 0, 0]])
    assert compact(left).nnz == 1
    assert np.array_equal(left.data, before.data) and np.array_equal(left.indices, before.indices)
