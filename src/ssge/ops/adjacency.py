"""Adjacency: the normalized adjacency matrix with self-loops, from which views drop edges."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.random import Key
from ssge.ops.sparse import CSR, SparseMatrix, row_indices, spmm, transpose

Normalization: TypeAlias = Literal["out-in", "in"]


class Incident(NamedTuple):
    """The in-edges or out-edges of some nodes in the whole graph, for the degrees of a subgraph.

    Attributes
    ----------
    node
        Position of the node in the subgraph, per edge.
    edge_ids
        As in `Pattern.edge_ids`.
    weights
        Edge weights; self-loops have weight 1.
    """

    node: Tensor
    edge_ids: Tensor
    weights: Tensor


class Pattern:
    """The entries of the matrix before any edge is dropped; all views of a graph share it.

    Parameters
    ----------
    incoming
        CSR by target: the in-neighbors of each node. Values are the edge weights; self-loops have weight 1.
    weighted
        Whether any edge weight differs from 1.
    nodes
        Positions of the nodes in the whole graph, if this is a subgraph.
    whole
        The pattern of the whole graph, if this is a subgraph with the degrees of the whole graph.

    Attributes
    ----------
    incident
        In- and out-edges of the nodes in the whole graph, if given.
    outgoing, order
        The transpose, by source, and the position in ``incoming`` of each of its entries.
    loops
        Positions of the self-loops in ``incoming``, one per node.
    """

    def __init__(
        self,
        incoming: CSR,
        weighted: bool,
        nodes: Tensor | None = None,
        whole: Pattern | None = None,
    ) -> None:
        self.incoming, self.weighted, self.nodes, self._whole = incoming, weighted, nodes, whole
        self.incident: tuple[Incident, Incident] | None = None
        if whole is not None and nodes is not None:
            self.incident = _incident(whole.incoming, nodes, into=True), _incident(whole.outgoing, nodes)
        self.outgoing: CSR
        self.outgoing, self.order = transpose(incoming, incoming.indptr.numel() - 1)
        self.loops = (incoming.indices == row_indices(incoming.indptr)).nonzero().squeeze(1)

    @cached_property
    def edge_ids(self) -> Tensor:
        """One integer per entry of ``incoming``, ``source * 2^32 + target`` by positions in the whole graph."""
        return edge_ids(self.incoming.indices.long(), row_indices(self.incoming.indptr).long(), self.nodes)

    @property
    def whole(self) -> Pattern:
        """The pattern of the whole graph."""
        return self if self._whole is None else self._whole

    def positions(self, edge_ids: Tensor) -> Tensor:
        """Return the positions of some edges in ``incoming``."""
        return self.order[torch.searchsorted(self._ascending_ids, edge_ids)]

    @cached_property
    def _ascending_ids(self) -> Tensor:
        return self.edge_ids[self.order]  # by source, and by target within a source


class Adjacency:
    r"""Normalized adjacency matrix of a view; it computes ``A @ H``.

    With A the weights of the kept edges (from source j to target i) and of the self-loops,

    - ``out-in`` (default): ``A_ij / sqrt(in_i * out_j)``, the in-degree of the target and the out-degree of the source,
      as in the released code of the SSGE paper, through DGL.
    - ``in``: ``A_ij / sqrt(in_i * in_j)``, in-degrees on both ends, as in PyTorch Geometric's ``gcn_norm``.

    Both are equal on a symmetric graph. They differ when edges are dropped independently in each direction.

    Dropping edges only records a key and a rate. Whether an edge is kept is a function of the key and of its two ends
    (`ssge.ops.random.Key`), so the matrix, its transpose, any subgraph and any machine agree on it.

    Parameters
    ----------
    pattern
        The entries of the full matrix.
    normalization
        One of the two conventions above.
    drops
        Keys and rates with which edges were dropped: one rate, or one per entry of ``pattern.whole.incoming``.
    """

    normalized: ClassVar[bool] = True
    """Whether the matrix is normalized by degrees."""

    def __init__(
        self,
        pattern: Pattern,
        normalization: Normalization = "out-in",
        drops: tuple[tuple[Key, float | Tensor], ...] = (),
    ) -> None:
        self.pattern = pattern
        self.normalization = normalization
        self.drops = drops

    @classmethod
    def of(
        cls,
        edges: NDArray[np.int64],
        num_nodes: int,
        weights: NDArray[Any] | None = None,
        normalization: Normalization = "out-in",
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Adjacency:
        """Build the matrix of the edges (source, target) of a graph without self-loops."""
        nodes = np.arange(num_nodes)
        source, target = np.concatenate([edges, np.stack([nodes, nodes])], axis=1)
        order = np.lexsort((source, target))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=num_nodes))])
        values = np.ones(order.size) if weights is None else np.concatenate([weights, np.ones(num_nodes)])
        incoming = CSR(
            torch.from_numpy(indptr.astype(np.int32)).to(device),
            torch.from_numpy(source[order].astype(np.int32)).to(device),
            torch.from_numpy(values[order]).to(device, dtype),
        )
        return cls(Pattern(incoming, weights is not None), normalization)

    @property
    def num_entries(self) -> int:
        """Number of entries of the full matrix: edges and self-loops."""
        return self.pattern.incoming.indices.numel()

    @property
    def device(self) -> torch.device:
        """Device of the matrix."""
        return self.pattern.incoming.values.device

    def drop_edges(self, key: Key, rate: float | Tensor) -> Adjacency:
        """Return the adjacency without the edges that the key drops; self-loops always stay.

        The rate is one number, or a tensor with one number per entry of ``pattern.whole.incoming``: the degrees of a
        subgraph also count edges outside it.
        """
        return type(self)(self.pattern, self.normalization, self.with_drop(key, rate))

    def with_drop(self, key: Key, rate: float | Tensor) -> tuple[tuple[Key, float | Tensor], ...]:
        """Return the drops so far and an additional one."""
        if isinstance(rate, Tensor) and rate.shape != self.pattern.whole.incoming.indices.shape:
            raise InputError(
                f"rate must be one number, or one for each of {self.pattern.whole.incoming.indices.numel()} entries "
                f"of the whole graph; received shape {tuple(rate.shape)}."
            )
        return (*self.drops, (key, rate))

    @cached_property
    def kept(self) -> Tensor | None:
        """Mask of the kept entries of ``pattern.incoming``, or None for all."""
        if not self.drops:
            return None
        return self._keep(self.pattern.edge_ids).index_fill_(0, self.pattern.loops, True)

    def _keep(self, edge_ids: Tensor) -> Tensor:
        (key, rate), *others = self.drops
        kept = key.keep(edge_ids, self._rates(rate, edge_ids))
        for key, rate in others:
            kept &= key.keep(edge_ids, self._rates(rate, edge_ids))
        return kept

    def _rates(self, rate: float | Tensor, edge_ids: Tensor) -> float | Tensor:
        whole = self.pattern.whole
        if not isinstance(rate, Tensor) or edge_ids is whole.edge_ids:
            return rate
        return rate[whole.positions(edge_ids)]

    def in_neighbors(self, nodes: Tensor, hops: int) -> Tensor:
        """Return the k-hop in-neighbors of some nodes, including these, in ascending order."""
        for _ in range(hops):  # a self-loop keeps each node among its own in-neighbors
            nodes = self.entries[0].select(_distinct(nodes)).indices.long()
        return _distinct(nodes)

    def subgraph(self, nodes: Tensor) -> Adjacency:
        """Return the rows and columns of some nodes (ascending), normalized by their degrees in the whole graph.

        Cost: linear in the edges that touch the nodes.
        """
        pattern = self.pattern
        position = torch.full((pattern.incoming.indptr.numel() - 1,), -1, dtype=torch.int32, device=self.device)
        position[nodes] = torch.arange(nodes.numel(), dtype=torch.int32, device=self.device)
        rows = pattern.incoming.select(nodes)
        rows = rows._replace(indices=position[rows.indices])
        nodes = nodes if pattern.nodes is None else pattern.nodes[nodes]
        whole = pattern.whole if self.normalized else None
        inside = Pattern(rows.filter(rows.indices >= 0), pattern.weighted, nodes, whole)
        return type(self)(inside, self.normalization, self.drops)

    @cached_property
    def entries(self) -> tuple[CSR, CSR]:
        """The kept entries, by target and by source."""
        incoming, outgoing = self.pattern.incoming, self.pattern.outgoing
        if self.kept is None:
            return incoming, outgoing
        return (
            incoming.filter(self.kept, alike=not self.pattern.weighted),
            outgoing.filter(self.kept.index_select(0, self.pattern.order), alike=not self.pattern.weighted),
        )

    @cached_property
    def matrix(self) -> SparseMatrix:
        """The normalized matrix and its transpose, computed on first use."""
        incoming, outgoing = self.entries
        at_target, at_source = (degree.rsqrt() for degree in self._degrees)
        at_source = at_target if self.normalization == "in" else at_source
        return SparseMatrix(self._scaled(incoming, at_target, at_source), self._scaled(outgoing, at_source, at_target))

    @property
    def _degrees(self) -> tuple[Tensor, Tensor]:
        """Weighted in- and out-degrees, self-loops included."""
        if self.pattern.incident is None:
            incoming, outgoing = self.entries
            return self._degree(incoming), self._degree(outgoing)
        first, second = self.pattern.incident
        return self._incident_degree(first), self._incident_degree(second)

    def _degree(self, matrix: CSR) -> Tensor:
        if not self.pattern.weighted:
            return matrix.indptr.diff().to(matrix.values.dtype)
        degree = matrix.values.new_zeros(matrix.indptr.numel() - 1)
        return degree.index_add_(0, row_indices(matrix.indptr), matrix.values)

    def _incident_degree(self, edges: Incident) -> Tensor:
        weights = edges.weights
        if self.drops:
            loops = (edges.edge_ids >> 32) == (edges.edge_ids & 0xFFFFFFFF)
            weights = weights * (self._keep(edges.edge_ids) | loops)
        degree = weights.new_zeros(self.pattern.incoming.indptr.numel() - 1)
        return degree.index_add_(0, edges.node, weights)

    def _scaled(self, matrix: CSR, at_row: Tensor, at_column: Tensor) -> CSR:
        values = at_row.repeat_interleave(matrix.indptr.diff().long(), output_size=matrix.indices.numel())
        values *= at_column.index_select(0, matrix.indices)
        if self.pattern.weighted:
            values *= matrix.values
        return matrix._replace(values=values)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self.matrix @ dense

    def block(self, start: int, stop: int, dense: Tensor) -> Tensor:
        """Return rows ``start`` to ``stop`` of ``A @ dense``, without gradient."""
        return spmm(self.matrix.rows.block(start, stop), dense)


def edge_ids(source: Tensor, target: Tensor, nodes: Tensor | None = None) -> Tensor:
    """Return ``source * 2^32 + target`` of edges, the item ids of random draws."""
    if nodes is not None:
        source, target = nodes[source], nodes[target]
    return (source << 32).bitwise_or_(target)


def _incident(matrix: CSR, nodes: Tensor, into: bool = False) -> Incident:
    rows = matrix.select(nodes)
    node = row_indices(rows.indptr).long()
    ends = (rows.indices.long(), nodes[node])
    source, target = ends if into else ends[::-1]
    return Incident(node, edge_ids(source, target), rows.values)


def _distinct(nodes: Tensor) -> Tensor:
    found: Tensor = torch.unique(nodes)
    return found
