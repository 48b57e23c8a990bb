"""Saliency and homophily against loops in float64, closed forms, gradcheck; HomoGCL's whole loss, dense."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphs import dense, random_graph
from ssge.graph import Graph
from ssge.objectives.homophily import homophily, saliency
from ssge.objectives.infonce import infonce
from ssge.ops.adjacency import Adjacency
from ssge.ops.communities import community_means, distance_assignments
from ssge.ops.edges import without_loops
from ssge.ops.positives import k_means
from ssge.ops.sparse import CSR, csr_tensor

GRAPH = random_graph(n=20, m=40)  # node 19 is isolated


def entries(graph: Graph = GRAPH) -> CSR:
    return Adjacency.of(graph.edges, graph.num_nodes, dtype=torch.float64).pattern.incoming


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


@pytest.mark.parametrize("mean", [False, True])
def test_saliency_agrees_with_loops(mean: bool) -> None:
    r = random(20, 3).softmax(1)
    x, a = r.detach().numpy(), dense(GRAPH)
    expected = np.zeros((20, 20))
    for i, j in zip(*np.nonzero(a), strict=True):
        expected[i, j] = x[i] @ x[j] / np.linalg.norm(x[i]) / np.linalg.norm(x[j]) / (a[i].sum() if mean else 1)
    found = saliency(r, entries(), mean)
    np.testing.assert_allclose(csr_tensor(found, 20).to_dense().detach(), expected)
    assert found.indptr[-1] == found.indptr[-2]  # the isolated node has no positives


def test_homophily_agrees_with_loops_and_closed_forms() -> None:
    r = random(20, 3).softmax(1)
    x = r.detach().numpy()
    edges = without_loops(entries())
    expected = np.mean([(x[i] - x[j]) ** 2 for i, j in zip(*np.nonzero(dense(GRAPH)), strict=True)])
    assert homophily(r, edges).item() == pytest.approx(expected)
    m = GRAPH.num_edges
    assert homophily(r, entries()).item() == pytest.approx(expected * m / (m + 20))
    assert homophily(torch.ones(20, 1), edges).item() == 0  # a single cluster
    pair = Graph.of(edges=np.array([[0], [1]]), features=np.eye(2))
    assert homophily(torch.eye(2), without_loops(entries(pair))).item() == pytest.approx(1)
    alone = CSR(torch.zeros(3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    assert homophily(torch.eye(2), alone).item() == 0
    assert saliency(torch.eye(2), alone, mean=True).values.numel() == 0


def test_gradcheck() -> None:
    r, edges = random(20, 3).detach().softmax(1).requires_grad_(), entries()
    assert torch.autograd.gradcheck(lambda a: homophily(a, edges), (r,))
    assert torch.autograd.gradcheck(lambda a: saliency(a, edges, mean=True).values, (r,))


def test_descent_brings_neighbors_into_one_cluster() -> None:
    logits, edges = random(20, 3), without_loops(entries())
    optimizer = torch.optim.SGD([logits], lr=20.0)
    before = homophily(logits.softmax(1), edges).item()
    for _ in range(50):
        optimizer.zero_grad()
        homophily(logits.softmax(1), edges).backward()
        optimizer.step()
    assert homophily(logits.softmax(1), edges).item() < before / 4


@pytest.mark.parametrize("mean", [False, True])
def test_the_whole_loss_is_that_of_dense_matrices(mean: bool) -> None:
    """HomoGCL end to end: clusters, saliency, both views' neighbors, and the gradient through all of them."""
    u, v, z = random(20, 4), random(20, 4, seed=1), random(20, 4, seed=2)
    first, second = (
        Adjacency.of(GRAPH.edges[:, start::2], 20, dtype=torch.float64).pattern.incoming for start in (0, 1)
    )
    labels = k_means(z.detach(), 3, 10, torch.Generator().manual_seed(0))
    r = distance_assignments(z, community_means(z, labels, 3), 1.0)
    found = infonce(u, v, 0.5, pairs=(saliency(r, first, mean), saliency(r, second, mean)), tile=16)

    a, b = functional.normalize(u), functional.normalize(v)
    confidence = functional.normalize(r) @ functional.normalize(r).t()
    adjacency = [csr_tensor(without_loops(rows), 20).to_dense() for rows in (first, second)]

    def side(x: Tensor, y: Tensor, own: Tensor, other: Tensor) -> Tensor:
        intra, inter = (x @ x.t() / 0.5).exp(), (x @ y.t() / 0.5).exp()
        soft = (intra * own * confidence).sum(1) / (own.sum(1).clamp_min(1) if mean else 1)
        positive = inter.diag() + soft
        apart = 1 - torch.eye(20, dtype=torch.float64)
        negative = (intra * apart * (1 - own)).sum(1) + (inter * apart * (1 - other)).sum(1)
        return -(positive / (positive + negative)).log().mean()

    expected = (side(a, b, *adjacency) + side(b, a, *adjacency[::-1])) / 2
    torch.testing.assert_close(found, expected)
    slopes = (torch.autograd.grad(loss, (u, v, z), retain_graph=True) for loss in (found, expected))
    torch.testing.assert_close(*slopes)
