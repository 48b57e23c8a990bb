"""Data that change after a run: nothing old is shown as new, and no file of a run is replaced by another result."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import code_of

NODES = 40


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Edges whose ends are not the first columns, and nodes with two pairs of features and two labels."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ends = [(i, (i + 1) % NODES) for i in range(NODES)] + rng.integers(NODES, size=(60, 2)).tolist()
    rows = [f"{k % NODES},{7 * k % NODES},{a},{b}" for k, (a, b) in enumerate(ends) if a != b]
    (tmp_path / "edges.csv").write_text("row,step,origin,dest\n" + "\n".join(rows) + "\n")
    write_nodes(tmp_path, [["x", "y"][i % 2] for i in range(NODES)])
    return tmp_path


def write_nodes(folder: Path, kinds: list[str]) -> None:
    values = np.random.default_rng(1).normal(size=(NODES, 4)).round(3).tolist()
    lines = [f"{i},{','.join(map(str, row))},{kind}" for i, (row, kind) in enumerate(zip(values, kinds, strict=True))]
    (folder / "nodes.csv").write_text("id,a,b,c,d,kind\n" + "\n".join(lines) + "\n")


ENDS = ("--source", "origin", "--target", "dest")


def compared(capsys: pytest.CaptureFixture[str], *columns: str, out: str = "kept") -> list[dict[str, object]]:
    words = ("compare", "edges.csv", "--nodes", "nodes.csv", *ENDS, "--label", "kind", "--columns", *columns)
    assert code_of(*words, "--methods", "ssgc", "--seeds", "1", "--quiet", "--json", "--out", out) == 0
    rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


def test_compare_refuses_runs_of_other_features(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = compared(capsys, "a", "b")
    words = ("compare", "edges.csv", "--nodes", "nodes.csv", *ENDS, "--label", "kind", "--columns", "c", "d")
    assert code_of(*words, "--methods", "ssgc", "--seeds", "1", "--quiet", "--out", "kept") == 2
    assert "other settings, data or training nodes" in capsys.readouterr().err
    assert compared(capsys, "a", "b") == first != compared(capsys, "c", "d", out="fresh")


def test_changed_labels_are_scored_anew(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = compared(capsys, "a", "b")
    write_nodes(tables, [["x", "y"][i % 3 == 0] for i in range(NODES)])
    after = compared(capsys, "a", "b")
    assert after == compared(capsys, "a", "b", out="fresh")
    assert [row["accuracy"] for row in after] != [row["accuracy"] for row in before]


def test_labels_of_a_file_by_the_name_of_their_column(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "compare",
        "edges.csv",
        "--nodes",
        "nodes.csv",
        *ENDS,
        "--columns",
        "a",
        "--methods",
        "ssgc",
        "--seeds",
        "1",
    )
    given = (*words, "--labels", "nodes.csv", "--quiet", "--json", "--skip-references")
    assert code_of(*given, "--label-column", "kind") == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["rows"]] == ["SSGC"]
    assert code_of(*given) == 2 and "label must name the column" in capsys.readouterr().err


def test_changed_edges_are_noticed(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ("fit", "edges.csv", "--nodes", "nodes.csv", *ENDS, "--columns", "a", "b", "--epochs", "2", "--quiet")
    assert code_of(*fit, "--out", "run") == 0
    capsys.readouterr()
    assert code_of("neighbors", "run", "0", "-k", "39", "--exclude-linked", "edges.csv", "--json") == 0
    near = {row["id"] for row in json.loads(capsys.readouterr().out)[0]["neighbors"]}
    ends = [tuple(map(int, line.split(",")[2:])) for line in Path("edges.csv").read_text().split()[1:]]
    linked = {a + b for a, b in ends if 0 in (a, b)}  # one of them is 0
    assert near == set(range(1, NODES)) - linked
    lines = Path("edges.csv").read_text().splitlines()
    Path("edges.csv").write_text("\n".join([*lines[:-1], "0,0,5,17"]) + "\n")
    assert code_of("links", "run", "--quiet") == 2
    assert "has changed: its edges are not those of the run" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["embed run edges.csv --nodes nodes.csv", "export run", "cluster run -k 2"])
def test_no_result_replaces_a_file_of_a_run(tables: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    fit = ("fit", "edges.csv", "--nodes", "nodes.csv", *ENDS, "--columns", "a", "b", "--epochs", "2", "--quiet")
    assert code_of(*fit, "--out", "run") == 0
    before = Path("run/embedding.parquet").read_bytes()
    assert code_of(*command.split(), "--out", "run/embedding.parquet", "--force") == 2
    assert "is a file of the run" in capsys.readouterr().err
    assert Path("run/embedding.parquet").read_bytes() == before
