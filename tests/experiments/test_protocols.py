"""Protocols: the right splits, the right scale, and nothing chosen on test nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphs import random_graph
from ssge.datasets import DATASETS
from ssge.errors import InputError
from ssge.experiments.protocols import PROTOCOLS, Protocol, evaluate
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


def test_adam_probe_sees_the_encoder_s_own_scale() -> None:
    raw = embedding().astype(np.float32)
    graph = named("cora", PUBLIC)
    scaled = evaluate(raw * np.float32(64), graph, quick("paper"), scale=64)
    assert scaled.accuracies == evaluate(raw, graph, quick("paper")).accuracies


def test_the_dataset_s_facts_decide_and_never_the_graph_s_name() -> None:
    own = named("citeseer", PUBLIC)  # as a file citeseer.csv is called
    assert evaluate(embedding(), own, quick("paper")).probe["weight_decay"] == 1e-4
    known = evaluate(embedding(), named("mine", PUBLIC), quick("paper"), facts=DATASETS["citeseer"])
    assert known.probe["weight_decay"] == 1e-2
    cora = named("cora", PUBLIC)
    assert evaluate(embedding(), cora, quick("released-code")).splits == "10 random, 10 % / 80 % / 10 %"
    assert evaluate(embedding(), cora, quick("released-code"), facts=DATASETS["cora"]).splits == "public"


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


def test_the_last_step_counts_whatever_validation_nodes_say() -> None:
    graph = named("citeseer", PUBLIC)
    assert graph.labels is not None
    scores = evaluate(embedding(), graph, quick("last-step"), facts=DATASETS["citeseer"])
    assert scores.probe["weight_decay"] == 1e-2 and scores.probe["steps"] == scores.probe["every"] == 300
    labels = graph.labels.copy()
    labels[PUBLIC.valid] = (labels[PUBLIC.valid] + 1) % 3
    other = evaluate(embedding(), replace(graph, labels=labels), quick("last-step"), facts=DATASETS["citeseer"])
    assert other.accuracies == scores.accuracies and other.valid_accuracies != scores.valid_accuracies


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


def test_a_column_of_large_values_does_not_hide_the_others() -> None:
    assert GRAPH.labels is not None
    rng = np.random.default_rng(1)
    informative = np.eye(3)[GRAPH.labels] + 0.1 * rng.normal(size=(200, 3))
    years = 2000 + 40 * rng.normal(size=(200, 1))
    scores = evaluate(np.hstack([years, informative]), named("mine"), quick("quick"))
    assert min(scores.accuracies) > 0.9
