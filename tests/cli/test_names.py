"""Nodes by name: columns of the node table beside ids, and nodes asked for by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import code_of as run

from ssge.errors import InputError
from ssge.io.embeddings import write_embedding
from ssge.runs.names import Names, lines_of, read_names, wanted

Command = Callable[..., str]
N = 40


@pytest.fixture
def ssge(capsys: pytest.CaptureFixture[str]) -> Command:
    def printed(*words: str | Path) -> str:
        assert run(*words) == 0
        return capsys.readouterr().out

    return printed


@pytest.fixture
def failing(capsys: pytest.CaptureFixture[str]) -> Command:
    def explained(*words: str | Path) -> str:
        assert run(*words) == 2
        done = capsys.readouterr()
        assert done.out == "" and "Traceback" not in done.err
        return done.err.strip().splitlines()[-1]

    return explained


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a folder with an embedding of integer ids and a table of their names in another order."""
    rng = np.random.default_rng(0)
    write_embedding(tmp_path / "e.parquet", np.arange(N) + 100, rng.normal(size=(N, 4)).astype(np.float32))
    lines = [f"{i + 100},Page {i},{'shop' if i % 2 else 'club'},{i:05d},{i / 4}" for i in reversed(range(N))]
    lines[0] = lines[0].replace("Page 39", "Page 1")  # two of one name
    (tmp_path / "pages.csv").write_text("id,page_name,kind,zip,size\n" + "\n".join(lines) + "\n")
    return tmp_path


def flags(folder: Path, show: str = "page_name,kind") -> tuple[str | Path, ...]:
    return ("--nodes", folder / "pages.csv", "--show", show)


def test_neighbors_are_named_and_asked_for_by_name(table: Path, ssge: Command) -> None:
    by_id = json.loads(ssge("neighbors", table / "e.parquet", "107", "-k", "3", "--json"))
    named = json.loads(ssge("neighbors", table / "e.parquet", "Page 7", "-k", "3", "--json", *flags(table)))
    assert named[0]["id"] == 107 and named[0]["page_name"] == "Page 7" and named[0]["kind"] == "shop"
    assert [near["id"] for near in named[0]["neighbors"]] == [near["id"] for near in by_id[0]["neighbors"]]
    for near in named[0]["neighbors"]:
        assert near["kind"] == ("shop" if near["id"] % 2 else "club")
    assert ssge("neighbors", table / "e.parquet", "pAGE 7", *flags(table)).startswith("nearest to Page 7 (107)\n")


def test_a_name_of_several_nodes_lists_them(table: Path, failing: Command) -> None:
    line = failing("neighbors", table / "e.parquet", "Page 1", *flags(table))
    assert line == "ssge: page_name is 'Page 1' for 2 nodes; ask by id: 101 shop, 139 shop."


def test_clusters_and_outliers_are_named(table: Path, ssge: Command) -> None:
    shown = ssge("cluster", table / "e.parquet", "-k", "2", "--out", table / "c.csv", *flags(table))
    assert "Page " in shown and "(1" in shown
    found = pd.read_csv(table / "c.csv")
    assert list(found.columns) == ["id", "cluster", "distance", "page_name", "kind"]
    assert (found["kind"] == np.where(found["id"] % 2, "shop", "club")).all()
    groups = json.loads(ssge("cluster", table / "e.parquet", "-k", "2", "--json", *flags(table)))
    assert groups[0]["central"][0].keys() == {"id", "page_name", "kind"}
    top = json.loads(ssge("outliers", table / "e.parquet", "-k", "3", "--json", *flags(table, "zip")))
    assert all(entry["zip"] == f"{entry['id'] - 100:05d}" for entry in top)  # a code stays as it is written
    ssge("outliers", table / "e.parquet", "--out", table / "o.csv", *flags(table, "size"))
    assert (pd.read_csv(table / "o.csv").eval("id - 100 == 4 * size")).all()


def test_all_neighbors_to_a_file_have_names_of_both_ends(table: Path, ssge: Command) -> None:
    ssge("neighbors", table / "e.parquet", "--all", "-k", "2", "--out", table / "n.parquet", *flags(table, "size"))
    found = pq.read_table(table / "n.parquet").to_pandas()
    assert list(found.columns) == ["id", "rank", "neighbor", "cosine", "size", "neighbor size"]
    assert (found["neighbor size"] * 4 == found["neighbor"] - 100).all()


def test_a_run_knows_its_node_table(table: Path, ssge: Command, failing: Command) -> None:
    rng = np.random.default_rng(0)
    ends = [f"{i + 100},{j + 100}" for i, j in zip(range(N), rng.permutation(N), strict=True)]
    (table / "edges.csv").write_text("source,target\n" + "\n".join(ends) + "\n")
    reading = ("--nodes", table / "pages.csv", "--columns", "size", "--epochs", "2", "--widths", "8", "4")
    ssge("fit", table / "edges.csv", *reading, "--out", table / "run", "--quiet")
    assert "Page 7" in ssge("neighbors", table / "run", "Page 7", "--show", "page_name")
    assert "Did you mean 'page_name'?" in failing("neighbors", table / "run", "100", "--show", "page_nam")
    (table / "pages.csv").rename(table / "moved.csv")
    line = failing("outliers", table / "run", "--show", "kind")
    assert line.endswith("is gone: give --nodes ...")
    assert "club" in ssge("outliers", table / "run", "--show", "kind", "--nodes", table / "moved.csv")


def test_a_dataset_has_its_labels(tmp_path: Path, ssge: Command, failing: Command) -> None:
    ssge("fit", "karate", "--epochs", "1", "--widths", "8", "4", "--out", tmp_path / "run", "--quiet")
    entry = json.loads(ssge("neighbors", tmp_path / "run", "0", "--show", "label", "--json"))[0]
    assert isinstance(entry["label"], str) and entry["id"] == 0
    assert "Valid: id, label." in failing("neighbors", tmp_path / "run", "0", "--show", "age")


def test_mistakes_are_told_in_one_line(table: Path, failing: Command) -> None:
    file = table / "e.parquet"
    assert "give --nodes ..." in failing("neighbors", file, "100", "--show", "page_name")
    assert "Did you mean 'Page 7'?" in failing("neighbors", file, "Pge 7", *flags(table))
    line = failing("outliers", file, *flags(table, "page_name"), "--id", "zip")
    assert "no id in column 'zip' is one of the embedding, such as 100" in line


def test_nodes_that_the_table_lacks_have_no_name(caplog: pytest.LogCaptureFixture) -> None:
    frame = pa.table({"id": ["a", "c"], "name, long": ["Ann", None]})
    names = read_names(np.array(["a", "b", "c"], dtype=object), "name, long", nodes=frame)
    assert names.columns == {"name, long": ["Ann", None, None]}
    assert "1 of 3 nodes are not in this table" in caplog.text
    assert [names.title(row) for row in range(3)] == ["Ann (a)", "b", "c"]


def test_an_id_goes_before_a_name() -> None:
    names = Names(np.array(["x", "y"], dtype=object), {"name": ["y", "x"]})
    assert names.positions(["x", "y"]).tolist() == [0, 1]


def test_columns_are_separated_by_commas() -> None:
    assert wanted("a, b,a", ["a", "b"]) == ["a", "b"] and wanted(["a,b"], ["a,b"]) == ["a,b"]
    with pytest.raises(InputError, match="at least one column"):
        wanted(" , ", ["a"])


def test_a_column_named_like_one_of_the_result_is_kept(tmp_path: Path, ssge: Command) -> None:
    write_embedding(tmp_path / "e.parquet", np.arange(4), np.eye(4, 2) + np.arange(8).reshape(4, 2))
    (tmp_path / "n.csv").write_text("id,cluster\n0,p\n1,q\n2,r\n3,s\n")
    words = ("--nodes", tmp_path / "n.csv", "--show", "cluster", "--out", tmp_path / "c.parquet")
    ssge("cluster", tmp_path / "e.parquet", "-k", "2", *words)
    table = pq.read_table(tmp_path / "c.parquet")
    assert table.column_names == ["id", "cluster", "distance", "node cluster"]
    assert table["node cluster"].to_pylist() == ["p", "q", "r", "s"]


def test_ids_keep_a_no_break_space() -> None:
    names = Names(np.array(["n0\N{NO-BREAK SPACE}", "n1"], dtype=object))
    assert lines_of(names.node_ids, ["n1 ", "n0\N{NO-BREAK SPACE}"], free=True).tolist() == [1, 0]
