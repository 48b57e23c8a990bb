"""DeepWalk and Node2Vec: communities are found, lonely nodes stay finite, another graph is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.datasets import load
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods import Method
from ssge.objectives.skipgram import huffman
from ssge.ops.adjacency import Adjacency
from ssge.ops.random import Key
from ssge.ops.walks import Walker
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import Trained, train

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("deepwalk", {}),
    ("deepwalk", {"softmax": "negative"}),
    ("node2vec", {}),
    ("node2vec", {"p": 0.5, "q": 2.0}),
]
SHORT = {"width": 16, "batch": 8, "walk_length": 10, "window": 2}


def fit(method: Method, graph: Graph) -> Trained:
    return train(method, method.prepare(graph.without_labels()), Key(0))


every_variant = pytest.mark.parametrize(("name", "config"), VARIANTS)


@every_variant
def test_neighbors_are_nearer_than_strangers(name: str, config: dict[str, Any]) -> None:
    graph = load("karate")
    method = build(name, config | {"epochs": 30, "lr": 0.02} | SHORT, graph.info)
    fit(method, graph)
    vectors = torch.nn.functional.normalize(method.embed(graph)).numpy()
    cosine = vectors @ vectors.T
    linked = np.zeros_like(cosine, dtype=bool)
    linked[tuple(graph.edges)] = True
    others = ~linked & ~np.eye(len(cosine), dtype=bool)
    assert cosine[linked].mean() > cosine[others].mean() + 0.2


@every_variant
def test_a_lonely_node_keeps_a_finite_vector(name: str, config: dict[str, Any]) -> None:
    graph = random_graph()  # its last node has no edge
    method = build(name, config | {"epochs": 2, "width": 4}, graph.info)
    before = method.embed(graph)[-1]
    fit(method, graph)
    after = method.embed(graph)
    assert torch.isfinite(after).all()
    torch.testing.assert_close(after[-1], before * method.scale)  # no pair has it, so nothing moved it


@every_variant
def test_a_graph_without_edges_trains_to_what_it_was(name: str, config: dict[str, Any]) -> None:
    graph = Graph.of(edges=np.empty((2, 0), dtype=np.int64), features=np.eye(5))
    method = build(name, config | {"epochs": 2, "width": 4}, graph.info)
    assert fit(method, graph).history[-1]["total"] == 0
    assert torch.isfinite(method.embed(graph)).all()


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
def test_other_weights_are_another_graph(name: str) -> None:
    graph = random_graph(weighted=True)
    method = build(name, {"epochs": 1, "width": 4}, graph.info)
    fit(method, graph)
    assert graph.weights is not None
    other = Graph.of(graph, weights=graph.weights[::-1])
    with pytest.raises(InputError, match="only the graph that it was trained on"):
        method.embed(other)
    assert torch.equal(method.embed(graph, nodes=np.array([3, 1])), method.embed(graph)[[3, 1]])


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
def test_features_play_no_part(name: str) -> None:
    first = random_graph()
    second = Graph.of(first, features=np.random.default_rng(1).normal(size=(60, 3)))
    found = []
    for graph in (first, second):
        method = build(name, {"epochs": 2, "width": 4}, graph.info)
        fit(method, graph)
        found.append(method.embed(graph))
    assert torch.equal(*found)


def test_weights_of_all_magnitudes_make_no_chain_of_the_tree() -> None:
    n = 120
    edges = np.stack([np.arange(n - 1), np.arange(1, n)])
    weights = 2.0 ** -np.arange(n - 1, dtype=np.float64)
    graph = Graph.of(edges=edges, weights=weights, features=np.ones((n, 1)), dtype=np.float64)
    method = build("deepwalk", {"epochs": 1, "width": 4}, graph.info, dtype=torch.float64)
    whole = huffman(Walker(Adjacency.of(graph.edges, n, graph.weights, dtype=torch.float64)).popularity)
    batch, _ = next(batches(method, method.prepare(graph), Key(0)))
    assert whole.path.shape[1] > 100
    assert batch.tree.path.shape == (n, batch.tree.path.shape[1])
    assert batch.tree.path.shape[1] <= 44
