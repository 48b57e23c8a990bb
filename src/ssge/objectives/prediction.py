r"""Cosine regression: predict the direction of the target representation; no negatives.

With Q (n x d) the predictions of the online network, T (n x d) the outputs of the target network (constants), and
cos(q, t) = q't / (|q| |t|), where a row of zeros has cosine 0 with all rows:

- of equal rows: (1/n) sum_i 1 - cos(q_i, t_i)
- of pairs P: (1/|P|) sum_{(i, j) in P} [2 - 2 cos(q_i, t_j)] + [2 - 2 cos(q_j, t_i)]

Both depend on directions only. BGRL sums the first over both orders of two views, AFGRL uses the second.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ssge.ops.sparse import csr_from_coo, spmm


def cosine_regression(q: Tensor, t: Tensor) -> Tensor:
    """Return the mean of 1 - cos(q_i, t_i) over rows, from 0 (same directions) to 2; O(n d) time and memory."""
    return 1 - (functional.normalize(q) * functional.normalize(t.detach())).sum() / q.shape[0]


def paired_cosine_regression(q: Tensor, t: Tensor, pairs: Tensor) -> Tensor:
    """Return the mean over pairs (i, j) of [2 - 2 cos(q_i, t_j)] + [2 - 2 cos(q_j, t_i)], from 0 to 8.

    The cosines of a row q_i with all its partners sum to its inner product with the sum of the partners, a constant. So
    no row is gathered per pair: O(|P| d) time, but O(n d) memory.

    Parameters
    ----------
    q, t
        Predictions and targets, n x d.
    pairs
        2 x |P| positions, in any order; duplicates count twice.
    """
    n, count = q.shape[0], pairs.shape[1]
    row, column = torch.cat([pairs, pairs.flip(0)], 1)
    partners = csr_from_coo(row, column, n, q.dtype)
    sums = spmm(partners, functional.normalize(t.detach()))
    return 4 - 2 * (functional.normalize(q) * sums).sum() / count
