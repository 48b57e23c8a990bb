"""Edges as a plain sparse matrix: without self-loops, ready for products, or averaging over neighbors."""

from __future__ import annotations

import torch

from ssge.ops.sparse import CSR, SparseMatrix, row_indices, transpose


def without_loops(rows: CSR) -> CSR:
    """Return the entries off the diagonal."""
    return rows.filter(rows.indices != row_indices(rows.indptr))


def edge_matrix(rows: CSR) -> SparseMatrix:
    """Return the square matrix of some edges, ready for products."""
    return SparseMatrix(rows, transpose(rows, rows.indptr.numel() - 1)[0])


def neighbor_mean(rows: CSR) -> SparseMatrix:
    """Return the matrix with 1 / (number of neighbors) at each edge; its product is the mean over the neighbors.

    A node without neighbors has a row of zeros.
    """
    count = rows.indptr.diff().long()
    share = count.to(rows.values.dtype).reciprocal()  # of no neighbors: infinite, and never taken
    return edge_matrix(rows._replace(values=share.repeat_interleave(count)))
