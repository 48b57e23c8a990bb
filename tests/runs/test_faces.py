"""The two faces of a run: command line and Python resolve the same plan and leave the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.commands import code_of
from ssge import GraphEmbedder, load_dataset, read_graph
from ssge.cli import _requested_method
from ssge.datasets import load
from ssge.experiments.compare import compare, score
from ssge.experiments.protocols import PROTOCOLS
from ssge.graph import Graph
from ssge.methods import METHODS
from ssge.runs.folder import CONFIG, RunFolder
from ssge.runs.plan import plan
from ssge.runs.recipes import Recipe, load_recipe
from ssge.training import allocator

FEW: dict[str, Any] = {"epochs": 2}
QUICK = PROTOCOLS["quick"].model_copy(update={"cluster_seeds": 1})


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table of calls and a table of people in two teams, called like a dataset."""
    folder = tmp_path_factory.mktemp("tables")
    n = 60
    edges = [f"p{i},p{(i + step) % n},{1 + i % 3}" for i in range(n) for step in (1, 4, 9)]
    people = [f"p{i},{i % 7},{i % 5 / 5},{('red', 'blue')[i % 2]}" for i in range(n)]
    (folder / "cora.csv").write_text("\n".join(["source,target,weight", *edges]) + "\n")
    (folder / "people.csv").write_text("\n".join(["id,age,size,team", *people]) + "\n")
    return folder


def of_the_command_line(out: Path, method: str, *words: str | Path) -> Path:
    few = [word for key, value in short(method).items() for word in (f"--{key}", str(value))]
    assert code_of("fit", *words, "--method", method, *few, "--seed", "3", "--out", out, "--quiet") == 0
    return out


def short(method: str) -> dict[str, Any]:
    """Return settings of a short training, if there is any training."""
    return FEW if METHODS[method].trained else {}


def same(model: GraphEmbedder, run: Path, tmp_path: Path) -> None:
    """Compare embedding, weights and settings byte by byte."""
    model.save(tmp_path / "saved")
    mine, theirs = RunFolder(tmp_path / "saved"), RunFolder(run)
    assert mine.embedding.read_bytes() == theirs.embedding.read_bytes()
    assert (mine.path / CONFIG).read_bytes() == (theirs.path / CONFIG).read_bytes()
    ours, other = mine.read_model().state_dict(), theirs.read_model().state_dict()
    assert all(np.array_equal(ours[name], other[name]) for name in other) and ours.keys() == other.keys()


@pytest.mark.parametrize("method", list(METHODS))
def test_karate_gives_the_same_bytes_from_both(method: str, tmp_path: Path) -> None:
    run = of_the_command_line(tmp_path / "run", method, "karate")
    graph = load_dataset("karate")
    model = GraphEmbedder(method, **short(method), random_state=3).fit(graph)
    same(model, run, tmp_path)
    again = GraphEmbedder.load(run).fit(graph)
    assert again.embedding_.tobytes() == model.embedding_.tobytes()


@pytest.mark.parametrize("method", list(METHODS))
def test_tables_of_one_s_own_give_the_same_bytes_from_both(method: str, tables: Path, tmp_path: Path) -> None:
    nodes: tuple[str | Path, ...] = ("--nodes", tables / "people.csv", "--label", "team")
    options: dict[str, Any] = {"label": "team"}
    if "X" not in METHODS[method].inputs.split(", "):
        nodes, options = (*nodes, "--features", "degree"), options | {"features": "degree"}
    run = of_the_command_line(tmp_path / "run", method, tables / "cora.csv", *nodes)
    graph = read_graph(tables / "cora.csv", tables / "people.csv", **options)
    same(GraphEmbedder(method, **short(method), random_state=3).fit(graph), run, tmp_path)


@pytest.mark.parametrize(
    ("words", "method"),
    [
        ("fit --method bgrl --out run data/edges.csv --momentum .9", "bgrl"),
        ("fit --momentum .9 data/edges.csv --out fit/run --method=bgrl", "bgrl"),
        ("fit edges.csv --out run", "ssge"),
        ("fit run --out ssge/run --recipe gae/cora", "gae"),
        ("run --lr 0.1 cca_ssg/cora", "cca_ssg"),
        ("run --out ssge/cora bgrl/cora --out bgrl/cora", "bgrl"),
        ("run --skip-references GAE/cora", "gae"),
        ("run nothing", "ssge"),
        ("run OWN", "g_bt"),
        ("fit cora --recipe OWN --out x", "g_bt"),
        ("fit grown.csv --warm-start BEFORE --out x", "vgae"),
        ("estimate cora --widths 8 4 --method afgrl", "afgrl"),
        ("fit --method bgrl --help", "bgrl"),
        ("fit x --out y --method nonsense", "ssge"),
    ],
)
def test_flags_are_those_of_the_method_that_is_asked_for(words: str, method: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('method = "g_bt"\ndataset = "karate"\n')
    before = tmp_path / "before"
    GraphEmbedder("vgae", **FEW, random_state=0).fit(load_dataset("karate")).save(before)
    line = words.replace("OWN", str(tmp_path / "own.toml")).replace("BEFORE", str(before)).split()
    assert METHODS[_requested_method(line)] is METHODS[method]


def test_help_shows_the_settings_of_the_method(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("fit", "--method", "bgrl", "--help") == 0
    shown = capsys.readouterr().out
    assert "--momentum" in shown and "--uniformity-weight" not in shown


def compared(out: Path, graph: Graph, force: bool = False) -> list[str]:
    recipe = Recipe(name="mine", method="ssge", dataset="mine", config={"epochs": 1, "widths": [8, 4]})
    summary = compare(recipe, graph, QUICK, 1, out / "runs", references=out / "shared", force=force, quiet=True)
    return [record.date for record in summary.records]


def test_force_scores_shared_reference_rows_again(tmp_path: Path) -> None:
    graph = load_dataset("sbm:nodes=200,classes=2,features=8")
    compared(tmp_path, graph)
    for path in (tmp_path / "shared").iterdir():
        path.write_text(path.read_text().replace('"date": "20', '"date": "19'))
    assert any(date.startswith("19") for date in compared(tmp_path, graph))
    assert not any(date.startswith("19") for date in compared(tmp_path, graph, force=True))


def test_the_card_is_renewed_when_a_run_is_scored(tmp_path: Path) -> None:
    graph = load_dataset("sbm:nodes=200,classes=2,features=8")
    compared(tmp_path, graph)
    folder = RunFolder(tmp_path / "runs" / "seed-0")
    assert "| quick |" in (folder.path / "README.md").read_text()
    score(folder, graph, PROTOCOLS["random"].model_copy(update={"cluster_seeds": 1}))
    assert (
        "| random |" in (folder.path / "README.md").read_text()
        and "| quick |" in (folder.path / "README.md").read_text()
    )


def test_a_file_called_like_a_dataset_is_scored_as_a_file(tables: Path, tmp_path: Path) -> None:
    run, name = tmp_path / "run", tables / "citeseer.csv"
    name.write_bytes((tables / "cora.csv").read_bytes())
    of_the_command_line(run, "ssge", name, "--nodes", tables / "people.csv", "--label", "team")
    assert code_of("evaluate", run, "--protocol", "paper") == 0
    record = RunFolder(run).read_record()
    assert record.name == "citeseer" and record.scores["paper"].probe["weight_decay"] == 1e-4


def test_an_estimator_leaves_the_allocator_of_its_host_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, name: int, value: int) -> None:
            calls.append((name, value))

        def malloc_trim(self, _: int) -> None:
            pass

    monkeypatch.setattr(allocator, "_glibc", Library)
    GraphEmbedder("ssge", **FEW).fit(load_dataset("karate"))
    assert calls == []
    assert code_of("fit", "karate", "--epochs", "1", "--out", tmp_path / "run", "--quiet") == 0
    assert calls


def test_layers_of_settings() -> None:
    info = load("karate").info
    sized = METHODS["ssge"].default_config(info)
    assert plan(info).config.epochs == sized["epochs"]
    recipe = load_recipe("ssge/cora")
    assert plan(info, recipe="ssge/cora").config.epochs == recipe.config["epochs"] != sized["epochs"]
    assert plan(info, recipe="ssge/cora", settings={"epochs": 7, "lr": None}).config.epochs == 7
    assert plan(info, recipe="ssge/cora", settings={"lr": None}).config.lr == recipe.config["lr"]


def test_a_file_of_settings_lies_between_recipe_and_flags(tmp_path: Path) -> None:
    info, file = load("karate").info, tmp_path / "config.toml"
    file.write_text("epochs = 5\nedge_drop = 0.9\n")
    found = plan(info, recipe="ssge/cora", config_file=file, settings={"edge_drop": 0.1}).config
    assert (found.epochs, found.edge_drop) == (5, 0.1)  # type: ignore[attr-defined]


def test_the_whole_plan_decides_the_weights() -> None:
    graph = load("karate")
    first, same_seed, other = (replace(plan(graph.info), seed=seed).build(graph) for seed in (0, 0, 1))
    weights = [next(method.parameters()).detach().numpy() for method in (first, same_seed, other)]
    assert np.array_equal(weights[0], weights[1]) and not np.array_equal(weights[0], weights[2])
