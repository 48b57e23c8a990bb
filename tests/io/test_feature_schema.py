"""The schema: what was fitted on one graph is applied to another, and differences are named."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

import ssge
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.schema import FeatureSchema

EDGES = pa.table({"source": ["a", "b", "c"], "target": ["b", "c", "a"], "km": [1.0, 2.0, 6.0]})
NODES = pa.table({"id": ["a", "b", "c"], "v": [1.0, None, 3.0], "k": ["m", "m", "n"], "flag": [True, False, True]})
NEW_EDGES = pa.table({"source": ["x"], "target": ["y"], "km": [5.0]})


@pytest.fixture
def fitted() -> Graph:
    return ssge.read_graph(
        EDGES, NODES, missing="impute", scale="standard", edge_columns=["km"], features=["table", "degree"]
    )


def test_round_trip(fitted: Graph) -> None:
    assert fitted.schema is not None
    again = FeatureSchema.model_validate_json(fitted.schema.model_dump_json())
    assert again == fitted.schema
    assert again.names == ("v", "v missing", "k=m", "k=n", "flag", "mean(km)", "degree")
    assert np.array_equal(ssge.read_graph(EDGES, NODES, like=again).features, fitted.features)
    assert len(again.names) == fitted.num_features


@pytest.mark.parametrize("holder", ["schema", "schema_", "itself"])
def test_new_data_get_the_old_encoding(fitted: Graph, holder: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    like: Any = fitted.schema if holder == "itself" else SimpleNamespace(**{holder: fitted.schema})
    nodes = pa.table({"extra": [0, 0], "k": ["new", "n"], "flag": [False, True], "v": [4.0, None], "id": ["x", "y"]})
    graph = ssge.read_graph(NEW_EDGES, nodes, like=like)
    # v was 1, 2 (filled in), 3 with mean 2 and deviation 1; km had means 3.5, 1.5, 4 with mean 3
    deviation = np.std([3.5, 1.5, 4.0])
    expected = [
        [2, 0, 0, 0, 0, 2 / deviation, np.log(2)],
        [0, 1, 0, 1, 1, 2 / deviation, np.log(2)],
    ]
    assert np.allclose(graph.features, expected)
    assert graph.schema == fitted.schema
    assert "extra" in caplog.text
    assert "1 rows have a level not seen before (['new'])" in caplog.text


def test_differences_are_named(fitted: Graph) -> None:
    nodes = pa.table({"id": ["x", "y"], "v": [4.0, 1.0], "k": ["m", "n"], "flag": [False, True]})

    def refused(message: str, table: Any = nodes, edges: Any = NEW_EDGES, **options: Any) -> None:
        with pytest.raises(InputError, match=message):
            ssge.read_graph(edges, table, like=fitted, **options)

    refused("nodes lacks columns that like expects: v, k", nodes.drop_columns(["v", "k"]))
    refused("column 'v': numbers expected, string found", nodes.set_column(1, "v", pa.array(["a", "b"])))
    refused("edge_columns.*'km'", edges=NEW_EDGES.drop_columns(["km"]))
    refused("scale is 'standard' in like; received 'none'", scale="none")
    refused("missing is 'impute' in like", missing="error")
    refused("features is .* in like", features="degree")
    refused("leave columns out", columns=["v"])
    refused("has no node features|lacks|like expects", None)
    with pytest.raises(InputError, match="like must be a FeatureSchema or hold one; int does not"):
        ssge.read_graph(NEW_EDGES, nodes, like=3)


def test_missing_values_where_none_were_allowed() -> None:
    like = ssge.read_graph(EDGES, NODES.drop_columns(["v"]))
    nodes = pa.table({"id": ["x", "y"], "k": ["m", None], "flag": [False, True]})
    with pytest.raises(InputError, match="row 2, column 'k': the value is missing"):
        ssge.read_graph(NEW_EDGES, nodes, like=like)


def test_matrices_must_be_as_wide() -> None:
    old = ssge.read_graph(Graph.of(edges=[[0, 1]], features=np.eye(2)))
    wide = Graph.of(edges=[[0, 1]], features=np.ones((2, 3)))
    with pytest.raises(InputError, match="2 numbers per row expected, 3 found"):
        ssge.read_graph(wide, like=old)
    with pytest.raises(InputError, match="like expects a feature matrix of 2 columns"):
        ssge.read_graph(EDGES, NODES, like=old)


def test_a_graph_keeps_its_schema_as_long_as_its_features(fitted: Graph) -> None:
    assert fitted.without_labels().schema == fitted.schema
    assert Graph.of(fitted, direction="both").schema == fitted.schema
    assert Graph.of(fitted, features=np.eye(3)).schema is None


@pytest.mark.parametrize("typed", [True, False])
def test_ids_keep_their_kind(tmp_path: Path, typed: bool) -> None:
    def table(name: str, **columns: list[Any]) -> Any:
        if typed:
            return pa.table(columns)
        rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (tmp_path / name).write_text("\n".join(rows) + "\n")
        return tmp_path / name

    integers = table("e.csv", source=[1, 2], target=[2, 3]), table("n.csv", id=[1, 2, 3], v=[1, 2, 3])
    text = table("f.csv", source=["1", "x7"], target=["x7", "3"]), table("m.csv", id=["1", "x7", "3"], v=[1, 2, 3])
    old = ssge.read_graph(*integers)
    assert old.schema is not None and old.schema.ids == "integer"
    assert ssge.read_graph(*integers, like=old).node_ids.tolist() == [1, 2, 3]
    where = "nodes, row 2" if typed else "m.csv, line 3"
    with pytest.raises(InputError, match=f"{where}, column 'id': ids were integers in .*; 'x7' is none"):
        ssge.read_graph(*text, like=old)
    digits = pa.table({"source": ["1", "2"], "target": ["2", "3"]}), pa.table({"id": ["1", "2", "3"], "v": [1, 2, 3]})
    assert ssge.read_graph(*digits, like=old).node_ids.tolist() == [1, 2, 3]

    old = ssge.read_graph(*text)
    assert old.schema is not None and old.schema.ids == "text"
    graph = ssge.read_graph(*integers, like=old)
    assert graph.node_ids.tolist() == ["1", "2", "3"] and graph.schema == old.schema
    forgetful = old.schema.model_copy(update={"ids": None})
    assert ssge.read_graph(*integers, like=forgetful).node_ids.tolist() == [1, 2, 3]


def test_ids_of_a_matrix_keep_their_kind() -> None:
    nodes = pa.table({"id": ["1", "b", "c"], "v": [1, 2, 3]})
    matrix = sp.csr_array(np.eye(3)[[1, 2, 0]])
    old = ssge.read_graph(matrix, nodes)
    later = ssge.read_graph(matrix, pa.table({"id": [1, 2, 3], "v": [1, 2, 3]}), like=old)
    assert later.node_ids.tolist() == ["1", "2", "3"]


def test_weights_stay_what_they_were(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    plain = pa.table({"source": ["a", "b"], "target": ["b", "c"]})
    heavy = plain.append_column("Minutes", [[2.0, 3.0]])
    usual = plain.append_column("weight", [[2.0, 3.0]])
    old = ssge.read_graph(heavy, weight="Minutes", features="degree")
    assert old.schema is not None and (old.schema.weighted, old.schema.weight) == (True, "Minutes")
    again = ssge.read_graph(heavy, like=old)
    assert np.array_equal(again.features, old.features) and again.weights is not None
    for table in (plain, usual):
        with pytest.raises(InputError, match="edges lacks the column 'Minutes', the weights in like; weight="):
            ssge.read_graph(table, like=old)
    assert ssge.read_graph(usual, like=old, weight="weight").weights is not None

    old = ssge.read_graph(plain, features="degree")
    assert old.schema is not None and (old.schema.weighted, old.schema.weight) == (False, None)
    caplog.clear()
    assert ssge.read_graph(usual, like=old).weights is None
    assert "column 'weight' is not used, as the graph of like has no weights" in caplog.text
    with pytest.raises(InputError, match="graph of like has no weights"):
        ssge.read_graph(usual, like=old, weight="weight")
    forgetful = old.schema.model_copy(update={"weighted": None})
    assert ssge.read_graph(usual, like=forgetful).weights is not None


def test_schemas_of_an_earlier_version_are_read() -> None:
    schema = FeatureSchema.model_validate_json('{"features": ["degree"], "names": ["degree"]}')
    assert (schema.ids, schema.weighted, schema.weight) == (None, None, None)
    assert ssge.read_graph(EDGES, like=schema).num_nodes == 3


def test_booleans_stay_booleans() -> None:
    like = ssge.read_graph(EDGES, NODES.select(["id", "flag"]))
    good = pa.table({"id": ["x", "y"], "flag": [0, 1]})
    assert ssge.read_graph(NEW_EDGES, good, like=like).features[:, 0].tolist() == [0, 1]
    with pytest.raises(InputError, match="nodes, row 2, column 'flag': a boolean, 0 or 1, expected, 7 found"):
        ssge.read_graph(NEW_EDGES, pa.table({"id": ["x", "y"], "flag": [0, 7]}), like=like)


def test_a_label_that_was_a_feature_stays_one() -> None:
    nodes = pa.table({"id": ["a", "b", "c"], "y": [0.0, 1.0, 0.0]})
    like = ssge.read_graph(EDGES, nodes, columns=["y"])
    again = ssge.read_graph(EDGES, nodes, like=like)
    assert again.labels is None and np.array_equal(again.features, like.features)


def test_without_nodes_the_columns_are_named(fitted: Graph) -> None:
    with pytest.raises(InputError, match="no node features: like needs the columns v, k, flag; give nodes="):
        ssge.read_graph(NEW_EDGES, like=fitted)


@pytest.mark.parametrize("value", [0.1, 1.1, 4.35, -7e6 / 3])
@pytest.mark.parametrize("n", [3, 6, 7, 60, 100, 1000])
def test_a_constant_column_has_no_deviation(value: float, n: int) -> None:
    ids = [f"n{i}" for i in range(n)]
    edges = pa.table({"source": ids[:-1], "target": ids[1:]})
    nodes = pa.table({"id": ids, "v": [value] * n, "u": np.linspace(value, value + 1e-3, n)})
    graph = ssge.read_graph(edges, nodes, scale="standard", missing="impute")
    assert graph.schema is not None
    assert graph.schema.columns[0].deviations == (1.0,)
    assert np.abs(graph.features[:, 0]).max() < 1e-6
    assert np.std(graph.features[:, 1], dtype=np.float64) == pytest.approx(1, rel=1e-3)


def test_a_constant_matrix_of_single_precision_has_no_deviation() -> None:
    constant = Graph.of(edges=[[0, 1]], features=np.full((1000, 2), 0.1, dtype=np.float32))
    graph = ssge.read_graph(constant, scale="standard")
    assert graph.schema is not None and graph.schema.columns[0].deviations == (1.0, 1.0)


@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_the_direction_stays_what_it_was(direction: Any) -> None:
    old = ssge.read_graph(EDGES, features="degree", direction=direction)
    assert old.schema is not None and old.schema.direction == direction
    again = ssge.read_graph(EDGES, like=old)
    assert np.array_equal(again.edges, old.edges) and np.array_equal(again.features, old.features)
    assert np.array_equal(ssge.read_graph(EDGES, like=old, direction=direction).edges, old.edges)
    other = "in" if direction == "out" else "out"
    with pytest.raises(InputError, match=f"direction is '{direction}' in like; received '{other}'"):
        ssge.read_graph(EDGES, like=old, direction=other)
    arranged = ssge.read_graph(old, features="clustering")  # its edges are turned round already, and stay
    assert np.array_equal(arranged.edges, old.edges) and arranged.schema is not None
    assert arranged.schema.direction is None
