"""Conversion of tables in pieces: the folder has the bytes that reading the tables whole would give it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from ssge.errors import InputError
from ssge.io import text
from ssge.io.convert import convert
from ssge.io.edge_sort import EdgeSorter
from ssge.io.graph_writer import write_graph
from ssge.io.options import ReadOptions
from ssge.io.reading import read_graph
from ssge.io.sizes import bytes_of

N, M = 300, 900


def tables(folder: Path, ids: str, form: str = "csv", weighted: bool = True) -> tuple[Path, Path]:
    """Write an edge table and a node table: missing values, a category, labels, isolated nodes, loops, duplicates."""
    rng = np.random.default_rng(0)
    names = {
        "positions": np.arange(N),
        "integers": rng.permutation(N) * 7 - 50,
        "text": np.array([f"n {i}, ä" for i in rng.permutation(N)]),
    }[ids]
    ends = rng.integers(N - 5, size=(2, M))
    ends = np.concatenate([ends, ends[:, :100], ends[::-1, 100:150], np.full((2, 1), 3)], axis=1)
    values = rng.normal(size=(N, 3)).round(4)
    values[rng.random((N, 3)) < 0.1] = np.nan
    edges = {"source": names[ends[0]], "target": names[ends[1]]}
    if weighted:
        edges["weight"] = rng.integers(0, 9, ends.shape[1]) / 8  # their sums are exact
    nodes = {"id": names, "a": values[:, 0], "b": values[:, 1], "color": rng.choice(["red", "blue", "green"], N)}
    nodes |= {"c": values[:, 2], "y": rng.choice(["up", "down"], N)}
    paths = folder / f"edges.{form}", folder / f"nodes.{form}"
    for path, columns in zip(paths, (edges, nodes), strict=True):
        found = pa.table({key: pa.array(value, from_pandas=True) for key, value in columns.items()})
        pq.write_table(found, path) if form == "parquet" else csv.write_csv(found, path)
    return paths


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files some hundred bytes at a time, but decide on all rows, and sort few edges at once."""
    monkeypatch.setattr(text.TextTable.batches, "__defaults__", (None, 700))
    right = EdgeSorter.__init__

    def small(self: EdgeSorter, folder: Path, num_nodes: int, weighted: bool, _: int, *rows: range) -> None:
        right(self, folder, num_nodes, weighted, 40, *rows)

    monkeypatch.setattr(EdgeSorter, "__init__", small)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("ids", ["positions", "integers", "text"])
@pytest.mark.parametrize("direction", ["both", "in", "out"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bytes_are_those_of_the_graph_read_whole(tmp_path: Path, ids: str, direction: Any, weighted: bool) -> None:
    edges, nodes = tables(tmp_path, ids, weighted=weighted)
    options = {"nodes": nodes, "missing": "impute", "direction": direction}
    write_graph(read_graph(edges, **options), tmp_path / "whole")
    convert(edges, tmp_path / "pieces", ReadOptions(**options))
    found, expected = contents(tmp_path / "pieces"), contents(tmp_path / "whole")
    assert found.keys() == expected.keys()
    for name in found.keys() - {"features.npy", "features.json", "graph.json"}:
        assert found[name] == expected[name], name
    # Means of pieces are merged, so that values that were filled in may differ by rounding.
    features = [np.load(tmp_path / folder / "features.npy") for folder in ("pieces", "whole")]
    assert np.allclose(*features, rtol=1e-6, atol=1e-7)


def test_one_piece_gives_the_same_bytes_throughout(tmp_path: Path) -> None:
    edges, nodes = tables(tmp_path, "integers")
    write_graph(read_graph(edges, nodes=nodes, missing="impute"), tmp_path / "whole")
    convert(edges, tmp_path / "pieces", ReadOptions(nodes=nodes, missing="impute"))
    assert contents(tmp_path / "pieces") == contents(tmp_path / "whole")


@pytest.mark.parametrize("ids", ["integers", "text"])
def test_parquet_and_packed_text_too(tmp_path: Path, ids: str) -> None:
    edges, nodes = tables(tmp_path, ids, "parquet")
    options = {"missing": "impute", "scale": "standard"}
    convert(edges, tmp_path / "parquet", ReadOptions(nodes=nodes, **options))
    edges, nodes = tables(tmp_path, ids)
    packed = tmp_path / "edges.csv.gz"
    packed.write_bytes(gzip.compress(edges.read_bytes()))
    convert(packed, tmp_path / "packed", ReadOptions(nodes=nodes, **options))
    whole = read_graph(edges, nodes=nodes, **options)
    for name in ("parquet", "packed"):
        found = read_graph(tmp_path / name)
        assert np.array_equal(found.edges, whole.edges)
        assert np.array_equal(found.weights, whole.weights)
        assert np.allclose(found.features, whole.features, atol=1e-6)
        assert found.node_ids.tolist() == whole.node_ids.tolist()
        assert found.class_names == whole.class_names
        assert np.array_equal(found.labels, whole.labels)


@pytest.mark.usefixtures("pieces")
def test_means_and_deviations_of_pieces_are_those_of_all(tmp_path: Path) -> None:
    edges, nodes = tables(tmp_path, "positions")
    options = {"nodes": nodes, "missing": "impute", "scale": "standard"}
    stored = convert(edges, tmp_path / "g", ReadOptions(**options))
    whole = read_graph(edges, **options)
    assert np.allclose(stored.features, whole.features, atol=1e-6)
    assert stored.schema.names == whole.schema.names


def test_the_schema_goes_on_to_other_graphs(tmp_path: Path) -> None:
    edges, nodes = tables(tmp_path, "integers")
    stored = convert(edges, tmp_path / "g", ReadOptions(nodes=nodes, missing="impute"))
    again = read_graph(edges, nodes=nodes, like=stored.schema)
    assert np.array_equal(again.features, stored.features)


def test_quoted_line_breaks_and_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text.TextTable.batches, "__defaults__", (None, 10))
    (tmp_path / "edges.csv").write_text('source,target\n"a\nb",c\nc,"a\nb"\nc,d\n')
    (tmp_path / "nodes.csv").write_text('id,x\n"a\nb",1\nc,2.5\nd,3\n')
    stored = convert(tmp_path / "edges.csv", tmp_path / "g", ReadOptions(nodes=tmp_path / "nodes.csv"))
    assert stored.node_ids.tolist() == ["a\nb", "c", "d"]
    (tmp_path / "edges.txt").write_text("# a comment\n  5   6\n6\t7\n")
    (tmp_path / "nodes.txt").write_text("id x\n5 1.5\n6 2\n7 4\n")
    stored = convert(tmp_path / "edges.txt", tmp_path / "h", ReadOptions(nodes=tmp_path / "nodes.txt"))
    assert stored.load().edges.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


def test_unknown_ends_are_refused_or_dropped(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,x\n1,0.5\n2,1.5\n3,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,9\n")
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    with pytest.raises(InputError, match=r"the node 9 is not in .*nodes\.csv"):
        convert(edges, tmp_path / "g", ReadOptions(nodes=nodes))
    assert not (tmp_path / "g").exists()
    assert convert(edges, tmp_path / "g", ReadOptions(nodes=nodes, unknown="drop")).num_edges == 2
    added = ReadOptions(nodes=nodes, unknown="add", missing="impute")
    assert convert(edges, tmp_path / "h", added).num_nodes == 4  # read into memory


def test_an_end_that_is_no_integer_makes_all_ids_text(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,x\n1,0.5\n2,1.5\n3,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n2,nine\n")
    options = ReadOptions(nodes=tmp_path / "nodes.csv", unknown="drop")
    stored = convert(tmp_path / "edges.csv", tmp_path / "g", options)
    assert stored.node_ids.tolist() == ["1", "2", "3"]
    assert not (tmp_path / "g" / "ids.npy").exists()


@pytest.mark.parametrize(
    ("nodes", "edges", "told"),
    [
        ("id,x\n1,2.5\n1,3\n", "source,target\n1,1\n", "the id 1 occurs more than once"),
        ("id,x\n1,2.5\n,3\n", "source,target\n1,1\n", "line 3, column 'id': the id is missing"),
        ("id,x\n1,2.5\n2,\n", "source,target\n1,2\n", r"nodes\.csv, line 3, column 'x': the value is missing"),
        ("id,x\n1,2.5\n2,3\n", "source,target,weight\n1,2,-1\n", r"edges\.csv, line 2, column 'weight'"),
        ("id,x\n1,2.5\n2,3\n", "source,target,weight\n1,2,1\n1,2,\n", r"edges\.csv, line 3, column 'weight'"),
        ("id,y\n1,0\n2,1\n", "source,target\n1,2\n", "no node features"),
    ],
)
def test_errors_name_the_place(tmp_path: Path, nodes: str, edges: str, told: str) -> None:
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text(edges)
    with pytest.raises(InputError, match=told):
        convert(tmp_path / "edges.csv", tmp_path / "g", ReadOptions(nodes=tmp_path / "nodes.csv"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]


def test_text_ids_without_duckdb_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    edges, nodes = tables(tmp_path, "text")
    with pytest.raises(InputError, match=r"ssge\[duckdb\]"):
        convert(edges, tmp_path / "g", ReadOptions(nodes=nodes, missing="impute"))


def test_a_skewed_row_is_sorted_too(tmp_path: Path) -> None:
    """Most edges lead to one node, whose bucket is divided down to its single row."""
    rng = np.random.default_rng(0)
    row, column = np.where(rng.random(5000) < 0.8, 77, rng.integers(1000, size=5000)), rng.integers(1000, size=5000)
    sorter = EdgeSorter(tmp_path, 1000, weighted=False, entries=50)
    for part in np.array_split(np.arange(5000), 7):
        sorter.add(row[part], column[part], None, reverse=True)
    counts, columns = zip(*((counts, columns) for counts, columns, _ in sorter.parts()), strict=True)
    both = {*zip(row.tolist(), column.tolist(), strict=True), *zip(column.tolist(), row.tolist(), strict=True)}
    found = zip(
        np.repeat(np.arange(1000), np.concatenate(counts)).tolist(), np.concatenate(columns).tolist(), strict=True
    )
    assert list(found) == sorted(both)


@pytest.mark.parametrize("wrong", ["", "two", "-1GB", "2XB", "0"])
def test_amounts_of_memory(wrong: str) -> None:
    assert bytes_of("2GB") == 2 * 10**9
    assert bytes_of("1.5 gib") == 3 << 29
    assert bytes_of(1000) == 1000
    with pytest.raises(InputError, match="2GB"):
        bytes_of(wrong)


def test_too_little_memory_is_refused(tmp_path: Path) -> None:
    edges, nodes = tables(tmp_path, "positions")
    with pytest.raises(InputError, match="memory must be 800 MiB or more"):
        convert(edges, tmp_path / "g", ReadOptions(nodes=nodes), memory=10**6)
