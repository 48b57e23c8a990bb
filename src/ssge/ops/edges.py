"""Edges as a plain sparse matrix: subgraphs, removal of self-loops, neighbor means, added edges."""

from __future__ import annotations

import torch
from torch import Tensor

from ssge.ops.adjacency import Adjacency, Pattern
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.ops.sparse import CSR, SparseMatrix, row_indices, transpose


def edges_among(adjacency: Adjacency, nodes: Tensor | None) -> CSR:
    """Return the edges of the subgraph of some nodes (ascending), renumbered; None: all edges."""
    return (adjacency if nodes is None else adjacency.subgraph(nodes)).entries[0]


def without_loops(rows: CSR) -> CSR:
    """Return the off-diagonal entries."""
    return rows.filter(rows.indices != row_indices(rows.indptr))


def edge_matrix(rows: CSR) -> SparseMatrix:
    """Return the square matrix of some edges, ready for products."""
    return SparseMatrix(rows, transpose(rows, rows.indptr.numel() - 1)[0])


def neighbor_mean(rows: CSR) -> SparseMatrix:
    """Return the matrix with 1 / (number of neighbors) at each edge; its product is the mean over the neighbors.

    A node without neighbors has a row of zeros.
    """
    count = rows.indptr.diff().long()
    share = count.to(rows.values.dtype).reciprocal()  # infinite without neighbors, and never used
    return edge_matrix(rows._replace(values=share.repeat_interleave(count)))


def add_edges(adjacency: Adjacency, count: int, generator: torch.Generator) -> Adjacency:
    """Return the adjacency with additional random edges of weight 1, normalized by the resulting degrees.

    The edges are directed: ``count`` samples, with replacement, from the pairs without an edge in the clean graph; a
    pair that is drawn twice is added once. The degrees of a subgraph are then those of its own edges.

    Cost O((m + count) log(m + count)).
    """
    incoming = adjacency.entries[0]
    n = incoming.indptr.numel() - 1
    key, values = _keys(incoming, n), incoming.values
    if adjacency.num_entries < n * n:
        drawn = sample_non_edges(Pairs.of(adjacency), count, generator).rows
        added: Tensor = torch.unique(_keys(drawn, n))
        key, values = torch.cat([key, added]), torch.cat([values, values.new_ones(added.numel())])
    key, order = key.sort()
    starts = torch.searchsorted(key, torch.arange(n + 1, device=key.device) * n)
    rows = CSR(starts.to(incoming.indptr.dtype), (key % n).to(incoming.indices.dtype), values[order])
    return Adjacency(Pattern(rows, adjacency.pattern.weighted), adjacency.normalization)


def _keys(rows: CSR, n: int) -> Tensor:
    return row_indices(rows.indptr).long() * n + rows.indices
