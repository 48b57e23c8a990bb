from __future__ import annotations

import logging
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import ADJACENCY, PATH, WEIGHTS, X, dense
from ssge.errors import InputError
from ssge.graph import Graph, GraphInfo, Split


def expected(edges: np.ndarray, weights: np.ndarray | None, n: int, direction: str) -> np.ndarray:
    """Return the same matrix, one edge after the other, in float64."""
    matrix = np.zeros((n, n))
    for k, (i, j) in enumerate(edges.T):
        source, target = (j, i) if direction == "out" else (i, j)
        if i != j:
            matrix[target, source] = 1 if weights is None else matrix[target, source] + weights[k]
    return np.maximum(matrix, matrix.T) if direction == "both" else matrix


def test_only_features_may_share_memory() -> None:
    features, edges, weights = X.copy(), PATH.copy(), WEIGHTS.copy()
    labels, ids = np.arange(4), np.arange(4)
    theirs = {"edges": edges, "weights": weights, "labels": labels}
    for graph in (
        Graph.of(features=features, **theirs, direction="in", dtype=np.float64),
        Graph.of(features=features, **theirs, direction="in", dtype=np.float64, node_ids=ids),
    ):
        assert np.shares_memory(graph.features, features)
        for mine in (graph.edges, graph.weights, graph.labels, graph.node_ids):
            assert not any(np.shares_memory(mine, array) for array in (*theirs.values(), ids))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_arrangement_against_one_edge_at_a_time(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    edges = np.array(data.draw(st.lists(st.tuples(node, node), max_size=20)), dtype=np.int64).reshape(-1, 2).T
    whole = st.lists(st.integers(0, 4), min_size=edges.shape[1], max_size=edges.shape[1])
    weights = data.draw(st.none() | whole.map(lambda w: np.array(w, dtype=np.float64)))
    direction = data.draw(st.sampled_from(["both", "in", "out"]))
    graph = Graph.of(edges=edges, weights=weights, features=np.ones((n, 1)), direction=direction)
    np.testing.assert_array_equal(dense(graph), expected(edges, weights, n, direction))
    source, target = graph.edges
    assert np.all(np.diff(target * n + source) > 0), "sorted by target, then source, without duplicates"
    assert not np.any(source == target)
    again = Graph.of(edges=graph.edges, weights=graph.weights, features=np.ones((n, 1)), direction="in")
    np.testing.assert_array_equal(dense(again), dense(graph))


def test_each_repair_is_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ssge")
    edges = np.array([[0, 0, 0, 1, 2, 3], [1, 1, 1, 1, 0, 2]])
    Graph.of(edges=edges, weights=[1, 1, 1, 1, 1, 0], features=np.ones((5, 1)), name="mine")
    assert [record.getMessage() for record in caplog.records] == [
        "mine: 1 self-loops removed (encoders add their own).",
        "mine: 1 edges of weight zero removed.",
        "mine: 2 duplicate edges merged.",
        "mine: 2 reverse edges added (direction='in' or 'out' keeps the graph directed).",
        "mine: 2 isolated nodes kept, embedded by their own features.",
    ]


def test_an_edge_given_in_both_directions_gets_the_larger_weight() -> None:
    pairs = [(0, 1), (1, 0), (1, 0), (2, 3)]
    graph = Graph.of(edges=pairs, weights=[4, 1, 2, 5], features=X)
    assert graph.edges.T.tolist() == [[1, 0], [0, 1], [3, 2], [2, 3]] and graph.weights.tolist() == [
        4,
        4,
        5,
        5,
    ]


def test_weights_of_one_are_no_weights_but_duplicates_of_them_are() -> None:
    assert Graph.of(edges=PATH, weights=np.ones(3), features=X).weights is None
    twice = Graph.of(edges=[(0, 1), (0, 1)], weights=[1, 1], features=X)
    assert twice.weights is not None and twice.weights.tolist() == [2, 2]


def test_graph_without_edges_keeps_its_nodes() -> None:
    for edges in ([], np.empty((2, 0)), np.empty((0, 2), dtype=int), torch.empty(2, 0, dtype=torch.long)):
        assert Graph.of(edges=edges, features=X).info == GraphInfo(4, 0, 2)
    assert Graph.of(sp.csr_array((4, 4)), features=X).info == GraphInfo(4, 0, 2)
    lonely = nx.Graph()
    lonely.add_node("a", x=[1, 2])
    assert Graph.of(lonely).info == GraphInfo(1, 0, 2)


def test_numbers_of_any_kind_are_features() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.5]})
    np.testing.assert_array_equal(Graph.of(edges=[], features=frame).features, [[1, 1, 0.5], [2, 0, 1.5]])
    half = torch.tensor([[1.5], [2.0]], dtype=torch.bfloat16, requires_grad=True)
    np.testing.assert_array_equal(Graph.of(edges=[], features=half).features, [[1.5], [2.0]])
    sparse = Graph.of(edges=[], features=sp.coo_matrix(np.eye(2, dtype=bool)))
    assert isinstance(sparse.features, sp.csr_array) and sparse.features.dtype == np.float32


def test_labels() -> None:
    def labels(values: Any) -> tuple[list[int], tuple[str, ...], int]:
        graph = Graph.of(edges=PATH, features=X, labels=values)
        return graph.labels.tolist(), graph.class_names, graph.num_classes

    assert labels([2, 0, 1, 3]) == ([2, 0, 1, 3], (), 4)
    assert labels([2, 0, 1, 10**9]) == ([2, 0, 1, 3], ("0", "1", "2", "1000000000"), 4)
    assert labels(torch.tensor([[2], [0], [1], [1]])) == ([2, 0, 1, 1], (), 3)
    assert labels(pd.Series([10, 2, 2, 0], dtype=object)) == ([10, 2, 2, 0], (), 11)  # indices, with gaps
    assert labels(["b", "a", "b", "c"]) == ([1, 0, 1, 2], ("a", "b", "c"), 3)
    assert labels([10.0, 2.0, 2.0, 2.0]) == ([1, 0, 0, 0], ("2.0", "10.0"), 2)
    assert Graph.of(edges=PATH, features=X).num_classes == 0


def test_a_graph_stays_as_it_is_unless_told_otherwise() -> None:
    graph = Graph.of(edges=PATH, features=X, labels=list("abab"), direction="in", dtype=np.float64)
    assert Graph.of(graph) is graph
    named = Graph.of(graph, name="other")
    assert (named.name, named.class_names) == ("other", ("a", "b")) and named.edges is graph.edges
    relabeled = Graph.of(graph, labels=[0, 1, 2, 3], node_ids="wxyz")
    assert relabeled.class_names == () and relabeled.node_ids.tolist() == list("wxyz")
    assert relabeled.features.dtype == np.float64
    np.testing.assert_array_equal(relabeled.edges, graph.edges)
    wider = Graph.of(graph, features=np.eye(4), direction="both")
    assert wider.info == GraphInfo(4, 6, 4) and wider.class_names == ("a", "b")
    assert Graph.of(graph, dtype=np.float32).features.dtype == np.float32


def test_without_labels_names_no_class() -> None:
    split = Split(np.arange(2), np.arange(2, 3), np.arange(3, 4))
    graph = Graph(np.eye(4), PATH, np.arange(4), labels=np.arange(4), splits=(split,), class_names=tuple("abcd"))
    blind = graph.without_labels()
    assert (blind.labels, blind.splits, blind.class_names, blind.num_classes) == (None, (), (), 0)
    assert blind.edges is graph.edges and graph.labels is not None
    assert "4 classes" in repr(graph) and "classes" not in repr(blind)


def with_(array: Any, place: Any, value: Any) -> Any:
    changed = array.copy()
    changed[place] = value
    return changed


E0 = {"edges": PATH, "features": X}
BAD: list[tuple[str, dict[str, Any]]] = [
    ("Give one of source, edges and adjacency", {"features": X}),
    ("Give one of source, edges and adjacency", E0 | {"adjacency": ADJACENCY}),
    ("Give one of source, edges and adjacency", E0 | {"source": Graph.of(**E0)}),
    ("no node features.*features='structural'", {"edges": PATH}),
    ("at least 1 node; received 0", {"adjacency": np.empty((0, 0)), "features": np.empty((0, 2))}),
    ("at least 1 row and 1 column; received shape \\(0, 2\\)", {"edges": [], "features": np.empty((0, 2))}),
    ("at least 1 row and 1 column; received shape \\(4, 0\\)", E0 | {"features": np.empty((4, 0))}),
    ("features must be a matrix n x p; received shape \\(4,\\)", E0 | {"features": X[:, 0]}),
    ("features must be a regular array", E0 | {"features": [[1, 2], [3]]}),
    ("row 2, column 1 is nan", E0 | {"features": with_(X, (2, 1), np.nan)}),
    ("row 2, column 1 is -inf", E0 | {"features": sp.csr_array(with_(X, (2, 1), -np.inf))}),
    ("row 1, column 0 is inf in float32", E0 | {"features": with_(X, (1, 0), 1e300)}),
    ("features must be real numbers; received dtype complex128", E0 | {"features": X * 1j}),
    ("features must be real numbers; received dtype complex128", E0 | {"features": sp.csr_array(X * 1j)}),
    (
        "features must be numbers; received 'Oslo' in row 0, column 1",
        E0 | {"features": pd.DataFrame({"a": [1] * 4, "b": ["Oslo"] * 4})},
    ),
    ("features and weights can name attributes only of", E0 | {"features": "x"}),
    ("features and weights can name attributes only of", E0 | {"weights": "weight"}),
    ("one row per node \\(4\\); received 5", {"adjacency": ADJACENCY, "features": np.eye(5)}),
    ("one row per node \\(4\\); received 3", {"source": sp.csr_array(ADJACENCY), "features": np.eye(3)}),
    ("one row per node \\(4\\); received 5", {"source": Graph.of(**E0), "features": np.eye(5)}),
    ("an adjacency holds its weights itself", {"adjacency": ADJACENCY, "features": X, "weights": WEIGHTS}),
    ("edges must be integer node positions.*received dtype float64", E0 | {"edges": PATH * 1.0}),
    ("edges must name nodes 0..3; edge 1 is \\(1, 4\\)", E0 | {"edges": with_(PATH, (1, 1), 4)}),
    ("edges must name nodes 0..3; edge 2 is \\(-1, 3\\)", E0 | {"edges": with_(PATH, (0, 2), -1)}),
    ("weights must have one value per edge \\(3\\); received shape \\(2,\\)", E0 | {"weights": [1, 2]}),
    ("weights, entry 1 \\(edge 1 -> 2\\): .* found -1", E0 | {"weights": [1, -1, 1]}),
    ("weights, entry 2 \\(edge 2 -> 3\\): .* found nan", E0 | {"weights": [1, 1, np.nan]}),
    (
        "weights.*\\(edge 1 -> 2\\): .*finite.* found nan",
        {"adjacency": with_(ADJACENCY, (1, 2), np.nan), "features": X},
    ),
    ("labels must have one class per node \\(4\\); received shape \\(3,\\)", E0 | {"labels": [0, 1, 2]}),
    ("labels must be classes 0..k-1 or names; node 1 has -1", E0 | {"labels": [0, -1, 0, 0]}),
    ("labels must .* node 3 has nan", E0 | {"labels": [0, 1, 1, np.nan]}),
    ("labels must .* node 2 has None", E0 | {"labels": ["a", "b", None, "c"]}),
    ("node_ids must have one id per node \\(4\\); received 5", E0 | {"node_ids": range(5)}),
    ("direction must be 'both', 'in' or 'out'; received 'up'", E0 | {"direction": "up"}),
    ("dtype must be numpy.float32 or numpy.float64", E0 | {"dtype": np.float16}),
]


@pytest.mark.parametrize(("message", "parts"), BAD, ids=[message for message, _ in BAD])
def test_errors_name_what_is_wrong_in_one_line(message: str, parts: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Graph.of(**parts)
    assert "\n" not in str(caught.value)
