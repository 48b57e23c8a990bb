"""The best epoch: which one it is, that its weights are kept to the byte, and that looking for it changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.errors import InputError
from ssge.methods import Method
from ssge.ops.random import Key
from ssge.training.best import Best
from ssge.training.checkpoint import Checkpoint, build, describe_run
from ssge.training.trainer import Trained, train

_RANDOM = random_graph(n=200, p=6, m=500)
GRAPH = replace(_RANDOM, labels=np.asarray(_RANDOM.features)[:, :3].argmax(1))  # classes that can be learned
LABELED, VALIDATION = np.arange(30), np.arange(30, 42)  # so few that accuracies are often equal
EPOCHS = 12
SETTINGS = [("gat", {}), ("gcn", {}), ("gcn", {"batch_norm": True}), ("mlp", {})]
every_network = pytest.mark.parametrize(("name", "settings"), SETTINGS, ids=["gat", "gcn", "gcn-norm", "mlp"])


def built(name: str, seed: int = 1, **config: Any) -> Method:
    info = GRAPH.info._replace(num_classes=3)
    return build(name, {"epochs": EPOCHS, "keep": "best", "lr": 0.1} | config, info, seed, torch.float64)


def learn(
    name: str,
    settings: dict[str, Any],
    seed: int = 1,
    file: Path | None = None,
    resuming: bool = False,
    validation: np.ndarray = VALIDATION,
    **options: Any,
) -> tuple[Method, Trained]:
    """Train a small network that keeps its best epoch, unless told otherwise."""
    method, seen = built(name, seed, **settings), GRAPH.with_labels_of(LABELED)
    best, keep = None, method.config.keep  # type: ignore[attr-defined]
    if keep != "last":
        labels = GRAPH.with_labels_of(validation).labels
        assert labels is not None
        best = Best(labels, keep)
    checkpoint = None
    if file is not None:
        every = options.pop("every", 0)
        checkpoint = Checkpoint(file, describe_run(method, seen, seed, best), every, resuming)
    return method, train(method, method.prepare(seen), Key(seed), best=best, checkpoint=checkpoint, **options)


def state(method: Method) -> dict[str, bytes]:
    return {key: value.numpy().tobytes() for key, value in method.state_dict().items()}


def figures(method: Method) -> tuple[float, float]:
    """Return accuracy and cross entropy of validation nodes, from the embedding alone."""
    assert GRAPH.labels is not None
    scores = method.embed(GRAPH).numpy()[VALIDATION] / float(method.scale)
    labels = GRAPH.labels[VALIDATION]
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return float((scores.argmax(1) == labels).mean()), float(-np.log(chances[np.arange(labels.size), labels]).mean())


@every_network
def test_what_is_kept_is_a_training_that_ends_with_the_best_epoch(name: str, settings: dict[str, Any]) -> None:
    for seed in (1, 2):
        kept, trained = learn(name, settings, seed)
        ending = [learn(name, settings | {"epochs": e, "keep": "last"}, seed)[0] for e in range(1, EPOCHS + 1)]
        expected = [figures(method) for method in ending]
        accuracies, losses = zip(*expected, strict=True)
        assert [line["valid_accuracy"] for line in trained.history] == list(accuracies)
        assert [line["valid_loss"] for line in trained.history] == pytest.approx(losses, rel=1e-10)
        order = sorted(range(EPOCHS), key=lambda e: (-accuracies[e], losses[e], e))
        assert trained.kept["epoch"] == order[0] + 1
        assert state(kept) == state(ending[order[0]])  # its scale among them


def chosen(keep: Literal["best", "loss"], *figures: tuple[float, float]) -> float:
    """Return which of some epochs, given by accuracy and loss, is kept."""
    best = Best(np.zeros(1, dtype=np.int64), keep)
    lines = [{"epoch": e, "valid_accuracy": accuracy, "valid_loss": loss} for e, (accuracy, loss) in enumerate(figures)]
    best.resume(lines, {})
    return best.line["epoch"]


def test_order_is_accuracy_then_loss_then_the_first() -> None:
    figures = [(0.5, 0.1), (0.7, 0.9), (0.7, 0.8), (0.7, 0.8), (0.6, 0.2)]
    assert chosen("best", *figures) == 2
    assert chosen("best", *figures[:2]) == 1
    assert chosen("best", *figures[3:]) == 0


def test_lowest_loss_is_kept_whatever_its_accuracy() -> None:
    figures = [(0.8, 0.9), (0.5, 0.3), (0.9, 0.4), (0.6, 0.3)]
    assert chosen("loss", *figures) == 1
    assert chosen("best", *figures) == 2


def test_of_equal_epochs_the_first_is_kept() -> None:
    method = built("gcn")
    assert GRAPH.labels is not None
    best, view = Best(GRAPH.labels, "best"), method.prepare(GRAPH.without_labels())
    for scale in (2.0, 3.0):  # part of the state, but of no score as the encoder gives it
        method.scale.fill_(scale)
        method.train()
        best.update(method, view, {})
        assert not method.training  # measured without dropout
    assert float(best.weights["scale"]) == 2


@every_network
def test_looking_changes_no_step(name: str, settings: dict[str, Any]) -> None:
    last, best = (learn(name, settings | {"keep": keep})[1].history for keep in ("last", "best"))
    assert [line["total"] for line in last] == [line["total"] for line in best]
    assert all(set(b) - set(a) == {"valid_accuracy", "valid_loss"} for a, b in zip(last, best, strict=True))


@pytest.mark.parametrize("keep", ["best", "loss"])
@every_network
def test_resumed_training_keeps_the_same(name: str, settings: dict[str, Any], keep: str, tmp_path: Path) -> None:
    settings = settings | {"keep": keep}
    whole, trained = learn(name, settings)
    chosen = int(trained.kept["epoch"])
    for stop in {1, chosen - 1, chosen, chosen + 1, EPOCHS - 1} - {0, EPOCHS, EPOCHS + 1}:
        file = tmp_path / f"{stop}.safetensors"
        stopped = learn(name, settings, file=file, observers=[lambda line: line["epoch"] == stop])[1]  # noqa: B023
        assert stopped.embedding is None and len(stopped.history) == stop
        resumed, again = learn(name, settings, file=file, resuming=True)
        assert state(resumed) == state(whole)
        for a, b in zip(again.history, trained.history, strict=True):
            assert a | {"seconds": 0} == b | {"seconds": 0}


def test_resuming_after_the_last_epoch_keeps_the_best(tmp_path: Path) -> None:
    file = tmp_path / "c.safetensors"
    whole, trained = learn("gcn", {}, file=file, every=EPOCHS)
    assert trained.kept["epoch"] < EPOCHS
    assert state(learn("gcn", {}, file=file, resuming=True)[0]) == state(whole)


def test_resuming_with_other_validation_nodes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.safetensors"
    learn("gcn", {}, file=file, every=4)
    with pytest.raises(InputError, match="is of another run: its graph is"):
        learn("gcn", {}, file=file, resuming=True, validation=VALIDATION[1:])


def test_without_an_epoch_there_is_none_to_keep() -> None:
    method, trained = learn("gcn", {"epochs": 0})
    assert trained.kept == {}
    assert state(method) == state(learn("gcn", {"epochs": 0, "keep": "last"})[0])
