"""Positives of AFGRL: nodes with similar vectors that are also neighbors or in the same cluster."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ssge.ops.adjacency import Adjacency
from ssge.ops.communities import community_means
from ssge.ops.sparse import row_indices

_ENTRIES = 1 << 24  # similarities in memory at once


def positive_pairs(near: Tensor, adjacency: Adjacency, clusters: Tensor) -> Tensor:
    """Return the pairs (i, j) in which j is near i, and a neighbor of i or in its cluster in any clustering.

    Parameters
    ----------
    near
        Candidates j of each node i, n x k. A node that is its own candidate is always a pair.
    adjacency
        The in-neighbors of each node in the clean graph.
    clusters
        The cluster of each node in each clustering, n x c.

    Returns
    -------
    Tensor
        2 x pairs, i above j; between n and n k of them if each node is its own candidate. O(n k (c + log m)).
    """
    n, k = near.shape
    indptr, column, _ = adjacency.pattern.incoming
    keys = row_indices(indptr).long() * n + column  # ascending: rows in order, columns in order within a row
    row = torch.arange(n, device=near.device).repeat_interleave(k)
    other = near.flatten()
    key = row * n + other
    place = torch.searchsorted(keys, key).clamp_max(keys.numel() - 1)
    kept = keys[place] == key
    for clustering in clusters.unbind(1):
        kept |= clustering[row] == clustering[other]
    return torch.stack([row[kept], other[kept]])


@torch.no_grad()
def nearest_targets(q: Tensor, t: Tensor, k: int, chunk: int | None = None) -> Tensor:
    """Return for each row of q its own position and the k - 1 other rows of t with the largest cosines, n x k.

    Exact; O(n^2 d) time, O(chunk n) memory. The default chunk keeps that to 2^24 numbers.
    """
    n = q.shape[0]
    q, t = functional.normalize(q), functional.normalize(t)
    found = torch.empty(n, min(k, n), dtype=torch.int64, device=q.device)
    step = chunk or max(1, _ENTRIES // n)
    for start in range(0, n, step):
        similar = q[start : start + step] @ t.t()
        similar.diagonal(start).fill_(torch.inf)
        found[start : start + step] = similar.topk(found.shape[1], 1).indices
    return found


@torch.no_grad()
def k_means(x: Tensor, count: int, iterations: int, generator: torch.Generator) -> Tensor:
    """Return a cluster for each row of x, by Lloyd's algorithm from randomly chosen rows.

    The center of an empty cluster does not move. O(n count d) per iteration.
    """
    centers = x[torch.randperm(x.shape[0], generator=generator, device=x.device)[:count]]
    clusters = _nearest_center(x, centers)
    for _ in range(iterations):
        sizes = torch.bincount(clusters, minlength=centers.shape[0]).unsqueeze(1)
        centers = torch.where(sizes > 0, community_means(x, clusters, centers.shape[0]), centers)
        clusters = _nearest_center(x, centers)
    return clusters


def _nearest_center(x: Tensor, centers: Tensor) -> Tensor:
    # For one row, |x - c|^2 / 2 and |c|^2 / 2 - x c differ by a constant.
    return torch.addmm(-centers.square().sum(1) / 2, x, centers.t()).argmax(1)
