"""Files and objects that hold a whole graph give the graph that was written."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import ssge
from graphs import ADJACENCY, PATH, WEIGHTS, X, dense
from ssge.errors import InputError
from ssge.graph import Graph

SYMMETRIC = np.maximum(ADJACENCY, ADJACENCY.T)
LABELS = np.array([0, 1, 1, 0])


def adjacency(kind: Any = sp.csr_array) -> Any:
    return kind(ADJACENCY)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_scipy_npz(tmp_path: Path, kind: Any) -> None:
    path = tmp_path / "a.npz"
    sp.save_npz(path, adjacency(kind))
    graph = ssge.read_graph(path, features="degree")
    assert np.array_equal(dense(graph), SYMMETRIC)
    assert np.array_equal(dense(ssge.read_graph(adjacency(kind), features="degree")), SYMMETRIC)
    directed = ssge.read_graph(path, features="degree", direction="in")
    assert np.array_equal(dense(directed), ADJACENCY.T)


def test_nodes_of_a_matrix(tmp_path: Path) -> None:
    nodes = pa.table({"id": ["p", "q", "r", "s"], "v": [1.0, 2.0, 3.0, 4.0], "label": ["a", "b", "b", "a"]})
    graph = ssge.read_graph(adjacency(), nodes)
    assert graph.node_ids.tolist() == ["p", "q", "r", "s"]
    assert graph.features[:, 0].tolist() == [1, 2, 3, 4]
    assert graph.class_names == ("a", "b")
    with pytest.raises(InputError, match="nodes must have 4 rows, one per node of edges; received 3"):
        ssge.read_graph(adjacency(), nodes.slice(1))
    with pytest.raises(InputError, match="row 2, column 'id': the id 'p' occurs more than once"):
        ssge.read_graph(adjacency(), nodes.take([0, 0, 1, 2]))


@pytest.mark.parametrize("sparse", [True, False])
def test_gnn_benchmark_npz(tmp_path: Path, sparse: bool) -> None:
    a, x = adjacency(), sp.csr_array(X)
    arrays = {f"adj_{key}": getattr(a, key) for key in ("data", "indices", "indptr", "shape")}
    if sparse:
        arrays |= {f"attr_{key}": getattr(x, key) for key in ("data", "indices", "indptr", "shape")}
    else:
        arrays["attr_matrix"] = X
    names = np.array([{"a": 1}], dtype=object)  # a pickle inside, which must not be opened
    path = tmp_path / "g.npz"
    np.savez_compressed(path, labels=LABELS, node_names=names, **arrays)
    graph = ssge.read_graph(path)
    assert np.array_equal(dense(graph), SYMMETRIC)
    assert np.array_equal(np.asarray(graph.features), X.astype(np.float32))
    assert graph.labels is not None
    assert np.array_equal(graph.labels, LABELS)
    assert graph.schema is not None
    assert graph.schema.names == ("x[0]", "x[1]")


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_matrix_market(tmp_path: Path, symmetry: str) -> None:
    matrix = ADJACENCY if symmetry == "general" else SYMMETRIC
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, sp.coo_array(matrix), comment="made by hand", symmetry=symmetry)
    assert np.array_equal(dense(ssge.read_graph(path, features="degree")), SYMMETRIC)
    packed = tmp_path / "b.mtx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert np.array_equal(dense(ssge.read_graph(packed, features="degree")), SYMMETRIC)


def network(directed: bool = False) -> Any:
    graph = nx.DiGraph() if directed else nx.Graph()
    for i, name in enumerate("pqrs"):
        graph.add_node(name, height=float(X[i, 0]), depth=float(X[i, 1]))
    for (u, v), weight in zip(PATH.T, WEIGHTS, strict=True):
        graph.add_edge("pqrs"[u], "pqrs"[v], weight=float(weight), km=2 * float(weight))
    return graph


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", ["graphml", "gml", "graphml.gz", "object"])
def test_attributed_graphs(tmp_path: Path, kind: str, directed: bool) -> None:
    original = network(directed)
    source: Any = original
    if kind != "object":
        source = tmp_path / f"g.{kind}"
        (nx.write_gml if kind == "gml" else nx.write_graphml)(original, source)
    graph = ssge.read_graph(source)
    assert graph.node_ids.tolist() == list("pqrs")
    assert np.array_equal(graph.features, X.astype(np.float32))
    assert np.array_equal(dense(graph), SYMMETRIC)
    if directed:
        assert np.array_equal(dense(ssge.read_graph(source, direction="in")), ADJACENCY.T)
    graph = ssge.read_graph(source, columns=["depth"], edge_columns={"km": "sum"}, ignore=())
    assert graph.schema is not None
    assert graph.schema.names == ("depth", "sum(km)")
    assert graph.features[:, 1].tolist() == [2, 6, 12, 8]
    assert nx.utils.graphs_equal(original, network(directed))


def test_networkx_with_vectors_and_other_ids() -> None:
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {i: X[i] for i in range(4)}, "x")
    nx.set_node_attributes(graph, dict(enumerate(LABELS.tolist())), "y")
    read = ssge.read_graph(graph)
    assert np.array_equal(read.features, X.astype(np.float32))
    assert read.labels is not None
    assert np.array_equal(read.labels, LABELS)
    with pytest.raises(InputError, match="all integers or all text"):
        ssge.read_graph(nx.Graph([((0, 1), (1, 2))]), features="degree")


@pytest.mark.parametrize("form", ["data", "tuple", "dict", "object"])
def test_pyg_data(tmp_path: Path, form: str) -> None:
    data = Data(
        x=torch.tensor(X), edge_index=torch.tensor(PATH), y=torch.tensor(LABELS), edge_weight=torch.tensor(WEIGHTS)
    )
    path = tmp_path / "d.pt"
    torch.save({"data": data, "tuple": (data.to_dict(), None), "dict": data.to_dict(), "object": data}[form], path)
    graph = ssge.read_graph(data if form == "object" else path)
    assert np.array_equal(dense(graph), SYMMETRIC)
    assert np.array_equal(graph.features, X.astype(np.float32))
    assert graph.labels is not None
    assert np.array_equal(graph.labels, LABELS)


class Trap:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('a pickle was run')",)


def test_no_code_of_a_torch_file_runs(tmp_path: Path) -> None:
    path = tmp_path / "d.pt"
    torch.save({"edge_index": Trap()}, path)
    with pytest.raises(InputError, match="holds more than a PyG Data"):
        ssge.read_graph(path)
    torch.save([], path)
    with pytest.raises(InputError):
        ssge.read_graph(path)


@pytest.mark.parametrize("raw", ["", "raw"])
def test_ogb_folder(tmp_path: Path, raw: str) -> None:
    folder = tmp_path / raw
    folder.mkdir(exist_ok=True)

    def write(name: str, rows: Any) -> None:
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))

    write("edge", PATH.T)
    write("num-node-list", [[4]])
    write("node-feat", X)
    write("node-label", LABELS[:, None])
    graph = ssge.read_graph(tmp_path)
    assert np.array_equal(dense(graph), SYMMETRIC > 0)
    assert np.array_equal(graph.features, X.astype(np.float32))
    assert graph.labels is not None
    assert np.array_equal(graph.labels, LABELS)
    write("node-feat", X[1:])
    with pytest.raises(InputError, match=r"node-feat.csv.gz must have 4 rows; received 3"):
        ssge.read_graph(tmp_path)


def test_a_graph_with_more_features() -> None:
    graph = Graph.of(edges=PATH, features=X, direction="in")
    read = ssge.read_graph(graph, features=["table", "clustering"])
    assert np.array_equal(read.edges, graph.edges)
    assert np.array_equal(read.features[:, :2], graph.features)


def test_real_npz(data_root: Path) -> None:
    path = data_root / "Computers" / "raw" / "amazon_electronics_computers.npz"
    graph, truth = ssge.read_graph(path), ssge.load_dataset("computer", root=data_root)
    assert np.array_equal(graph.edges, truth.edges)
    assert graph.labels is not None
    assert truth.labels is not None
    assert np.array_equal(graph.labels, truth.labels)
    assert abs(sp.csr_array(graph.features) - sp.csr_array(truth.features)).max() == 0


def test_real_ogb_folder(data_root: Path) -> None:
    graph = ssge.read_graph(data_root / "ogbn_arxiv", features="degree", direction="in")
    assert (graph.num_nodes, graph.num_edges, graph.num_classes) == (169_343, 1_166_243, 40)


@pytest.mark.parametrize("file", [False, True])
def test_attributes_named_like_the_ends_are_not_lost_in_silence(
    tmp_path: Path, file: bool, caplog: pytest.LogCaptureFixture
) -> None:
    graph: Any = network()
    nx.set_node_attributes(graph, {"p": 7, "q": 8, "r": 9, "s": 10}, "id")
    nx.set_edge_attributes(graph, "phone book", "source")
    if file:
        nx.write_graphml(graph, tmp_path / "g.graphml")
        graph = tmp_path / "g.graphml"
    ssge.read_graph(graph)
    assert "node attribute 'id' is left out" in caplog.text
    assert "edge attribute 'source' is left out" in caplog.text


@pytest.mark.parametrize("form", ["object", "file", "dict"])
def test_isolated_nodes_of_pyg_data_without_features(tmp_path: Path, form: str) -> None:
    data: Any = Data(edge_index=torch.tensor(PATH), num_nodes=9)
    if form != "object":
        torch.save(data if form == "file" else data.to_dict(), tmp_path / "d.pt")
    graph = ssge.read_graph(data if form == "object" else tmp_path / "d.pt", features="degree")
    assert graph.num_nodes == 9


@pytest.mark.parametrize("direction", ["both", "in", "out"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_degrees_are_those_of_the_table(direction: Any, symmetric: bool) -> None:
    ends = {"source": ["a", "a", "b"], "target": ["b", "c", "c"]}
    if symmetric:
        ends = {"source": ends["source"] + ends["target"], "target": ends["target"] + ends["source"]}
    graph = ssge.read_graph(pa.table(ends), features="degree", direction=direction)
    assert graph.schema is not None
    if direction == "both":
        assert graph.schema.names == ("degree",)
        return
    assert graph.schema.names == ("in_degree", "out_degree")
    expected = [[ends["target"].count(node), ends["source"].count(node)] for node in "abc"]
    np.testing.assert_allclose(graph.features, np.log1p(expected), rtol=1e-6)
    undirected = ssge.read_graph(nx.path_graph(3), features="degree", direction=direction)
    assert undirected.schema is not None and undirected.schema.names == ("degree",)


@pytest.mark.parametrize("value", [1e300, np.inf, np.nan])
def test_the_validator_sees_the_final_features(tmp_path: Path, value: float) -> None:
    """float64 holds 1e300, the float32 features of a graph do not."""
    x = sp.csr_array(np.diag([1.0, 1.0, value, 1.0]))
    arrays = {f"adj_{key}": getattr(adjacency(), key) for key in ("data", "indices", "indptr", "shape")}
    arrays |= {f"attr_{key}": getattr(x, key) for key in ("data", "indices", "indptr", "shape")}
    path = tmp_path / "g.npz"
    np.savez_compressed(path, **arrays)
    found = "nan" if np.isnan(value) else "inf"
    with pytest.raises(InputError, match=rf"g\.npz: features must be finite; row 2, column 2 is {found} in float32"):
        ssge.read_graph(path)
