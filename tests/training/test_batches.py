"""Batches of nodes: each is a seed once, its representation is that of the whole view, and a step stays small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.graph import Graph
from ssge.methods import Method
from ssge.ops.random import Key
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import train
from ssge.views import Compose, DropEdges, MaskFeatures, View

GRAPH = random_graph(n=80, m=130, weighted=True, directed=True)
KEY = Key(0).fold_in("train", 1)
NODE_BATCHES = ["ssge", "cca_ssg", "g_bt", "bgrl", "grace", "costa"]
ENCODERS: list[tuple[str, dict[str, Any]]] = [
    ("ssge", {}),
    ("ssge", {"encoder": "mlp"}),
    ("ssge", {"normalization": "in"}),
    ("cca_ssg", {}),
    ("cca_ssg", {"encoder": "mlp"}),
    ("g_bt", {}),
    ("bgrl", {}),
    ("bgrl", {"encoder": "gat", "heads": 2}),
    ("grace", {}),
]
AUGMENT = Compose(DropEdges(0.4), MaskFeatures(0.3))


def built(name: str, graph: Graph = GRAPH, **config: Any) -> Method:
    return build(name, {"widths": (8, 6), "epochs": 2} | config, graph.info, 0, torch.float64)


def steps(method: Method, key: Key = KEY, graph: Graph = GRAPH) -> list[tuple[View, Key]]:
    return list(batches(method, method.prepare(graph), key))


def seeds_of(part: View) -> torch.Tensor:
    """Return the seeds of a part by their positions in the whole graph."""
    assert part.adjacency.pattern.nodes is not None
    return part.at_seeds(part.adjacency.pattern.nodes)


@pytest.mark.parametrize(("size", "count"), [(40, 2), (25, 4), (79, 2), (1, 80)])
def test_each_node_is_a_seed_once_per_epoch_in_even_parts(size: int, count: int) -> None:
    method = built("ssge", batch_nodes=size)
    found, other = ([seeds_of(part) for part, _ in steps(method, key)] for key in (KEY, Key(0).fold_in("train", 2)))
    assert len(found) == count
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert torch.equal(torch.cat(found).sort().values, torch.arange(80))
    assert not all(map(torch.equal, found, other))


def test_steps_have_keys_of_their_own() -> None:
    keys = [key for _, key in steps(built("ssge", batch_nodes=25))]
    assert keys == [KEY.at_step(step) for step in range(4)]


@pytest.mark.parametrize("size", [None, 80, 1000])
def test_without_a_smaller_size_the_batch_is_the_prepared_graph(size: int | None) -> None:
    method = built("ssge", batch_nodes=size)
    view = method.prepare(GRAPH)
    ((batch, key),) = batches(method, view, KEY)
    assert batch is view and key == KEY


@pytest.mark.parametrize("name", NODE_BATCHES)
def test_a_batch_of_all_nodes_trains_to_the_same_bytes(name: str) -> None:
    found = []
    for size in (None, 80, 200):
        method = built(name, batch_nodes=size)
        embedding = train(method, method.prepare(GRAPH), KEY).embedding
        assert embedding is not None
        found.append(embedding.numpy().tobytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(("name", "config"), ENCODERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_seeds_have_the_representations_of_the_whole_view(name: str, config: dict[str, Any], sparse: bool) -> None:
    graph = random_graph(n=80, m=130, weighted=True, directed=True, sparse=sparse)
    method = built(name, graph, batch_nodes=10, **config).eval()
    for buffer in method.buffers():  # normalization that does something, though it is not that of this batch
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(0))
    whole, smaller = method.prepare(graph), 0
    for part, key in steps(method, graph=graph):
        ours = part.at_seeds(method.encoder(AUGMENT(part, key)))
        expected = method.encoder(AUGMENT(whole, key))[seeds_of(part)]
        torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-12)
        smaller += part.num_nodes < graph.num_nodes
    assert smaller == 8


def test_steps_share_the_dropped_edges_but_not_the_masked_columns() -> None:
    method = built("ssge", batch_nodes=25)
    whole = AUGMENT(method.prepare(GRAPH), KEY).adjacency
    assert whole.kept is not None
    kept = dict(zip(whole.pattern.edge_ids.tolist(), whole.kept.tolist(), strict=True))
    masks = set()
    for part, key in steps(method):
        seen = AUGMENT(part, key)
        assert seen.adjacency.kept is not None and seen.features.kept is not None
        assert seen.adjacency.kept.tolist() == [kept[edge] for edge in seen.adjacency.pattern.edge_ids.tolist()]
        masks.add(tuple(seen.features.kept.tolist()))
    assert len(masks) == 4


def copies(count: int) -> Graph:
    """Return many rings of five nodes, which no edge connects."""
    ring = np.stack([np.arange(5), (np.arange(5) + 1) % 5])
    edges = np.concatenate([ring + 5 * number for number in range(count)], axis=1)
    return Graph.of(edges=edges, features=np.random.default_rng(0).normal(size=(5 * count, 12)), dtype=np.float64)


@pytest.mark.parametrize("name", NODE_BATCHES)
def test_the_work_of_a_step_does_not_grow_with_the_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight seeds lie in eight rings at most: 40 nodes, 120 entries, and as many edges at either end of their nodes."""
    hashed: list[int] = []
    honest = Key.bits
    monkeypatch.setattr(Key, "bits", lambda key, items: hashed.append(items.numel()) or honest(key, items))
    for count in (16, 160):
        graph = copies(count)
        method = built(name, graph, batch_nodes=8)
        parts = steps(method, graph=graph)
        assert len(parts) == 5 * count / 8
        for part, key in parts:
            pattern = part.adjacency.pattern
            assert part.num_nodes <= 40
            assert pattern.incoming.indices.numel() <= 120
            assert pattern.incident is not None
            assert all(edges.edge_ids.numel() <= 120 for edges in pattern.incident)
            hashed.clear()
            method(part, key)
            assert 0 < sum(hashed) <= 2 * (3 * 120 + 12)  # of two views: entries, both ends, columns
