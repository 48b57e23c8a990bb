from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData

from graphs import ADJACENCY, PATH, WEIGHTS, X, dense
from ssge.errors import InputError
from ssge.foreign import take_apart
from ssge.graph import Graph, GraphInfo


class Columns(Mapping[str, Any]):
    """A mapping that is no dict, as DGL's views of node and edge data are."""

    def __init__(self, **columns: Any) -> None:
        self.columns = columns

    def __getitem__(self, key: str) -> Any:
        return self.columns[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


class DGLStandIn:
    """What `Graph.of` uses of a DGL graph."""

    def __init__(self, n: int, edges: Any, ndata: Mapping[str, Any], edata: Mapping[str, Any]) -> None:
        self.ndata, self.edata = ndata, edata
        self._n, self._edges = n, edges

        self.ntypes, self.etypes = ["_N"], ["_E"]

    def num_nodes(self) -> int:
        return self._n

    def edges(self) -> Any:
        return tuple(self._edges)


def networkx_path(kind: type[nx.Graph] = nx.Graph) -> nx.Graph:
    graph = kind()
    for node, row in zip("abcd", X, strict=True):
        graph.add_node(node, x=row.tolist(), y=int(row[0] > 0), age=float(row.sum()))
    for i, j, weight in zip(*PATH, WEIGHTS, strict=True):
        graph.add_edge("abcd"[i], "abcd"[j], weight=weight)
    return graph


def pyg_path() -> Data:
    return Data(x=torch.tensor(X), edge_index=torch.tensor(PATH), edge_weight=torch.tensor(WEIGHTS), y=torch.arange(4))


def dgl_path() -> DGLStandIn:
    columns = Columns(feat=torch.tensor(X), label=torch.arange(4))
    return DGLStandIn(4, torch.tensor(PATH), columns, Columns(weight=torch.tensor(WEIGHTS)))


def hetero_dgl() -> DGLStandIn:
    graph = dgl_path()
    graph.ntypes = ["author", "paper"]
    return graph


SOURCES: dict[str, tuple[Any, dict[str, Any]]] = {
    "pyg": (pyg_path(), {}),
    "dgl": (dgl_path(), {}),
    "networkx": (networkx_path(), {}),
    "networkx directed": (networkx_path(nx.DiGraph), {}),
    "networkx multi": (networkx_path(nx.MultiGraph), {}),
    "arrays": (None, {"edges": PATH, "weights": WEIGHTS, "features": X}),
    "tensors": (
        None,
        {"edges": torch.tensor(PATH), "weights": torch.tensor(WEIGHTS), "features": torch.tensor(X)},
    ),
    "lists": (None, {"edges": PATH.T.tolist(), "weights": WEIGHTS.tolist(), "features": X.tolist()}),
    "pandas": (
        None,
        {"edges": pd.DataFrame(PATH.T), "weights": pd.Series(WEIGHTS), "features": pd.DataFrame(X)},
    ),
    "polars": (
        None,
        {"edges": pl.DataFrame(PATH.T), "weights": pl.Series(WEIGHTS), "features": pl.DataFrame(X)},
    ),
    "sparse tensor": (None, {"edges": PATH, "weights": WEIGHTS, "features": torch.tensor(X).to_sparse()}),
} | {
    f"{kind.__name__}": (kind((WEIGHTS, tuple(PATH)), shape=(4, 4)), {"features": X})
    for kind in (sp.coo_array, sp.coo_matrix, sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)
}
SOURCES |= {
    "dense": (None, {"adjacency": ADJACENCY, "features": sp.csr_matrix(X)}),
    "sparse tensor as adjacency": (None, {"adjacency": torch.tensor(ADJACENCY).to_sparse(), "features": X}),
    "lil": (sp.lil_array(ADJACENCY), {"features": X.astype(object)}),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_graph(name: str) -> None:
    source, parts = SOURCES[name]
    graph = Graph.of(source, **parts)
    np.testing.assert_array_equal(dense(graph), ADJACENCY + ADJACENCY.T)
    features = graph.features.toarray() if sp.issparse(graph.features) else graph.features
    assert graph.features.dtype == np.float32 and graph.edges.dtype == np.int64
    np.testing.assert_array_equal(features, X)
    assert graph.node_ids.tolist() == (list("abcd") if "networkx" in name else [0, 1, 2, 3])
    assert graph.info == GraphInfo(4, 6, 2)


@pytest.mark.parametrize("name", SOURCES)
def test_no_source_is_changed(name: str) -> None:
    source, parts = SOURCES[name]
    before = snapshot((source, parts))
    graph = Graph.of(source, **parts)
    assert snapshot((source, parts)) == before
    graph.edges[:] = 0
    assert snapshot((source, parts)) == before


def snapshot(value: Any) -> Any:
    """Return a value that compares equal to another only if all their contents do."""
    if isinstance(value, dict | tuple | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [(key, snapshot(item)) for key, item in items]
    if isinstance(value, nx.Graph):
        return snapshot([dict(value.nodes(data=True)), list(value.edges(data=True))])
    if isinstance(value, Data):
        return snapshot(value.to_dict())
    if isinstance(value, DGLStandIn):
        return snapshot([value.num_nodes(), value.edges(), dict(value.ndata), dict(value.edata)])
    if isinstance(value, torch.Tensor) and value.layout != torch.strided:
        value = value.to_sparse_coo().coalesce()
        return snapshot([value.indices(), value.values()])
    if sp.issparse(value):
        parts = [vars(value)[key] for key in sorted(vars(value)) if isinstance(vars(value)[key], np.ndarray)]
        return [value.format, value.dtype, snapshot(parts), snapshot(list(vars(value).get("coords", ())))]
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        return (array.shape, str(array.dtype), array.tolist() if array.dtype == object else array.tobytes())
    return value


def test_duplicates_in_sparse_input_are_added_in_a_copy() -> None:
    noncanonical = sp.csr_array((np.array([3.0, 1.0, 2.0]), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2))
    before = snapshot(noncanonical)
    graph = Graph.of(adjacency=noncanonical, features=noncanonical)
    assert snapshot(noncanonical) == before
    np.testing.assert_array_equal(graph.features.toarray(), [[1, 5], [0, 0]])
    np.testing.assert_array_equal(dense(graph), [[0, 5], [5, 0]])


def test_two_by_two_edges() -> None:
    pairs = [(0, 1), (2, 3)]
    for edges in (pairs, pd.DataFrame(pairs), np.array(pairs).T):
        np.testing.assert_array_equal(Graph.of(edges=edges, features=X).edges, [[1, 0, 3, 2], [0, 1, 2, 3]])


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b", "c", "d"],
        [(0, 0), (0, 1), (1, 0), (1, 1)],
        ["a", 1, (2, 3), frozenset({4})],
        [40, 30, 20, 2**60],
        [2**64, 1, 2, 3],
        pd.Series(["a", "b", "c", "d"]),
        np.array([2**63 + 1, 5, 6, 7], dtype=np.uint64),
        torch.tensor([9, 8, 7, 6]),
    ],
    ids=str,
)
def test_ids_are_kept_and_name_the_ends_of_edges(ids: Any) -> None:
    names = ids.tolist() if hasattr(ids, "tolist") else ids
    edges = [(names[i], names[j]) for i, j in PATH.T]
    graph = Graph.of(edges=edges, features=X, node_ids=ids)
    assert graph.node_ids.tolist() == names
    assert [type(i) for i in graph.node_ids.tolist()] == [type(i) for i in names]
    np.testing.assert_array_equal(dense(graph), (ADJACENCY + ADJACENCY.T > 0))
    if hasattr(ids, "shape"):
        array = np.asarray(ids)[PATH]
        np.testing.assert_array_equal(Graph.of(edges=array, features=X, node_ids=ids).edges, graph.edges)


def test_large_ids_are_not_rounded() -> None:
    ids = np.array([2**60 + 3, 2**60, 2**60 + 1, 2**60 + 2])
    for kind in (np.int64, np.uint64):
        graph = Graph.of(edges=ids[PATH].astype(kind), features=X, node_ids=ids)
        np.testing.assert_array_equal(dense(graph), (ADJACENCY + ADJACENCY.T > 0))


def test_networkx_ids_of_any_kind() -> None:
    grid = nx.grid_2d_graph(3, 3)
    graph = Graph.of(grid, features=np.eye(9))
    assert graph.node_ids.tolist() == list(grid)
    np.testing.assert_array_equal(dense(graph), nx.to_numpy_array(grid))
    assert Graph.of(nx.path_graph(3), features=np.eye(3)).node_ids.dtype == np.int64


def test_parallel_edges_of_a_multigraph_are_added() -> None:
    graph = nx.MultiGraph([("a", "b", {"weight": 2.0}), ("b", "a", {"weight": 3.0}), ("b", "c", {"weight": 1.0})])
    np.testing.assert_array_equal(dense(Graph.of(graph, features=np.eye(3))), nx.to_numpy_array(graph))


@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_undirected_edges_go_both_ways_and_directed_ones_as_asked(direction: Any) -> None:
    undirected = Graph.of(networkx_path(), direction=direction)
    np.testing.assert_array_equal(dense(undirected), nx.to_numpy_array(networkx_path()))
    directed = Graph.of(networkx_path(nx.DiGraph), direction=direction)
    np.testing.assert_array_equal(
        dense(directed), {"both": ADJACENCY + ADJACENCY.T, "in": ADJACENCY.T, "out": ADJACENCY}[direction]
    )


def test_attributes_are_chosen_by_name() -> None:
    source = networkx_path()
    np.testing.assert_array_equal(Graph.of(source, features="age").features[:, 0], X.sum(1))
    both = Graph.of(source, features=["age", "x"]).features
    np.testing.assert_array_equal(both, np.column_stack([X.sum(1), X]))
    nx.set_edge_attributes(source, 7.0, "strength")
    assert set(Graph.of(source, weights="strength").weights) == {7.0}
    data = pyg_path()
    data.pe = torch.tensor(X[:, :1])
    data.edge_attr = torch.tensor(WEIGHTS[:, None] * 2)
    graph = Graph.of(data, features=("pe", "x"), weights="edge_attr")
    assert graph.num_features == 3 and graph.weights.max() == 8
    assert Graph.of(dgl_path(), features="feat").num_features == 2
    assert Graph.of(data, features=np.eye(4)).num_features == 4, "what is given comes before what is found"


def test_labels_are_found(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ssge")
    assert Graph.of(networkx_path()).labels.tolist() == [1, 0, 1, 1]
    assert caplog.records == [], "an undirected graph with weights and labels needs no repair"
    assert Graph.of(pyg_path()).labels.tolist() == Graph.of(dgl_path()).labels.tolist() == [0, 1, 2, 3]
    partly = networkx_path()
    del partly.nodes["b"]["y"]
    assert Graph.of(partly).labels is None


@pytest.mark.parametrize("y", [torch.tensor([1]), torch.eye(4), torch.tensor([-1, 0, 0, 1])], ids=str)
def test_labels_that_nobody_asked_for_do_not_stand_in_the_way(y: Any, caplog: pytest.LogCaptureFixture) -> None:
    data = pyg_path()
    data.y = y
    assert Graph.of(data).labels is None
    assert "labels found in the graph are left out" in caplog.text
    with pytest.raises(InputError, match=r"^labels must "):
        Graph.of(pyg_path(), labels=y)


def odd_networkx(change: str) -> nx.Graph:
    graph = networkx_path()
    if change == "no feature":
        del graph.nodes["c"]["x"]
    elif change == "long feature":
        graph.nodes["c"]["x"] = [1, 2, 3]
    else:
        del graph.edges["b", "c"]["weight"]
    return graph


E0 = {"edges": PATH, "features": X}
BAD: list[tuple[str, dict[str, Any]]] = [
    ("source must be a Graph, .*; received ndarray", {"source": X}),
    ("source must be a Graph, .*; received HeteroData", {"source": HeteroData()}),
    ("source must be a Graph, .*; received DataFrame", {"source": pd.DataFrame({"edge_index": [1]})}),
    ("one type of nodes and of edges", {"source": hetero_dgl()}),
    ("no node features", {"source": nx.path_graph(3)}),
    ("no node features", {"source": DGLStandIn(4, PATH, {}, {})}),
    ("no node features", {"source": Data(edge_index=torch.tensor(PATH))}),
    ("no edges", {"source": Data(x=torch.tensor(X))}),
    ("at least 1 node; received 0", {"source": nx.Graph()}),
    (
        "features names the attribute 'height', which no node has",
        {"source": networkx_path(), "features": "height"},
    ),
    (
        "features names the attribute 'height', which no node has",
        {"source": pyg_path(), "features": ["x", "height"]},
    ),
    ("weights names the attribute 'w', which no edge has", {"source": networkx_path(), "weights": "w"}),
    ("weights names the attribute 'w', which no edge has", {"source": pyg_path(), "weights": "w"}),
    ("weights names the attribute 'w', which no edge has", {"source": dgl_path(), "weights": "w"}),
    ("'x' must be on every node; 'c' has none", {"source": odd_networkx("no feature")}),
    (
        "'x' must be as long on every node \\(2\\); 'c' has shape \\(3,\\)",
        {"source": odd_networkx("long feature")},
    ),
    ("'weight' must be on every edge; \\('b', 'c'\\) has none", {"source": odd_networkx("no weight")}),
    ("one row per node \\(4\\); received 5", {"source": networkx_path(), "features": np.eye(5)}),
    ("one row per node \\(4\\); received 5", {"source": dgl_path(), "features": np.eye(5)}),
    ("one row per node \\(4\\); received 5", {"source": pyg_path(), "features": np.eye(5)}),
    (
        "adjacency must be a square matrix n x n; received shape \\(4, 3\\)",
        {"adjacency": ADJACENCY[:, :3], "features": X},
    ),
    ("adjacency must hold real numbers", {"adjacency": sp.csr_array(ADJACENCY * 1j), "features": X}),
    ("edges must have shape 2 x m or m x 2; received \\(3, 3\\)", E0 | {"edges": np.eye(3)}),
    ("edges must be pairs of nodes", E0 | {"edges": [(0, 1), (1, 2, 3)]}),
    ("edges must name nodes among node_ids; 3 is not", E0 | {"node_ids": [0, 1, 2, 4]}),
    ("edges must name nodes among node_ids; 'z' is not", E0 | {"node_ids": "abcd", "edges": [("a", "z")]}),
    ("node_ids must be unique; 1 occurs more than once", E0 | {"node_ids": [0, 1, 1, 2]}),
    ("node_ids must be hashable", E0 | {"node_ids": [[0], [1], [2], [3]]}),
    ("node_ids must be one id per node; received shape \\(2, 2\\)", E0 | {"node_ids": np.eye(2)}),
]


@pytest.mark.parametrize(("message", "parts"), BAD, ids=[message for message, _ in BAD])
def test_errors_name_what_is_wrong_in_one_line(message: str, parts: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Graph.of(**parts)
    assert "\n" not in str(caught.value)


def test_pyg_size_only_where_it_is_stored() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert take_apart(Data(edge_index=edges)).num_nodes is None
        assert take_apart(Data(edge_index=edges, num_nodes=5)).num_nodes == 5
        assert take_apart(Data(edge_index=edges, x=torch.eye(4))).num_nodes == 4
    with pytest.raises(InputError, match=r"one row per node \(5\); received 4"):
        Graph.of(Data(edge_index=edges, num_nodes=5, x=torch.eye(4)))
