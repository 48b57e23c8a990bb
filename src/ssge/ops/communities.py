r"""Communities: soft assignments of nodes to centers, means of communities, and the edges within and between them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ssge.ops.sparse import SparseMatrix, csr_from_coo, spmm


def soft_assignments(h: Tensor, centers: Tensor, temperature: float) -> Tensor:
    """Return R = softmax over communities of cos(h_i, c_k) / tau, n x K.

    As in gCooL, h is a constant: only the centers get a gradient. O(n K d).
    """
    cosines = functional.normalize(h.detach()) @ functional.normalize(centers).t()
    return (cosines / temperature).softmax(1)


def distance_assignments(z: Tensor, centers: Tensor, sigma: float) -> Tensor:
    """Return R = softmax over clusters of -|z_i - c_k|^2 / sigma, n x K.

    As in HomoGCL, the gradient flows to z; centers are usually the constant `community_means` of k-means. O(n K d).
    """
    # |z|^2 is the same for all clusters and cancels in the softmax.
    return ((2 * z @ centers.t() - centers.square().sum(1)) / sigma).softmax(1)


@torch.no_grad()
def community_means(h: Tensor, labels: Tensor, count: int) -> Tensor:
    """Return the mean row of each community, count x d, without gradient; 0 for an empty community. O(n d)."""
    rows = torch.arange(h.shape[0], device=h.device)
    sums = spmm(csr_from_coo(labels, rows, count, h.dtype), h)
    return sums / torch.bincount(labels, minlength=count).clamp_min(1).unsqueeze(1)


def edges_between(r: Tensor, edges: SparseMatrix) -> Tensor:
    """Return F = R'AR, K x K: F_kl is the weight of the edges to community k from community l. O(m K)."""
    return r.t() @ (edges @ r)
