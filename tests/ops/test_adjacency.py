"""Normalized adjacency against dense formulas and against PyTorch Geometric."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from graphs import random_graph
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency


def adjacency(graph: Graph, normalization: str = "out-in") -> Adjacency:
    return Adjacency.of(
        graph.edges,
        graph.num_nodes,
        graph.weights,
        normalization,
        dtype=torch.float64,  # type: ignore[arg-type]
    )


def dense_reference(graph: Graph, kept: np.ndarray, normalization: str) -> np.ndarray:
    n = graph.num_nodes
    matrix = np.eye(n)
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    for (source, target), weight, keep in zip(graph.edges.T, weights, kept, strict=True):
        if keep:
            matrix[target, source] = weight
    incoming, outgoing = matrix.sum(1), matrix.sum(0)
    at_source = incoming if normalization == "in" else outgoing
    return matrix / np.sqrt(incoming[:, None] * at_source[None, :])


def keep_edges(a: Adjacency, kept: np.ndarray) -> Adjacency:
    """Drop the given edges; the entries of the pattern are the edges in order, with the self-loops in between."""
    entries = torch.ones(a.num_entries, dtype=torch.bool)
    not_loops = torch.ones(a.num_entries, dtype=torch.bool)
    not_loops[a.pattern.loops] = False
    entries[not_loops] = torch.from_numpy(kept)
    return a.keep(entries)


@pytest.mark.parametrize("normalization", ["out-in", "in"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dropping", [False, True])
def test_matrix_and_transpose_agree_with_the_formula(normalization: str, weighted: bool, dropping: bool) -> None:
    graph = random_graph(weighted=weighted)
    kept = np.random.default_rng(1).random(graph.num_edges) < (0.6 if dropping else 2)
    a = adjacency(graph, normalization)
    if dropping:
        a = keep_edges(a, kept)
    expected = torch.from_numpy(dense_reference(graph, kept, normalization))
    torch.testing.assert_close(a.matrix.forward.to_dense(), expected)
    torch.testing.assert_close(a.matrix.backward.to_dense(), expected.T.contiguous())


@pytest.mark.parametrize("weighted", [False, True])
def test_in_normalization_is_that_of_pytorch_geometric(weighted: bool) -> None:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    graph = random_graph(weighted=weighted)
    kept = np.random.default_rng(1).random(graph.num_edges) < 0.6
    weights = None if graph.weights is None else torch.from_numpy(graph.weights[kept])
    index, value = gcn_norm(torch.from_numpy(graph.edges[:, kept]), weights, graph.num_nodes, dtype=torch.float64)
    theirs = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    theirs[index[1], index[0]] = value
    ours = keep_edges(adjacency(graph, "in"), kept).matrix.forward.to_dense()
    torch.testing.assert_close(ours, theirs)


def test_both_conventions_agree_on_a_symmetric_graph() -> None:
    graph = random_graph()
    h = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    torch.testing.assert_close(adjacency(graph, "in") @ h, adjacency(graph, "out-in") @ h)


def test_product_passes_gradcheck() -> None:
    graph = random_graph(n=8, m=12)
    a = keep_edges(adjacency(graph), np.arange(graph.num_edges) % 3 > 0)
    h = torch.randn(8, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: a @ x, (h,))


def test_dropping_twice_keeps_what_both_keep() -> None:
    graph = random_graph()
    rng = np.random.default_rng(0)
    first, second = rng.random((2, graph.num_edges)) < 0.7
    twice = keep_edges(keep_edges(adjacency(graph), first), second)
    once = keep_edges(adjacency(graph), first & second)
    torch.testing.assert_close(twice.matrix.forward.to_dense(), once.matrix.forward.to_dense())


def test_everything_dropped_leaves_the_identity() -> None:
    graph = random_graph()
    a = keep_edges(adjacency(graph), np.zeros(graph.num_edges, dtype=bool))
    torch.testing.assert_close(a.matrix.forward.to_dense(), torch.eye(graph.num_nodes, dtype=torch.float64))


def test_blocks_are_rows_of_the_product() -> None:
    graph = random_graph()
    a = adjacency(graph)
    h = torch.randn(graph.num_nodes, 3, dtype=torch.float64)
    parts: list[Tensor] = [a.block(i, min(i + 7, graph.num_nodes), h) for i in range(0, graph.num_nodes, 7)]
    torch.testing.assert_close(torch.cat(parts), a @ h)
