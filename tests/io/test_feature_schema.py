"""The schema: what was fitted on one graph is applied to another, and differences are named."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

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
    with pytest.raises(InputError, match="2 numbers a row expected, 3 found"):
        ssge.read_graph(wide, like=old)
    with pytest.raises(InputError, match="like expects a feature matrix of 2 columns"):
        ssge.read_graph(EDGES, NODES, like=old)


def test_a_graph_keeps_its_schema_as_long_as_its_features(fitted: Graph) -> None:
    assert fitted.without_labels().schema == fitted.schema
    assert Graph.of(fitted, direction="both").schema == fitted.schema
    assert Graph.of(fitted, features=np.eye(3)).schema is None
