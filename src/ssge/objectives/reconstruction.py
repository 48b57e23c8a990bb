r"""Reconstruction of the edges by inner products, and the KL divergence of a Gaussian latent code from N(0, I).

With Z (n x d) the representations, s_ij = z_i' z_j, E the set of positive pairs (the entries of A + I: directed edges,
and one self-loop per node), N all other ordered pairs, and softplus(x) = log(1 + exp(x)) = -log sigmoid(-x):

- reconstruction = 1/2 mean over E of softplus(-s_ij) + 1/2 mean over N of softplus(s_ij)

This is the weighted cross-entropy of Kipf and Welling (2016), c/n^2 sum_ij [w a_ij softplus(-s_ij) + (1 - a_ij)
softplus(s_ij)] with a the 0/1 entries of A + I, w = |N|/|E| and c = n^2 / (2|N|), in which the weights cancel. Edge
weights are ignored.

- `dense_reconstruction` is the formula itself, O(n^2 d) time;
- `sampled_reconstruction` replaces N by a sample, O(m d) time; if the sample is uniform, loss and gradient are unbiased
  estimates of the dense ones.

Differences from PyTorch Geometric's ``recon_loss``: it lacks the factor 1/2, by default has no self-loops among the
positive pairs, and adds 1e-15 inside the logarithm, which in float32 removes the gradient of strongly wrong pairs.

- gaussian_kl = mean over nodes of KL(N(mu_i, diag sigma_i^2) || N(0, I))
  = 1/n sum_ij 1/2 (mu_ij^2 + sigma_ij^2 - 1 - 2 log sigma_ij)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ssge.ops.precision import in_float32
from ssge.ops.sampling import Pairs
from ssge.ops.sparse import csr_tensor, spmm

BLOCK = 1 << 24
"""Number of scores in memory at once in `dense_reconstruction`."""


def sampled_reconstruction(z: Tensor, edges: Pairs, non_edges: Pairs) -> Tensor:
    """Return the reconstruction loss with ``non_edges`` as a sample of all pairs that are not in ``edges``.

    Cost O((m + count) d) time, O(m + count + n d) memory.
    """
    missed = functional.softplus(-pair_scores(z, edges)).mean()
    invented = functional.softplus(pair_scores(z, non_edges)).mean()
    return (missed + invented) / 2


@in_float32
def dense_reconstruction(z: Tensor, edges: Pairs, block: int = BLOCK) -> Tensor:
    """Return the reconstruction loss over all pairs; ``edges`` without duplicates.

    Scores and their gradient are computed in groups of rows, at most ``block`` scores at a time. Cost O(n^2 d) time,
    O(block + n d) memory.
    """
    scores = pair_scores(z, edges)
    total: Tensor = _SoftplusOfAllPairs.apply(z, block)  # type: ignore[no-untyped-call]
    others = z.shape[0] ** 2 - scores.numel()
    invented = (total - functional.softplus(scores).sum()) / max(others, 1)  # a complete graph has no non-edges
    return (functional.softplus(-scores).mean() + invented) / 2


def gaussian_kl(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """Return the mean KL divergence over nodes of N(mu_i, diag sigma_i^2) from N(0, I); both n x d."""
    return (mu.square() + (2 * log_sigma).exp() - 1 - 2 * log_sigma).sum(1).mean() / 2


@in_float32
def pair_scores(z: Tensor, pairs: Pairs) -> Tensor:
    """Return z_i' z_j of each pair, in the order of ``pairs.rows``; at most n^2 pairs, duplicates allowed.

    Neither forward nor backward pass gathers an m x d array of rows: with c the gradient of the scores as a sparse
    matrix C, the gradient of Z is C Z + C' Z.
    """
    scores: Tensor = _PairScores.apply(z, pairs)  # type: ignore[no-untyped-call]
    return scores


class _PairScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, pairs: Pairs) -> Tensor:
        ctx.save_for_backward(z)
        ctx.pairs = pairs
        n = z.shape[0]
        pattern = csr_tensor(pairs.rows._replace(values=z.new_zeros(pairs.rows.indices.numel())), n)
        scores: Tensor = torch.sparse.sampled_addmm(pattern, z, z.t(), beta=0).values()
        return scores

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (z,) = ctx.saved_tensors
        rows, columns, order = ctx.pairs
        forth = spmm(rows._replace(values=gradient.contiguous()), z)
        return forth.add_(spmm(columns._replace(values=gradient[order]), z)), None


class _SoftplusOfAllPairs(torch.autograd.Function):
    """The sum of softplus(z_i' z_j) over all i, j; its gradient is 2 sigmoid(Z Z') Z, computed in the same pass."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, block: int) -> Tensor:
        step = max(1, block // z.shape[0])
        total, gradient = z.new_zeros(()), torch.empty_like(z)
        for start in range(0, z.shape[0], step):
            scores = z[start : start + step] @ z.t()
            total += functional.softplus(scores).sum()
            torch.mm(scores.sigmoid_(), z, out=gradient[start : start + step])
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (slope,) = ctx.saved_tensors
        return 2 * gradient * slope, None
