"""Random walks on a graph, many at once: uniform or weighted, of first or second order."""

from __future__ import annotations

import torch
from torch import Tensor

from ssge.ops.adjacency import Adjacency
from ssge.ops.sparse import row_indices


class Walker:
    """Walks along the edges of a graph, from source to target.

    A walk ends at a node without outgoing edges: such a node is its own only neighbor. As graphs have no other
    self-loops, a repeated node marks the end of a walk; see `moved`.

    Parameters
    ----------
    adjacency
        Its edges are the possible steps; self-loops and normalization are ignored.
    p, q
        Of walks of second order (Grover and Leskovec, 2016): the step from v, to which the walk came from t, goes to x
        in proportion to weight(v, x) times 1/p if x is t, else 1 if there is an edge from t to x, else 1/q. With
        p = q = 1 only the weight matters.

    Attributes
    ----------
    popularity
        Weighted in-degree of each node: in an undirected graph, proportional to the frequency in long walks.

    Notes
    -----
    Second-order steps use rejection sampling, without a table for each pair of edges: a neighbor is proposed as in a
    first-order walk, and accepted with its factor divided by the largest factor of other steps. If the factor of the
    step back is larger than that, the excess is sampled separately, so that a small p does not slow down the rest
    (Yang et al., KnightKing, 2019). A step takes on average at most max(1, 1/q) / min(1, 1/q, 1/p) proposals, each with
    at most one binary search among the neighbors of t. Memory is O(n + m).
    """

    def __init__(self, adjacency: Adjacency, p: float = 1.0, q: float = 1.0) -> None:
        self.p, self.q = p, q
        rows = adjacency.pattern.outgoing
        n, source = rows.indptr.numel() - 1, row_indices(rows.indptr)
        edge = rows.indices != source
        end = torch.bincount(source[edge], minlength=n) == 0
        kept = edge | end[source.long()]
        self._neighbor = rows.indices[kept]  # ascending in each row
        self._first = torch.zeros(n + 1, dtype=torch.int64, device=adjacency.device)
        torch.cumsum(torch.bincount(source[kept], minlength=n), 0, out=self._first[1:])
        self._degree = self._first.diff()
        self._rounds = int(self._degree.max()).bit_length()
        incoming = torch.zeros(n, dtype=torch.float64, device=adjacency.device)
        self.popularity = incoming.index_add_(0, rows.indices[edge], rows.values[edge].double())
        self._cumulative: Tensor | None = None
        if adjacency.pattern.weighted:  # a running sum over all rows, from 0
            self._cumulative = torch.zeros(self._neighbor.numel() + 1, dtype=torch.float64, device=adjacency.device)
            torch.cumsum(rows.values[kept].double(), 0, out=self._cumulative[1:])

    def __call__(self, starts: Tensor, length: int, generator: torch.Generator) -> Tensor:
        """Return one walk from each start: ``length`` nodes in a row, the start first."""
        walks = torch.empty(length, starts.numel(), dtype=torch.int64, device=starts.device)
        walks[0] = starts
        for step in range(1, length):
            if step == 1 or self.p == self.q == 1:
                walks[step] = self._step(walks[step - 1], generator)
            else:
                walks[step] = self._second_order(walks[step - 2], walks[step - 1], generator)
        return walks.t().contiguous()

    def _step(self, nodes: Tensor, generator: torch.Generator) -> Tensor:
        # `index_select` throughout: on a CPU it takes a third of the time of indexing with brackets.
        first, degree = self._first.index_select(0, nodes), self._degree.index_select(0, nodes)
        draw = torch.rand(nodes.numel(), generator=generator, device=nodes.device, dtype=torch.float64)
        if self._cumulative is None:
            entry = first + (draw * degree).long()
        else:
            below = self._cumulative.index_select(0, first)
            above = self._cumulative.index_select(0, first + degree)
            # The first running sum above the draw, and the entry before it; rounding never leads past the row.
            entry = self._search(self._cumulative[1:], torch.lerp(below, above, draw), first, degree - 1)
        return self._neighbor.index_select(0, entry).long()

    def _second_order(self, before: Tensor, nodes: Tensor, generator: torch.Generator) -> Tensor:
        ceiling, back = max(1.0, 1 / self.q), 1 / self.p
        sure = min(1.0, 1 / self.q, back) / ceiling
        surplus = self._surplus(before, nodes, back - ceiling, ceiling) if back > ceiling else None
        only = self._degree.index_select(0, nodes) == 1  # only one choice
        chosen = torch.empty_like(nodes)
        waiting = torch.arange(nodes.numel(), device=nodes.device)
        while waiting.numel():
            at, came = nodes.index_select(0, waiting), before.index_select(0, waiting)
            proposed = self._step(at, generator)
            draw = torch.rand(waiting.numel(), generator=generator, device=nodes.device)
            accepted = (draw < sure) | only.index_select(0, waiting)
            unsure = (~accepted).nonzero().squeeze(1)  # the search for an edge takes most of the time
            factor = self._factor(came.index_select(0, unsure), proposed.index_select(0, unsure))
            accepted[unsure] = draw.index_select(0, unsure) * ceiling < factor
            if surplus is not None:
                returns = torch.rand(waiting.numel(), generator=generator, device=nodes.device)
                returning = returns < surplus.index_select(0, waiting)
                proposed, accepted = torch.where(returning, came, proposed), accepted | returning
            chosen[waiting] = proposed  # rejected proposals are overwritten in a later round
            waiting = waiting[~accepted]
        return chosen

    def _factor(self, before: Tensor, proposed: Tensor) -> Tensor:
        """Return 1/p, 1 or 1/q."""
        factor = torch.where(self._edge(before, proposed)[1], 1.0, 1 / self.q)
        return torch.where(proposed == before, 1 / self.p, factor)

    def _surplus(self, before: Tensor, nodes: Tensor, height: float, ceiling: float) -> Tensor:
        """Return the probability of the excess of the step back above the ceiling."""
        entry, found = self._edge(nodes, before)
        if self._cumulative is None:
            width = self._degree.index_select(0, nodes).double()
            share = found.double()
        else:
            first, degree = self._first.index_select(0, nodes), self._degree.index_select(0, nodes)
            sums = self._cumulative
            width = sums.index_select(0, first + degree) - sums.index_select(0, first)
            share = torch.where(found, sums.index_select(0, entry + 1) - sums.index_select(0, entry), 0.0)
        return height * share / (height * share + ceiling * width)

    def _edge(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions of edges in ``_neighbor``, and whether they exist."""
        first, degree = self._first.index_select(0, source), self._degree.index_select(0, source)
        entry = self._search(self._neighbor, target - 1, first, degree - 1)
        return entry, self._neighbor.index_select(0, entry) == target

    def _search(self, values: Tensor, wanted: Tensor, first: Tensor, count: Tensor) -> Tensor:
        """Return the first position from ``first`` on whose value exceeds ``wanted``, else ``first + count``.

        Bisection within the rows, all searches at once: ``torch.searchsorted`` over all edges takes 2.7 times as long
        (200,000 searches, two million edges, ten per node).
        """
        low, high = first, first + count
        for _ in range(self._rounds):
            middle = (low + high) >> 1
            above = values.index_select(0, middle) > wanted
            low, high = torch.where(above | (low == high), low, middle + 1), torch.where(above, middle, high)
        return low


def moved(walks: Tensor) -> Tensor:
    """Return the mask of valid positions of the walks; the others repeat the last node of a finished walk."""
    first = torch.ones_like(walks[:, :1], dtype=torch.bool)
    return torch.cat([first, walks[:, 1:] != walks[:, :-1]], dim=1)
