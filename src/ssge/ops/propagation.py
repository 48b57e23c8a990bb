r"""Training-free propagation of a matrix H (n x d) with the adjacency A of `ssge.ops.adjacency`.

- `power`: :math:`A^K H`, the last hop only (SGC).
- `mean_of_hops`: :math:`\alpha H + \frac{1 - \alpha}{K} \sum_{k=1}^K A^k H`, the mean of all hops plus a share of H
  itself (SSGC). With :math:`\alpha = 1 / (K + 1)` it is the plain mean of the hops 0..K.
- `weighted_hops`: :math:`\sum_{k=0}^K w_{ik} (A^k H)_i`, with :math:`w_i` the softmax over k of the cosine of
  :math:`(A^k H)_i` and :math:`H_i`: hops similar to the node itself have larger weights (NAFS).
- `polynomial`: :math:`\sum_k c_k A^k H`, any of the above except the last, and mixtures of them.

`FILTERS` lists the five filters of the default embedding.

All are without gradient, work on chunks of rows, and take K sparse products, O(K m d) time. They are linear in H except
for the weights of NAFS, hence S(X) V = S(X V): columns can be reduced first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ssge.ops.adjacency import Adjacency

CHUNK = 1 << 16
"""Chunk size in rows."""
HOPS = 8
"""Number of hops of the widest filter."""
_POWERS = (0, 2, 4, HOPS)
FILTERS = ("X", "A^2 X", "A^4 X", "A^8 X", "mean of 8 hops")
"""Filters from the node's own features to 8-hop neighborhoods."""


def power(adjacency: Adjacency, h: Tensor, hops: int, chunk: int = CHUNK) -> Tensor:
    """Return A^K H."""
    for _ in range(hops):
        h = _hop(adjacency, h, chunk)
    return h


def mean_of_hops(adjacency: Adjacency, h: Tensor, hops: int, alpha: float, chunk: int = CHUNK) -> Tensor:
    """Return alpha H + (1 - alpha) / K * (A H + ... + A^K H), by Horner's scheme: two matrices in memory besides H."""
    if hops == 0 or alpha == 1:
        return h
    total = h
    for _ in range(hops - 1):
        total = _hop(adjacency, total, chunk).add_(h)
    return _hop(adjacency, total, chunk).mul_((1 - alpha) / hops).add_(h, alpha=alpha)


def weighted_hops(adjacency: Adjacency, h: Tensor, hops: int, chunk: int = CHUNK) -> Tensor:
    """Return the hops of each node, weighted by the softmax of their cosines to the node's own row of H.

    The hops are summed with weights exp(cosine) one by one, so three matrices are in memory for any K.
    """
    total, weights, hop = torch.zeros_like(h), h.new_zeros(h.shape[0], 1), h
    for k in range(hops + 1):
        hop = hop if k == 0 else _hop(adjacency, hop, chunk)
        for rows in _chunks(h.shape[0], chunk):
            weight = functional.cosine_similarity(hop[rows], h[rows], eps=torch.finfo(h.dtype).tiny).exp_()
            total[rows].addcmul_(hop[rows], weight.unsqueeze(1))
            weights[rows] += weight.unsqueeze(1)
    return total.div_(weights)


def polynomial(adjacency: Adjacency, h: Tensor, weights: Sequence[float], chunk: int = CHUNK) -> Tensor:
    """Return the sum of weights[k] A^k H, by Horner's scheme: two matrices in memory besides H."""
    *lower, last = weights[: max([1, *(k + 1 for k, weight in enumerate(weights) if weight)])]
    total = h * last
    for weight in reversed(lower):
        total = _hop(adjacency, total, chunk).add_(h, alpha=weight)
    return total


def coefficients(mixture: Sequence[float]) -> Tensor:
    """Return the weight of each hop in a mixture of `FILTERS`."""
    found = torch.zeros(HOPS + 1, dtype=torch.float64)
    found[list(_POWERS)] = torch.tensor(mixture[:-1], dtype=found.dtype)
    return found + mixture[-1] / (HOPS + 1)


def all_filtered(adjacency: Adjacency, h: Tensor, chunk: int = CHUNK) -> Iterator[Tensor]:
    """Yield the output of each of `FILTERS` for H; they share the hops."""
    total = torch.zeros_like(h)
    for k in range(HOPS + 1):
        h = h if k == 0 else _hop(adjacency, h, chunk)
        total += h
        if k in _POWERS:
            yield h
    yield total.div_(HOPS + 1)


def _hop(adjacency: Adjacency, h: Tensor, chunk: int) -> Tensor:
    """Return A H."""
    product = torch.empty_like(h)
    for rows in _chunks(h.shape[0], chunk):
        product[rows] = adjacency.block(rows.start, rows.stop, h)
    return product


def _chunks(n: int, chunk: int) -> Iterator[slice]:
    return (slice(start, min(start + chunk, n)) for start in range(0, n, chunk))
