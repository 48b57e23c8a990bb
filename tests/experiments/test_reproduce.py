"""The paper's tables and figures: all outputs, nothing computed twice, gaps with reasons, killed and continued."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ssge.experiments import figures
from ssge.experiments.reproduce import EXPERIMENTS, Scope, jobs, published, reproduce, tables
from ssge.experiments.reproduce.tables import Cell, Table
from ssge.methods import METHODS
from ssge.runs.recipes import load_recipe, recipes

PAPER = {"cora": 83.9, "citeseer": 74.1, "pubmed": 81.6, "wikics": 79.18}


def test_every_row_of_the_paper_has_a_method_and_a_recipe() -> None:
    assert len(published.METHODS) == 23 and set(published.METHODS) <= set(METHODS)
    assert set(published.CLUSTERED) <= set(published.METHODS)
    for method in published.METHODS:
        for dataset in ("cora", "citeseer", "pubmed", "computer", "coauthor_cs"):
            assert f"{method}/{dataset}" in recipes()


def test_published_figures_agree_with_the_recipes() -> None:
    for dataset, accuracy in PAPER.items():
        assert published.ABLATION["both"][dataset] == accuracy == load_recipe(f"ssge/{dataset}").published["accuracy"]
    for one in published.DOUBTS:
        assert set(one.methods) <= set(published.METHODS) and set(one.datasets) <= set(published.DATASETS)


def test_a_table_in_three_formats(tmp_path: Path) -> None:
    table = Table("t", "A table", ["cora", "my_graph"], basis=["- basis"])
    table.rows["SSGE"] = {"cora": Cell(83.55, 0.42, 83.9, "Why."), "my_graph": Cell(None, None, 70.0, "Too long.")}
    assert [path.suffix for path in table.write(tmp_path)] == [".md", ".csv", ".tex"]
    text = (tmp_path / "t.md").read_text()
    assert "| SSGE | 83.5 ± 0.4 (83.9, -0.4) [1] | - (70.0) [2] |" in text and "2. Too long." in text
    (line, gap) = csv.DictReader((tmp_path / "t.csv").open())
    assert float(line["difference"]) == pytest.approx(-0.35) and gap["ours"] == "" and gap["note"] == "Too long."
    assert r"my\_graph" in (tmp_path / "t.tex").read_text() and r"$\pm$" in (tmp_path / "t.tex").read_text()


@pytest.mark.usefixtures("data_root")
def test_what_cannot_be_loaded_or_takes_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_graph", jobs._graph.__wrapped__)
    scope = Scope(tmp_path, ("cora", "wikics"), ("ssge", "gcn"), seeds=(1, 1), minutes=1e-6)
    monkeypatch.setattr(jobs, "load", _load_without("wikics"))
    done = jobs.carry_out(tables.compared(scope, ["ssge", "gcn"], scope.datasets).values(), scope, quiet=True)
    assert not done.summaries
    why = {job.recipe: text for job, text in done.gaps.items()}
    assert "more than 1e-06" in why["ssge/cora"] and "not loaded: no file" in why["ssge/wikics"]
    text = tables.classification(scope, done).markdown()
    assert "- Not run: ssge/wikics, gcn/wikics: not loaded: no file\n" in text and "- (83.9)" in text


@pytest.mark.usefixtures("data_root")
def test_all_outputs_and_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = Scope(tmp_path, ("cora",), ("ssge", "mlp"), seeds=(1, 1), fast=True, minutes=0.001)
    _few_points(monkeypatch)
    written = reproduce(EXPERIMENTS, scope, quiet=True)
    assert list(written) == list(EXPERIMENTS) and all(written.values())
    for path in (path for paths in written.values() for path in paths):
        assert path.stat().st_size > 0
        if path.suffix == ".png":
            assert np.asarray(Image.open(path)).std() > 1  # something is drawn
    text = (tmp_path / "classification.md").read_text()
    for row in ("raw features", "propagated features", "untrained encoder", "MLP", "SSGE"):
        assert f"| {row} |" in text
    assert re.search(r"Cut to \d+ epochs", text)
    records = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/**/record.json")}
    assert len(records) >= 8
    reproduce(EXPERIMENTS, scope, quiet=True)
    assert records == {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/**/record.json")}


@pytest.mark.usefixtures("data_root")
def test_killed_in_the_middle_it_continues(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ssge",
        "reproduce",
        "ablation",
        "--datasets",
        "cora",
        "--fast",
        "--minutes",
        "0.01",
    ]
    command += ["--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[2/3]"):
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    assert process.returncode == -signal.SIGKILL and not (tmp_path / "out" / "ablation.md").exists()
    (first,) = (tmp_path / "out" / "runs" / "ssge" / "cora").glob("uniformity_weight=0/seed-0/record.json")
    before = first.stat().st_mtime_ns
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "ablation.md" in done.stdout and first.stat().st_mtime_ns == before


def test_densities_on_the_circle_need_two_columns(tmp_path: Path) -> None:
    from ssge.errors import InputError

    with pytest.raises(InputError, match="must have 2 columns"):
        figures.circle_densities(tmp_path / "circle.png", np.eye(3), [0, 1, 2], "title")


def _load_without(missing: str):  # type: ignore[no-untyped-def]
    from ssge.datasets import load
    from ssge.errors import InputError

    def loaded(name: str):  # type: ignore[no-untyped-def]
        if name == missing:
            raise InputError("no file")
        return load(name)

    return loaded


def _few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave two points in each sweep, and one cell of the costs."""
    from ssge.experiments import reproduce as module
    from ssge.experiments.reproduce import sweeps

    for name in ("LAMBDAS", "DIMENSIONS", "RATES"):
        monkeypatch.setattr(sweeps, name, getattr(sweeps, name)[:4])
    monkeypatch.setattr(module, "COST_SECONDS", 0.1)
    monkeypatch.setattr(module.efficiency, "PUBLISHED", {("ssge", "cora"): module.efficiency.PUBLISHED["ssge", "cora"]})
