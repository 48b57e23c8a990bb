"""Objectives of gCooL against dense formulas and loops in float64, closed forms, gradcheck, descent and guards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphs import dense, random_graph
from ssge.graph import Graph
from ssge.objectives.community import community_contrast, deca
from ssge.ops.adjacency import Adjacency
from ssge.ops.communities import soft_assignments
from ssge.ops.edges import edge_matrix, without_loops
from ssge.ops.sparse import SparseMatrix

GRAPH = random_graph()


def edges_of(graph: Graph) -> SparseMatrix:
    adjacency = Adjacency.of(graph.edges, graph.num_nodes, dtype=torch.float64)
    return edge_matrix(without_loops(adjacency.pattern.incoming))


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def two_cliques(size: int = 5) -> Graph:
    pairs = [(i + s, j + s) for s in (0, size) for i in range(size) for j in range(i)]
    return Graph.of(edges=np.array([*pairs, (0, size)]).T, features=np.eye(2 * size))


@pytest.mark.parametrize("penalty", [0.0, 0.9, 1.0])
def test_deca_is_the_dense_formula(penalty: float) -> None:
    r = random(60, 4).softmax(1)
    x, a, n = r.detach().numpy(), dense(GRAPH), 60
    within = sum(x[:, k] @ a @ x[:, k] for k in range(4))
    between = sum(x[:, k] @ a @ x[:, m] for k in range(4) for m in range(4))
    expected = (penalty * between - (n - 1 + penalty) * within) / (n * (n - 1)) + (x**2).sum() / (2 * n)
    assert deca(r, edges_of(GRAPH), penalty).item() == pytest.approx(expected)


def test_deca_in_closed_form() -> None:
    edges, m = edges_of(GRAPH), GRAPH.num_edges
    one = torch.ones(60, 1, dtype=torch.float64)
    assert deca(one, edges, 1.0).item() == pytest.approx(-59 * m / (60 * 59) + 0.5)  # a single community
    alike = torch.full((60, 4), 0.25, dtype=torch.float64)
    assert deca(alike, edges, 0.9).item() == pytest.approx((0.9 - 59.9 / 4) * m / (60 * 59) + 1 / 8)
    lonely = Graph.of(edges=np.zeros((2, 0), dtype=int), features=np.eye(1))
    assert deca(torch.ones(1, 1, dtype=torch.float64), edges_of(lonely), 1.0).item() == pytest.approx(0.5)


def test_true_communities_are_better_than_others() -> None:
    edges = edges_of(two_cliques())
    truth = torch.eye(2, dtype=torch.float64)[torch.arange(10) // 5]
    other = torch.eye(2, dtype=torch.float64)[torch.arange(10) % 2]
    assert deca(truth, edges, 1.0) < deca(other, edges, 1.0)


def test_descent_on_centers_finds_two_cliques() -> None:
    graph = two_cliques()
    h = torch.eye(2, dtype=torch.float64)[torch.arange(10) // 5] + 0.3 * random(10, 2).detach()
    centers = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([centers], lr=0.5)
    losses = []
    for _ in range(100):
        loss = deca(soft_assignments(h, centers, 0.4), edges_of(graph), 0.9)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    labels = soft_assignments(h, centers, 0.4).argmax(1)
    assert labels.tolist() == [0] * 5 + [1] * 5


def test_contrast_agrees_with_loops() -> None:
    h1, h2 = random(12, 3), random(12, 3, seed=1)
    labels1, labels2 = torch.arange(12) % 3, torch.arange(12) // 4
    x, y = (functional.normalize(h.detach()).numpy() for h in (h1, h2))
    total = 0.0
    for a, b, labels in ((x, y, labels2.numpy()), (y, x, labels1.numpy())):
        means = [b[labels == k].mean(0) for k in range(3)]
        for i in range(12):
            scores = np.exp([a[i] @ mean / 0.4 for mean in means])
            total -= np.log(scores[labels[i]] / scores.sum())
    found = community_contrast(h1, h2, labels1, labels2, 3, 0.4)
    assert found.item() == pytest.approx(total / 24)
    torch.testing.assert_close(community_contrast(h1, h2, labels1, labels2, 7, 0.4), found)  # empty ones do not count
    torch.testing.assert_close(community_contrast(h2, 5 * h1, labels2, labels1, 3, 0.4), found)


def test_contrast_with_a_single_community_is_zero() -> None:
    h1, h2, labels = random(12, 3), random(12, 3, seed=1), torch.zeros(12, dtype=torch.int64)
    assert community_contrast(h1, h2, labels, labels, 1, 0.4).item() == 0
    assert community_contrast(h1, h2, labels, labels, 5, 0.4).item() == 0


def test_gradients() -> None:
    r, edges = random(60, 3).detach().softmax(1).requires_grad_(), edges_of(GRAPH)
    assert torch.autograd.gradcheck(lambda a: deca(a, edges, 0.9), (r,))
    h1, h2 = random(12, 3), random(12, 3, seed=1)
    labels = torch.arange(12) % 3
    # Centers are constants: the gradient to h1 is that of its own cross-entropy.
    centers = torch.stack([functional.normalize(h2.detach())[labels == k].mean(0) for k in range(3)])
    expected = functional.cross_entropy(functional.normalize(h1) @ centers.t() / 0.4, labels) / 2
    found = torch.autograd.grad(community_contrast(h1, h2, labels, labels, 3, 0.4), h1)
    torch.testing.assert_close(found, torch.autograd.grad(expected, h1))
