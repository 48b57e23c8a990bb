"""A constant sparse matrix with its transpose at hand, and their product with a dense matrix.

Written by hand because autograd through ``torch.sparse`` transposes a CSR matrix anew in every backward pass, and
because gather/scatter, the usual way on graphs, costs an m x d tensor and about ten times the time on a CPU.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

_PANEL = 64
_REUSE = 16
"""Panels pay from about so many entries a row and column on: below that, copying them costs more than the cache gains
(measured at 6, 18 and 45, where they take 1.6, 0.9 and 0.65 of the time)."""


class Rows(NamedTuple):
    """Compressed sparse rows: entries ``pointer[i]`` to ``pointer[i + 1]`` belong to row i."""

    pointer: Tensor
    column: Tensor
    value: Tensor

    def at(self, index: Tensor) -> Rows:
        """Return the rows at some positions, in that order."""
        counts = self.pointer.diff()[index].long()
        pointer = torch.zeros(index.numel() + 1, dtype=self.pointer.dtype, device=index.device)
        torch.cumsum(counts, 0, out=pointer[1:])
        shift = (self.pointer[:-1][index] - pointer[:-1]).long()  # from an entry's new place to its old one
        entries = torch.arange(int(pointer[-1]), device=index.device) + shift.repeat_interleave(counts)
        return Rows(pointer, self.column[entries], self.value[entries])


def rows_from(row: Tensor, column: Tensor, num_rows: int, dtype: torch.dtype) -> Rows:
    """Return the matrix with ones at the given places, in any order; a place given twice counts twice."""
    row, order = row.sort()
    pointer = torch.zeros(num_rows + 1, dtype=torch.int64, device=row.device)
    torch.cumsum(torch.bincount(row, minlength=num_rows), 0, out=pointer[1:])
    return Rows(pointer, column[order], torch.ones(column.numel(), dtype=dtype, device=column.device))


def csr(rows: Rows, num_columns: int) -> Tensor:
    """Return the torch CSR tensor over the same memory."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            *rows, size=(rows.pointer.numel() - 1, num_columns), check_invariants=False, device=rows.value.device
        )


def transposed(rows: Rows, num_columns: int) -> tuple[Rows, Tensor]:
    """Return the rows of the transpose, and which entry of ``rows`` each of its entries is."""
    order = torch.argsort(rows.column, stable=True)
    counts = torch.bincount(rows.column, minlength=num_columns)
    pointer = torch.zeros(num_columns + 1, dtype=rows.pointer.dtype, device=counts.device)
    torch.cumsum(counts, 0, out=pointer[1:])
    return Rows(pointer, row_of_entry(rows.pointer)[order], rows.value[order]), order


def row_of_entry(pointer: Tensor) -> Tensor:
    """Return the row that each entry belongs to."""
    rows = torch.arange(pointer.numel() - 1, dtype=pointer.dtype, device=pointer.device)
    return rows.repeat_interleave(pointer.diff().long())


class SparseMatrix:
    """A constant sparse matrix A that knows ``A @ H`` and how a gradient flows back through it.

    Parameters
    ----------
    rows
        A, by rows.
    columns
        The transpose of A, by rows.
    """

    def __init__(self, rows: Rows, columns: Rows) -> None:
        self.rows = rows
        self.shape = (rows.pointer.numel() - 1, columns.pointer.numel() - 1)
        self.forward = csr(rows, self.shape[1])
        self.backward = csr(columns, self.shape[0])

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(dense, self.forward, self.backward)  # type: ignore[no-untyped-call]
        return product

    def block(self, start: int, stop: int) -> Tensor:
        """Return rows ``start`` to ``stop`` as a CSR tensor over the same memory, for products without gradient."""
        pointer = self.rows.pointer[start : stop + 1]
        first, last = int(pointer[0]), int(pointer[-1])
        part = Rows(pointer - pointer[0], self.rows.column[first:last], self.rows.value[first:last])
        return csr(part, self.shape[1])


def product(sparse: Tensor, dense: Tensor) -> Tensor:
    """Return the product of a CSR tensor and a dense matrix, without gradient.

    On a processor in float32, `_bag` takes about half the time of the sparse product proper. Where each row of
    ``dense`` is used often, it goes by panels of columns that stay in the cache.
    """
    if dense.dtype != torch.float32 or dense.device.type != "cpu":
        # Written into memory as it is found, because `torch.mm` would fill it with zeros first and copy it afterwards.
        result = dense.new_empty(sparse.shape[0], dense.shape[1])
        return torch.addmm(result, sparse, dense, beta=0, out=result)
    dense = dense.detach()
    if sparse.values().numel() < _REUSE * sum(sparse.shape):
        return _bag(sparse, dense)
    result = dense.new_empty(sparse.shape[0], dense.shape[1])
    for start in range(0, dense.shape[1], _PANEL):
        panel = slice(start, start + _PANEL)
        result[:, panel] = _bag(sparse, dense[:, panel])
    return result


def _bag(sparse: Tensor, dense: Tensor) -> Tensor:
    """Return the product as an embedding bag: each of its rows is a weighted sum of rows of ``dense``.

    What is gained is that the kernel of embedding bags fetches ahead the rows it will need.
    """
    pointer, column, value = sparse.crow_indices(), sparse.col_indices(), sparse.values()
    return functional.embedding_bag(
        column, dense.contiguous(), pointer, mode="sum", per_sample_weights=value, include_last_offset=True
    )


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, forward: Tensor, backward: Tensor) -> Tensor:
        ctx.transpose = backward
        return product(forward, dense)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return product(ctx.transpose, gradient), None, None
