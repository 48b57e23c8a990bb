"""Soft assignments, means and edges of communities, against loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import torch
from torch import Tensor

from graphs import dense, random_graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.communities import community_means, distance_assignments, edges_between, soft_assignments
from ssge.ops.edges import edge_matrix, without_loops


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def test_assignments_by_cosine() -> None:
    h, centers = random(9, 4), random(3, 4, seed=1)
    x, y = h.detach().numpy(), centers.detach().numpy()
    cosines = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in y] for a in x]
    np.testing.assert_allclose(
        soft_assignments(h, centers, 0.4).detach(), scipy.special.softmax(np.array(cosines) / 0.4, axis=1)
    )
    assert torch.autograd.gradcheck(lambda c: soft_assignments(h, c, 0.4), (centers,))
    soft_assignments(h, centers, 0.4).square().sum().backward()
    assert h.grad is None and centers.grad is not None


def test_assignments_by_distance() -> None:
    z, centers = random(9, 4), random(3, 4, seed=1)
    x, y = z.detach().numpy(), centers.detach().numpy()
    distances = np.array([[((a - b) ** 2).sum() for b in y] for a in x])
    np.testing.assert_allclose(
        distance_assignments(z, centers, 0.7).detach(), scipy.special.softmax(-distances / 0.7, axis=1)
    )
    assert torch.autograd.gradcheck(lambda a, c: distance_assignments(a, c, 0.7), (z, centers))
    hard = distance_assignments(z, centers, 1e-3)  # that of HomoGCL: nearly one cluster
    np.testing.assert_array_equal(hard.argmax(1), distances.argmin(1))
    assert torch.isfinite(hard).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_means_with_an_empty_community(dtype: torch.dtype) -> None:
    h = random(9, 4).to(dtype)
    labels = torch.tensor([0, 3, 3, 1, 0, 0, 3, 1, 3])
    found = community_means(h, labels, 5)
    for k in (0, 1, 3):
        torch.testing.assert_close(found[k], h[labels == k].mean(0).detach())
    assert (found[[2, 4]] == 0).all() and not found.requires_grad
    torch.testing.assert_close(community_means(h, torch.zeros_like(labels), 1), h.mean(0, keepdim=True).detach())


def test_edges_between_communities() -> None:
    graph = random_graph(weighted=True)
    edges = edge_matrix(
        without_loops(Adjacency.of(graph.edges, 60, graph.weights, dtype=torch.float64).pattern.incoming)
    )
    r = random(60, 3).detach().softmax(1).requires_grad_()
    torch.testing.assert_close(edges_between(r, edges), r.t() @ torch.from_numpy(dense(graph)) @ r)
    assert torch.autograd.gradcheck(lambda a: edges_between(a, edges), (r,))
