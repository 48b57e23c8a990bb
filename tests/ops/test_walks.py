"""Walks against exact probabilities: first order by degree or weight, second order by p and q."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.walks import Walker, moved


def of(graph: Graph) -> Adjacency:
    return Adjacency.of(graph.edges, graph.num_nodes, graph.weights, dtype=torch.float64)


def small(weighted: bool = False, direction: str = "both") -> Graph:
    """Return a triangle 0 1 2 with a square 2 3 4 5 at one corner, a leaf 6 at node 3, and a lonely node 7."""
    edges = np.array([[0, 0, 1, 2, 3, 4, 5, 3], [1, 2, 2, 3, 4, 5, 2, 6]])
    weights = np.array([1.0, 3.0, 0.5, 2.0, 1.0, 4.0, 1.5, 0.25]) if weighted else None
    return Graph.of(edges=edges, weights=weights, features=np.eye(8), direction=direction)  # type: ignore[arg-type]


def outgoing(graph: Graph) -> np.ndarray:
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    matrix[graph.edges[0], graph.edges[1]] = 1 if graph.weights is None else graph.weights
    return matrix


def walks(graph: Graph, count: int, length: int, p: float = 1.0, q: float = 1.0) -> np.ndarray:
    starts = torch.arange(count) % graph.num_nodes
    return Walker(of(graph), p, q)(starts, length, torch.Generator().manual_seed(0)).numpy()


def assert_frequencies(found: np.ndarray, expected: np.ndarray) -> None:
    """Compare counts with probabilities: within five standard deviations, and never where there is no way."""
    total = found.sum()
    deviation = np.sqrt(expected * (1 - expected) / total)
    assert (found[expected == 0] == 0).all()
    assert (np.abs(found / total - expected) <= 5 * deviation + 1e-12).all()


def test_long_walks_visit_nodes_as_their_degrees_say() -> None:
    graph = small()
    found = walks(graph, 8 * 4000, 41)[:, -1]
    found = found[np.arange(found.size) % 8 < 7]  # the lonely node stays where it is
    degree = outgoing(graph).sum(1)[:7]
    assert_frequencies(np.bincount(found, minlength=7), degree / degree.sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_steps_of_first_order(weighted: bool, direction: str) -> None:
    graph = small(weighted, direction)
    matrix = outgoing(graph)
    found = walks(graph, 8 * 3000, 2)
    for node in range(8):
        counts = np.bincount(found[found[:, 0] == node, 1], minlength=8)
        expected = matrix[node] / matrix[node].sum() if matrix[node].any() else np.eye(8)[node]
        assert_frequencies(counts, expected)


@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), (4.0, 0.25), (0.5, 0.5), (2.0, 3.0), (0.1, 1.0), (1.0, 0.3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("direction", ["both", "in"])
def test_steps_of_second_order(p: float, q: float, weighted: bool, direction: str) -> None:
    graph = small(weighted, direction)
    matrix = outgoing(graph)
    found = walks(graph, 8 * 4000, 3, p, q)
    for t, v in zip(*np.nonzero(matrix), strict=True):
        if not matrix[v].any():
            continue
        factor = np.where(matrix[t] > 0, 1.0, 1 / q)
        factor[t] = 1 / p
        expected = matrix[v] * factor / (matrix[v] * factor).sum()
        assert_frequencies(np.bincount(found[(found[:, 0] == t) & (found[:, 1] == v), 2], minlength=8), expected)


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_step_is_an_edge_and_lonely_nodes_stay(p: float, q: float, weighted: bool) -> None:
    graph = random_graph(weighted=weighted)
    found = Walker(of(graph), p, q)(torch.arange(60), 30, torch.Generator().manual_seed(1))
    edges = set(map(tuple, graph.edges.T.tolist()))
    connected = set(graph.edges.ravel().tolist())
    for walk in found.tolist():
        if walk[0] in connected:
            assert all(step in edges for step in pairwise(walk))
        else:
            assert set(walk) == {walk[0]}
    there = moved(found)
    assert there[:, 0].all()
    assert torch.equal(there[:, 1:].all(1), torch.tensor([walk[0] in connected for walk in found.tolist()]))


def test_a_walk_ends_where_no_edge_goes_out() -> None:
    path = Graph.of(edges=np.array([[0, 1], [1, 2]]), features=np.eye(3), direction="in")
    for p, q in ((1.0, 1.0), (0.01, 100.0)):
        found = Walker(of(path), p, q)(torch.tensor([0, 1, 2]), 5, torch.Generator().manual_seed(0))
        assert found.tolist() == [[0, 1, 2, 2, 2], [1, 2, 2, 2, 2], [2] * 5]
        assert moved(found).sum(1).tolist() == [3, 2, 1]


def test_popularity_is_the_weight_of_what_leads_to_a_node() -> None:
    for direction in ("both", "in"):
        graph = small(True, direction)
        np.testing.assert_allclose(Walker(of(graph)).popularity.numpy(), outgoing(graph).sum(0), atol=1e-12)


def test_same_generator_same_walks_and_the_global_one_is_left_alone() -> None:
    graph, state = random_graph(), torch.get_rng_state()
    first, second, other = (
        Walker(of(graph), 0.5, 2.0)(torch.arange(60), 20, torch.Generator().manual_seed(seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(state, torch.get_rng_state())
