"""Tables of recipes: made of records alone, whatever ran and whatever failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pages
import recipes as script
from ssge.experiments.compare import Summary
from ssge.experiments.protocols import PROTOCOLS
from ssge.methods import METHODS
from ssge.records import RunRecord, Scores
from ssge.runs.recipes import Recipe, load_recipe, recipes

MACHINE = {"cores": "2", "processor": "Abacus", "torch": "2.0"}
CONFIG = {"epochs": 10, "lr": 1e-3, "uniformity_weight": 0.5, "batch_nodes": None}


def record(method: str, seed: int, accuracies: list[float], recipe: str | None = None, **facts: Any) -> RunRecord:
    scores = Scores(
        protocol="paper", probe={}, splits="public", accuracies=accuracies, valid_accuracies=accuracies,
        nmi=[0.5, 0.52], ari=[0.4, 0.4], geometry={"effective_rank": 3.0},
    )  # fmt: skip
    return RunRecord(
        method=method, dataset="cora", seed=seed, config=dict(CONFIG), recipe=recipe, machine=MACHINE, threads=1,
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


def test_rows_of_the_page_of_baselines() -> None:
    made = [summary("ssge", [0.82, 0.84]), summary("gae", [0.7, 0.74], name="gae/cora-fast")]
    made.append(summary("ssge", [0.1], name="ssge/cora-fast"))  # has a table of its own
    page = script.baselines(made)
    assert "## cora" in page and "## pubmed" not in page
    assert "- Splits: public; encoder seeds 0-1; 1 thread, 2 cores of Abacus, torch 2.0." in page
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
    assert {len(cells(page, name)) for name in names} == {11}


def test_each_probe_has_its_column_whichever_the_recipe_names() -> None:
    for named in ("paper", "paper-lbfgs"):
        made = summary("gae", [0.7, 0.74]).model_copy(update={"protocol": PROTOCOLS[named]})
        for run in made.records:
            other = run.scores["paper"].model_copy(update={"accuracies": [0.8], "protocol": "paper-lbfgs"})
            run.scores["paper-lbfgs"] = other
        assert cells(script.baselines([made]), "GAE")[2:4] == ["72.00 ± 2.83", "80.00 ± 0.00"]


def test_random_splits_are_told_where_the_others_are_public() -> None:
    made, sentence = summary("rgrl", [0.7, 0.74]), "as their own papers split: RGRL 80.00 ± 0.00."
    assert sentence not in script.baselines([made])
    for splits, told in (("10 random", True), ("public", False)):
        for run in made.records:
            run.scores["random"] = run.scores["paper"].model_copy(update={"accuracies": [0.8], "splits": splits})
        assert (sentence in script.baselines([made])) is told


def test_supervised_methods_have_one_split_per_seed() -> None:
    page = script.baselines([summary("gcn", [0.8]), summary("ssge", [0.8])])
    assert "- One split per seed (public), for training and scoring; encoder seeds 0-0;" in page


def test_results_show_the_recipe_s_protocol_and_the_published_figures() -> None:
    made = [summary("ssge", [0.8, 0.9]), summary("ssge", [0.7], name="ssge/cora-fast"), summary("gae", [0.7])]
    text = script.results(made)
    assert text.startswith("**cora**: protocol `paper` (public), encoder seeds 0-1, 1 thread, 2 cores of Abacus")
    assert cells(text, "SSGE")[1:3] == ["85.00", "7.07"] and cells(text, "published")[1:3] == ["71.5", "0.4"]
    assert text.count("**") == 2


def test_the_overview_has_a_column_per_graph_and_names_those_without_a_record() -> None:
    made = [summary("ssge", [0.8, 0.9]), summary("ssge", [0.7], dataset="computer"), summary("gae", [0.7])]
    made.append(summary("ssge", [0.1], dataset="pubmed", name="ssge/pubmed-fast"))  # no recipe of the paper
    text = script.overview(made)
    assert cells(text, "") == ["", "cora", "computer"]
    assert cells(text, "SSGE")[1:] == ["85.0 ± 7.1 / 51.0", "70.0 / 51.0"]
    assert cells(text, "propagated features, A²X")[1:] == ["70.0 / 51.0"] * 2
    assert cells(text, "untrained encoder")[1:] == ["60.5 ± 0.7 / 51.0", "60.0 / 51.0"]
    assert cells(text, "published")[1:] == ["71.5 ± 0.4 / -"] * 2
    assert "mean of 8 hops" not in text  # in no record
    assert "means over 1-2 encoder seeds" in text
    assert "No record yet: citeseer, pubmed, coauthor_cs." in text
    made[1].records.append(record("mean of 8 hops", 0, [0.75]))
    assert cells(script.overview(made), "mean of 8 hops")[1:] == ["-", "75.0 / 51.0"]
    assert script.overview(made[2:]) == ""


def test_fast_recipes_stand_beside_those_of_the_paper() -> None:
    made = [summary("ssge", [0.8, 0.82]), summary("ssge", [0.83, 0.85], name="ssge/cora-fast")]
    assert script.fast(made[:1]) == ""
    for run in made[1].records:
        run.config |= {"epochs": 5, "batch_nodes": 64}
        run.seconds /= 2
    assert cells(script.fast(made), "cora") == [
        "cora", "10, 0.001, 0.5", "5, 0.001, 0.5, 64", "81.00 ± 1.41", "84.00 ± 1.41", "+3.00 ± 1.41", "51.0", "51.0",
        "0.50",
    ]  # fmt: skip


def test_the_paper_s_table_names_other_protocols_and_numbers_of_seeds() -> None:
    made = [summary("ssge", [0.8] * 4), *(summary(name, [0.7] * 3) for name in ("dgi", "gae")), summary("g_bt", [0.7])]
    for one in made[1::2]:
        one.protocol = PROTOCOLS["paper-lbfgs"]
        for run in one.records:
            run.scores["paper-lbfgs"] = run.scores["paper"]
    assert (
        "- cora: protocol `paper` (`paper-lbfgs` for DGI, G-BT), public; SSGE with 4 seeds, others with 3 (G-BT 1);"
        in script.classification(made)
    )


def test_a_failure_is_named_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def run(recipe: Recipe, seeds: int) -> Summary | str:
        asked.append((recipe.name, seeds))
        return "Training needs about 99.0 GiB." if recipe.method == "gae" else summary("vgae", [0.7] * seeds)

    monkeypatch.setattr(script, "run", run)
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    failed = script.measure([load_recipe("gae/cora"), load_recipe("vgae/cora")], 2)
    assert asked == [("gae/cora", 1), ("vgae/cora", 1), ("vgae/cora", 2)]  # seed by seed, in turn
    assert failed == {"gae/cora": "Training needs about 99.0 GiB."}
    assert len(Summary.read(tmp_path / "recipes" / "vgae" / "cora.json").records) == 7
    assert not (tmp_path / "recipes" / "gae").exists()
    asked.clear()
    script.measure([load_recipe("vgae/cora"), load_recipe("vgae/citeseer")], 2, in_turn=False)
    assert asked == [("vgae/cora", 2), ("vgae/citeseer", 2)]


def test_a_record_is_due_when_missing_stale_or_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = load_recipe("gae/cora")
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    assert script.due(recipe, 1)
    script.path_of(recipe).parent.mkdir(parents=True)
    summary("gae", [0.7, 0.8]).write(script.path_of(recipe))
    assert script.due(recipe, 1)
    monkeypatch.setattr(pages, "stale", lambda path: [])
    assert not script.due(recipe, 2) and script.due(recipe, 3)


def test_a_record_with_scores_by_the_protocol_that_its_recipe_names_now_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load_recipe("gmi/cora")
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    script.rename_protocol(recipe)  # no record yet
    found = summary("gmi", [0.7, 0.8])
    script.path_of(recipe).parent.mkdir(parents=True)
    found.write(script.path_of(recipe))
    script.rename_protocol(recipe)
    assert Summary.read(script.path_of(recipe)).protocol.name == "paper"  # not scored by that of the recipe
    for one in found.records:
        one.scores[recipe.protocol] = one.scores["paper"].model_copy(update={"protocol": recipe.protocol})
    found.write(script.path_of(recipe))
    script.rename_protocol(recipe)
    renamed = Summary.read(script.path_of(recipe))
    assert renamed.protocol == PROTOCOLS["paper-lbfgs"] and renamed.recipe == recipe
    assert renamed.records == found.records


def test_a_process_that_fails_leaves_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def ended(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 2, "", "a note\nwidths: too wide.\n")

    monkeypatch.setattr(subprocess, "run", ended)
    assert script.run(load_recipe("gae/cora"), 2) == "widths: too wide."
    assert commands[0][:5] == [sys.executable, "-m", "ssge", "run", "gae/cora"] and "--skip-references" in commands[0]
    script.run(load_recipe("ssge/cora"), 2)
    assert "--skip-references" not in commands[1]


def test_the_recipe_s_own_protocol_comes_last() -> None:
    for name in recipes():
        recipe = load_recipe(name)
        assert script.protocols(recipe)[-1] == recipe.protocol
    assert script.protocols(load_recipe("bgrl/cora")) == ["paper", "paper-lbfgs"]
    assert script.protocols(load_recipe("dgi/cora")) == ["paper", "paper-lbfgs", "last-step"]
    assert script.protocols(load_recipe("rgrl/cora")) == ["random", "paper-lbfgs", "paper"]


def test_shortened_recipes_are_taken_where_the_published_schedule_is_too_long() -> None:
    every = {load_recipe(name).method for name in recipes()}
    for published in (False, True):
        names = [recipe.name for recipe in script.selected(every, script.DATASETS, published)]
        assert len(names) == len(set(names)) and names[0] == "ssge/cora" and "ssge/cora-fast" in names
        assert ("bgrl/computer" in names) is published and ("bgrl/computer-fast" in names) is not published
        assert "bgrl/cora" in names and "gae/computer" in names
