"""Supervised methods in experiments: which labels they see, on which nodes they are judged, and by what."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cli.commands import code_of
from graphs import random_graph
from ssge.datasets import random_splits, split_of
from ssge.errors import InputError
from ssge.experiments import compare as comparing
from ssge.experiments.compare import compare, score
from ssge.experiments.protocols import PROTOCOLS, Protocol, evaluate_classifier
from ssge.graph import Graph, Split
from ssge.methods import METHODS
from ssge.ops.random import Key
from ssge.runs import fit as running
from ssge.runs.card import card
from ssge.runs.estimate import estimate
from ssge.runs.folder import RunFolder
from ssge.runs.plan import Start, info_for, plan, resolve_config
from ssge.runs.recipes import Recipe, load_recipe, recipes
from ssge.training.checkpoint import build

PUBLIC = Split(np.arange(0, 30), np.arange(30, 60), np.arange(60, 160))
OTHER = Split(np.arange(100, 130), np.arange(30, 60), np.arange(0, 30))
GRAPH = replace(random_graph(n=200, p=6, m=500), splits=(PUBLIC,), name="cora")
QUICK = PROTOCOLS["quick"].model_copy(update={"cluster_seeds": 1})
RELEASED = PROTOCOLS["released-code"].model_copy(update={"cluster_seeds": 1})
SHORT: dict[str, Any] = {"epochs": 4}
SUPERVISED = [name for name in METHODS if METHODS[name].supervised]


def fit(
    graph: Graph, name: str, settings: dict[str, Any], out: Path | None = None, seed: int = 0, **options: Any
) -> Any:
    """Fit a method with some settings."""
    planned = plan(graph.info, name, settings=settings, seed=seed)
    return running.fit(graph, planned, None if out is None else RunFolder(out), **options)


def labels_changed(nodes: np.ndarray, graph: Graph = GRAPH) -> Graph:
    """Return a graph in which the classes of some nodes are others; all classes are still there."""
    assert graph.labels is not None
    labels = graph.labels.copy()
    labels[nodes] = (labels[nodes] + 1) % 3
    return replace(graph, labels=labels)


def perfect(nodes: np.ndarray) -> np.ndarray:
    """Return class scores that are right at some nodes and wrong at all others."""
    assert GRAPH.labels is not None
    guesses = (GRAPH.labels + 1) % 3
    guesses[nodes] = GRAPH.labels[nodes]
    rng = np.random.default_rng(0)
    return np.eye(3)[guesses] + 0.1 * rng.normal(size=(200, 3))


def test_there_are_three_of_them() -> None:
    assert SUPERVISED == ["gat", "gcn", "mlp"]
    assert {METHODS[name].family for name in SUPERVISED} == {"supervised"}
    assert {name: METHODS[name].inputs for name in SUPERVISED} == {"gat": "A, X, Y", "gcn": "A, X, Y", "mlp": "X, Y"}


@pytest.mark.parametrize("protocol", [QUICK, RELEASED], ids=["quick", "released-code"])
def test_accuracy_is_of_the_test_nodes_and_of_class_scores_alone(protocol: Protocol) -> None:
    split = split_of(GRAPH, protocol.splits, 0)
    assert evaluate_classifier(perfect(split.test), GRAPH, protocol, 0).accuracies == [1.0]
    assert evaluate_classifier(perfect(split.valid), GRAPH, protocol, 0).accuracies == [0.0]
    both = evaluate_classifier(perfect(np.concatenate([split.train, split.valid])), GRAPH, protocol, 0)
    assert (both.accuracies, both.valid_accuracies) == ([0.0], [1.0])
    half = evaluate_classifier(perfect(split.test[: split.test.size // 2]), GRAPH, protocol, 0)
    assert half.accuracies == [(split.test.size // 2) / split.test.size]
    assert half.probe == {}


def test_clusters_are_of_the_test_nodes() -> None:
    scores = perfect(PUBLIC.test)
    plain = evaluate_classifier(scores, GRAPH, QUICK, 0)
    assert plain.nmi == [pytest.approx(1)]
    rest = np.setdiff1d(np.arange(200), PUBLIC.test)
    assert evaluate_classifier(scores, labels_changed(rest), QUICK, 0).nmi == plain.nmi
    assert evaluate_classifier(scores, labels_changed(PUBLIC.test[::2]), QUICK, 0).nmi[0] < 0.9


def test_a_factor_changes_no_score() -> None:
    scores = perfect(PUBLIC.test[::2])
    assert (
        evaluate_classifier(1000 * scores, GRAPH, QUICK, 0).accuracies
        == evaluate_classifier(scores, GRAPH, QUICK, 0).accuracies
    )


def test_each_seed_has_its_split_in_a_circle() -> None:
    several = replace(GRAPH, splits=(PUBLIC, OTHER))
    for seed, expected in enumerate((PUBLIC, OTHER, PUBLIC)):
        assert np.array_equal(split_of(several, "paper", seed).train, expected.train)
    assert np.array_equal(split_of(GRAPH, "paper", 7).train, PUBLIC.train)
    bare, drawn = replace(GRAPH, splits=()), random_splits(200, 200)
    for seed in (0, 3, 9, 13):
        for found, expected_part in zip(split_of(bare, "paper", seed), drawn[seed % 10], strict=True):
            assert np.array_equal(found, expected_part)
    assert split_of(replace(GRAPH, name="citeseer"), "released-code", 0).valid.size == 160
    with pytest.raises(InputError, match="has no labels"):
        split_of(GRAPH.without_labels(), "paper", 0)


@pytest.mark.parametrize("name", SUPERVISED)
def test_labels_of_other_nodes_change_no_byte_and_those_of_training_nodes_do(name: str) -> None:
    config = SHORT

    def vectors(graph: Graph, seed: int = 0) -> bytes:
        return fit(graph, name, config, seed=seed).embedding.vectors.tobytes()

    hidden = np.setdiff1d(np.arange(200), PUBLIC.train)
    assert vectors(GRAPH) == vectors(labels_changed(hidden))
    assert vectors(GRAPH) != vectors(labels_changed(PUBLIC.train))
    several = replace(GRAPH, splits=(PUBLIC, OTHER))  # seed 1 learns from the second split alone
    hidden = np.setdiff1d(np.arange(200), OTHER.train)
    assert vectors(several, 1) == vectors(labels_changed(hidden, several), 1)
    assert vectors(several, 1) != vectors(labels_changed(OTHER.train, several), 1)


@pytest.mark.parametrize("keep", ["best", "loss"])
@pytest.mark.parametrize("name", SUPERVISED)
def test_labels_of_test_nodes_do_not_choose_the_best_epoch_and_those_of_validation_nodes_do(
    name: str, keep: str
) -> None:
    config = {"epochs": 12, "keep": keep, "lr": 0.1}

    def kept(graph: Graph) -> tuple[float, bytes]:
        run = fit(graph, name, config)
        return run.record.final["epoch"], run.embedding.vectors.tobytes()

    hidden = np.setdiff1d(np.arange(200), np.concatenate([PUBLIC.train, PUBLIC.valid]))
    assert kept(GRAPH) == kept(labels_changed(hidden))
    several = replace(GRAPH, splits=(PUBLIC, PUBLIC._replace(valid=PUBLIC.test)))
    assert kept(GRAPH) == kept(several)  # seed 0 has the first split
    epochs = {kept(labels_changed(PUBLIC.valid[start:])) for start in range(0, 30, 5)}
    assert len(epochs) > 1  # which also shows that other weights are kept


@pytest.mark.parametrize("keep", ["last", "best"])
def test_what_a_method_is_given_holds_labels_of_training_nodes_alone(
    keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Graph] = []
    prepare = METHODS["gcn"].prepare
    monkeypatch.setattr(METHODS["gcn"], "prepare", lambda self, graph: (seen.append(graph), prepare(self, graph))[1])
    fit(GRAPH, "gcn", SHORT | {"keep": keep})
    assert seen
    for graph in seen:
        assert graph.labels is not None and GRAPH.labels is not None
        assert np.array_equal(np.flatnonzero(graph.labels >= 0), PUBLIC.train)
        assert np.array_equal(graph.labels[PUBLIC.train], GRAPH.labels[PUBLIC.train])
        assert (graph.splits, graph.class_names) == ((), ())


def test_a_class_that_no_training_node_has_keeps_its_column() -> None:
    assert GRAPH.labels is not None
    labels = np.where(np.isin(np.arange(200), PUBLIC.train), GRAPH.labels % 2, 2)
    run = fit(replace(GRAPH, labels=labels), "gcn", SHORT)
    assert run.embedding.vectors.shape == (200, 3)


def test_training_needs_labels_and_training_nodes() -> None:
    nobody = PUBLIC._replace(train=np.array([], dtype=np.int64))
    with pytest.raises(InputError, match="at least 1 training node"):
        fit(replace(GRAPH, splits=(nobody,)), "gcn", SHORT)
    for action in (fit, lambda g, n, s: estimate(g, plan(g.info, n, settings=s))):
        with pytest.raises(InputError, match="has no labels"):
            action(GRAPH.without_labels(), "gcn", {})


def test_the_best_epoch_needs_validation_nodes() -> None:
    graph = replace(GRAPH, splits=(PUBLIC._replace(valid=np.array([], dtype=np.int64)),))
    with pytest.raises(InputError, match="keeps its best epoch, so there must be at least 1 validation node"):
        fit(graph, "gcn", SHORT | {"keep": "best"})


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize("widths", [(), (5,), (5, 4)])
def test_any_number_of_hidden_layers_can_be_estimated_and_fitted(name: str, widths: tuple[int, ...]) -> None:
    config = SHORT | {"widths": widths}
    run = fit(GRAPH, name, config)
    assert run.embedding.vectors.shape == (200, 3)
    found = estimate(GRAPH, plan(GRAPH.info, name, settings=config))
    assert found.parameters == run.record.parameters
    assert found.memory > 0


def test_only_chosen_layers_are_penalized() -> None:
    for name, penalized, sizes in (("gcn", "first", [2, 2]), ("mlp", "all", [4]), ("gat", "all", [8])):
        method = build(name, {"decay_layers": penalized, "weight_decay": 0.1}, info_for(METHODS[name], GRAPH))
        groups = method.optimizer().param_groups
        assert [len(group["params"]) for group in groups] == sizes
        assert [group["weight_decay"] for group in groups] == [0.1, 0.0][: len(sizes)]
        assert {id(p) for group in groups for p in group["params"]} == {id(p) for p in method.parameters()}
    first = build("gcn", {}, info_for(METHODS["gcn"], GRAPH))
    assert first.optimizer().param_groups[0]["params"][0] is first.encoder.layers[0].weight  # type: ignore[index]


@pytest.mark.parametrize("name", SUPERVISED)
def test_dropout_is_of_training_alone(name: str) -> None:
    method = build(name, SHORT, info_for(METHODS[name], GRAPH), dtype=torch.float64)
    view, draw = method.prepare(GRAPH.with_labels_of(PUBLIC.train)), Key(0)
    assert method(view, draw).total != method(view, draw.fold_in(1)).total
    torch.testing.assert_close(method.embed(GRAPH), method.embed(GRAPH), rtol=0, atol=0)
    plain = build(name, SHORT | {"dropout": 0, "input_dropout": 0}, info_for(METHODS[name], GRAPH), dtype=torch.float64)
    labels = torch.from_numpy(GRAPH.labels)[PUBLIC.train]  # type: ignore[index]
    expected = torch.nn.functional.cross_entropy(plain.embed(GRAPH)[PUBLIC.train], labels)
    torch.testing.assert_close(plain(view, draw).total, expected)


def test_mlp_sees_no_edge() -> None:
    bare = Graph.of(edges=np.zeros((2, 0), dtype=np.int64), features=GRAPH.features, labels=GRAPH.labels)
    runs = [fit(g, "mlp", SHORT) for g in (replace(bare, splits=(PUBLIC,)), GRAPH)]
    assert runs[0].embedding.vectors.tobytes() == runs[1].embedding.vectors.tobytes()


def test_a_run_is_judged_on_the_split_of_its_seed(tmp_path: Path) -> None:
    graph = replace(GRAPH, splits=(PUBLIC, OTHER), name="own")
    recipe = Recipe(name="mine", method="gcn", dataset="own")
    config = {"epochs": 30}
    summary = compare(recipe, graph, QUICK, 2, tmp_path, settings=config)
    assert graph.labels is not None
    for seed, split in enumerate((PUBLIC, OTHER)):
        folder = RunFolder(tmp_path / f"seed-{seed}")
        right = folder.read_embedding().vectors.argmax(1) == graph.labels
        record = folder.read_record()
        assert record.splits == "paper"
        assert record.scores["quick"].accuracies == [right[split.test].mean()]
        assert record.scores["quick"].valid_accuracies == [right[split.valid].mean()]
        assert right[split.train].mean() > right[split.test].mean()
    names = [row.name for row in summary.rows()]
    assert {"GCN", "untrained encoder", "raw features"} <= set(names)
    with pytest.raises(InputError, match="other settings, data or training nodes"):
        compare(recipe, graph, RELEASED, 2, tmp_path, settings=config)


def test_other_splits_than_those_of_training_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "run")
    fit(GRAPH, "gcn", SHORT, out=folder.path)
    monkeypatch.setattr(comparing, "evaluate", None)  # no probe is trained on class scores
    with pytest.raises(InputError, match="trained on the training nodes of splits 'paper'"):
        score(folder, GRAPH, RELEASED)
    assert folder.read_record().scores == {}
    assert len(score(folder, GRAPH, QUICK).scores["quick"].accuracies) == 1


def test_no_run_starts_from_labels_that_may_be_tested(tmp_path: Path) -> None:
    config = SHORT
    fit(GRAPH, "gcn", config, out=tmp_path / "run")
    with pytest.raises(InputError, match="GCN cannot start from another run"):
        plan(GRAPH.info, start=Start(RunFolder(tmp_path / "run").read_model(), "run"))


def test_resuming_with_other_training_nodes_is_refused(tmp_path: Path) -> None:
    config = SHORT
    with pytest.raises(Exception, match="Stopped after epoch 2"):
        fit(GRAPH, "gcn", config, out=tmp_path, observers=[lambda line: line["epoch"] == 2])
    other = replace(GRAPH, splits=(OTHER,))
    with pytest.raises(InputError, match="is of another run: its graph is"):
        fit(other, "gcn", config, out=tmp_path, resume=True)
    resumed = fit(GRAPH, "gcn", config, out=tmp_path, resume=True)
    whole = fit(GRAPH, "gcn", config)
    assert resumed.embedding.vectors.tobytes() == whole.embedding.vectors.tobytes()


def test_history_and_record_tell_of_the_best_epoch(tmp_path: Path) -> None:
    run = fit(GRAPH, "gcn", SHORT | {"keep": "best"}, out=tmp_path)
    history = RunFolder(tmp_path).read_history()
    assert [line["valid_accuracy"] for line in history] == [line["valid_accuracy"] for line in run.history]
    assert RunFolder(tmp_path).read_record().final == max(
        history, key=lambda line: (line["valid_accuracy"], -line["valid_loss"])
    )
    scored = evaluate_classifier(run.embedding.vectors, GRAPH, QUICK, 0)
    assert scored.valid_accuracies == [max(line["valid_accuracy"] for line in history)]


@pytest.mark.parametrize("keep", ["last", "best"])
def test_the_card_says_whose_labels_chose_the_epoch(keep: str) -> None:
    run = fit(GRAPH, "gcn", SHORT | {"keep": keep})
    text = " ".join(card(run.record).split())
    for said in (
        "of splits 'paper' (those of its validation nodes chose the epoch) by GCN",
        f"| epochs | 4; kept: epoch {run.record.final['epoch']:.0f}, the best on validation nodes |",
        "labels of training nodes, at an epoch chosen by those of validation nodes: a test on these nodes",
    ):
        assert (said in text) == (keep == "best")
    assert ("validation" in text) == (keep == "best")


def test_the_card_says_that_labels_were_seen() -> None:
    for method, said, unsaid in (
        ("gcn", "class scores, learned from the labels", "without labels"),
        ("ssge", "without labels", "class scores"),
    ):
        run = fit(GRAPH, method, SHORT | {"widths": (8, 4)})
        text = card(run.record)
        assert said in text
        assert unsaid not in text
        assert ("Training was given no labels" in text) == (method == "ssge")


def write_tables(folder: Path, n: int = 60) -> list[str | Path]:
    """Write a ring of n people in two teams, which their size tells; return the words that read it."""
    edges = [f"{i},{(i + step) % n}" for i in range(n) for step in (2, 6)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    people = [f"{i},{i % 2 + (i % 7) / 10},{('red', 'blue')[i % 2]}" for i in range(n)]
    (folder / "nodes.csv").write_text("\n".join(["id,size,team", *people]) + "\n")
    return [folder / "edges.csv", "--nodes", folder / "nodes.csv"]


def test_commands_fit_evaluate_and_embed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables, out = write_tables(tmp_path), tmp_path / "run"
    words = ["--method", "gcn", "--widths", "8", "--epochs", "60", "--quiet"]
    assert code_of("fit", *tables, *words, "--out", out) == 2
    assert "has no labels" in capsys.readouterr().err
    assert code_of("fit", *tables, "--label", "team", *words, "--out", out) == 0
    capsys.readouterr()
    assert code_of("evaluate", out, "--protocol", "quick", "--json") == 0
    scores = json.loads(capsys.readouterr().out)
    assert len(scores["accuracies"]) == 1
    assert scores["accuracies"][0] > 0.8
    assert code_of("evaluate", out, "--protocol", "quick") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "quick: its own class scores" in shown
    assert "regression" not in shown
    assert code_of("evaluate", out, "--protocol", "released-code") == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert [line for line in error if line.startswith("ssge: ")] == error[-1:]
    assert "splits 'released-code' cannot score it" in error[-1]
    assert code_of("embed", out, *tables, "--out", tmp_path / "again.npy") == 0
    again = np.load(tmp_path / "again.npy")
    np.testing.assert_allclose(again, RunFolder(out).read_embedding().vectors, rtol=1e-5, atol=1e-6)
    write_tables(tmp_path, 64)
    assert code_of("embed", out, *tables, "--only", "new", "--out", tmp_path / "new.npy") == 0
    assert np.load(tmp_path / "new.npy").shape == (4, 2)
    assert code_of("fit", *tables, "--label", "team", "--warm-start", out, "--out", tmp_path / "next") == 2
    assert "cannot start from another run" in capsys.readouterr().err


PAPER = {  # typed from the paper's Table 3
    "mlp": (57.8, 54.2, 72.8, 71.98, 73.81, 90.37, 55.50),
    "gcn": (81.5, 70.2, 79.0, 77.19, 86.51, 93.03, 71.74),
    "gat": (83.0, 72.5, 79.0, 77.65, 86.93, 92.31, 72.10),
}
DATASETS = ("cora", "citeseer", "pubmed", "wikics", "computer", "coauthor_cs", "arxiv")


@pytest.mark.parametrize("method", SUPERVISED)
def test_recipes_have_the_paper_s_figures_and_say_what_they_are(method: str) -> None:
    for dataset, accuracy in zip(DATASETS, PAPER[method], strict=True):
        recipe = load_recipe(f"{method}/{dataset}")
        assert recipe.published["accuracy"] == accuracy
        assert recipe.protocol == "paper"
        assert ("logistic regression on raw features" in recipe.note) == (
            method == "mlp" and dataset in ("wikics", "computer", "coauthor_cs")
        )
        rules = {"cora": "best", "citeseer": "best", "pubmed": "loss"} if method == "gat" else {}
        assert recipe.config.get("keep", "last") == rules.get(dataset, "last")
        assert ("is kept" in recipe.note) == (dataset in rules)
    assert len([name for name in recipes() if name.startswith(f"{method}/")]) >= len(DATASETS)


@pytest.mark.parametrize(
    ("name", "weights"), [("gcn/cora", 1433 * 16 + 16 * 7 + 23), ("mlp/pubmed", 500 * 16 + 16 * 3 + 19)]
)
def test_parameter_counts(name: str, weights: int) -> None:
    from ssge.graph import GraphInfo

    recipe = load_recipe(name)
    features, classes = {"cora": (1433, 7), "pubmed": (500, 3)}[recipe.dataset]
    config = resolve_config(recipe.method, recipe.config).model_dump()
    method = build(recipe.method, config, GraphInfo(1, 1, features, classes))
    assert sum(p.numel() for p in method.parameters()) == weights
