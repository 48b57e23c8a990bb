"""Normalized adjacency against dense formulas and PyTorch Geometric; subgraphs against rows of the whole matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from graphs import dense, random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency, Normalization
from ssge.ops.random import Key
from ssge.ops.sparse import csr_tensor, row_indices

KEY = Key(0).fold_in("edges")
NODES = torch.tensor([0, 3, 4, 5, 11, 17, 20, 21, 22, 40, 41, 58, 59])

every_normalization = pytest.mark.parametrize("normalization", ["out-in", "in"])
every_weight = pytest.mark.parametrize("weighted", [False, True])
every_direction = pytest.mark.parametrize("directed", [False, True])


def adjacency(graph: Graph, normalization: Normalization = "out-in") -> Adjacency:
    return Adjacency.of(graph.edges, graph.num_nodes, graph.weights, normalization, dtype=torch.float64)


def matrix(a: Adjacency) -> Tensor:
    """Return the dense matrix, after a look that its transpose is one."""
    found = a.matrix.to_dense()
    torch.testing.assert_close(csr_tensor(a.matrix.columns, len(found)).to_dense(), found.T)
    return found


def kept_edges(graph: Graph, *drops: tuple[Key, float]) -> np.ndarray:
    """Return which edges the keys leave, asked for one by one."""
    ids = [torch.tensor([(int(source) << 32) + int(target)]) for source, target in graph.edges.T]
    return np.array([all(bool(key.keep(edge, rate)) for key, rate in drops) for edge in ids])


def expected_matrix(graph: Graph, kept: np.ndarray, normalization: str) -> Tensor:
    there = np.zeros((graph.num_nodes, graph.num_nodes), dtype=bool)
    there[graph.edges[1, kept], graph.edges[0, kept]] = True
    full = dense(graph) * there + np.eye(graph.num_nodes)
    incoming, outgoing = full.sum(1), full.sum(0)
    at_source = incoming if normalization == "in" else outgoing
    return torch.from_numpy(full / np.sqrt(incoming[:, None] * at_source[None, :]))


@every_normalization
@every_weight
@every_direction
def test_matrix_and_transpose_agree_with_the_formula(
    normalization: Normalization, weighted: bool, directed: bool
) -> None:
    graph = random_graph(weighted=weighted, directed=directed)
    whole, other = adjacency(graph, normalization), KEY.fold_in(1)
    all_edges = np.ones(graph.num_edges, dtype=bool)
    torch.testing.assert_close(matrix(whole), expected_matrix(graph, all_edges, normalization))
    once, both = kept_edges(graph, (KEY, 0.4)), kept_edges(graph, (KEY, 0.4), (other, 0.3))
    assert 0 < both.sum() < once.sum() < graph.num_edges
    dropped = whole.drop_edges(KEY, 0.4)
    torch.testing.assert_close(matrix(dropped), expected_matrix(graph, once, normalization))
    torch.testing.assert_close(matrix(dropped.drop_edges(other, 0.3)), expected_matrix(graph, both, normalization))
    assert whole.kept is None


@every_weight
def test_in_normalization_is_that_of_pytorch_geometric(weighted: bool) -> None:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    graph = random_graph(weighted=weighted)
    kept = kept_edges(graph, (KEY, 0.4))
    weights = None if graph.weights is None else torch.from_numpy(graph.weights[kept])
    index, value = gcn_norm(torch.from_numpy(graph.edges[:, kept]), weights, graph.num_nodes, dtype=torch.float64)
    theirs = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    theirs[index[1], index[0]] = value
    torch.testing.assert_close(matrix(adjacency(graph, "in").drop_edges(KEY, 0.4)), theirs)


def test_both_conventions_agree_on_a_symmetric_graph_alone() -> None:
    graph, directed = random_graph(), random_graph(directed=True)
    torch.testing.assert_close(matrix(adjacency(graph, "in")), matrix(adjacency(graph)))
    assert not torch.allclose(matrix(adjacency(directed, "in")), matrix(adjacency(directed)))


def test_product_passes_gradcheck() -> None:
    a = adjacency(random_graph(n=8, m=12)).drop_edges(KEY, 0.3)
    h = torch.randn(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: a @ x, (h,))


def test_everything_dropped_leaves_the_identity() -> None:
    a = adjacency(random_graph()).drop_edges(KEY, 1.0)
    assert torch.equal(matrix(a), torch.eye(60, dtype=torch.float64))


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_blocks_are_rows_of_the_product(rate: float) -> None:
    a = adjacency(random_graph(weighted=True, directed=True)).drop_edges(KEY, rate)
    h = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    parts = [a.block(start, min(start + 7, 60), h) for start in range(0, 60, 7)]
    torch.testing.assert_close(torch.cat(parts), matrix(a) @ h)


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_in_neighbors_are_those_of_matrix_powers(rate: float, hops: int) -> None:
    a = adjacency(random_graph(m=90, directed=True)).drop_edges(KEY, rate)
    seeds = torch.tensor([50, 3, 59])
    reached = torch.linalg.matrix_power((matrix(a) != 0).double(), hops)[seeds].sum(0).nonzero().squeeze(1)
    assert torch.equal(a.in_neighbors(seeds, hops), reached)


OUTER = torch.cat([NODES, torch.arange(25, 39)]).sort().values
INNER = torch.searchsorted(OUTER, NODES)
AGAIN = KEY.fold_in(1)
# The drops of the whole matrix, and the orders in which a subgraph can be taken and edges dropped.
PARTS: list[tuple[list[tuple[Key, float]], Callable[[Adjacency], Adjacency]]] = [
    ([], lambda a: a.subgraph(NODES)),
    ([], lambda a: a.subgraph(OUTER).subgraph(INNER)),
    ([(KEY, 0.4)], lambda a: a.drop_edges(KEY, 0.4).subgraph(NODES)),
    ([(KEY, 0.4)], lambda a: a.subgraph(NODES).drop_edges(KEY, 0.4)),
    ([(KEY, 0.4)], lambda a: a.drop_edges(KEY, 0.4).subgraph(OUTER).subgraph(INNER)),
    ([(KEY, 0.4)], lambda a: a.subgraph(OUTER).drop_edges(KEY, 0.4).subgraph(INNER)),
    ([(KEY, 0.4)], lambda a: a.subgraph(OUTER).subgraph(INNER).drop_edges(KEY, 0.4)),
    ([(KEY, 0.4), (AGAIN, 0.3)], lambda a: a.drop_edges(KEY, 0.4).subgraph(NODES).drop_edges(AGAIN, 0.3)),
]


@every_normalization
@every_weight
@every_direction
def test_subgraph_is_rows_and_columns_of_the_whole_matrix(
    normalization: Normalization, weighted: bool, directed: bool
) -> None:
    whole = adjacency(random_graph(m=400, weighted=weighted, directed=directed), normalization)
    for drops, part in PARTS:
        view = whole
        for drop in drops:
            view = view.drop_edges(*drop)
        expected = matrix(view)[NODES][:, NODES]
        assert (expected != 0).sum() > len(NODES)  # there are edges inside
        torch.testing.assert_close(matrix(part(whole)), expected, rtol=1e-13, atol=0)


@every_normalization
@every_weight
def test_degrees_of_a_subgraph_are_not_those_inside_it(normalization: Normalization, weighted: bool) -> None:
    """On a star whose leaves lie outside, degrees counted inside would be 1, with weights and without."""
    leaves = np.arange(2, 8)
    edges = np.concatenate([[[0], [1]], np.stack([leaves, np.ones_like(leaves)])], axis=1)
    weights = np.full(7, 3.0) if weighted else None
    graph = Graph.of(edges=edges, weights=weights, features=np.eye(8), dtype=np.float64)
    part = matrix(adjacency(graph, normalization).subgraph(torch.tensor([0, 1])))
    weight = 3.0 if weighted else 1.0
    leaf, center = 1 + weight, 1 + 7 * weight
    expected = [[1 / leaf, weight / (leaf * center) ** 0.5], [weight / (leaf * center) ** 0.5, 1 / center]]
    torch.testing.assert_close(part, torch.tensor(expected, dtype=torch.float64))


def test_ids_of_edges_are_those_of_the_whole_graph() -> None:
    graph = random_graph(m=400, directed=True)
    whole = adjacency(graph)
    part = whole.subgraph(OUTER).subgraph(INNER).pattern
    source, target = NODES[part.incoming.indices.long()], NODES[row_indices(part.incoming.indptr).long()]
    assert torch.equal(part.edge_ids, (source << 32) + target)
    assert set(part.edge_ids.tolist()) <= set(whole.pattern.edge_ids.tolist())
    assert len(set(whole.pattern.edge_ids.tolist())) == graph.num_edges + graph.num_nodes


@every_normalization
@every_weight
def test_each_entry_can_have_a_rate_of_its_own(normalization: Normalization, weighted: bool) -> None:
    graph = random_graph(m=400, weighted=weighted, directed=True)
    whole = adjacency(graph, normalization)
    incoming = whole.pattern.incoming
    target, source = row_indices(incoming.indptr).long(), incoming.indices.long()
    rate = (0.1 + 0.2 * (target % 3) + 0.3 * (source % 2)).double()
    kept = np.array([bool(KEY.keep(torch.tensor([(int(s) << 32) + int(t)]), 0.1 + 0.2 * (t % 3) + 0.3 * (s % 2)))
                     for s, t in graph.edges.T])  # fmt: skip
    assert 0 < kept.sum() < graph.num_edges
    dropped = whole.drop_edges(KEY, rate)  # loops have a rate, too, and stay
    torch.testing.assert_close(matrix(dropped), expected_matrix(graph, kept, normalization))
    assert torch.equal(matrix(whole.drop_edges(KEY, torch.full_like(rate, 0.4))), matrix(whole.drop_edges(KEY, 0.4)))


@every_normalization
@every_weight
def test_a_subgraph_has_the_rates_of_its_entries_in_the_whole_graph(
    normalization: Normalization, weighted: bool
) -> None:
    whole = adjacency(random_graph(m=400, weighted=weighted, directed=True), normalization)
    rate = torch.rand(whole.num_entries, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = matrix(whole.drop_edges(KEY, rate))[NODES][:, NODES]
    assert len(NODES) < (expected != 0).sum() < (matrix(whole)[NODES][:, NODES] != 0).sum()
    for part in (
        whole.drop_edges(KEY, rate).subgraph(NODES),
        whole.subgraph(NODES).drop_edges(KEY, rate),
        whole.subgraph(OUTER).drop_edges(KEY, rate).subgraph(INNER),
    ):
        torch.testing.assert_close(matrix(part), expected, rtol=1e-13, atol=0)


def test_rates_are_one_or_as_many_as_the_entries_of_the_whole_graph() -> None:
    whole = adjacency(random_graph())
    for a in (whole, whole.subgraph(NODES)):
        with pytest.raises(InputError, match=rf"one for each of {whole.num_entries} entries .* shape \(13,\)"):
            a.drop_edges(KEY, torch.full((13,), 0.5))
