"""Features: the matrix X, dense or sparse, of which some columns may be masked."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from ssge.ops.sparse import Rows, SparseMatrix, transposed


class Features:
    """The feature matrix of a view; it knows ``X @ W``.

    Masking feature columns is masking rows of W: ``(X diag(m)) W = X (diag(m) W)``, so a masked view never copies X.
    Sparse X is never made dense. Dense X is kept by columns, so that the unmasked ones are cheap to pick and the masked
    ones are not multiplied at all.

    Parameters
    ----------
    matrix
        Sparse X, or the dense transpose X' (p x n).
    kept
        Boolean mask of the p columns, or None for all.
    """

    def __init__(self, matrix: SparseMatrix | Tensor, kept: Tensor | None = None) -> None:
        self.matrix = matrix
        self.kept = kept
        self.shape = matrix.shape if isinstance(matrix, SparseMatrix) else (matrix.shape[1], matrix.shape[0])

    @classmethod
    def of(cls, features: Any, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> Features:
        """Bring the features of a graph (array or scipy CSR) to a device."""
        if sp.issparse(features):
            rows = Rows(
                torch.from_numpy(features.indptr.astype(np.int32)).to(device),
                torch.from_numpy(features.indices.astype(np.int32)).to(device),
                torch.tensor(features.data, device=device, dtype=dtype),
            )
            return cls(SparseMatrix(rows, transposed(rows, features.shape[1])[0]))
        return cls(torch.from_numpy(np.ascontiguousarray(features.T)).to(device, dtype))

    @property
    def device(self) -> torch.device:
        """Where X lies."""
        return self.matrix.rows.value.device if isinstance(self.matrix, SparseMatrix) else self.matrix.device

    def mask(self, kept: Tensor) -> Features:
        """Return the same features with fewer columns kept; nothing is copied."""
        return Features(self.matrix, kept if self.kept is None else self.kept & kept)

    def part(self, nodes: Tensor) -> Features:
        """Return the rows of some nodes."""
        if isinstance(self.matrix, SparseMatrix):
            rows = self.matrix.rows.at(nodes)
            return Features(SparseMatrix(rows, transposed(rows, self.shape[1])[0]), self.kept)
        return Features(self.matrix.index_select(1, nodes), self.kept)

    def __matmul__(self, weight: Tensor) -> Tensor:
        if isinstance(self.matrix, SparseMatrix):
            return self.matrix @ (weight if self.kept is None else weight * self.kept.unsqueeze(1))
        if self.kept is None:
            return self.matrix.t() @ weight
        columns = self.kept.nonzero().squeeze(1)
        return self.matrix.index_select(0, columns).t() @ weight.index_select(0, columns)

    def block(self, start: int, stop: int, weight: Tensor) -> Tensor:
        """Return rows ``start`` to ``stop`` of ``X @ weight``, without gradient and without a mask."""
        if isinstance(self.matrix, SparseMatrix):
            return torch.mm(self.matrix.block(start, stop), weight)
        return self.matrix[:, start:stop].t() @ weight
