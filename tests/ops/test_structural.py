"""Structural features: closed forms, NetworkX, dense powers, and what another order of the nodes may change."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphs import dense, random_graph
from ssge.errors import InputError, UnknownNameError
from ssge.graph import Graph
from ssge.ops import structural
from ssge.ops.structural import KINDS, structural_features


def of(graph: nx.Graph, *kinds: str) -> dict[str, np.ndarray]:
    """Return the columns by name, in float64, nodes 0..n-1."""
    n = graph.number_of_nodes()
    edges = np.array(list(graph.to_directed().edges), dtype=np.int64).reshape(-1, 2).T
    matrix, names = structural_features(edges, None, n, kinds or KINDS)
    assert matrix.dtype == np.float32 and matrix.shape == (n, len(names))
    return dict(zip(names, matrix.astype(np.float64).T, strict=True))


def walk_powers(adjacency: np.ndarray) -> np.ndarray:
    degree = adjacency.sum(1, keepdims=True)
    P = adjacency / np.where(degree > 0, degree, 1)
    return np.stack([np.diag(np.linalg.matrix_power(P, s)) for s in structural.STEPS], axis=1)


def test_cycle() -> None:
    n = 12
    found = of(nx.cycle_graph(n))
    np.testing.assert_allclose(found["degree"], np.log(3), rtol=1e-6)
    np.testing.assert_array_equal(found["clustering"], 0)
    for step, share in {2: 1 / 2, 3: 0, 4: 6 / 16, 5: 0, 6: 20 / 64, 8: 70 / 256}.items():  # central binomials
        np.testing.assert_allclose(found[f"return_{step}"], share, atol=1e-7)
    # The eigenvalue 1 - cos(2 pi / n) is double: its space is spanned by cosine and sine.
    angle = 2 * np.pi * np.arange(n) / n
    plane = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.sqrt(2 / n)
    for name in ("laplacian_1", "laplacian_2"):
        column = found[name]
        np.testing.assert_allclose(plane @ (plane.T @ column), column, atol=1e-5)
        assert np.mean(column**2) == pytest.approx(1, rel=1e-5)


def test_complete_graph() -> None:
    n = 7
    found = of(nx.complete_graph(n))
    np.testing.assert_allclose(found["clustering"], 1)
    for step in structural.STEPS:
        expected = (1 + (n - 1) * (-1 / (n - 1)) ** step) / n
        np.testing.assert_allclose(found[f"return_{step}"], expected, rtol=1e-6)
    assert [name for name in found if name.startswith("laplacian")] == [f"laplacian_{i}" for i in range(1, n)]


def test_star() -> None:
    found = of(nx.star_graph(5))  # node 0 and five leaves
    np.testing.assert_allclose(found["degree"], np.log([6, 2, 2, 2, 2, 2]), rtol=1e-6)
    np.testing.assert_array_equal(found["clustering"], 0)
    np.testing.assert_allclose(found["return_4"], [1, *[1 / 5] * 5], rtol=1e-6)
    np.testing.assert_array_equal(found["return_7"], 0)


def test_path() -> None:
    n = 9
    found = of(nx.path_graph(n), "laplacian")
    inner = np.where((np.arange(n) == 0) | (np.arange(n) == n - 1), 1, 2)
    for j in (1, 2, 3):  # eigenvectors of the normalized Laplacian: sqrt(degree) cos(pi j i / (n - 1))
        expected = np.sqrt(inner) * np.cos(np.pi * j * np.arange(n) / (n - 1))
        expected *= np.sqrt(n) / np.linalg.norm(expected)
        column = found[f"laplacian_{j}"]
        np.testing.assert_allclose(column * np.sign(column[0]) * np.sign(expected[0]), expected, atol=1e-5)


@pytest.mark.parametrize("limit", [10, structural._ENTRIES])
def test_clustering_is_that_of_networkx(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structural, "_ENTRIES", limit)
    for graph in (nx.barabasi_albert_graph(80, 4, seed=1), nx.gnp_random_graph(50, 0.3, seed=2), nx.empty_graph(3)):
        expected = [nx.clustering(graph)[i] for i in range(graph.number_of_nodes())]
        np.testing.assert_allclose(of(graph, "clustering")["clustering"], expected, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_return_is_the_diagonal_of_the_powers(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(weighted=weighted)
    monkeypatch.setattr(structural, "_ENTRIES", 7 * graph.num_nodes)
    found, _ = structural_features(graph.edges, graph.weights, graph.num_nodes, ["return"])
    np.testing.assert_allclose(found, walk_powers(dense(graph)), atol=1e-6)


def test_estimated_return_is_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(n=300, m=900)
    expected = walk_powers(dense(graph))
    monkeypatch.setattr(structural, "_EXACT_PRODUCTS", 0)
    found, _ = structural_features(graph.edges, graph.weights, graph.num_nodes, ["return"])
    np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=1e-6)
    connected = expected[:, 0] > 0
    even = found[connected][:, 2::2] / expected[connected][:, 2::2]
    assert np.sqrt(np.mean((even - 1) ** 2)) < np.sqrt(2 / structural._PROBES)
    np.testing.assert_allclose(found.mean(axis=0), expected.mean(axis=0), rtol=0.02, atol=2e-3)


def test_laplacian_solves_its_eigenproblem_by_both_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(n=200, m=500, weighted=True)
    A = dense(graph)
    degree = A.sum(1)
    inside = degree > 0
    S = A[np.ix_(inside, inside)] / np.sqrt(np.outer(degree[inside], degree[inside]))
    eigenvalues = np.linalg.eigvalsh(np.eye(inside.sum()) - S)
    eigenvalues = eigenvalues[eigenvalues > 1e-9][: structural.COORDINATES]
    routes = []
    for limit in (0, 10**6):
        monkeypatch.setattr(structural, "_DENSE_NODES", limit)
        found, _ = structural_features(graph.edges, graph.weights, graph.num_nodes, ["laplacian"])
        V = found[inside]
        np.testing.assert_array_equal(found[~inside], 0)
        np.testing.assert_allclose(V.T @ V / inside.sum(), np.eye(V.shape[1]), atol=1e-4)
        np.testing.assert_allclose(V - S @ V, V * eigenvalues, atol=1e-3)
        assert ((V**3).sum(axis=0) > 0).all()
        routes.append(found)
    np.testing.assert_allclose(*routes, atol=1e-3)


def test_components_are_not_counted_as_coordinates() -> None:
    parts = nx.disjoint_union_all([nx.gnp_random_graph(40, 0.2, seed=0), *[nx.path_graph(2)] * 30, nx.empty_graph(4)])
    found = of(parts, "laplacian")
    assert len(found) == structural.COORDINATES
    for column in found.values():
        assert np.ptp(column[:40]) > 0.1 and np.abs(column[40:]).max() < 1e-5  # an edge alone has the eigenvalue 2


def test_another_order_of_the_nodes() -> None:
    graph = random_graph(n=80, m=240, weighted=True)
    found, names = structural_features(graph.edges, graph.weights, graph.num_nodes)
    order = np.random.default_rng(5).permutation(graph.num_nodes)
    place = np.argsort(order)
    moved, again = structural_features(place[graph.edges], graph.weights, graph.num_nodes)
    assert again == names and len(names) == 1 + 1 + 7 + 16
    np.testing.assert_allclose(moved, found[order], atol=1e-4)


def test_degrees_of_a_directed_graph() -> None:
    edges, weights = np.array([[0, 2, 1], [1, 1, 0]]), np.array([1.0, 2.0, 4.0])
    matrix, names = structural_features(edges, weights, 4, ["degree"])
    assert names == ["in_degree", "out_degree"]
    np.testing.assert_allclose(matrix, np.log1p([[4, 1], [3, 4], [0, 2], [0, 0]]), rtol=1e-6)
    turned, names = structural_features(edges[::-1], weights, 4, ["degree"], "out")
    assert names == ["in_degree", "out_degree"]
    np.testing.assert_array_equal(turned, matrix)
    both = Graph.of(edges=edges, features=np.eye(4), weights=weights)
    assert structural_features(both.edges, both.weights, 4, ["degree"], "in")[1] == names
    assert structural_features(both.edges, both.weights, 4, ["degree"], "both")[1] == ["degree"]
    np.testing.assert_array_equal(
        structural_features(edges, weights, 4, KINDS[1:])[0],
        structural_features(both.edges, both.weights, 4, KINDS[1:])[0],
    )


@pytest.mark.parametrize(("n", "columns"), [(1, 9), (2, 10), (3, 10), (30, 10)])
def test_tiny_and_empty_graphs(n: int, columns: int) -> None:
    edges = np.array([[0, 1], [1, 0]]) if n > 1 else np.empty((2, 0), dtype=np.int64)
    matrix, names = structural_features(edges, None, n)
    assert matrix.shape == (n, columns) == (n, len(names)) and np.isfinite(matrix).all()
    np.testing.assert_array_equal(matrix[2:], 0)


def test_hubs_do_not_square() -> None:
    n = 30_000
    hubs = np.array([0, 1, 2])
    source = np.concatenate([np.repeat(hubs, n), np.arange(n - 1)])
    target = np.concatenate([np.tile(np.arange(n), 3), np.arange(1, n)])
    graph = Graph.of(edges=np.stack([source, target]), features=np.ones((n, 1)))
    matrix, names = structural_features(graph.edges, None, n, ["clustering", "return"])
    assert np.isfinite(matrix).all()
    # A node far from both ends has five neighbors: three hubs, all joined, and two beside it, each joined to the hubs.
    assert matrix[n // 2, names.index("clustering")] == pytest.approx((3 + 6) / 10)


def test_what_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'laplacian'"):
        structural_features(np.empty((2, 0), dtype=np.int64), None, 3, ["laplace"])
    with pytest.raises(InputError, match="at least one of degree"):
        structural_features(np.empty((2, 0), dtype=np.int64), None, 3, [])


def regularized(graph: Graph) -> np.ndarray:
    """Return the normalized Laplacian of A + mean degree / n, dense."""
    A = dense(graph)
    A = A + A.sum() / len(A) ** 2
    root = np.sqrt(A.sum(1))
    return np.eye(len(A)) - A / np.outer(root, root)


@pytest.mark.parametrize("limit", [0, 10**6])
def test_spectral_embedding_solves_its_eigenproblem_by_both_routes(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structural, "_DENSE_NODES", limit)
    graph = random_graph(n=200, m=500, weighted=True)
    V = structural.spectral_embedding(graph.edges, graph.weights, graph.num_nodes, 5)
    L = regularized(graph)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-8)
    np.testing.assert_allclose(L @ V, V * np.linalg.eigvalsh(L)[:5], atol=1e-5)
    assert ((V**3).sum(axis=0) >= 0).all()
    again = structural.spectral_embedding(graph.edges, graph.weights, graph.num_nodes, 5)
    assert V.tobytes() == again.tobytes()


def test_spectral_embedding_tells_communities_apart_beside_many_components() -> None:
    """Two blocks, thirty edges apart and five isolated nodes: plain eigenvectors would tell only the components."""
    blocks = nx.planted_partition_graph(2, 60, 0.2, 0.02, seed=1)
    graph = nx.disjoint_union_all([blocks, *[nx.path_graph(2)] * 30, nx.empty_graph(5)])
    edges = np.array(list(graph.to_directed().edges), dtype=np.int64).T
    V = structural.spectral_embedding(edges, None, graph.number_of_nodes(), 3)
    side = V[:120, 1:] - V[:120, 1:].mean(0)
    cut = np.linalg.svd(side, full_matrices=False)[0][:, 0] > 0
    assert max(np.mean(cut[:60]) - np.mean(cut[60:120]), np.mean(cut[60:120]) - np.mean(cut[:60])) > 0.9


def test_spectral_embedding_refuses_what_has_none() -> None:
    with pytest.raises(InputError, match="at least one edge"):
        structural.spectral_embedding(np.zeros((2, 0), dtype=np.int64), None, 4, 2)
    with pytest.raises(InputError, match=r"k must be 1\.\.3 .* received 4"):
        structural.spectral_embedding(np.array([[0, 1], [1, 0]]), None, 4, 4)
