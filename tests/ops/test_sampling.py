"""Non-edges: never an edge, uniform over the rest, and decided by the generator alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import dense, random_graph
from ssge.errors import InputError
from ssge.ops.adjacency import Adjacency
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.ops.sparse import row_indices


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def entries(pairs: Pairs) -> np.ndarray:
    """Return the pairs (i, j), 2 x count."""
    return torch.stack([row_indices(pairs.rows.indptr), pairs.rows.indices]).numpy()


def test_pairs_of_an_adjacency_are_its_edges_and_loops() -> None:
    graph = random_graph(weighted=True)
    pairs = Pairs.of(Adjacency.of(graph.edges, graph.num_nodes, graph.weights))
    expected = (dense(graph) > 0) | np.eye(graph.num_nodes, dtype=bool)
    np.testing.assert_array_equal(entries(pairs), np.nonzero(expected))


@pytest.mark.parametrize("m", [1, 150, 3000])
def test_no_edge_and_no_loop_is_drawn(m: int) -> None:
    graph = random_graph(n=60, m=m)
    edges = Pairs.of(Adjacency.of(graph.edges, graph.num_nodes))
    i, j = entries(sample_non_edges(edges, 5000, generator()))
    assert i.size == 5000
    assert (i != j).all()
    assert (dense(graph)[i, j] == 0).all()


def test_every_non_edge_is_as_likely() -> None:
    graph = random_graph(n=20, m=90)
    edges = Pairs.of(Adjacency.of(graph.edges, graph.num_nodes))
    count = 200_000
    i, j = entries(sample_non_edges(edges, count, generator()))
    found = np.zeros((20, 20))
    np.add.at(found, (i, j), 1)
    free = (dense(graph) == 0) & ~np.eye(20, dtype=bool)
    assert (found[free] > 0).all() and found[~free].sum() == 0
    expected = count / free.sum()
    chi_square = np.square(found[free] - expected).sum() / expected
    degrees = free.sum() - 1
    assert abs(chi_square - degrees) < 5 * np.sqrt(2 * degrees)


def test_the_last_free_pair_is_found() -> None:
    n = 5
    edges = np.stack(np.nonzero(~np.eye(n, dtype=bool)))
    for missing in ((0, 1), (n - 1, n - 2), (2, 4)):
        kept = edges[:, ~((edges[1] == missing[0]) & (edges[0] == missing[1]))]  # row = target
        drawn = sample_non_edges(Pairs.of(Adjacency.of(kept, n)), 3, generator())
        assert entries(drawn).T.tolist() == [list(missing)] * 3


def test_both_orders_hold_the_same_pairs() -> None:
    graph = random_graph()
    drawn = sample_non_edges(Pairs.of(Adjacency.of(graph.edges, graph.num_nodes)), 500, generator())
    i, j = entries(drawn)
    order = drawn.order.numpy()
    np.testing.assert_array_equal(row_indices(drawn.columns.indptr).numpy(), j[order])
    np.testing.assert_array_equal(drawn.columns.indices.numpy(), i[order])


def test_the_generator_decides() -> None:
    graph = random_graph()
    edges = Pairs.of(Adjacency.of(graph.edges, graph.num_nodes))
    torch.manual_seed(1)
    first, again, other = (entries(sample_non_edges(edges, 100, generator(s))).tolist() for s in (3, 3, 4))
    assert first == again != other


def test_a_complete_graph_has_none() -> None:
    edges = np.stack(np.nonzero(~np.eye(4, dtype=bool)))
    with pytest.raises(InputError, match="all 16 pairs of the 4 nodes"):
        sample_non_edges(Pairs.of(Adjacency.of(edges, 4)), 1, generator())
