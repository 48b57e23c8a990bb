"""Centralities against networkx, drop probabilities against the formula, and what would be 0/0 or log 0."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphs import random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.centrality import (
    degree_centrality,
    drop_probabilities,
    edge_drop_probabilities,
    eigenvector_centrality,
    feature_drop_probabilities,
    pagerank_centrality,
)
from ssge.ops.edges import without_loops
from ssge.ops.features import Features
from ssge.ops.sparse import CSR, row_indices

GRAPH = random_graph()  # node 59 is isolated
DIRECTED = Graph.of(edges=GRAPH.edges[:, ::3], features=np.eye(60), direction="out")


def entries(graph: Graph) -> CSR:
    """Return the entries of an adjacency, loops among them."""
    return Adjacency.of(graph.edges, graph.num_nodes, dtype=torch.float64).pattern.incoming


def networkx(graph: Graph) -> nx.DiGraph:
    made = nx.DiGraph()
    made.add_nodes_from(range(graph.num_nodes))
    made.add_edges_from(graph.edges.T.tolist())
    return made


@pytest.mark.parametrize("graph", [GRAPH, DIRECTED], ids=["symmetric", "directed"])
def test_degree_and_pagerank_are_those_of_networkx(graph: Graph) -> None:
    reference = networkx(graph)
    assert degree_centrality(entries(graph)).tolist() == [reference.in_degree(i) for i in range(60)]
    expected = nx.pagerank(reference, alpha=0.85, tol=1e-14, max_iter=1000)
    found = pagerank_centrality(entries(graph), tolerance=1e-13)
    np.testing.assert_allclose(found, [expected[i] for i in range(60)], atol=1e-10)
    assert found.sum().item() == pytest.approx(1)


def test_eigenvector_is_that_of_the_dense_matrix() -> None:
    found = eigenvector_centrality(entries(GRAPH), 20000, 1e-14)
    matrix = nx.to_numpy_array(networkx(GRAPH), nodelist=range(60))
    np.testing.assert_allclose(found, np.abs(np.linalg.eigh(matrix)[1][:, -1]), atol=1e-6)
    star = Graph.of(edges=np.stack([np.zeros(4, dtype=int), np.arange(1, 5)]), features=np.eye(5))  # bipartite
    np.testing.assert_allclose(eigenvector_centrality(entries(star)), [0.5**0.5, *[8**-0.5] * 4], atol=1e-6)


def test_lazy_pagerank_is_the_released_recursion() -> None:
    x = np.ones(60)
    out = np.bincount(DIRECTED.edges[0], minlength=60)
    for _ in range(10):
        received = np.zeros(60)
        for j, i in DIRECTED.edges.T:
            received[i] += x[j] / out[j]
        x = 0.15 * x + 0.85 * received
    found = pagerank_centrality(entries(DIRECTED), iterations=10, tolerance=0, lazy=True)
    np.testing.assert_allclose(found * 60, x)


def formula(c: np.ndarray, rate: float) -> np.ndarray:
    s = np.log(c)
    w = (s.max() - s) / (s.max() - s.mean())
    return np.minimum(rate * w / w.mean(), 0.7)


@pytest.mark.parametrize("rate", [0.2, 0.6, 0.1, 0.0])
def test_probabilities_are_those_of_the_formula(rate: float) -> None:
    edges = entries(GRAPH)
    degree = degree_centrality(edges)
    found = edge_drop_probabilities(edges, degree, rate)
    target = row_indices(edges.indptr)
    loops = target == edges.indices
    assert (found[loops] == 0).all()
    np.testing.assert_allclose(found[~loops], formula(degree[target[~loops]].numpy(), rate), atol=1e-12)
    torch.testing.assert_close(edge_drop_probabilities(without_loops(edges), degree, rate), found[~loops])
    if rate <= 0.1:  # nothing is cut off
        assert found[~loops].mean().item() == pytest.approx(rate)
    assert (found <= 0.7).all()
    torch.testing.assert_close(edge_drop_probabilities(edges, 1000 * degree, rate), found)


@pytest.mark.parametrize("binary", [True, False])
def test_feature_columns_dense_and_sparse(binary: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 7)) * (rng.random((60, 7)) < 0.3)
    c = degree_centrality(entries(GRAPH))
    weight = np.array(
        [sum((x[i, j] != 0 if binary else abs(x[i, j])) * c[i].item() for i in range(60)) for j in range(7)]
    )
    sparse = Features.of(sp.csr_array(x), dtype=torch.float64).matrix
    for features in (torch.from_numpy(x), sparse):
        found = feature_drop_probabilities(features, c, 0.3, binary=binary)
        np.testing.assert_allclose(found, formula(weight, 0.3), atol=1e-12)


def test_equal_centralities_give_everything_the_same_rate() -> None:
    for c in (torch.ones(5), torch.full((5,), 0.1), torch.zeros(5), torch.ones(1), torch.tensor([0.0, 2.0, 2.0])[1:]):
        torch.testing.assert_close(drop_probabilities(c, 0.3), torch.full_like(c, 0.3))
    assert drop_probabilities(torch.ones(3), 0.9).tolist() == pytest.approx([0.7] * 3)
    assert drop_probabilities(torch.ones(0), 0.3).numel() == 0
    assert drop_probabilities(torch.full((1000,), 1 / 3), 0.3).max().item() == pytest.approx(0.3)


def test_centrality_zero_counts_as_the_smallest() -> None:
    c = torch.tensor([0.0, 1.0, 2.0, 4.0], dtype=torch.float64)
    np.testing.assert_allclose(drop_probabilities(c, 0.2), formula(np.array([1.0, 1, 2, 4]), 0.2))
    never = torch.zeros(60, 3, dtype=torch.float64)
    never[:, 0], never[:5, 1] = 1, 1
    found = feature_drop_probabilities(never, degree_centrality(entries(GRAPH)) + 1, 0.2)
    assert torch.isfinite(found).all() and found[2] == found[1] > found[0]


@pytest.mark.parametrize("centrality", [degree_centrality, pagerank_centrality, eigenvector_centrality])
def test_all_are_finite_and_permute_with_the_nodes(centrality: object) -> None:
    assert callable(centrality)
    order = np.random.default_rng(0).permutation(60)
    moved = Adjacency.of(np.argsort(order)[DIRECTED.edges], 60, dtype=torch.float64).pattern.incoming
    found, other = centrality(entries(DIRECTED)), centrality(moved)
    assert torch.isfinite(found).all() and (found >= 0).all()
    torch.testing.assert_close(other, found[order], atol=1e-7, rtol=0)
    alone = CSR(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2))  # two loops and no edge
    assert torch.isfinite(centrality(alone)).all()
    assert edge_drop_probabilities(alone, centrality(alone), 0.3).tolist() == [0, 0]


def test_values_out_of_range() -> None:
    with pytest.raises(InputError, match="rate must be a probability"):
        drop_probabilities(torch.ones(3), 1.2)
