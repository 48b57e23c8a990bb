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
from ssge.methods import METHODS
from ssge.objectives.skipgram import huffman
from ssge.ops.walks import Walker
from ssge.training.checkpoint import build
from ssge.training.trainer import train

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("deepwalk", {}),
    ("deepwalk", {"softmax": "negative"}),
    ("node2vec", {}),
    ("node2vec", {"p": 0.5, "q": 2.0}),
]
SHORT = {"width": 16, "batch": 8, "walk_length": 10, "window": 2}
every_variant = pytest.mark.parametrize(("name", "config"), VARIANTS)


@every_variant
def test_neighbors_are_nearer_than_strangers(name: str, config: dict[str, Any]) -> None:
    graph = load("karate")
    method = build(name, config | {"epochs": 30, "lr": 0.02} | SHORT, graph.info)
    train(method, graph)
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
    train(method, graph)
    after = method.embed(graph)
    assert torch.isfinite(after).all()
    torch.testing.assert_close(after[-1], before * method.scale)  # no pair has it, so nothing moved it


@every_variant
def test_a_graph_without_edges_trains_to_what_it_was(name: str, config: dict[str, Any]) -> None:
    graph = Graph.of(edges=np.empty((2, 0), dtype=np.int64), features=np.eye(5))
    method = build(name, config | {"epochs": 2, "width": 4}, graph.info)
    assert train(method, graph).history[-1]["total"] == 0
    assert torch.isfinite(method.embed(graph)).all()


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
def test_other_weights_are_another_graph(name: str) -> None:
    graph = random_graph(weighted=True)
    method = build(name, {"epochs": 1, "width": 4}, graph.info)
    train(method, graph)
    assert graph.weights is not None
    other = Graph.of(graph, weights=graph.weights[::-1])
    with pytest.raises(InputError, match="another graph than the one it was trained on"):
        method.embed(other)
    assert torch.equal(method.embed(graph, nodes=np.array([3, 1])), method.embed(graph)[[3, 1]])


def test_deepwalk_takes_no_notice_of_features() -> None:
    first = random_graph()
    second = Graph.of(first, features=np.random.default_rng(1).normal(size=(60, 3)))
    found = []
    for graph in (first, second):
        method = build("deepwalk", {"epochs": 2, "width": 4}, graph.info)
        train(method, graph)
        found.append(method.embed(graph))
    assert torch.equal(*found)


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
def test_features_are_not_brought_to_the_device(name: str) -> None:
    graph = random_graph()
    view = build(name, {"width": 4}, graph.info).prepare(graph)
    assert view.features.shape == (graph.num_nodes, 0)
    assert view.num_nodes == graph.num_nodes


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
def test_vectors_of_another_run_are_not_taken_over(name: str) -> None:
    first, second = (build(name, {"width": 4}, random_graph().info, seed) for seed in (0, 1))
    before = first.encoder.weight.detach().clone()  # type: ignore[union-attr, operator]
    with pytest.raises(InputError, match="has vectors only for the nodes of the graph it was trained on"):
        first.begin_with(second)
    assert torch.equal(first.encoder.weight, before)  # type: ignore[arg-type]


def test_weights_of_all_magnitudes_make_no_chain_of_the_tree() -> None:
    n = 120
    edges = np.stack([np.arange(n - 1), np.arange(1, n)])
    weights = 2.0 ** -np.arange(n - 1, dtype=np.float64)
    graph = Graph.of(edges=edges, weights=weights, features=np.ones((n, 1)), dtype=np.float64)
    method = build("deepwalk", {"epochs": 1, "width": 4}, graph.info, dtype=torch.float64)
    view = method.prepare(graph)
    whole = huffman(Walker(view.adjacency).popularity)
    batch = next(iter(method.batches(view, torch.Generator().manual_seed(0))))
    assert whole.path.shape[1] > 100
    assert batch.tree.path.shape == (n, batch.tree.path.shape[1])
    assert batch.tree.path.shape[1] <= 44


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
def test_memory_is_counted(name: str) -> None:
    cls, graph = METHODS[name], random_graph()
    narrow, wide = (cls.further_memory(cls.Config(width=width), graph.info, 4) for width in (8, 64))
    assert wide - narrow >= 4 * 4 * 2 * 60 * 56  # two tables, each with gradient and two numbers of Adam's
