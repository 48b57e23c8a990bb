r"""Mutual information, estimated by discriminating positive from negative pairs.

All four methods use the Jensen-Shannon estimator, a binary cross-entropy. With scores p of positive pairs, q of
negative pairs, and softplus(x) = log(1 + exp(x)) = -log sigmoid(-x):

- `cross_entropy` = 1/2 mean softplus(-p) + 1/2 mean softplus(q)

The methods differ in the pairs. H are the representations of the nodes (n x d), H~ those of a corrupted graph (rows of
X shuffled), and s = sigmoid(mean of the rows of H) is the summary of a graph.

- DGI, `local_global`: a node with the summary, p_i = h_i' W s, q_i = h~_i' W s.
- MVGRL, `cross_view`: a node of one view with the summary of the other view, in both directions.
- GGD, `group_discrimination`: W s is replaced by ones: p_i is the sum of the coordinates of a linear map of h_i.
- GMI, `paired_information`: a node with its own features, or with its neighbors; other nodes are the negatives.
  `edge_information`: representations of two nodes with the edge between them.

No n x n matrix is formed. Differences from the released codes: W s is computed once, O(n d + d^2), whereas DGI and
MVGRL repeat s for each node, O(n d^2). GGD's linear map is summed before the product, O(n d). GMI's map of the features
is computed once per node, and its non-edges are a sample.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ssge.errors import InputError
from ssge.objectives.reconstruction import pair_scores
from ssge.ops.sampling import Pairs
from ssge.ops.sparse import CSR, transpose


def cross_entropy(positive: Tensor, negative: Tensor) -> Tensor:
    """Return the mean of two means: softplus(-p) over positive pairs, and softplus(q) over negative pairs.

    Equals BCE-with-logits over all scores if there are equally many of each kind.
    """
    return (functional.softplus(-positive).mean() + functional.softplus(negative).mean()) / 2


def summary(h: Tensor) -> Tensor:
    """Return s = sigmoid of the mean row, d numbers."""
    return h.mean(0).sigmoid()


def local_global(
    h: Tensor, corrupted: Tensor, s: Tensor, weight: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Return the objective of DGI: discriminate whether a row belongs to the summary.

    Parameters
    ----------
    h, corrupted
        Representations of the graph and of its corruption, n x d each.
    s
        Summary of the graph, usually `summary` of ``h``.
    weight
        W, d x d; None: the identity.
    bias
        One number added to all scores, or none.
    """
    direction = s if weight is None else weight @ s
    positive, negative = h @ direction, corrupted @ direction
    return cross_entropy(positive, negative) if bias is None else cross_entropy(positive + bias, negative + bias)


def cross_view(
    h1: Tensor, h2: Tensor, corrupted1: Tensor, corrupted2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Return the objective of MVGRL: rows of each view with the summary of the other view; W is shared.

    Parameters
    ----------
    h1, h2
        Representations in the two views, each by its own encoder, n x d.
    corrupted1, corrupted2
        The same for the corrupted graph.
    weight, bias
        See `local_global`.
    """
    first = local_global(h2, corrupted2, summary(h1), weight, bias)
    second = local_global(h1, corrupted1, summary(h2), weight, bias)
    return (first + second) / 2


def group_discrimination(h: Tensor, corrupted: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the objective of GGD: discriminate rows of the graph from its corruption by the sum of coordinates.

    Parameters
    ----------
    h, corrupted
        Representations of the graph and of its corruption, n x d each.
    weight, bias
        Of a linear head, out x d and out, as in `torch.nn.Linear`. The sum of its outputs is
        h' (sum of the rows of W) + sum of b.
    """
    direction = weight.sum(0)
    shift = h.new_zeros(()) if bias is None else bias.sum()
    return cross_entropy(h @ direction + shift, corrupted @ direction + shift)


def paired_information(a: Tensor, b: Tensor, negatives: Tensor, bounded: bool = True) -> Tensor:
    r"""Return one of the two terms of GMI on nodes: mean softplus(-D(a_i, b_i)) + mean softplus(D(a_i, b_j)).

    D(a, b) = sigmoid(a'b), or a'b if not bounded. A bilinear score h' W x is the case a = h, b = x W', where sparse
    features stay sparse. In the paper and the released code, the two terms are (H, X W1') with weight alpha, and (U,
    H W2') with weight beta; u_i is an activation of the mean of the neighbors, `ssge.ops.edges.neighbor_mean`.

    Parameters
    ----------
    a, b
        Rows of the same nodes, n x d.
    negatives
        Other nodes j per node i, n x k; see `sample_others`.
    bounded
        Whether to apply a sigmoid to the scores, as in the released code. The textbook estimator does not.

    Notes
    -----
    Cost O(n k d) time, O(n (d + k)) memory.
    """
    n, k = negatives.shape
    indptr = torch.arange(2 * n + 1, device=a.device).clamp_max_(n) * k
    others = CSR(indptr, negatives.flatten() + n, a.new_ones(()).expand(n * k))
    stacked = torch.cat([a, b])  # pairs of a row of `a` and a row of `b` become pairs of rows of one matrix
    positive, negative = (a * b).sum(1), pair_scores(stacked, Pairs(others, *transpose(others, 2 * n)))
    if bounded:
        positive, negative = positive.sigmoid(), negative.sigmoid()
    return 2 * cross_entropy(positive, negative)


def edge_information(h: Tensor, edges: Pairs, non_edges: Pairs) -> Tensor:
    r"""Return the term of GMI on edges: 2 mean over E of softplus(-h_i'h_j) + c mean over N of softplus(h_i'h_j).

    E are the entries of A + I, N a sample of all others, and c = (n^2 - |E|) / (n^2 - |E| / 2), nearly 1.
    This is the weighted cross-entropy of the released code, which halves |E| in its weights.

    Cost O((|E| + |N|) d) time, O(|E| + |N| + n d) memory.
    """
    missed, invented = pair_scores(h, edges), pair_scores(h, non_edges)
    total, count = h.shape[0] ** 2, missed.numel()
    share = (total - count) / (total - count / 2)
    return 2 * functional.softplus(-missed).mean() + share * functional.softplus(invented).mean()


def sample_others(num_nodes: int, k: int, generator: torch.Generator) -> Tensor:
    """Sample k other nodes per node, uniformly and with replacement, n x k."""
    if num_nodes < 2:
        raise InputError(f"Other nodes can be drawn from 2 nodes on; received {num_nodes}.")
    device = generator.device
    drawn = torch.randint(num_nodes - 1, (num_nodes, k), generator=generator, device=device)
    return drawn + (drawn >= torch.arange(num_nodes, device=device).unsqueeze(1))
