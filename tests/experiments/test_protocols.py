"""Protocols: the right splits, the right scale, and nothing chosen on test nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphs import random_graph
from ssge.errors import InputError
from ssge.experiments.protocols import PROTOCOLS, Protocol, _splits, evaluate
from ssge.graph import Graph, Split

GRAPH = random_graph(n=200, p=5, m=400)
PUBLIC = Split(np.arange(0, 30), np.arange(30, 60), np.arange(60, 160))


def quick(name: str) -> Protocol:
    return PROTOCOLS[name].model_copy(update={"cluster_seeds": 1, "repeats": 2})


def embedding() -> np.ndarray:
    assert GRAPH.labels is not None
    rng = np.random.default_rng(0)
    return np.eye(3)[GRAPH.labels] @ rng.normal(size=(3, 6)) + rng.normal(size=(200, 6))


def named(name: str, *splits: Split) -> Graph:
    return replace(GRAPH, name=name, splits=splits)


@pytest.mark.parametrize(
    ("name", "public", "protocol", "sizes"),
    [
        ("cora", True, "paper", (30, 30, 100)),
        ("cora", True, "released-code", (30, 30, 100)),
        ("cora", True, "random", (20, 20, 160)),
        ("citeseer", True, "paper", (30, 30, 100)),
        ("citeseer", True, "released-code", (20, 160, 20)),
        ("computer", False, "paper", (20, 20, 160)),
        ("computer", False, "released-code", (20, 160, 20)),
    ],
)
def test_splits_are_the_protocol_s(name: str, public: bool, protocol: str, sizes: tuple[int, ...]) -> None:
    graph = named(name, PUBLIC) if public else named(name)
    splits, _ = _splits(graph, PROTOCOLS[protocol].splits, PROTOCOLS[protocol].repeats)
    assert len(splits) == 10
    for split in splits:
        assert tuple(part.size for part in split) == sizes
        assert len(set(np.concatenate(split).tolist())) == sum(sizes)


def test_several_public_splits_are_each_used_once() -> None:
    other = Split(PUBLIC.valid, PUBLIC.train, PUBLIC.test)
    splits, title = _splits(named("wikics", PUBLIC, other), "paper", 10)
    assert len(splits) == 2
    assert title == "2 public"


def test_adam_probe_sees_the_encoder_s_own_scale() -> None:
    raw = embedding().astype(np.float32)
    graph = named("cora", PUBLIC)
    scaled = evaluate(raw * np.float32(64), graph, quick("paper"), scale=64)
    assert scaled.accuracies == evaluate(raw, graph, quick("paper")).accuracies
    assert scaled.probe["weight_decay"] == 1e-4
    assert evaluate(raw, named("citeseer", PUBLIC), quick("paper")).probe["weight_decay"] == 1e-2


def test_test_labels_change_the_accuracy_and_nothing_else() -> None:
    graph = named("cora", PUBLIC)
    assert graph.labels is not None
    labels = graph.labels.copy()
    labels[PUBLIC.test] = (labels[PUBLIC.test] + 1) % 3
    for protocol in ("paper", "paper-lbfgs"):
        honest = evaluate(embedding(), graph, quick(protocol))
        spoiled = evaluate(embedding(), replace(graph, labels=labels), quick(protocol))
        assert honest.valid_accuracies == spoiled.valid_accuracies
        assert np.mean(honest.accuracies) > np.mean(spoiled.accuracies) + 0.3


def test_random_splits_are_those_of_a_graph_without_public_ones() -> None:
    public, none = named("cora", PUBLIC), named("cora")
    scores = evaluate(embedding(), public, quick("random"))
    assert scores.splits == "10 random, 10 % / 10 % / 80 %"
    assert scores.accuracies == evaluate(embedding(), none, quick("paper-lbfgs")).accuracies
    assert scores.accuracies != evaluate(embedding(), public, quick("paper-lbfgs")).accuracies


def test_without_labels_there_is_nothing_to_score() -> None:
    with pytest.raises(InputError, match="has no labels"):
        evaluate(embedding(), GRAPH.without_labels(), quick("paper"))


def test_clusters_of_another_protocol_are_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, graph = embedding(), named("made", PUBLIC)
    first = evaluate(vectors, graph, PROTOCOLS["paper-lbfgs"])
    whole = evaluate(vectors, graph, PROTOCOLS["quick"])
    monkeypatch.setattr("ssge.experiments.protocols.cluster", None)  # whoever clusters again falls over it
    again = evaluate(vectors, graph, PROTOCOLS["quick"], known=[first, whole])  # ten seeds of k-means, and three
    assert again == whole
