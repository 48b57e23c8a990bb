"""Graphs in the wrong place: what was meant is done where it is clear, and said in one line where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from torch_geometric.data import HeteroData

import ssge
from ssge.errors import InputError, SSGEError
from ssge.experiments.sources import open_graph

N = 40
RNG = np.random.default_rng(0)
ENDS = RNG.integers(N, size=(2, 160))
EDGES = pd.DataFrame({"source": ENDS[0], "target": ENDS[1]})
NODES = pd.DataFrame({"id": np.arange(N), "age": RNG.normal(size=N), "size": RNG.normal(size=N)})


def small() -> Any:
    return ssge.SSGE(widths=(6, 4), epochs=2, random_state=0)


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return small().fit_transform(ssge.read_graph(EDGES, NODES))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "paths", "text"])
def test_tables_by_name_are_read(kind: str, expected: np.ndarray, tmp_path: Path) -> None:
    edges: Any = EDGES
    nodes: Any = NODES
    if kind == "polars":
        edges, nodes = pl.from_pandas(EDGES), pl.from_pandas(NODES)
    elif kind == "pyarrow":
        edges, nodes = pa.Table.from_pandas(EDGES), pa.Table.from_pandas(NODES)
    elif kind in ("paths", "text"):
        edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
        EDGES.to_csv(edges, index=False)
        NODES.to_csv(nodes, index=False)
    if kind == "text":
        edges, nodes = str(edges), str(nodes)
    model = small().fit(edges, nodes=nodes)
    np.testing.assert_allclose(model.embedding_, expected, atol=1e-6)
    assert model.schema_.names == ("age", "size")
    np.testing.assert_allclose(model.transform(edges, nodes=nodes), expected, atol=1e-6)
    np.testing.assert_allclose(small().fit_transform(edges, nodes=nodes), expected, atol=1e-6)


def test_another_table_is_read_as_the_first_one() -> None:
    nodes = NODES.assign(plan=np.where(np.arange(N) % 2, "free", "paid"))
    model = small().fit(EDGES, nodes=nodes)
    other = nodes.assign(plan="free")[["plan", "size", "age", "id"]]
    assert model.transform(EDGES, nodes=other).shape == (N, 4)
    with pytest.raises(InputError, match="lacks columns that like expects: plan"):
        model.transform(EDGES, nodes=NODES)


def test_a_path_of_a_whole_graph_is_read(tmp_path: Path) -> None:
    network = nx.from_pandas_edgelist(EDGES)
    nx.set_node_attributes(network, {node: float(node % 7) for node in network}, "v")
    nx.write_graphml(network, tmp_path / "graph.graphml")
    model = small().fit(str(tmp_path / "graph.graphml"))
    assert model.embedding_.shape == (len(network), 4) and model.schema_.names == ("v",)
    np.testing.assert_array_equal(model.transform(tmp_path / "graph.graphml"), model.embedding_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((EDGES,), r"looks like a table of edges \(source, target\).*fit\(X, nodes=nodes\).*features='structural'"),
        ((EDGES.astype(str).set_axis(["a", "b"], axis=1),), r"looks like a table of edges \(a, b\)"),
        ((pl.from_pandas(EDGES).rename({"source": "From", "target": "To"}),), r"table of edges \(From, To\)"),
        ((pa.Table.from_pandas(EDGES),), r"table of edges \(source, target\)"),
        ((EDGES.set_axis(["a", "b"], axis=1),), r"two columns of the same integers.*as floats"),
        ((EDGES.to_numpy(),), "two columns of the same integers"),
        ((ENDS,), r"looks like an edge_index \(2 x 160 integers\).*Graph\.of\(edges=X, features=\.\.\.\)"),
        ((torch.from_numpy(ENDS),), "looks like an edge_index"),
        ((list(zip(*ENDS.tolist(), strict=True)),), "looks like a list of pairs"),
        ((EDGES, NODES), r"fit\(edges, nodes=nodes\)"),
        (("edges.csv", "nodes.csv"), r"fit\(edges, nodes=nodes\)"),
        (("nowhere.csv",), r"No such file: nowhere\.csv"),
        (("cora",), r"ssge\.load_dataset\('cora'\)"),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_one_line(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        small().fit(*given)
    assert "\n" not in str(caught.value)
    if len(given) == 1:
        with pytest.raises((InputError, ValueError), match=message):
            small().fit(NODES[["age", "size"]].assign(more=1.0)).transform(*given)


@pytest.mark.parametrize("scale", [1e200, 1e38, 1e-200])
def test_features_beyond_float32_are_one_line(scale: float) -> None:
    with pytest.raises(SSGEError, match=r"whose distances are finite|not finite|zero everywhere") as caught:
        small().fit(RNG.normal(size=(N, 3)) * scale)
    assert "\n" not in str(caught.value)


def test_nodes_go_with_edges() -> None:
    for X in (ssge.read_graph(EDGES, NODES), NODES[["age", "size"]].to_numpy()):
        with pytest.raises(InputError, match="nodes is a table that goes with a table of edges"):
            small().fit(X, nodes=NODES)


def test_features_are_features() -> None:
    """Integers that repeat, two rows of floats and frames of labels go on as before."""
    counts = RNG.integers(9, size=(N, 2))
    assert small().fit_transform(counts).shape == (N, 4)
    assert small().fit_transform(pd.DataFrame(counts), NODES[["id", "age"]]).shape == (N, 4)
    assert small().fit_transform(RNG.normal(size=(2, 9))).shape == (2, 4)
    assert small().fit_transform(EDGES.to_numpy().astype(float)).shape == (160, 4)
    features = EDGES.set_axis(["width", "height"], axis=1)
    assert small().fit_transform(features, adjacency=np.eye(160)).shape == (160, 4)


def test_folds_of_a_graph_are_answered_with_the_way_that_works() -> None:
    graph, labels = ssge.read_graph(EDGES, NODES), np.arange(N) % 2
    pipeline = make_pipeline(small(), LogisticRegression())
    for work in (
        lambda: cross_val_score(pipeline, graph, labels),
        lambda: GridSearchCV(pipeline, {"ssge__epochs": [1, 2]}).fit(graph, labels),
    ):
        with pytest.raises(InputError, match=r"embed it first.*cross_val_score\(classifier, .*fit_transform\(graph\)"):
            work()
    assert cross_val_score(LogisticRegression(), small().fit_transform(graph), labels).shape == (5,)


def test_a_graph_of_several_types_is_refused() -> None:
    with pytest.raises(InputError, match=r"several types of nodes or edges \(HeteroData\).*to_homogeneous"):
        small().fit(HeteroData())


def test_a_database_without_its_tables_is_named(tmp_path: Path) -> None:
    path = tmp_path / "flights.db"
    path.write_bytes(bytes(8) + b"DUCK" + bytes(4084))
    with pytest.raises(InputError, match=r"is a DuckDB database: give duckdb:///.*flights\.db\?edges=TABLE"):
        open_graph(str(path))


def test_a_wrong_key_of_a_recipe_is_named(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('method = "ssge"\ndataset = "karate"\nprotcol = "quick"\n')
    with pytest.raises(InputError, match=r"not a recipe: protcol: .*its keys are method, dataset, protocol"):
        ssge.GraphEmbedder(recipe=str(path)).fit(EDGES, nodes=NODES)
