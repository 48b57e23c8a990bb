"""Personalized PageRank by pushing against the inverse of a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import dense, random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.diffusion import Diffusion, pagerank, ppr_diffusion, top_pagerank
from ssge.ops.random import Key
from ssge.ops.sparse import CSR, csr_tensor


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
    positions = top_pagerank(adjacency(graph), 4, tolerance=0, chunk=chunk)
    for i in range(60):
        order = np.argsort(-truth[i], kind="stable")[:4]
        there = truth[i, order] > 1e-12
        np.testing.assert_array_equal(positions[i].numpy(), np.where(there, order, -1))


def test_isolated_nodes_and_tiny_graphs_have_nobody() -> None:
    positions = top_pagerank(adjacency(random_graph()), 3)
    assert (positions[59] == -1).all()
    assert (positions != torch.arange(60).unsqueeze(1)).all()
    pair = Graph.of(edges=np.array([[0], [1]]), features=np.eye(2))
    assert top_pagerank(adjacency(pair), 5).tolist() == [[1, -1, -1, -1, -1], [0, -1, -1, -1, -1]]


def test_a_node_is_its_own_nearest_if_asked_for() -> None:
    graph = random_graph()
    mine = top_pagerank(adjacency(graph), 3, itself=True, tolerance=0)
    others = top_pagerank(adjacency(graph), 2, tolerance=0)
    assert mine[:, 0].tolist() == list(range(graph.num_nodes))
    assert mine[:, 1:].tolist() == others.tolist()


def filled(rows: CSR) -> np.ndarray:
    return csr_tensor(rows, rows.indptr.numel() - 1).to_dense().numpy()


@pytest.mark.parametrize("exact_nodes", [0, 1000], ids=["iterated", "factorized"])
@pytest.mark.parametrize("kind", ["plain", "weighted", "directed"])
@pytest.mark.parametrize("teleport", [0.05, 0.2, 1.0])
def test_diffusion_is_the_inverse(
    teleport: float, kind: str, exact_nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssge.ops.diffusion._ENTRIES", 7 * 60)  # groups of 7 rows, the last one smaller
    graph = random_graph(weighted=kind == "weighted")
    if kind == "directed":
        graph = Graph.of(edges=graph.edges[:, ::3], features=np.eye(60), direction="out")
    found = ppr_diffusion(adjacency(graph), teleport, exact_nodes=exact_nodes, tolerance=0)
    np.testing.assert_allclose(filled(found), exact(graph, teleport), atol=1e-10)


def test_row_normalized_diffusion_has_rows_of_sum_one() -> None:
    """The symmetric T has not; on a regular graph both are the same."""
    ring = np.arange(12)
    edges = np.concatenate([np.stack([ring, (ring + 1) % 12]), np.stack([(ring + 1) % 12, ring])], 1)
    found = ppr_diffusion(Adjacency.of(edges, 12, dtype=torch.float64))
    np.testing.assert_allclose(filled(found).sum(1), 1)


def test_threshold_and_largest_entries_of_the_diffusion() -> None:
    graph = random_graph(weighted=True)
    truth = exact(graph, 0.2)
    np.testing.assert_allclose(
        filled(ppr_diffusion(adjacency(graph), 0.2, threshold=0.01)), np.where(truth >= 0.01, truth, 0), atol=1e-12
    )
    few = filled(ppr_diffusion(adjacency(graph), 0.2, k=3))
    for i in range(60):
        order = np.argsort(-truth[i])[:3]
        expected = np.zeros(60)
        expected[order] = truth[i, order]
        np.testing.assert_allclose(few[i], np.where(expected > 1e-12, expected, few[i]), atol=1e-12)
    assert (np.count_nonzero(few > 1e-12, axis=1) <= 3).all()


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("teleport", [0.05, 0.2, 1.0])
def test_iterated_diffusion_errs_by_the_tolerance_at_most(teleport: float, tolerance: float) -> None:
    graph = random_graph()
    found = filled(ppr_diffusion(adjacency(graph), teleport, exact_nodes=0, tolerance=tolerance))
    truth = exact(graph, teleport)
    assert (np.abs(found - truth)[found > 0] <= tolerance).all()
    assert (truth[found == 0] <= 2 * tolerance).all()  # what is left out is small


def test_pushed_diffusion_errs_below() -> None:
    graph = Graph.of(edges=random_graph().edges[:, ::3], features=np.eye(60), direction="out")
    found = filled(ppr_diffusion(adjacency(graph), 0.2, threshold=1e-2, exact_nodes=0))
    truth = exact(graph, 0.2)
    assert (found <= truth + 1e-12).all()
    np.testing.assert_allclose(found[found > 0], truth[found > 0], atol=5e-3)
    assert np.count_nonzero(found) > 0.9 * np.count_nonzero(truth >= 1e-2)


def test_scaled_columns() -> None:
    graph = random_graph()
    plain = filled(ppr_diffusion(adjacency(graph), 0.05, threshold=1e-2))
    np.testing.assert_allclose(
        filled(ppr_diffusion(adjacency(graph), 0.05, threshold=1e-2, scale="sum")), plain / plain.sum(0)
    )
    ranged = (plain - plain.min(0)) / (plain.max(0) - plain.min(0))
    np.testing.assert_allclose(
        filled(ppr_diffusion(adjacency(graph), 0.05, threshold=1e-2, scale="max")), ranged, atol=1e-15
    )
    empty = ppr_diffusion(adjacency(graph), 0.05, threshold=0.5, scale="sum")
    assert torch.isfinite(empty.values).all() and (np.count_nonzero(filled(empty), axis=0) == 0).any()


def test_isolated_node_keeps_to_itself() -> None:
    found = filled(ppr_diffusion(adjacency(random_graph())))
    assert found[59, 59] == pytest.approx(1) and np.count_nonzero(found[59]) == np.count_nonzero(found[:, 59]) == 1


@pytest.mark.parametrize("teleport", [0, -0.1, 1.5])
def test_teleport_out_of_range(teleport: float) -> None:
    with pytest.raises(InputError, match="teleport must be above 0"):
        ppr_diffusion(adjacency(random_graph()), teleport)


def test_diffusion_is_a_matrix_as_it_is() -> None:
    graph = random_graph(directed=True)
    s = Diffusion.of_rows(ppr_diffusion(adjacency(graph), threshold=1e-3))
    truth = exact(graph, 0.2)
    truth = torch.from_numpy(np.where(truth >= 1e-3, truth, 0))
    h = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    torch.testing.assert_close(s @ h, truth @ h)
    torch.testing.assert_close(s.block(20, 50, h.detach()), (truth @ h)[20:50])
    assert torch.autograd.gradcheck(lambda x: s @ x, (h,))


def test_parts_of_a_diffusion_and_dropped_entries() -> None:
    s = Diffusion.of_rows(ppr_diffusion(adjacency(random_graph(weighted=True)), threshold=1e-3))
    matrix = s.matrix.to_dense()
    nodes = torch.arange(0, 60, 3)
    once = s.subgraph(nodes)
    torch.testing.assert_close(once.matrix.to_dense(), matrix[nodes][:, nodes])
    twice = once.subgraph(torch.tensor([1, 4, 7]))
    torch.testing.assert_close(csr_tensor(twice.matrix.columns, 3).to_dense(), matrix[[3, 12, 21]][:, [3, 12, 21]].t())
    dropped = s.drop_edges(Key(0), 0.5)
    left = dropped.matrix.to_dense()
    assert torch.equal(left.diag(), matrix.diag())
    assert ((left == 0) | (left == matrix)).all() and 0.4 < (left != 0).sum() / (matrix != 0).sum() < 0.65
    assert torch.equal(dropped.subgraph(nodes).matrix.to_dense(), left[nodes][:, nodes])
    assert torch.equal(dropped.subgraph(nodes).subgraph(torch.arange(9)).matrix.to_dense(), left[::3, ::3][:9, :9])
