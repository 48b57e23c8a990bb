"""Commands that show a run, and the same from a fitted estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import code_of as run
from matplotlib import image

import ssge


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ssge.SSGE((16, 8), epochs=3, random_state=0).fit(ssge.load_dataset("karate"))


@pytest.fixture(scope="module")
def folder(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("look")
    assert run("fit", "karate", "--epochs", "3", "--widths", "16", "8", "--out", path / "run", "--quiet") == 0
    return path


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_map(ending: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / f"map.{ending}"
    assert run("map", folder / "run", "--color", "label", "--out", out, "--layout", "pca") == 0
    assert capsys.readouterr().out == f"map: {out}\n" and out.stat().st_size > 1000
    assert run("map", folder / "run", "--color", "label", "--out", out) == 2
    assert "exists; choose another file, or --force" in capsys.readouterr().err
    if ending == "png":
        assert image.imread(out).shape == (1140, 1500, 4)


@pytest.mark.parametrize("kind", ["losses", "spectrum", "correlation"])
def test_plot(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / f"{kind}.svg"
    assert run("plot", folder / "run", kind, "--out", out) == 0
    assert "karate" in out.read_text() or kind in out.read_text()
    out = folder / f"file-{kind}.png"
    assert run("plot", folder / "run" / "embedding.parquet", kind, "--out", out) == (2 if kind == "losses" else 0)
    assert out.exists() == (kind != "losses")


def test_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "report.html"
    assert run("report", folder / "run", "--out", out) == 0
    page = out.read_text("utf-8")
    for words in ("SSGE embedding of karate", "What was run, and on what", "Effective rank", "ssge evaluate RUN"):
        assert words in page
    assert '"name": "label"' in page  # a dataset is colored by its labels unasked
    assert run("report", folder / "run", "--out", folder / "r.html", "--color", "labl") == 2
    assert "Did you mean 'label'?" in capsys.readouterr().err
    assert run("map", folder / "run", "--out", folder / "map.pdf") == 2
    assert "ending of a map" in capsys.readouterr().err
    assert not (folder / "r.html").exists()


def test_scores_of_a_report_have_reference_rows(folder: Path) -> None:
    assert run("evaluate", folder / "run", "--protocol", "quick") == 0
    assert run("report", folder / "run", "--out", folder / "scored.html") == 0
    page = (folder / "scored.html").read_text("utf-8")
    assert "Protocol quick" in page and "raw features" in page and "Reference rows are missing" not in page
    assert run("report", folder / "run", "--out", folder / "alone.html", "--skip-references") == 0
    page = (folder / "alone.html").read_text("utf-8")
    assert "raw features" not in page and "Reference rows are missing" in page


def test_a_table_that_is_gone_is_told_and_not_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 20}\n" for i in range(20)))
    (tmp_path / "nodes.csv").write_text("id,team,name\n" + "".join(f"{i},t{i % 2},n{i}\n" for i in range(20)))
    tables = (tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv", "--columns", "team")
    assert run("fit", *tables, "--widths", "8", "4", "--epochs", "2", "--out", tmp_path / "run", "--quiet") == 0
    assert run("report", tmp_path / "run", "--out", tmp_path / "with.html") == 0
    page = (tmp_path / "with.html").read_text("utf-8")
    assert '"name": "team"' in page and '"n7"' in page  # names and categories of the table, unasked
    (tmp_path / "nodes.csv").unlink()
    capsys.readouterr()
    assert run("report", tmp_path / "run", "--out", tmp_path / "without.html") == 0
    assert "Nodes are shown by their ids alone" in capsys.readouterr().err


def test_an_estimator_answers_as_the_commands_do(model: Any, tmp_path: Path) -> None:
    labels = ssge.load_dataset("karate").labels
    table = pd.DataFrame({"id": model.node_ids_, "name": [f"member {i}" for i in range(34)], "side": labels})
    near = model.neighbors(["member 3"], k=4, show="name", nodes=table)
    assert near["id"].tolist() == [3] * 4 and near["rank"].tolist() == [1, 2, 3, 4]
    assert near["neighbor name"].tolist() == [f"member {i}" for i in near["neighbor"]]
    assert len(model.neighbors(k=2)) == 68
    parts = model.cluster(3, show="side", nodes=table)
    assert parts["cluster"].nunique() == 3 and parts["side"].tolist() == np.asarray(labels).tolist()
    assert model.outliers(5)["score"].is_monotonic_decreasing
    model.plot(tmp_path / "map.png", color="side", nodes=table, layout="pca")
    model.plot(tmp_path / "losses.svg", "losses")
    model.report(tmp_path / "r.html", show="name", color="side", nodes=table, layout="pca")
    assert "member 33" in (tmp_path / "r.html").read_text("utf-8")
    with pytest.raises(ValueError, match="exists"):
        model.report(tmp_path / "r.html")
    with pytest.raises(ValueError, match="Unknown plot 'lossses'"):
        model.plot(tmp_path / "x.png", "lossses")
    with pytest.raises(ValueError, match="not fitted"):
        ssge.SSGE().neighbors()
