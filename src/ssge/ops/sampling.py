"""Sampling of non-edges, in one pass and with an explicit generator."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.adjacency import Adjacency
from ssge.ops.sparse import CSR, row_indices, transpose


class Pairs(NamedTuple):
    """Pairs of nodes (i, j) in the order of i.

    Attributes
    ----------
    rows
        By i; values are ignored.
    columns
        The same pairs by j.
    order
        Position in ``rows`` of each entry of ``columns``.
    """

    rows: CSR
    columns: CSR
    order: Tensor

    @classmethod
    def of(cls, adjacency: Adjacency) -> Pairs:
        """Return the entries of an adjacency without drops: its edges and one self-loop per node."""
        return cls(adjacency.pattern.incoming, adjacency.pattern.outgoing, adjacency.pattern.order)


def sample_non_edges(edges: Pairs, count: int, generator: torch.Generator) -> Pairs:
    """Draw ``count`` pairs uniformly, with replacement, from all n^2 ordered pairs that are not among ``edges``.

    With k_0 < k_1 < ... the keys i n + j of the edges, k_e - e pairs before k_e are not edges; hence the r-th non-edge
    has the key r + #{e: k_e - e <= r}. This is one binary search. Rejection sampling would take a random number of
    rounds, each with a synchronization of the GPU.

    Cost O((m + count) log m) time, O(m + count) memory.

    Parameters
    ----------
    edges
        Without duplicates, sorted by i and then by j, as `Pairs.of` has them.
    count
        Number of pairs.
    generator
        On the device of ``edges``.
    """
    indptr, column, value = edges.rows
    n, m, device = indptr.numel() - 1, column.numel(), column.device
    others = n * n - m
    if others == 0:
        raise InputError(f"Non-edges cannot be sampled: all {n * n} pairs of the {n} nodes are edges or loops.")
    before = row_indices(indptr).long() * n + column - torch.arange(m, device=device)
    rank = torch.randint(others, (count,), generator=generator, device=device).sort().values
    key = rank + torch.searchsorted(before, rank, right=True)
    starts = torch.arange(n + 1, device=device) * n
    rows = CSR(
        torch.searchsorted(key, starts).to(indptr.dtype), (key % n).to(column.dtype), value.new_ones(()).expand(count)
    )
    return Pairs(rows, *transpose(rows, n))
