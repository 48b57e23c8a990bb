"""Edge and node tables: every kind of file and frame gives the graph that was written."""

from __future__ import annotations

import dataclasses
import gzip
import inspect
import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import ssge
from graphs import dense
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.options import AGGREGATIONS, ReadOptions

EDGES = {"source": ["a", "b", "c", "a"], "target": ["b", "c", "a", "d"], "weight": [1.0, 2.0, 0.5, 4.0]}
NODES = {"id": ["d", "c", "b", "a", "z"], "age": [4.0, 3.0, 2.0, 1.0, 0.0], "group": ["x", "x", "y", "y", "y"]}
TRUTH = np.zeros((5, 5))  # in the order of NODES
for _s, _t, _w in zip(*EDGES.values(), strict=True):
    _i, _j = NODES["id"].index(_s), NODES["id"].index(_t)
    TRUTH[_i, _j] = TRUTH[_j, _i] = _w
FEATURES = np.array([[4, 1, 0], [3, 1, 0], [2, 0, 1], [1, 0, 1], [0, 0, 1]], dtype=np.float32)


def csv_text(table: dict[str, list[Any]], delimiter: str = ",", header: bool = True) -> str:
    rows = [list(map(str, row)) for row in zip(*table.values(), strict=True)]
    return "".join(delimiter.join(row) + "\n" for row in ([list(table)] if header else []) + rows)


def write(path: Path, table: dict[str, list[Any]]) -> Path:
    """Write a table in the format that the name of the file says."""
    endings = path.name.split(".", 1)[1]
    if endings == "parquet":
        pq.write_table(pa.table(table), path)
    elif endings == "parts":
        path.mkdir()
        for i in range(2):
            pq.write_table(pa.table(table).slice(2 * i, 2 if i == 0 else 9), path / f"part-{i}.parquet")
    else:
        delimiter = {"tsv": "\t", "txt": "  ", "ssv": ";", "psv": "|"}.get(endings.split(".")[0], ",")
        data = csv_text(table, delimiter).encode()
        if endings.endswith(".gz"):
            data = gzip.compress(data)
        if endings.endswith(".zst"):
            data = pa.Codec("zstd").compress(data, asbytes=True)
        path.write_bytes(data)
    return path


def check(graph: Graph) -> None:
    assert graph.node_ids.tolist() == NODES["id"]
    assert np.array_equal(dense(graph), TRUTH)
    assert np.array_equal(graph.features, FEATURES)
    assert graph.schema is not None
    assert graph.schema.names == ("age", "group=x", "group=y")


@pytest.mark.parametrize("end", ["csv", "tsv", "txt", "ssv", "psv", "csv.gz", "tsv.zst", "parquet", "parts"])
def test_tables_in_files(tmp_path: Path, end: str) -> None:
    graph = ssge.read_graph(write(tmp_path / f"links.{end}", EDGES), write(tmp_path / f"people.{end}", NODES))
    check(graph)
    assert graph.name == "links"


def test_gzip_in_several_members(tmp_path: Path) -> None:
    text = csv_text(EDGES).encode()
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(gzip.compress(text[:30]) + gzip.compress(text[30:]))
    check(ssge.read_graph(path, pa.table(NODES)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_in_memory(frame: Any) -> None:
    edges, nodes = frame(EDGES), frame(NODES)
    check(ssge.read_graph(edges, nodes))
    assert list(nodes[nodes.columns[0]] if frame is not pa.table else nodes["id"].to_pylist()) == NODES["id"]


def test_pandas_index_and_categories() -> None:
    nodes = pd.DataFrame(NODES).set_index("id")
    check(ssge.read_graph(pd.DataFrame(EDGES, index=[7, 8, 9, 3]), nodes))
    nodes["group"] = nodes["group"].astype("category")
    check(ssge.read_graph(pl.DataFrame(EDGES), nodes))


@pytest.mark.parametrize("names", ["SRC,Dst", "from,to", "u,v", "Head,TAIL", "a,b"])
def test_usual_names_of_the_ends_and_else_the_first_two(tmp_path: Path, names: str) -> None:
    path = tmp_path / "e.csv"
    path.write_text(f"{names},when\n1,2,5\n2,3,6\n")
    graph = ssge.read_graph(path, features="degree")
    assert graph.node_ids.tolist() == [1, 2, 3]
    path.write_text(f"when,{names}\n5,1,2\n6,2,3\n")
    if names != "a,b":
        assert ssge.read_graph(path, features="degree").node_ids.tolist() == [1, 2, 3]
    for ends in (tuple(names.split(",")), (1, 2)):
        graph = ssge.read_graph(path, source=ends[0], target=ends[1], features="degree", direction="in")
        assert graph.edges.tolist() == [[0, 1], [1, 2]]


def test_weights_only_if_there_is_a_column_for_them(tmp_path: Path) -> None:
    path = tmp_path / "e.txt"
    path.write_text("1 2 0.5\n2 3 1.5\n")
    assert ssge.read_graph(path, features="degree").weights is None
    assert dense(ssge.read_graph(path, weight=2, features="degree"))[0, 1] == 0.5


@pytest.mark.parametrize("top", ["", "# SNAP\n%\n\n", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_as_it_is_found(tmp_path: Path, top: str, end: str) -> None:
    path = tmp_path / "e.txt"
    path.write_bytes((top + " 10\t9\n\n9   -8  \n-8 10").replace("\n", end).encode())
    graph = ssge.read_graph(path, features="degree", direction="in")
    assert graph.node_ids.tolist() == [-8, 9, 10]
    assert graph.node_ids.dtype == np.int64
    assert sorted(graph.edges.T.tolist()) == [[0, 2], [1, 0], [2, 1]]


def test_quoted_fields(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text('source,target\n"York, New","a ""b"""\n"two\nlines",x\n')
    graph = ssge.read_graph(path, features="degree")
    assert graph.node_ids.tolist() == ["York, New", 'a "b"', "two\nlines", "x"]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1,2\n2,10\n", [1, 2, 10]),
        ("007,7\n7,8\n", ["007", "7", "8"]),
        ("1,2\n2,x\n", ["1", "2", "x"]),
        ("1, 2\n2 ,+3\n", ["+3", "1", "2"]),
        ("1,9223372036854775808\n", ["1", "9223372036854775808"]),
        ("NA,null\n", ["NA", "null"]),
    ],
)
def test_ids_are_integers_only_if_all_are(tmp_path: Path, text: str, ids: list[Any]) -> None:
    path = tmp_path / "e.csv"
    path.write_text(text)
    found = ssge.read_graph(path, features="degree", header=False).node_ids.tolist()
    assert found == ids
    assert [type(i) for i in found] == [type(i) for i in ids]


def test_the_kind_of_ids_is_one_for_all_files(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("source,target\n1,2\n")
    nodes.write_text("id,age\n1,5\n2,6\nx,7\n")
    assert ssge.read_graph(edges, nodes).node_ids.tolist() == ["1", "2", "x"]
    typed = pa.table({"source": [1], "target": [2]})
    with pytest.raises(InputError, match=r"all integers or all text; edges, column 'source'.*n.csv.*'x'"):
        ssge.read_graph(typed, nodes)
    with pytest.raises(InputError, match=r"integers such as 1, nodes, column 'id' text such as '1'"):
        ssge.read_graph(typed, pa.table({"id": ["1", "2"], "age": [1, 2]}))
    assert ssge.read_graph(edges, pa.table({"id": ["1", "2"], "age": [1, 2]})).node_ids.tolist() == ["1", "2"]
    assert ssge.read_graph(edges, pa.table({"id": [1, 2], "age": [1, 2]})).node_ids.tolist() == [1, 2]


def test_unknown_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    edges = pa.table({"source": ["a", "q", "a"], "target": ["b", "a", "p"]})
    nodes = pa.table({"id": ["b", "a"], "age": [1.0, 3.0], "kind": ["k", "k"]})
    with pytest.raises(InputError, match=r"edges, row 2, column 'source': the node 'q' is not in nodes, column 'id'"):
        ssge.read_graph(edges, nodes)
    graph = ssge.read_graph(edges, nodes, unknown="drop")
    assert (graph.node_ids.tolist(), graph.edges.tolist()) == (["b", "a"], [[1, 0], [0, 1]])
    assert "2 edges dropped" in caplog.text
    with pytest.raises(InputError, match="give missing='impute'"):
        ssge.read_graph(edges, nodes, unknown="add")
    graph = ssge.read_graph(edges, nodes, unknown="add", missing="impute")
    assert graph.node_ids.tolist() == ["b", "a", "p", "q"]
    assert "2 nodes added" in caplog.text
    assert graph.schema is not None
    assert graph.schema.names == ("age", "age missing", "kind=k", "kind missing")
    assert np.array_equal(graph.features[2:], [[2, 1, 0, 1], [2, 1, 0, 1]])
    with pytest.raises(InputError, match="no edge has both ends"):
        ssge.read_graph(pa.table({"source": ["x"], "target": ["y"]}), nodes, unknown="drop")


def test_labels_are_never_features() -> None:
    nodes = NODES | {"y": [0, 1, 0, 1, 0], "city": ["u", "v", "u", "v", "u"]}
    graph = ssge.read_graph(pa.table(EDGES), pa.table(nodes), label="city")
    assert graph.class_names == ("u", "v")
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 0, 1, 0]
    found = ssge.read_graph(pa.table(EDGES), pa.table(nodes), ignore=["city"])
    check(found)
    assert found.labels is not None
    assert found.schema == found.without_labels().schema
    asked = ssge.read_graph(pa.table(EDGES), pa.table(nodes), columns=["y"])
    assert asked.labels is None
    assert asked.features[:, 0].tolist() == [0, 1, 0, 1, 0]
    with pytest.raises(InputError, match="label must be neither"):
        ssge.read_graph(pa.table(EDGES), pa.table(nodes), columns=["y"], label="y")


def test_columns_of_every_kind(tmp_path: Path) -> None:
    nodes = pa.table({
        "id": ["a", "b", "c", "d"],
        "flag": [True, False, True, True],
        "vector": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], pa.list_(pa.float32(), 2)),
        "bag": [[1], [2], [3], [4]],
        "count": pa.array([1, 2, 3, 4], pa.uint8()),
    })  # fmt: skip
    with pytest.warns(UserWarning, match="'bag' holds lists of 1 integers, quantities or ids"):
        ssge.read_graph(pa.table(EDGES), nodes)
    graph = ssge.read_graph(pa.table(EDGES), nodes, columns=["flag", "vector", "bag", "count"])
    assert graph.schema is not None
    assert graph.schema.names == ("flag", "vector[0]", "vector[1]", "bag[0]", "count")
    assert graph.features.tolist() == [[1, 1, 2, 1, 1], [0, 3, 4, 2, 2], [1, 5, 6, 3, 3], [1, 7, 8, 4, 4]]
    path = tmp_path / "n.parquet"
    pq.write_table(nodes, path)
    assert np.array_equal(ssge.read_graph(pa.table(EDGES), path, like=graph).features, graph.features)


def test_missing_values_and_scale(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    nodes = pa.table({"id": ["a", "b", "c", "d"], "v": [1.0, None, 3.0, float("nan")], "k": ["m", "m", None, "n"]})
    with pytest.raises(InputError, match="nodes, row 2, column 'v': the value is missing; missing='impute'"):
        ssge.read_graph(pa.table(EDGES), nodes)
    assert "filled in" not in caplog.text
    graph = ssge.read_graph(pa.table(EDGES), nodes, missing="impute", scale="standard", columns=["v", "k"])
    assert "column 'v': 2 missing values filled in." in caplog.text
    assert graph.schema is not None
    assert graph.schema.names == ("v", "v missing", "k=m", "k=n", "k missing")
    assert graph.features.tolist() == [[-1, 0, 1, 0, 0], [0, 1, 1, 0, 0], [1, 0, 0, 0, 1], [0, 1, 0, 1, 0]]


def test_spreads_that_differ_are_said(caplog: pytest.LogCaptureFixture) -> None:
    nodes = pa.table({"id": ["a", "b", "c", "d"], "far": [0, 1000, 5, 7], "near": [0.0, 0.1, 0.2, 0.3]})
    ssge.read_graph(pa.table(EDGES), nodes)
    assert "'far' varies" in caplog.text
    assert "scale='standard'" in caplog.text
    caplog.clear()
    ssge.read_graph(pa.table(EDGES), nodes, scale="standard")
    assert not caplog.text


def test_many_levels_stay_sparse() -> None:
    ids = [f"n{i}" for i in range(200)]
    nodes = pa.table({"id": ids, "kind": [f"k{i % 40}" for i in range(200)]})
    graph = ssge.read_graph(pa.table({"s": ids[:-1], "t": ids[1:]}), nodes)
    assert isinstance(graph.features, sp.csr_array)
    assert graph.features.shape == (200, 40)
    assert np.array_equal(graph.features.sum(axis=1), np.ones(200))


@pytest.mark.parametrize("direction", ["both", "in", "out"])
@pytest.mark.parametrize("how", AGGREGATIONS)
def test_edge_columns(direction: Any, how: str) -> None:
    rng = np.random.default_rng(0)
    table = {"u": rng.integers(0, 8, 30), "v": rng.integers(0, 8, 30), "km": rng.normal(size=30)}
    nodes = pa.table({"id": np.arange(10)})
    graph = ssge.read_graph(pa.table(table), nodes, edge_columns={"km": how}, direction=direction)
    function = {"mean": np.mean, "sum": np.sum, "max": np.max, "min": np.min}[how]
    for node in range(10):
        met = [
            km
            for u, v, km in zip(*table.values(), strict=True)
            if (node == v and direction != "out") or (node == u and direction != "in")
        ]
        assert np.isclose(graph.features[node, 0], function(met) if met else 0, atol=1e-6)
    assert graph.schema is not None
    assert graph.schema.names == (f"{how}(km)",)


def test_structural_features_are_those_of_the_arranged_graph(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("source,target\n1,2\n2,1\n2,3\n3,3\n3,1\n3,4\n")
    graph = ssge.read_graph(path, features=["clustering", "degree"])
    assert graph.schema is not None
    assert graph.schema.features == ("clustering", "degree")
    assert np.allclose(graph.features[:, 0], [1, 1, 1 / 3, 0])
    assert np.allclose(graph.features[:, 1], np.log1p([2, 2, 3, 1]))
    everything = ssge.read_graph(pa.table(EDGES), pa.table(NODES), features=["table", "structural"])
    assert np.array_equal(everything.features[:, :3], FEATURES)
    assert everything.schema is not None
    assert everything.schema.features[0] == "table"


def test_the_order_of_the_edges_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"u": [f"n{i}" for i in rng.integers(0, 30, 90)], "v": [f"n{i}" for i in rng.integers(0, 30, 90)]})
    one = ssge.read_graph(table, features="degree")
    other = ssge.read_graph(table.take(rng.permutation(90)), features="degree")
    assert one.node_ids.tolist() == other.node_ids.tolist()
    assert np.array_equal(one.edges, other.edges)
    assert np.array_equal(one.features, other.features)


def test_header_is_found_or_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "e.csv"
    path.write_text("person,friend\nann,bob\n")
    assert ssge.read_graph(path, features="degree").num_nodes == 4
    assert "header=" in caplog.text
    assert ssge.read_graph(path, features="degree", header=True).num_nodes == 2
    assert ssge.read_graph(path, features="degree", source="person", target="friend").num_nodes == 2
    path.write_text("person,friend\n1,2\n")
    assert ssge.read_graph(path, features="degree").node_ids.tolist() == [1, 2]


def test_options_have_one_home() -> None:
    parameters = inspect.signature(ssge.read_graph).parameters
    names = [field.name for field in dataclasses.fields(ReadOptions)]
    assert list(parameters) == ["edges", *names, "like", "name"]  # handed on by position
    assert all(parameters[name].default is None for name in names)
    lines = (inspect.getdoc(ReadOptions) or "").splitlines()
    assert [line for line in lines if re.fullmatch(r"\w+", line)] == ["Parameters", *names]


def test_options_of_a_record_give_the_same_graph(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("a,b,km\n1,2,3\n2,3,5\n")
    options = ReadOptions(source="a", target="b", features=("table", "degree"), edge_columns=("km=max", "km"))
    kept = json.loads(json.dumps(options.given()))
    assert kept == {"source": "a", "target": "b", "features": ["table", "degree"], "edge_columns": ["km=max", "km"]}
    graph = ssge.read_graph(tmp_path / "e.csv", **kept)
    assert graph.schema is not None
    assert graph.schema.edge_columns == (("km", "max"), ("km", "mean"))
    pairs = ssge.read_graph(tmp_path / "e.csv", **(kept | {"edge_columns": [["km", "max"], ["km", "mean"]]}))
    assert pairs.schema == graph.schema


def test_labels_lose_blanks_and_may_be_missing(tmp_path: Path) -> None:
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("source,target\na,b\nb,c\nc,d\n")
    nodes.write_text("id,v,kind\na,1,x\nb,2,x \nc,3, y\nd,4,y\n")
    assert ssge.read_graph(edges, nodes, label="kind").class_names == ("x", "y")
    nodes.write_text("id,v,kind\na,1,x\nb,2,x \nc,3, y\nd,4,NA\n")
    with pytest.raises(InputError, match="line 5, column 'kind': the label is missing"):
        ssge.read_graph(edges, nodes, label="kind")


def test_every_kind_of_text_of_polars() -> None:
    names = [*"abcde"]
    kinds = pl.Series(["x", "y", "x", "y", "y"])
    nodes = pl.DataFrame(
        {
            "id": pl.Series(names, dtype=pl.Categorical),
            "kind": kinds.cast(pl.Categorical),
            "size": kinds.cast(pl.Enum(["y", "x"])),
            "tags": [["u", "v"], ["w"], [], ["u"], ["v"]],
            "words": ["one two", "two", "three", "one", "two three"],
        }
    )
    edges = pl.DataFrame({"source": names[:4], "target": names[1:]}).cast(pl.Categorical)
    read = ssge.read_graph(edges, nodes, columns=["size"], bag=["tags"], text=["words"], label="kind")
    plain = nodes.with_columns(pl.col("id", "kind", "size").cast(pl.String))
    same = ssge.read_graph(edges.cast(pl.String), plain, columns=["size"], bag=["tags"], text=["words"], label="kind")
    assert read.class_names == ("x", "y") and read.node_ids.tolist() == names
    np.testing.assert_array_equal(*(sp.csr_array(graph.features).toarray() for graph in (read, same)))
