"""Personalized PageRank by pushing against the inverse of a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import dense, random_graph
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.diffusion import pagerank, top_pagerank


def adjacency(graph: Graph) -> Adjacency:
    return Adjacency.of(graph.edges, graph.num_nodes, graph.weights, dtype=torch.float64)


def exact(graph: Graph, teleport: float) -> np.ndarray:
    a = dense(graph) + np.eye(graph.num_nodes)
    a /= np.sqrt(np.outer(a.sum(1), a.sum(0)))
    return teleport * np.linalg.inv(np.eye(len(a)) - (1 - teleport) * a)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("teleport", [0.15, 0.6, 1.0])
def test_without_tolerance_it_is_the_inverse(weighted: bool, teleport: float) -> None:
    graph = random_graph(weighted=weighted)
    nodes = torch.tensor([3, 59, 0])
    rows = pagerank(adjacency(graph), nodes, teleport, tolerance=0)
    np.testing.assert_allclose(rows.numpy(), exact(graph, teleport)[nodes.numpy()], atol=1e-11)


def test_tolerance_errs_below_and_less_the_smaller_it_is() -> None:
    graph = random_graph()
    truth = torch.from_numpy(exact(graph, 0.15))
    gaps = [truth - pagerank(adjacency(graph), torch.arange(60), 0.15, tolerance) for tolerance in (1e-2, 1e-3, 1e-5)]
    assert all((gap > -1e-12).all() for gap in gaps)
    largest = [gap.max().item() for gap in gaps]
    assert largest[0] > largest[1] > largest[2]
    # What is left out is less than r S with r at most the tolerance times the root of the number of neighbors.
    root = torch.from_numpy(dense(graph)).count_nonzero(1).add(1).sqrt().double()
    for gap, tolerance in zip(gaps, (1e-2, 1e-3, 1e-5), strict=True):
        assert (gap <= tolerance * (root @ truth) + 1e-12).all()


@pytest.mark.parametrize("chunk", [None, 7, 60])
def test_largest_others(chunk: int | None) -> None:
    graph = random_graph(weighted=True)  # random weights: no ties
    truth = exact(graph, 0.15)
    np.fill_diagonal(truth, 0)
    positions, entries = top_pagerank(adjacency(graph), 4, tolerance=0, chunk=chunk)
    for i in range(60):
        order = np.argsort(-truth[i], kind="stable")[:4]
        there = truth[i, order] > 1e-12
        np.testing.assert_array_equal(positions[i].numpy(), np.where(there, order, -1))
        np.testing.assert_allclose(entries[i].numpy(), np.where(there, truth[i, order], 0), atol=1e-11)


def test_isolated_nodes_and_tiny_graphs_have_nobody() -> None:
    positions, entries = top_pagerank(adjacency(random_graph()), 3)
    assert (positions[59] == -1).all() and (entries[59] == 0).all()
    assert (positions != torch.arange(60).unsqueeze(1)).all()
    pair = Graph.of(edges=np.array([[0], [1]]), features=np.eye(2))
    assert top_pagerank(adjacency(pair), 5)[0].tolist() == [[1, -1, -1, -1, -1], [0, -1, -1, -1, -1]]


def test_a_node_is_its_own_nearest_if_asked_for() -> None:
    graph = random_graph()
    mine, _ = top_pagerank(adjacency(graph), 3, itself=True, tolerance=0)
    others, _ = top_pagerank(adjacency(graph), 2, tolerance=0)
    assert mine[:, 0].tolist() == list(range(graph.num_nodes))
    assert mine[:, 1:].tolist() == others.tolist()
