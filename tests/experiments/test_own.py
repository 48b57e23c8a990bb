"""Comparisons on a graph of one's own, from the command to the table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ssge.cli import main
from ssge.evaluation.edges import edge_figures
from ssge.experiments import compare as comparing
from ssge.experiments.compare import paired_difference


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    done = capsys.readouterr()
    assert not end.value.code, done.err
    return done.out


def test_paired_differences_by_hand() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
    b = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    mean, error = paired_difference(a, b)
    assert mean == 1.5
    assert error == pytest.approx(np.sqrt(1.0 / 3 + 0.5 / 2))  # column means .5, 1.5, 2.5; row means 1, 2
    assert paired_difference(a[:1], b[:1]) == (1.0, pytest.approx(np.sqrt(1 / 3)))
    assert paired_difference(a, b[:1]) == paired_difference(a, b)
    assert paired_difference(np.array([[2.0]]), np.array([[1.0]])) == (1.0, 0.0)
    # What both have in common, such as a hard split, cancels.
    hard = np.array([[-50.0, 0.0, 50.0]])
    assert paired_difference(a + hard, b + hard)[1] == pytest.approx(error)


def test_edge_figures_against_all_pairs() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(50, 4)) + np.repeat(np.eye(5, 4) * 4, 10, axis=0)
    group = np.arange(50) // 10
    edges = np.argwhere(group[:, None] == group).T
    edges = edges[:, edges[0] != edges[1]]
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    cosine = unit @ unit.T
    found = edge_figures(np.repeat(z, 1, axis=0), edges)
    assert found["edge_cosine"] == pytest.approx(cosine[tuple(edges)].mean())
    off = cosine[~np.eye(50, dtype=bool)]
    assert found["pair_cosine"] == pytest.approx(off.mean(), abs=0.1)
    exact = (cosine[tuple(edges)][:, None] > off).mean() + (cosine[tuple(edges)][:, None] == off).mean() / 2
    assert found["edge_auc"] == pytest.approx(exact, abs=0.05)
    assert edge_figures(z, np.empty((2, 0), dtype=np.int64)) == {}
    assert edge_figures(np.ones((9, 3)), edges[:, :5] % 9)["edge_auc"] == 0.5


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write edges, nodes with classes, and labels of half of the nodes."""
    folder, rng = tmp_path_factory.mktemp("own"), np.random.default_rng(0)
    group = np.arange(160) % 2
    linked = rng.random((160, 160)) < np.where(group[:, None] == group, 0.08, 0.01)
    lines = [f"n{a},n{b}" for a, b in np.argwhere(np.triu(linked, 1))]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(lines) + "\n")
    values = group + rng.normal(size=160)
    rows = [f"n{i},{values[i]:.3f},{'uv'[group[i]]}" for i in range(160)]
    (folder / "nodes.csv").write_text("id,size,side\n" + "\n".join(rows) + "\n")
    half = [f"n{i},{'uv'[group[i]]}" for i in range(0, 160, 2)] + [f"n{i},{'uv'[group[i]]}" for i in range(1, 40, 2)]
    (folder / "labels.csv").write_text("id,label\n" + "\n".join(half) + "\n")
    return folder


def test_compare_methods_on_tables(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = (tables / "edges.csv", "--nodes", tables / "nodes.csv", "--columns", "size", "--label", "side")
    words = ("compare", *graph, "--methods", "ssge,gae", "--seeds", "2", "--out", tmp_path, "--quiet")
    text = run(capsys, *words)
    for expected in ("raw features", "propagated features", "SSGE", "GAE", "difference from SSGE", "±"):
        assert expected in text
    found = json.loads(run(capsys, *words, "--json"))  # kept: nothing is trained again
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["SSGE"]["seeds"] == 2 and found["first"] == "SSGE"
    change = {one["name"]: one for one in found["differences"]}
    assert change["GAE"]["accuracy"][0] == pytest.approx(rows["GAE"]["accuracy"] - rows["SSGE"]["accuracy"], abs=1e-9)
    assert change["GAE"]["accuracy"][1] > 0 and change["spectral clustering"]["accuracy"] is None
    runs = tmp_path / "ssge" / "seed-0", tmp_path / "gae" / "seed-1"
    text = run(capsys, "compare", *runs, "--quiet", "--skip-references")
    assert "SSGE" in text and "GAE" in text and "raw features" not in text


def test_labels_of_some_nodes(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = (tables / "edges.csv", "--nodes", tables / "nodes.csv", "--columns", "size")
    words = ("compare", *graph, "--seeds", "1", "--out", tmp_path, "--quiet", "--json")
    found = json.loads(run(capsys, *words, "--labels", tables / "labels.csv"))
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["propagated features"]["accuracy"] > 60 and "SSGE" in rows
    record = json.loads((tmp_path / "ssge" / "seed-0" / "record.json").read_text())
    assert record["scores"] == {}  # they are not of the graph's own labels


def test_without_labels(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = (tables / "edges.csv", "--nodes", tables / "nodes.csv", "--columns", "size")
    text = run(capsys, "compare", *graph, "--seeds", "1", "--out", tmp_path, "--quiet")
    assert "no labels" in text and "edge AUC" in text and "SSGE, seed-0" in text and "raw features" in text
    folder = tmp_path / "ssge" / "seed-0"
    text = run(capsys, "evaluate", folder)
    assert "edge AUC" in text and "propagated features" in text and "ssge links" in text
    found = json.loads(run(capsys, "evaluate", folder, "--json"))
    assert 0.5 < found["edge_auc"] <= 1 and found["effective_rank"] >= 1


def test_evaluate_has_reference_rows(tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = (tables / "edges.csv", "--nodes", tables / "nodes.csv", "--columns", "size", "--label", "side")
    run(capsys, "fit", *graph, "--epochs", "2", "--widths", "4", "--out", tmp_path / "run", "--quiet")
    text = run(capsys, "evaluate", tmp_path / "run", "--protocol", "quick")
    assert "raw features" in text and "mean of 8 hops" in text
    assert "raw features" not in run(capsys, "evaluate", tmp_path / "run", "--protocol", "quick", "--skip-references")


def test_evaluate_finds_the_reference_rows_of_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text('method = "ssge"\ndataset = "karate"\n[config]\nepochs = 1\nwidths = [4]\n')
    run(capsys, "run", "own.toml", "--seeds", "1", "--protocol", "quick", "--quiet")
    monkeypatch.setattr(comparing, "UNTRAINED", None)  # nothing is scored again
    assert "mean of 8 hops" in run(capsys, "evaluate", "runs/own/seed-0", "--protocol", "quick")
    deeper = Path("runs/ssge/karate")  # where a recipe of the package has its runs
    deeper.parent.mkdir()
    Path("runs/own").rename(deeper)
    assert "mean of 8 hops" in run(capsys, "evaluate", deeper / "seed-0", "--protocol", "quick")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("karate", "cora"), "Give one graph, or folders of runs; received 2 graphs"),
        (("karate", "--methods", "sge"), "Did you mean 'ssge'"),
        (("karate", "--seeds", "0"), "seeds must be 1 or more"),
        (("karate", "--methods", ","), "Unknown method ''"),
        (("karate", "--protocol", "papers"), "Did you mean 'paper'"),
    ],
)
def test_mistakes(words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["compare", *words, "--out", str(tmp_path / "out")])
    assert end.value.code == 2 and message in capsys.readouterr().err
