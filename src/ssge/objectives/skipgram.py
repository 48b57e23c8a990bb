r"""Skip-gram: the vector of a node predicts its context, the nodes near it in random walks.

Let phi_i be the vector of a center and (i, j) the pairs of nodes at most a window apart in a walk, w_ij = 1 for those
and 0 elsewhere. Both objectives are means over the pairs, W = sum_ij w_ij, with sigma the logistic function.

- Negative sampling (Mikolov et al., 2013), theta_j the vector of j as a context, K noise nodes m shared by all pairs,
  and k their total weight, the number of negatives per pair:
  -(1/W) sum_ij w_ij [log sigma(phi_i . theta_j) + (k/K) sum_m log sigma(-phi_i . theta_m)]
- Hierarchical softmax (Morin and Bengio, 2005): -(1/W) sum_ij w_ij log P(j | i), with P(j | i) = prod_l sigma(s_jl
  phi_i . theta_u(j,l)) over the inner nodes u(j,l) of a binary tree on the path from the root to the leaf j; s_jl is +1
  for a left branch and -1 for a right one. As sigma(x) + sigma(-x) = 1, P sums to one over the leaves.

Walks are cut into G pieces, each with all pairs of its a inner and b outer positions. The scores are then matrix
products, and each vector is read once per piece, not once per pair.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Pieces(NamedTuple):
    """Walks cut into pieces.

    Attributes
    ----------
    inner
        Nodes at the inner positions, G x a; each position of a walk is inner in exactly one piece.
    outer
        Nodes at the outer positions, G x b: those of the piece and a window before and after it.
    pairs
        G x a x b; 1 if an inner and an outer position differ and are at most a window apart; else 0.
    """

    inner: Tensor
    outer: Tensor
    pairs: Tensor


def pieces(walks: Tensor, there: Tensor, window: int, dtype: torch.dtype = torch.float32) -> Pieces:
    """Cut walks into pieces of two windows; half of the scores of a piece are then those of pairs.

    Parameters
    ----------
    walks
        Nodes, one row per walk.
    there
        Mask of the valid positions, of the same shape; pairs have valid positions only.
    window
        Largest distance of the nodes of a pair.
    """
    size = 2 * window
    short = -walks.shape[1] % size
    inner, present = (functional.pad(part, (0, short)).view(len(part), -1, size) for part in (walks, there))
    outer, seen = (
        functional.pad(part, (window, window + short)).unfold(1, size + 2 * window, size) for part in (walks, there)
    )
    place = torch.arange(size + 2 * window, device=walks.device)
    distance = (place[window : window + size, None] - place).abs()
    near = (distance > 0) & (distance <= window)
    pairs = near & present[..., :, None] & seen[..., None, :]
    return Pieces(inner.flatten(0, 1), outer.flatten(0, 1), pairs.flatten(0, 1).to(dtype))


def negative_sampling(center: Tensor, context: Tensor, pairs: Tensor, noise: Tensor, negatives: float) -> Tensor:
    """Return the mean loss of the pairs against shared noise; O(G (a b + a K) d) time, O(G a (b + K)) memory.

    Parameters
    ----------
    center
        phi at the inner positions, G x a x d.
    context
        theta at the outer positions, G x b x d.
    pairs
        Weights w, G x a x b.
    noise
        theta of the noise nodes, K x d.
    negatives
        k, the total weight of all noise nodes relative to the one positive of a pair.
    """
    scores, against = center @ context.transpose(1, 2), center @ noise.t()
    share = pairs.sum(2, keepdim=True) * (negatives / noise.shape[0])
    loss = (functional.softplus(-scores) * pairs).sum() + (functional.softplus(against) * share).sum()
    return loss / pairs.sum().clamp_min(1)


def hierarchical_softmax(center: Tensor, path: Tensor, side: Tensor, pairs: Tensor) -> Tensor:
    """Return the mean of -log P(j | i) over the pairs; O(G a D b d) time, O(G a D (b + d)) memory.

    Parameters
    ----------
    center
        phi at the outer positions, G x b x d.
    path
        theta of the inner tree nodes on the paths to the contexts at the inner positions, G x a x D x d.
    side
        s, G x a x D: +1 or -1, and 0 beyond the end of a path.
    pairs
        Weights w, G x a x b.
    """
    scores = (path.flatten(1, 2) @ center.transpose(1, 2)).view(*path.shape[:3], -1)
    weight = pairs[:, :, None] * side.abs()[..., None]
    return (functional.softplus(scores * -side[..., None]) * weight).sum() / pairs.sum().clamp_min(1)


class Tree(NamedTuple):
    """The paths from the root of a binary tree to its n leaves.

    Attributes
    ----------
    path
        Inner nodes 0 to n-2, n x D; 0 beyond the end of a path.
    side
        +1 for a left branch, -1 for a right branch, 0 beyond the end of a path; n x D, int8.
    """

    path: Tensor
    side: Tensor


def huffman(frequency: Tensor) -> Tree:
    """Return a Huffman tree: a binary tree with the least mean path length to its leaves.

    The two lightest nodes are merged until one is left. All nodes not heavier than the two lightest together are merged
    at once, in pairs in ascending order: merged nodes are never lighter than that sum, so merging one by one would give
    the same pairs. For the degrees of a graph this takes some dozens of rounds for any n. Ties are broken by the order
    of the leaves.
    """
    n, device = frequency.numel(), frequency.device
    weight, order = torch.sort(frequency.double(), stable=True)
    parent = torch.zeros(2 * n - 1, dtype=torch.int64, device=device)
    side = torch.zeros(2 * n - 1, dtype=torch.int8, device=device)
    made = n
    while weight.numel() > 1:
        light = int((weight <= weight[0] + weight[1]).sum()) // 2
        left, right = order[0 : 2 * light : 2], order[1 : 2 * light : 2]
        joined = torch.arange(made, made + light, device=device)
        parent[left], parent[right], side[left], side[right] = joined, joined, 1, -1
        made += light
        weight = torch.cat([weight[2 * light :], weight[0 : 2 * light : 2] + weight[1 : 2 * light : 2]])
        weight, places = torch.sort(weight, stable=True)
        order = torch.cat([order[2 * light :], joined])[places]
    node, paths, sides = torch.arange(n, device=device), [], []
    while bool((node < made - 1).any()):
        below = node < made - 1  # not yet at the root, the last node created
        paths.append(torch.where(below, parent[node] - n, 0))
        sides.append(torch.where(below, side[node], 0))
        node = torch.where(below, parent[node], node)
    if not paths:  # a single leaf is the root
        return Tree(parent.new_zeros(n, 0), side.new_zeros(n, 0))
    return Tree(torch.stack(paths, 1), torch.stack(sides, 1))
