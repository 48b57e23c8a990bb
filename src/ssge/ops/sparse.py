"""A constant sparse matrix with its stored transpose, and their products with a dense matrix.

A custom autograd function, because ``torch.sparse`` transposes a CSR matrix again in every backward pass, and because
gather/scatter, the usual approach on graphs, needs an m x d tensor and about ten times the time on a CPU.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from ssge.ops.precision import product_dtype

_PANEL = 64
_REUSE = 16
"""Entries per row and column above which panels save time: below, copying them costs more than the cache saves
(measured at 6, 18 and 45, where they take 1.6, 0.9 and 0.65 of the time)."""


class CSR(NamedTuple):
    """A matrix in compressed sparse row format: entries ``indptr[i]`` to ``indptr[i + 1]`` belong to row i."""

    indptr: Tensor
    indices: Tensor
    values: Tensor

    def select(self, rows: Tensor) -> CSR:
        """Return some rows, in that order."""
        counts = self.indptr.diff()[rows].long()
        indptr = torch.zeros(rows.numel() + 1, dtype=self.indptr.dtype, device=rows.device)
        torch.cumsum(counts, 0, out=indptr[1:])
        shift = (self.indptr[:-1][rows] - indptr[:-1]).long()  # from the new position of an entry to its old one
        entries = torch.arange(int(indptr[-1]), device=rows.device) + shift.repeat_interleave(counts)
        return CSR(indptr, self.indices[entries], self.values[entries])

    def block(self, start: int, stop: int) -> CSR:
        """Return rows ``start`` to ``stop`` over the same memory."""
        indptr = self.indptr[start : stop + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        return CSR(indptr - indptr[0], self.indices[first:last], self.values[first:last])

    def filter(self, kept: Tensor, alike: bool = False) -> CSR:
        """Return the matrix with the entries of a mask; if all values are equal, any of them can be reused."""
        before = torch.zeros(kept.numel() + 1, dtype=self.indptr.dtype, device=kept.device)
        torch.cumsum(kept, 0, out=before[1:])
        indices = self.indices.masked_select(kept)
        values = self.values[: indices.numel()] if alike else self.values.masked_select(kept)
        return CSR(before[self.indptr], indices, values)


def csr_from_coo(row: Tensor, column: Tensor, num_rows: int, dtype: torch.dtype) -> CSR:
    """Return the matrix with ones at the given positions, in any order; duplicates count twice."""
    row, order = row.sort()
    indptr = torch.zeros(num_rows + 1, dtype=torch.int64, device=row.device)
    torch.cumsum(torch.bincount(row, minlength=num_rows), 0, out=indptr[1:])
    return CSR(indptr, column[order], torch.ones(column.numel(), dtype=dtype, device=column.device))


def csr_tensor(matrix: CSR, num_columns: int) -> Tensor:
    """Return the torch CSR tensor over the same memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            *matrix, size=(matrix.indptr.numel() - 1, num_columns), check_invariants=False, device=matrix.values.device
        )


def transpose(matrix: CSR, num_columns: int) -> tuple[CSR, Tensor]:
    """Return the transpose, and for each of its entries the position of that entry in ``matrix``."""
    order = torch.argsort(matrix.indices, stable=True)
    counts = torch.bincount(matrix.indices, minlength=num_columns)
    indptr = torch.zeros(num_columns + 1, dtype=matrix.indptr.dtype, device=counts.device)
    torch.cumsum(counts, 0, out=indptr[1:])
    return CSR(indptr, row_indices(matrix.indptr)[order], matrix.values[order]), order


def row_indices(indptr: Tensor) -> Tensor:
    """Return the row of each entry."""
    rows = torch.arange(indptr.numel() - 1, dtype=indptr.dtype, device=indptr.device)
    return rows.repeat_interleave(indptr.diff().long())


class SparseMatrix:
    """A constant sparse matrix A with its transpose, for ``A @ H`` with gradient.

    Parameters
    ----------
    rows
        A.
    columns
        The transpose of A.
    """

    def __init__(self, rows: CSR, columns: CSR) -> None:
        self.rows, self.columns = rows, columns
        self.shape = (rows.indptr.numel() - 1, columns.indptr.numel() - 1)

    def __matmul__(self, dense: Tensor) -> Tensor:
        dense = dense.to(product_dtype(dense))
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    def to_dense(self) -> Tensor:
        """Return A as a dense matrix."""
        return csr_tensor(self.rows, self.shape[1]).to_dense()


def spmm(rows: CSR, dense: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix, without gradient.

    On a CPU in float32 or bfloat16, `bag` takes about half the time of the sparse product. If each row of ``dense`` is
    used often, it works on panels of columns that stay in the cache; for bfloat16 always.
    """
    rows, dense = rows._replace(values=rows.values.to(dense.dtype)), dense.detach()
    n = rows.indptr.numel() - 1
    if dense.dtype not in (torch.float32, torch.bfloat16) or dense.device.type != "cpu":
        # Into uninitialized memory, because `torch.mm` would fill it with zeros first and copy it afterwards.
        result = dense.new_empty(n, dense.shape[1])
        return torch.addmm(result, csr_tensor(rows, dense.shape[0]), dense, beta=0, out=result)
    if dense.dtype == torch.bfloat16 or rows.values.numel() < _REUSE * (n + dense.shape[0]):
        return bag(rows, dense)
    result = dense.new_empty(n, dense.shape[1])
    for start in range(0, dense.shape[1], _PANEL):
        panel = slice(start, start + _PANEL)
        result[:, panel] = bag(rows, dense[:, panel])
    return result


def bag(rows: CSR, dense: Tensor) -> Tensor:
    """Return the product of a sparse and a dense matrix, without gradient, as an embedding bag.

    Each row of an embedding bag is a weighted sum of rows of ``dense``. The embedding-bag kernel is faster because it
    prefetches rows.
    """
    indptr, indices, values = rows
    return functional.embedding_bag(
        indices, dense.contiguous(), indptr, mode="sum", per_sample_weights=values, include_last_offset=True
    )


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return spmm(matrix.rows, dense)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return spmm(ctx.matrix.columns, gradient), None
