"""Features: the matrix X, dense or sparse, with optionally masked columns."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ssge.ops.adjacency import Adjacency
from ssge.ops.dropout import dropout
from ssge.ops.precision import product_dtype
from ssge.ops.sparse import CSR, SparseMatrix, csr_tensor, row_indices, spmm, transpose


class Features:
    """The feature matrix of a view; it computes ``X @ W``.

    Masking feature columns equals masking rows of W: ``(X diag(m)) W = X (diag(m) W)``. So masked columns of dense X
    are not multiplied at all, and sparse X is neither copied nor made dense.

    Parameters
    ----------
    matrix
        X (n x p), sparse or dense.
    kept
        Boolean mask of the p columns, or None for all.
    """

    def __init__(self, matrix: SparseMatrix | Tensor, kept: Tensor | None = None) -> None:
        self.matrix = matrix
        self.kept = kept
        self.shape = tuple(matrix.shape)

    @classmethod
    def of(cls, features: Any, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> Features:
        """Move the features of a graph (array or scipy CSR) to a device; dense ones share its memory if possible."""
        if sp.issparse(features):
            rows = CSR(
                torch.from_numpy(features.indptr.astype(np.int32)).to(device),
                torch.from_numpy(features.indices.astype(np.int32)).to(device),
                torch.tensor(features.data, device=device, dtype=dtype),
            )
            return cls(SparseMatrix(rows, transpose(rows, features.shape[1])[0]))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # never written to
            return cls(torch.from_numpy(np.ascontiguousarray(features)).to(device, dtype))

    @property
    def device(self) -> torch.device:
        """Device of X."""
        return self.matrix.rows.values.device if isinstance(self.matrix, SparseMatrix) else self.matrix.device

    @property
    def dtype(self) -> torch.dtype:
        """Precision of X."""
        return self.matrix.rows.values.dtype if isinstance(self.matrix, SparseMatrix) else self.matrix.dtype

    def mask(self, kept: Tensor) -> Features:
        """Return the same features with fewer columns kept; nothing is copied."""
        return Features(self.matrix, kept if self.kept is None else self.kept & kept)

    def normalize_rows(self) -> Features:
        """Divide each row by its sum of absolute values; a row of zeros stays zero."""
        if isinstance(self.matrix, SparseMatrix):
            indptr, indices, values = self.matrix.rows
            row = row_indices(indptr)
            sums = values.new_zeros(self.shape[0]).index_add_(0, row, values.abs())
            values = values / sums.index_select(0, row).clamp_min(torch.finfo(values.dtype).tiny)
            rows = CSR(indptr, indices, values)
            return Features(SparseMatrix(rows, transpose(rows, self.shape[1])[0]), self.kept)
        sums = self.matrix.abs().sum(1, keepdim=True)
        return Features(self.matrix / sums.clamp_min(torch.finfo(sums.dtype).tiny), self.kept)

    @cached_property
    def _order(self) -> Tensor:
        """For each entry of the transpose of sparse X, its position in X."""
        assert isinstance(self.matrix, SparseMatrix)
        return torch.argsort(self.matrix.rows.indices, stable=True)

    def dropout(self, rate: float, generator: torch.Generator) -> Features:
        """Return the features with each entry dropped with probability ``rate``; sparse X stays sparse.

        For sparse X only the stored entries are drawn, since dropping a zero has no effect.
        """
        if rate == 0:
            return self
        if not isinstance(self.matrix, SparseMatrix):
            return Features(dropout(self.matrix, rate, generator), self.kept)
        rows, columns = self.matrix.rows, self.matrix.columns
        values = dropout(rows.values, rate, generator)
        dropped = SparseMatrix(rows._replace(values=values), columns._replace(values=values[self._order]))
        return Features(dropped, self.kept)

    def select(self, nodes: Tensor) -> Features:
        """Return the rows of some nodes."""
        if isinstance(self.matrix, SparseMatrix):
            rows = self.matrix.rows.select(nodes)
            return Features(SparseMatrix(rows, transpose(rows, self.shape[1])[0]), self.kept)
        return Features(self.matrix.index_select(0, nodes), self.kept)

    def permute(self, order: Tensor) -> Features:
        """Return all rows in another order; unlike `select`, it sorts nothing."""
        if not isinstance(self.matrix, SparseMatrix):
            return self.select(order)
        position = torch.empty_like(order)
        position[order] = torch.arange(order.numel(), device=order.device)
        columns = self.matrix.columns
        moved = columns._replace(indices=position.to(columns.indices.dtype)[columns.indices])
        return Features(SparseMatrix(self.matrix.rows.select(order), moved), self.kept)

    def __matmul__(self, weight: Tensor) -> Tensor:
        if isinstance(self.matrix, SparseMatrix):
            return self.matrix @ (weight if self.kept is None else weight * self.kept.unsqueeze(1))
        kept, weight_kept = self._unmasked(weight)
        return kept @ weight_kept

    def _unmasked(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the columns of dense X that are kept, in the precision of products, and their rows of W."""
        matrix = self.matrix
        assert isinstance(matrix, Tensor)
        if self.kept is not None:  # converted afterwards: selecting bfloat16 columns takes three times as long
            columns = self.kept.nonzero().squeeze(1)
            matrix, weight = matrix.index_select(1, columns), weight.index_select(0, columns)
        return matrix.to(product_dtype(matrix)), weight

    def propagate(self, adjacency: Adjacency, weight: Tensor) -> Tensor:
        """Return A X W in the cheaper order.

        A(XW) needs a sparse product as wide as W forward and another backward; (AX)W needs one as wide as the kept
        columns, and none backward, because X has no gradient. For sparse X, AX would have to be dense.
        """
        if isinstance(self.matrix, SparseMatrix):
            return adjacency @ (self @ weight)
        kept, weight_kept = self._unmasked(weight)
        if kept.shape[1] > 2 * weight.shape[1]:
            return adjacency @ (kept @ weight_kept)
        return (adjacency @ kept) @ weight_kept

    def block(self, start: int, stop: int, weight: Tensor | None = None) -> Tensor:
        """Return rows ``start`` to ``stop`` of ``X @ weight``, or of X without its mask, without gradient."""
        if weight is not None and self.kept is not None:
            weight = weight * self.kept.unsqueeze(1)
        if isinstance(self.matrix, SparseMatrix):
            part = self.matrix.rows.block(start, stop)
            return csr_tensor(part, self.shape[1]).to_dense() if weight is None else spmm(part, weight)
        return self.matrix[start:stop] if weight is None else self.matrix[start:stop] @ weight

    def gram(self, weight: Tensor, chunk: int = 1 << 14) -> Tensor:
        """Return X' X @ weight, p x d, by chunks of rows, without gradient."""
        mask = 1 if self.kept is None else self.kept.unsqueeze(1)
        weight = weight * mask
        if isinstance(self.matrix, SparseMatrix):
            return spmm(self.matrix.columns, spmm(self.matrix.rows, weight)) * mask
        total = torch.zeros_like(weight)
        for rows in self.matrix.split(chunk):  # type: ignore[no-untyped-call]
            total.addmm_(rows.T, rows @ weight)
        return total * mask
