"""Reconstruction of edges against the published formula in float64, gradcheck, and expectation; KL in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from graphs import dense, random_graph
from ssge.objectives.reconstruction import dense_reconstruction, gaussian_kl, pair_scores, sampled_reconstruction
from ssge.ops.adjacency import Adjacency
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.ops.sparse import CSR, transpose

GRAPH = random_graph(n=30, m=80)
DIRECTED = np.array([[0, 1, 2, 2, 4], [1, 2, 0, 3, 1]])


def pairs(edges: np.ndarray = GRAPH.edges, n: int = 30, dtype: torch.dtype = torch.float64) -> Pairs:
    return Pairs.of(Adjacency.of(edges, n, dtype=dtype))


def code(n: int = 30, d: int = 4, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, dtype=torch.float64, generator=generator).requires_grad_()


def published(z: np.ndarray, target: np.ndarray) -> float:
    """Weighted cross-entropy of sigmoid(Z Z') with A + I, written with its two weights, as Kipf and Welling have it."""
    n = len(z)
    probability = 1 / (1 + np.exp(-z @ z.T))
    positive = target.sum()
    weight, norm = (n**2 - positive) / positive, n**2 / (2 * (n**2 - positive))
    entropy = -(weight * target * np.log(probability) + (1 - target) * np.log(1 - probability))
    return float(norm * entropy.mean())


def complement(edges: np.ndarray, n: int) -> Pairs:
    """Return every pair that is neither an edge nor a loop, each once."""
    free = np.ones((n, n), dtype=bool)
    free[edges[1], edges[0]] = False
    free &= ~np.eye(n, dtype=bool)
    i, j = np.nonzero(free)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=n))]).astype(np.int32)
    rows = CSR(torch.from_numpy(indptr), torch.from_numpy(j.astype(np.int32)), torch.ones(j.size))
    return Pairs(rows, *transpose(rows, n))


@pytest.mark.parametrize("block", [1, 7 * 30, 1 << 24])
def test_dense_is_the_published_formula(block: int) -> None:
    z = code()
    expected = published(z.detach().numpy(), dense(GRAPH) + np.eye(30))
    assert dense_reconstruction(z, pairs(), block).item() == pytest.approx(expected, rel=1e-12)


def test_dense_is_the_published_formula_on_a_directed_graph() -> None:
    z = code(n=5)
    target = np.eye(5)
    target[DIRECTED[1], DIRECTED[0]] = 1
    assert dense_reconstruction(z, pairs(DIRECTED, 5)).item() == pytest.approx(published(z.detach().numpy(), target))


def test_all_non_edges_as_the_sample_give_the_dense_loss_and_gradient() -> None:
    z = code()
    losses = (dense_reconstruction(z, pairs()), sampled_reconstruction(z, pairs(), complement(GRAPH.edges, 30)))
    torch.testing.assert_close(*losses)
    torch.testing.assert_close(*(torch.autograd.grad(loss, z)[0] for loss in losses))


def test_the_mean_of_many_samples_is_the_dense_loss_and_its_gradient() -> None:
    z, edges = code(), pairs()
    generator = torch.Generator().manual_seed(0)
    expected = dense_reconstruction(z, edges)
    (slope,) = torch.autograd.grad(expected, z)
    losses, slopes = [], []
    for _ in range(400):
        loss = sampled_reconstruction(z, edges, sample_non_edges(edges, 110, generator))
        losses.append(loss.item())
        slopes.append(torch.autograd.grad(loss, z)[0])
    error = np.std(losses) / np.sqrt(len(losses))
    assert abs(np.mean(losses) - expected.item()) < 4 * error
    stacked = torch.stack(slopes)
    errors = stacked.std(0) / len(losses) ** 0.5
    assert ((stacked.mean(0) - slope).abs() / errors).square().mean().sqrt().item() < 1.5


@pytest.mark.parametrize("edges", [GRAPH.edges, DIRECTED], ids=["symmetric", "directed"])
def test_gradcheck(edges: np.ndarray) -> None:
    z = code(d=3)
    given = pairs(edges)
    drawn = sample_non_edges(given, 50, torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda x: pair_scores(x, given), (z,))
    assert torch.autograd.gradcheck(lambda x: sampled_reconstruction(x, given, drawn), (z,))
    assert torch.autograd.gradcheck(lambda x: dense_reconstruction(x, given, 4 * 30), (z,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_are_inner_products_of_the_pairs(dtype: torch.dtype) -> None:
    z = code().detach().to(dtype)
    i, j = np.nonzero(dense(GRAPH) + np.eye(30))
    torch.testing.assert_close(pair_scores(z, pairs(dtype=dtype)), (z[i] * z[j]).sum(1))


def test_closed_forms() -> None:
    edges, nothing = pairs(), torch.zeros(30, 3, dtype=torch.float64)
    drawn = sample_non_edges(edges, 40, torch.Generator().manual_seed(0))
    for loss in (dense_reconstruction(nothing, edges), sampled_reconstruction(nothing, edges, drawn)):
        assert loss.item() == pytest.approx(np.log(2))
    two = np.array([[0, 1, 2, 3], [1, 0, 3, 2]])  # two edges apart: opposite codes tell all pairs
    z = 9 * torch.tensor([[1.0], [1], [-1], [-1]], dtype=torch.float64)
    assert dense_reconstruction(z, pairs(two, 4)).item() == pytest.approx(0, abs=1e-12)
    assert dense_reconstruction(z.abs(), pairs(two, 4)).item() == pytest.approx(81 / 2)


def test_invariances() -> None:
    z, edges = code().detach(), pairs()
    loss = dense_reconstruction(z, edges)
    turn = torch.linalg.qr(code(4, 4, seed=1).detach())[0]
    torch.testing.assert_close(dense_reconstruction(z @ turn, edges), loss)
    order = np.random.default_rng(0).permutation(30)
    moved = pairs(np.argsort(order)[GRAPH.edges])
    torch.testing.assert_close(dense_reconstruction(z[torch.from_numpy(order)], moved), loss)


@pytest.mark.parametrize("size", [1e3, 1e-6])
def test_finite_and_with_a_gradient_where_a_probability_is_rounded_off(size: float) -> None:
    z = (size * code().detach().float()).requires_grad_()
    edges = pairs(dtype=torch.float32)
    drawn = sample_non_edges(edges, 110, torch.Generator().manual_seed(0))
    for loss in (dense_reconstruction(z, edges), sampled_reconstruction(z, edges, drawn)):
        (slope,) = torch.autograd.grad(loss, z)
        assert torch.isfinite(loss) and torch.isfinite(slope).all()
        assert slope.abs().max() > 0


def test_divergence_is_that_of_torch_distributions() -> None:
    mu, log_sigma = code().detach(), code(seed=1).detach()
    code_of_a_node = torch.distributions.Normal(mu, log_sigma.exp())
    standard = torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu))
    expected = torch.distributions.kl_divergence(code_of_a_node, standard).sum(1).mean()
    torch.testing.assert_close(gaussian_kl(mu, log_sigma), expected)


def test_divergence_in_closed_form_and_its_gradient() -> None:
    zero = torch.zeros(6, 3, dtype=torch.float64)
    assert gaussian_kl(zero, zero).item() == 0
    assert gaussian_kl(zero + 2, zero).item() == pytest.approx(3 * 4 / 2)
    assert gaussian_kl(zero, zero + np.log(2)).item() == pytest.approx(3 * (4 - 1 - 2 * np.log(2)) / 2)
    assert torch.autograd.gradcheck(gaussian_kl, (code(6, 3), code(6, 3, seed=1)))
