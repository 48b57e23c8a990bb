"""Neighbor sampling: a sample of in-neighbors, weighted so that every product is unbiased.

A custom sampler, because those of PyTorch Geometric and DGL need compiled extensions without a build for the current
torch, and because they draw from a stream of random numbers. Here a draw is a function of step, layer and node, so the
order of execution, the prefetching thread and the number of processes cannot change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from ssge.ops.adjacency import Adjacency, Pattern
from ssge.ops.random import Key
from ssge.ops.sparse import CSR, SparseMatrix, row_indices, transpose

Drops: TypeAlias = tuple[tuple[Key, float | Tensor], ...]
_ENTRIES = 1 << 20
"""Chunk size, in entries of the whole graph, of counting degrees."""


class Rows(NamedTuple):
    """A sample of entries of some rows of the whole graph's pattern; each row starts with its self-loop.

    Attributes
    ----------
    indptr
        Row pointers.
    entries
        Positions in the pattern's ``incoming``.
    scale
        D / k if k of D in-neighbors were drawn, 1 for the self-loop.
    """

    indptr: Tensor
    entries: Tensor
    scale: Tensor


class Block:
    """The sampled matrix of one layer: from its input nodes to the first of them, its output nodes."""

    def __init__(self, rows: Rows, indices: Tensor, num_columns: int) -> None:
        self.rows, self.indices, self.num_columns = rows, indices, num_columns

    @cached_property
    def transposed(self) -> tuple[CSR, Tensor]:
        """The pattern of the transpose, and the position of each entry here; computed only for gradients."""
        return transpose(CSR(self.rows.indptr, self.indices, self.rows.scale), self.num_columns)


class Neighborhood(NamedTuple):
    """The sampled input of the layers of an encoder for some seeds.

    Attributes
    ----------
    nodes
        Positions in the whole graph: the seeds, then the inputs of the last layer, then those of the layer before, ...
        Later layers compute only the first of them.
    blocks
        By hops from the seeds: the first is that of the last layer.
    """

    nodes: Tensor
    blocks: tuple[Block, ...]


class NeighborSampler:
    """Samples neighborhoods of a graph.

    Parameters
    ----------
    whole
        The adjacency of all nodes; views drop edges from the sample.
    fanouts
        Maximum number of sampled in-neighbors per node, by hops from the seeds.
    """

    def __init__(self, whole: Adjacency, fanouts: Sequence[int]) -> None:
        self.whole, self.fanouts = whole, tuple(fanouts)
        n = whole.pattern.incoming.indptr.numel() - 1
        self._position = torch.full((n,), -1, dtype=torch.int32, device=whole.device)
        self._degrees: dict[Drops, tuple[Tensor, Tensor]] = {}

    def sample(self, seeds: Tensor, key: Key) -> Neighborhood:
        """Sample the neighborhood of some seeds, in time linear in its size.

        Each layer samples independently for each of its nodes, so that the product of several layers is unbiased too.
        """
        incoming, nodes, blocks = self.whole.pattern.incoming, seeds, []
        self._number(seeds, 0)
        for hop, fanout in enumerate(self.fanouts):
            rows = sample_rows(self.whole.pattern, nodes, fanout, key.fold_in("neighbors", hop))
            # `index_select` takes a tenth of the time of indexing with brackets.
            columns = incoming.indices.index_select(0, rows.entries)
            unknown = self._position.index_select(0, columns) < 0
            new = torch.unique(columns[unknown]).long()
            if not new.numel():
                new = nodes[:1]  # an extra unused row: the number of rows identifies the layer
            else:
                self._number(new, nodes.numel())
            nodes = torch.cat([nodes, new])
            blocks.append(Block(rows, self._position.index_select(0, columns), nodes.numel()))
        self._position[nodes] = -1
        return Neighborhood(nodes, tuple(blocks))

    def adjacency(self, part: Neighborhood) -> SampledAdjacency:
        """Return the adjacency of a neighborhood, from which views drop edges."""
        return SampledAdjacency(self, part)

    def degrees(self, drops: Drops) -> tuple[Tensor, Tensor]:
        """Return the in- and out-degrees of all nodes after some drops; counted once per epoch."""
        if drops not in self._degrees:
            self._degrees[drops] = count_degrees(self.whole.pattern, drops)
        return self._degrees[drops]

    def _number(self, nodes: Tensor, first: int) -> None:
        self._position[nodes] = torch.arange(first, first + nodes.numel(), dtype=torch.int32, device=nodes.device)


class SampledAdjacency(Adjacency):
    """The adjacency of a view over a sampled neighborhood: ``A @ H`` has fewer rows than H, those of one layer.

    A sampled entry has the weight D / k, so that the expectation is the matrix of the whole view. Degrees are those of
    the whole view; a dropped edge is zero.
    """

    def __init__(self, sampler: NeighborSampler, part: Neighborhood, drops: Drops | None = None) -> None:
        whole = sampler.whole
        super().__init__(whole.pattern, whole.normalization, whole.drops if drops is None else drops)
        self.sampler, self.part = sampler, part
        self._matrices: dict[int, _Matrix] = {}

    def drop_edges(self, key: Key, rate: float | Tensor) -> SampledAdjacency:
        """Return the adjacency without the edges that the key drops; self-loops always stay."""
        return SampledAdjacency(self.sampler, self.part, self.with_drop(key, rate))

    def subgraph(self, nodes: Tensor) -> Adjacency:
        """Return the full subgraph of some of its nodes (ascending in the whole graph), without sampling."""
        return Adjacency(self.pattern, self.normalization, self.drops).subgraph(self.part.nodes[nodes])

    def __matmul__(self, dense: Tensor) -> Tensor:
        hop = next(i for i, block in enumerate(self.part.blocks) if block.num_columns == dense.shape[0])
        if hop not in self._matrices:
            self._matrices[hop] = _Matrix(self.part.blocks[hop], self._values(self.part.blocks[hop]))
        return self._matrices[hop] @ dense

    def _values(self, block: Block) -> Tensor:
        nodes, rows = self.part.nodes, row_indices(block.rows.indptr)
        at_target, at_source = self.sampler.degrees(self.drops)
        at_source = at_target if self.normalization == "in" else at_source
        target, source = nodes.index_select(0, rows), nodes.index_select(0, block.indices)
        values = (at_target.index_select(0, target) * at_source.index_select(0, source)).rsqrt_()
        values *= block.rows.scale
        if self.pattern.weighted:
            values *= self.pattern.incoming.values.index_select(0, block.rows.entries)
        if self.drops:
            values *= _kept(self.drops, source, target, block.rows.entries)
        return values


def sample_rows(pattern: Pattern, nodes: Tensor, fanout: int, key: Key) -> Rows:
    """Sample at most ``fanout`` in-neighbors of each node without replacement, plus its self-loop.

    The sample of a node depends only on the key and the node.
    """
    begin, end = pattern.incoming.indptr[nodes].long(), pattern.incoming.indptr[nodes + 1].long()
    loop = pattern.loops[nodes] - begin
    degree = end - begin - 1
    drawn = degree.clamp_max(fanout)
    indptr = torch.zeros(nodes.numel() + 1, dtype=torch.int64, device=nodes.device)
    torch.cumsum(drawn + 1, 0, out=indptr[1:])
    offsets = torch.arange(int(indptr[-1]), device=nodes.device) - indptr[:-1].repeat_interleave(drawn + 1) - 1
    many = (degree > fanout).nonzero().squeeze(1)
    if many.numel():
        chosen = distinct_offsets(degree[many], fanout, nodes[many], key)
        place = indptr[many].unsqueeze(1) + torch.arange(1, fanout + 1, device=nodes.device)
        offsets.index_copy_(0, place.view(-1), chosen.t().reshape(-1))
    begin_of = begin.repeat_interleave(drawn + 1)
    offsets += offsets >= loop.repeat_interleave(drawn + 1)
    offsets[indptr[:-1]] = loop
    scale = (degree / drawn.clamp_min(1)).to(pattern.incoming.values.dtype).repeat_interleave(drawn + 1)
    scale[indptr[:-1]] = 1
    return Rows(indptr.to(torch.int32), begin_of + offsets, scale)


def distinct_offsets(degree: Tensor, k: int, items: Tensor, key: Key) -> Tensor:
    """Return k x r integers: in column i, k distinct ones of 0..degree_i-1, each set of k equally likely.

    Floyd's algorithm, all columns at once: for j from degree - k on, draw a number up to j, or use j itself if that
    number is already drawn.
    """
    slots = torch.arange(k, device=items.device).unsqueeze(1)
    uniform = (key.bits(items * k + slots) >> 32) & 0xFFFFFFFF
    chosen = torch.empty_like(uniform)
    for slot in range(k):
        last = degree - k + slot
        number = (uniform[slot] * (last + 1)) >> 32
        taken = (chosen[:slot] == number).any(0)
        chosen[slot] = torch.where(taken, last, number)
    return chosen


def count_degrees(pattern: Pattern, drops: Drops) -> tuple[Tensor, Tensor]:
    """Return the weighted in- and out-degrees of all nodes after some drops, in one pass over the entries."""
    indptr, indices, weights = pattern.incoming
    n = indptr.numel() - 1
    into, out = weights.new_zeros(n), weights.new_zeros(n)
    start = 0
    while start < n:
        # At least one row, and as many as fit into a chunk.
        stop = max(start + 1, int(torch.searchsorted(indptr, int(indptr[start]) + _ENTRIES, right=True)) - 1)
        first, last = int(indptr[start]), int(indptr[min(stop, n)])
        source = indices[first:last].long()
        target = start + row_indices(indptr[start : min(stop, n) + 1]).long()
        counted = weights[first:last]
        if drops:
            entries = torch.arange(first, last, device=indices.device)
            counted = counted * _kept(drops, source, target, entries)
        into.index_add_(0, target, counted)
        out.index_add_(0, source, counted)
        start = stop
    return into, out


def _kept(drops: Drops, source: Tensor, target: Tensor, entries: Tensor) -> Tensor:
    """Return the mask of kept edges; self-loops are always kept."""
    kept = torch.ones_like(source, dtype=torch.bool)
    for key, rate in drops:
        kept &= key.keep((source << 32).bitwise_or_(target), rate[entries] if isinstance(rate, Tensor) else rate)
    return kept | (source == target)


class _Matrix(SparseMatrix):
    """The matrix of a block with values; its transpose is computed only for gradients."""

    def __init__(self, block: Block, values: Tensor) -> None:
        self._block, self.rows = block, CSR(block.rows.indptr, block.indices, values)

    @property
    def columns(self) -> CSR:  # type: ignore[override]
        """The transpose."""
        columns, order = self._block.transposed
        return columns._replace(values=self.rows.values.index_select(0, order))
