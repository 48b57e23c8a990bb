"""The page of all baselines: made of records alone, whatever ran and whatever failed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ssge.experiments.compare import Summary
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.recipes import Recipe, load_recipe, recipes
from ssge.methods import METHODS
from ssge.records import RunRecord, Scores

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MACHINE = {"cores": "2", "processor": "Abacus", "torch": "2.0"}


@pytest.fixture
def baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, with its files in a folder of the test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import baselines

    (tmp_path / "results").mkdir()
    monkeypatch.setattr(baselines, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(baselines, "TABLES", tmp_path / "tables")
    monkeypatch.setattr(baselines, "FAILURES", tmp_path / "results" / "failures.json")
    monkeypatch.setattr(baselines, "PAGE", tmp_path / "baselines.md")
    return baselines


def record(method: str, seed: int, accuracies: list[float], recipe: str | None = None, **facts: Any) -> RunRecord:
    scores = Scores(
        protocol="paper", probe={}, splits="public", accuracies=accuracies, valid_accuracies=accuracies,
        nmi=[0.5, 0.52], ari=[0.4, 0.4], geometry={"effective_rank": 3.0},
    )  # fmt: skip
    return RunRecord(
        method=method, dataset="cora", seed=seed, config={}, recipe=recipe, machine=MACHINE, threads=1,
        scores={"paper": scores}, **facts,
    )  # fmt: skip


def summary(method: str, accuracies: list[float], dataset: str = "cora", name: str | None = None) -> Summary:
    """Return a made-up comparison with all reference rows and one run for each accuracy."""
    cls, recipe = METHODS[method], name or f"{method}/{dataset}"
    records = [record("raw features", 0, [0.55]), record("propagated features", 0, [0.7])]
    records += [record("spectral clustering", 0, [])]
    records += [record("untrained encoder", seed, [0.6 + seed / 100]) for seed in range(len(accuracies))]
    for seed, accuracy in enumerate(accuracies):
        facts = {"parameters": 12345, "seconds": 2.0 + seed, "peak_memory_mb": 400.0 + seed}
        splits = "paper" if cls.supervised else None
        records.append(record(cls.title, seed, [accuracy], recipe, splits=splits, **facts))
    published = {"accuracy": 71.5, "accuracy_deviation": 0.4}
    return Summary(
        recipe=Recipe(name=recipe, method=method, dataset=dataset, published=published),
        protocol=PROTOCOLS["paper"],
        records=records,
    )


def cells(page: str, name: str) -> list[str]:
    """Return the cells of the one row of that name."""
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_rows_of_the_page(baselines: Any) -> None:
    for made in (summary("ssge", [0.82, 0.84]), summary("gae", [0.7, 0.74], name="gae/cora-fast")):
        baselines.small(made).write(baselines.RESULTS / f"{made.recipe.method}-cora.json")
    baselines.renew()
    page = baselines.PAGE.read_text()
    assert "## cora" in page and "## pubmed" not in page
    assert "Protocol `paper` (public), encoder seeds 0-1, threads: 1, 2 cores of Abacus, torch 2.0." in page
    assert cells(page, "GAE") == [
        "GAE", "traditional", "72.00 ± 2.83", "-", "51.00 ± 0.00", "40.00 ± 0.00", "12,345", "2.5", "401", "71.5 ± 0.4",
        "`gae/cora-fast`",
    ]  # fmt: skip
    assert cells(page, "raw features")[1:7] == ["reference", "55.00", "-", "51.00", "40.00", "-"]
    assert cells(page, "spectral clustering")[2:5] == ["-", "-", "51.00"]
    assert cells(page, "untrained SSGE encoder")[2] == "60.50 ± 0.71"
    names = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    references = ["raw features", "propagated features", "spectral clustering", "untrained SSGE encoder"]
    assert names == ["", "---", *references, "GAE", "SSGE"]
    assert all(len(cells(page, name)) == len(baselines.HEADINGS) for name in names[2:])


def test_the_table_of_ssge_stands_in_for_reference_rows(baselines: Any) -> None:
    made = summary("gae", [0.7, 0.74])
    baselines.small(made).write(baselines.RESULTS / "gae-cora.json")
    baselines.TABLES.mkdir()
    summary("ssge", [0.9]).write(baselines.TABLES / "cora.json")
    baselines.renew()
    page = baselines.PAGE.read_text()
    assert cells(page, "propagated features")[2] == "70.00"
    assert cells(page, "SSGE")[2] == "90.00"
    summary("ssge", [0.8]).write(baselines.RESULTS / "ssge-cora.json")
    baselines.renew()
    assert cells(baselines.PAGE.read_text(), "SSGE")[2] == "80.00"


def test_both_probes_are_shown_where_both_were_run(baselines: Any) -> None:
    made = summary("gae", [0.7, 0.74])
    for run in made.records:
        other = run.scores["paper"].model_copy(update={"accuracies": [0.8], "protocol": "paper-lbfgs"})
        run.scores["paper-lbfgs"] = other
    page = baselines.page([made], {})
    assert cells(page, "GAE")[2:4] == ["72.00 ± 2.83", "80.00 ± 0.00"]


def test_random_splits_are_told_where_the_others_are_public(baselines: Any) -> None:
    made, sentence = summary("rgrl", [0.7, 0.74]), "as their own papers split: RGRL 80.00 ± 0.00."
    assert sentence not in baselines.page([made], {})
    for splits, told in (("10 random", True), ("public", False)):
        for run in made.records:
            other = run.scores["paper"].model_copy(update={"accuracies": [0.8], "splits": splits})
            run.scores["random"] = other
        assert (sentence in baselines.page([made], {})) is told


def test_supervised_methods_come_with_a_note(baselines: Any) -> None:
    plain = [summary("ssge", [0.8]), summary("gae", [0.7])]
    assert baselines.SUPERVISED not in baselines.page(plain, {})
    page = baselines.page([summary("gcn", [0.8]), *plain], {})
    assert baselines.SUPERVISED in page
    assert "one split per seed" in page


def test_a_failure_is_named_and_the_rest_goes_on(baselines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measure(recipe: str, seeds: int, force: bool) -> Summary | str:
        asked.append(recipe)
        return "Training needs about 99.0 GiB." if recipe == "gae/cora" and len(asked) < 3 else summary("vgae", [0.7])

    monkeypatch.setattr(baselines, "measure", measure)
    baselines.run(["cora"], ["gae", "vgae"], 1)
    assert asked == ["gae/cora", "vgae/cora"]
    assert json.loads(baselines.FAILURES.read_text()) == {"gae/cora": "Training needs about 99.0 GiB."}
    page = baselines.PAGE.read_text()
    assert "Not run, `gae/cora`: Training needs about 99.0 GiB." in page and cells(page, "VGAE")
    baselines.run(["cora"], ["gae", "vgae"], 1)  # what is there is not run again, what failed is
    assert asked == ["gae/cora", "vgae/cora", "gae/cora"]
    assert json.loads(baselines.FAILURES.read_text()) == {}
    assert "Not run" not in baselines.PAGE.read_text()


def test_only_one_summary_keeps_the_reference_rows(baselines: Any) -> None:
    assert [r.method for r in baselines.small(summary("gae", [0.7, 0.8])).records] == ["GAE", "GAE"]
    assert len(baselines.small(summary("ssge", [0.7, 0.8])).records) == 7


def test_a_process_that_fails_leaves_its_last_line(baselines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def ended(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 2, "", "a note\nwidths: too wide.\n")

    monkeypatch.setattr(baselines.subprocess, "run", ended)
    assert baselines.measure("gae/cora", 2, force=True) == "widths: too wide."
    assert commands[0][:5] == [sys.executable, "-m", "ssge", "run", "gae/cora"] and "--force" in commands[0]


def test_shortened_recipes_are_taken_where_the_published_schedule_is_too_long(baselines: Any) -> None:
    for name in recipes():
        recipe = load_recipe(name)
        if name.endswith("-fast"):
            assert baselines.chosen(recipe.method, recipe.dataset, True) == name.removesuffix("-fast")
            expected = name if recipe.method not in baselines.IN_TIME else name.removesuffix("-fast")
            assert baselines.chosen(recipe.method, recipe.dataset, False) == expected
    assert baselines.chosen("ssge", "cora", False) == "ssge/cora"
    assert baselines.chosen("ssge", "karate", False) is None


def test_the_page_is_that_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import baselines

    assert baselines.page(baselines.read_summaries(), baselines.read_failures()) == baselines.PAGE.read_text()
