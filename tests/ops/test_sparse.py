"""Sparse products: both kernels, with and without panels, against the dense product."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from ssge.ops import sparse as module
from ssge.ops.sparse import CSR, SparseMatrix, csr_from_coo, csr_tensor, spmm, transpose


def matrix(dtype: torch.dtype, empty: bool = False) -> tuple[SparseMatrix, torch.Tensor]:
    random = sp.random_array((40, 30), density=0.0 if empty else 0.2, rng=np.random.default_rng(0), format="csr")
    rows = CSR(
        torch.from_numpy(random.indptr.astype(np.int32)),
        torch.from_numpy(random.indices.astype(np.int32)),
        torch.from_numpy(random.data).to(dtype),
    )
    return SparseMatrix(rows, transpose(rows, 30)[0]), torch.from_numpy(random.toarray()).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("panel", [4, 64])
@pytest.mark.parametrize("reuse", [0, 10**9])
@pytest.mark.parametrize("width", [1, 7, 16])
def test_product_and_gradient_are_those_of_the_dense_matrix(
    dtype: torch.dtype, panel: int, reuse: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PANEL", panel)
    monkeypatch.setattr(module, "_REUSE", reuse)
    ours, dense = matrix(dtype)
    h = torch.randn(30, width, dtype=dtype, generator=torch.Generator().manual_seed(0)).requires_grad_()
    found = ours @ h
    torch.testing.assert_close(found, dense @ h)
    gradient = torch.randn_like(found)
    torch.testing.assert_close(torch.autograd.grad(found, h, gradient)[0], dense.T @ gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_of_used_memory_gets_into_the_product(dtype: torch.dtype) -> None:
    torch.full((40, 8), torch.nan, dtype=dtype)  # freed at once: the product is likely to get this memory
    ours, dense = matrix(dtype, empty=True)
    assert torch.equal(spmm(ours.rows, torch.ones(30, 8, dtype=dtype)), dense @ torch.ones(30, 8, dtype=dtype))


def test_columns_of_a_wider_matrix_and_repeated_gradients_are_read_rightly() -> None:
    ours, dense = matrix(torch.float32)
    wide = torch.randn(30, 9)
    torch.testing.assert_close(spmm(ours.rows, wide[:, 2:5]), dense @ wide[:, 2:5])
    h = torch.randn(30, 3, requires_grad=True)
    (ours @ h).sum().backward()  # its gradient is one number, expanded
    torch.testing.assert_close(h.grad, dense.T @ torch.ones(40, 3))


def test_rows_from_places_in_any_order() -> None:
    row, column = torch.tensor([3, 0, 3, 1, 3]), torch.tensor([2, 1, 0, 2, 2])
    expected = torch.zeros(5, 3, dtype=torch.float64).index_put_((row, column), torch.ones(5).double(), accumulate=True)
    rows = csr_from_coo(row, column, 5, torch.float64)
    assert rows.indptr.tolist() == [0, 1, 2, 2, 5, 5]
    torch.testing.assert_close(csr_tensor(rows, 3) @ torch.eye(3, dtype=torch.float64), expected)


def test_selected_rows_are_rows_of_the_dense_matrix() -> None:
    ours, dense = matrix(torch.float64)
    for rows in ([], [3], [39, 0, 7, 7, 21]):
        part = ours.rows.select(torch.tensor(rows, dtype=torch.int64))
        assert part.indptr.numel() == len(rows) + 1
        assert torch.equal(csr_tensor(part, 30).to_dense(), dense[rows])
