"""Methods on edges alone: no features are asked for, and what they cannot do is said in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import code_of

from ssge.io.embeddings import read_embedding
from ssge.runs.folder import RunFolder

N = 60
SMALL = ("--width", "4", "--walk-length", "8", "--window", "2", "--epochs", "2")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with two rings of people, and a table of their names, notes and teams."""
    for name, n in (("calls.csv", N), ("other.csv", N)):
        steps = (1, 4) if name == "calls.csv" else (1, 7)
        edges = [f"{i},{(i + step) % n}" for i in range(n) for step in steps]
        (tmp_path / name).write_text("\n".join(["source,target", *edges]) + "\n")
    people = [f"{i},{('red', 'blue')[i // 30]}" for i in range(N)]
    (tmp_path / "teams.csv").write_text("\n".join(["id,team", *people]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def error(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """Run a command that is refused; return the one line that says why."""
    capsys.readouterr()
    assert code_of(*words) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines  # so no table was opened, of which there would be a note
    return lines[0]


@pytest.mark.parametrize("method", ["deepwalk", "node2vec"])
def test_a_table_of_edges_is_enough(here: Path, capsys: pytest.CaptureFixture[str], method: str) -> None:
    words = ("calls.csv", "--method", method, *SMALL)
    assert code_of("fit", *words, "--out", "run") == 0
    assert "reads no features: the degrees of calls.csv stand in for them." in capsys.readouterr().err
    assert RunFolder(here / "run").read_record().reading == {"features": ["degree"]}
    assert code_of("neighbors", "run", "3", "--json") == 0
    assert code_of("embed", "run", "calls.csv", "--out", "again.npy") == 0
    np.testing.assert_array_equal(np.load("again.npy"), read_embedding(here / "run" / "embedding.parquet").vectors)
    capsys.readouterr()
    assert code_of("estimate", *words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["parameters"] >= 2 * 4 * (N - 1)


def test_a_node_table_gives_the_labels_to_judge_by(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = ("calls.csv", "--nodes", "teams.csv", "--label", "team")
    assert code_of("fit", *tables, "--method", "deepwalk", *SMALL, "--out", "run", "--quiet") == 0
    capsys.readouterr()
    assert code_of("evaluate", "run", "--protocol", "quick", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["accuracies"]) == 10


def test_features_that_were_asked_for_are_made(here: Path) -> None:
    words = ("calls.csv", "--method", "deepwalk", *SMALL, "--features", "clustering", "--quiet")
    assert code_of("fit", *words, "--out", "run") == 0
    schema = RunFolder(here / "run").read_schema()
    assert schema is not None and schema.features == ("clustering",)


def test_a_method_that_reads_features_still_asks_for_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("fit", "calls.csv", "--out", "run"), ("estimate", "calls.csv")):
        assert "calls.csv has no node features" in error(capsys, *command, "--quiet")


def test_another_graph_and_a_warm_start_are_refused_in_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = ("--features", "table", "--edge-columns", "minutes")
    (here / "minutes.csv").write_text("source,target,minutes\n" + "".join(f"{i},{i + 1},{i}\n" for i in range(20)))
    assert code_of("fit", "minutes.csv", *table, "--method", "deepwalk", *SMALL, "--out", "run", "--quiet") == 0
    reason = "DeepWalk has vectors only for the nodes of the graph it was trained on"
    # The other table lacks the column that its features were made of, which is not what is wrong with it.
    assert reason in error(capsys, "embed", "run", "other.csv", "--out", "x.npy")
    assert reason in error(capsys, "fit", "other.csv", "--warm-start", "run", "--out", "next")
    assert not (here / "next").exists() and not (here / "x.npy").exists()
