"""Edges without loops and the mean over neighbors, against dense matrices."""

from __future__ import annotations

import numpy as np
import torch

from graphs import dense, random_graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.edges import edge_matrix, neighbor_mean, without_loops
from ssge.ops.sparse import csr_tensor

GRAPH = random_graph(weighted=True)
EDGES = without_loops(Adjacency.of(GRAPH.edges, 60, GRAPH.weights, dtype=torch.float64).pattern.incoming)


def test_loops_are_gone_and_weights_stay() -> None:
    np.testing.assert_array_equal(csr_tensor(EDGES, 60).to_dense().numpy(), dense(GRAPH))
    again = without_loops(EDGES)
    assert all(torch.equal(a, b) for a, b in zip(again, EDGES, strict=True))


def test_products_with_the_edges() -> None:
    h = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    matrix = torch.from_numpy(dense(GRAPH))
    torch.testing.assert_close(edge_matrix(EDGES) @ h, matrix @ h)
    count = matrix.count_nonzero(1).clamp_min(1)
    torch.testing.assert_close(neighbor_mean(EDGES) @ h, (matrix != 0).double() @ h / count.unsqueeze(1))
    assert ((neighbor_mean(EDGES) @ h)[59] == 0).all()  # isolated
    assert torch.autograd.gradcheck(lambda x: neighbor_mean(EDGES) @ x, (h,))
