"""Edges without loops, the mean over neighbors, and added edges, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import dense, random_graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.edges import add_edges, edge_matrix, neighbor_mean, without_loops
from ssge.ops.random import Key
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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_added_edges_are_new_weigh_one_and_count_in_the_degrees(weighted: bool, rate: float) -> None:
    graph = random_graph(weighted=weighted)
    clean = Adjacency.of(graph.edges, 60, graph.weights, dtype=torch.float64)
    dropped = clean.drop_edges(Key(0), rate) if rate else clean
    found = add_edges(dropped, 40, torch.Generator().manual_seed(0))
    before, entries = (csr_tensor(a.entries[0], 60).to_dense() for a in (dropped, found))
    added = entries - before
    assert set(added.unique().tolist()) == {0, 1} and 35 < added.sum() <= 40
    assert (added * (torch.from_numpy(dense(graph)) + torch.eye(60))).sum() == 0  # none that was dropped comes back
    expected = entries / (entries.sum(1, keepdim=True) * entries.sum(0)).sqrt()
    torch.testing.assert_close(found.matrix.to_dense(), expected)
    torch.testing.assert_close(csr_tensor(found.matrix.columns, 60).to_dense(), expected.t())


def test_nothing_can_be_added_to_a_complete_graph() -> None:
    edges = np.argwhere(~np.eye(5, dtype=bool)).T
    clean = Adjacency.of(edges, 5, dtype=torch.float64)
    found = add_edges(clean, 3, torch.Generator())
    torch.testing.assert_close(found.matrix.to_dense(), clean.matrix.to_dense())


def test_degrees_of_a_subgraph_become_those_of_its_own_edges() -> None:
    nodes = torch.arange(0, 60, 2)
    part = Adjacency.of(GRAPH.edges, 60, GRAPH.weights, dtype=torch.float64).subgraph(nodes)
    entries = (torch.from_numpy(dense(GRAPH)) + torch.eye(60))[nodes][:, nodes]
    expected = entries / (entries.sum(1, keepdim=True) * entries.sum(0)).sqrt()
    torch.testing.assert_close(add_edges(part, 0, torch.Generator()).matrix.to_dense(), expected)
