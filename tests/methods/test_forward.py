"""What a step of each method descends: its objective, taken on views, pairs and labels that are drawn here again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphs import random_graph
from ssge.methods import METHODS
from ssge.objectives.classification import cross_entropy
from ssge.objectives.decorrelation import barlow, cca
from ssge.objectives.gaussian import gaussian
from ssge.objectives.prediction import cosine_regression, paired_cosine_regression
from ssge.objectives.reconstruction import gaussian_kl, sampled_reconstruction
from ssge.objectives.relation import anchored_relation, local_relation
from ssge.objectives.skipgram import hierarchical_softmax, huffman, negative_sampling
from ssge.ops.adjacency import Adjacency
from ssge.ops.dropout import dropout
from ssge.ops.positives import k_means, nearest_targets, positive_pairs
from ssge.ops.random import Key
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.ops.walks import Walker, moved
from ssge.runs.plan import info_for
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import train
from ssge.views import DropEdges, MaskFeatures, View

GRAPH = random_graph(n=80, p=12, m=300)  # its last node has no edge
LABELED = np.arange(40)
KEY = Key(0).fold_in("train", 1)

# No setting is neutral or equal to another one: a step that ignores one of them, or takes it for the other, is seen.
VIEWS = {"edge_drop": 0.3, "feature_mask": 0.2}
TWO_VIEWS = {"edge_drops": (0.5, 0.2), "feature_masks": (0.1, 0.4), "widths": (10, 6), "predictor_width": 8}
LABELS = {"widths": (10,), "input_dropout": 0.2, "dropout": 0.4}
WALKS = {"width": 6, "walk_length": 12, "window": 3, "batch": 20, "noise": 30, "negatives": 3.0}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "ssge": [
        VIEWS
        | {"widths": widths, "uniformity_weight": 0.3, "alignment_weight": 0.7}
        | {"eigenvalue_floor": 0.5, "floor_mode": "clamp"}
        | batches
        for widths in ((10, 6), (6, 10))  # the second leaves its last layer to the objective
        for batches in ({}, {"batch_nodes": 30}, {"batch_nodes": 30, "normalization": "in"})
    ],
    "cca_ssg": [
        VIEWS | {"widths": widths, "decorrelation_weight": 0.3} | batches
        for widths, batches in (((10, 6), {}), ((6, 10), {}), ((10, 6), {"batch_nodes": 30}))
    ],
    "g_bt": [
        VIEWS | {"widths": widths, "redundancy_weight": weight} | batches
        for widths, weight, batches in (((10, 6), 0.4, {}), ((6, 10), None, {}), ((10, 6), 0.4, {"batch_nodes": 30}))
    ],
    "bgrl": [TWO_VIEWS, TWO_VIEWS | {"batch_nodes": 30}, TWO_VIEWS | {"encoder": "gat", "heads": 2}],
    "rgrl": [
        TWO_VIEWS
        | {"anchors": 20, "neighbors": 3, "local_weight": 0.3}
        | {"student_temperature": 0.2, "anchor_temperature": 0.05, "local_temperature": 0.7}
    ],
    "afgrl": [
        {"widths": (10, 6), "predictor_width": 8, "neighbors": 8}
        | {"clusterings": 2, "centroids": 10, "cluster_iterations": 5}
    ],
    "gae": [{"widths": (10, 6), "non_edges": 0.5}],
    "vgae": [{"widths": (10, 6), "non_edges": 0.5, "divergence_weight": 3.0}],
    "mlp": [LABELS, LABELS | {"batch_norm": True}],
    "gcn": [LABELS, LABELS | {"batch_norm": True}],
    "gat": [LABELS | {"heads": 2}, LABELS | {"heads": 2, "drop_products": True}],
    "deepwalk": [WALKS, WALKS | {"softmax": "negative"}],
    "node2vec": [WALKS | {"p": 0.5, "q": 2.0}],
}


def built(name: str, **config: Any) -> Any:
    return build(name, config, info_for(METHODS[name], GRAPH), 0, torch.float64)


def augmented(view: View, edge_drop: float, feature_mask: float, key: Key) -> View:
    return MaskFeatures(feature_mask)(DropEdges(edge_drop)(view, key), key)


def pair(method: Any, view: View, key: Key) -> tuple[Tensor, Tensor]:
    """Return the encoder's output at the seeds of two views with the same rates."""
    c = method.config
    first, second = (augmented(view, c.edge_drop, c.feature_mask, key.fold_in(i)) for i in range(2))
    return view.at_seeds(method.encoder(first)), view.at_seeds(method.encoder(second))


def crossed(method: Any, view: View, key: Key) -> list[tuple[Tensor, Tensor]]:
    """Return predictions of each view, with the target's vectors of the other one; the views have their own rates."""
    (drop1, drop2), (mask1, mask2) = method.config.edge_drops, method.config.feature_masks
    first = augmented(view, drop1, mask1, key.fold_in(0))
    second = augmented(view, drop2, mask2, key.fold_in(1))
    return [
        (method.predictor(view.at_seeds(method.encoder(a))), view.at_seeds(method.target(b)))
        for a, b in ((first, second), (second, first))
    ]


def of_ssge(method: Any, view: View, key: Key) -> Tensor:
    c = method.config
    return gaussian(
        *pair(method, view, key), c.uniformity_weight, c.alignment_weight, c.eigenvalue_floor, c.floor_mode
    ).total


def of_cca_ssg(method: Any, view: View, key: Key) -> Tensor:
    return cca(*pair(method, view, key), method.config.decorrelation_weight).total


def of_g_bt(method: Any, view: View, key: Key) -> Tensor:
    return barlow(*pair(method, view, key), method.config.redundancy_weight).total


def of_bgrl(method: Any, view: View, key: Key) -> Tensor:
    (q1, t2), (q2, t1) = crossed(method, view, key)
    return cosine_regression(q1, t2) + cosine_regression(q2, t1)


def of_rgrl(method: Any, batch: Any, key: Key) -> Tensor:
    view, near, c = batch.view, batch.near, method.config
    anchors = method.drawn_anchors(view.adjacency, key.fold_in("anchors").generator())
    total = torch.zeros((), dtype=torch.float64)
    for q, t in crossed(method, view, key):
        total += anchored_relation(q, t, anchors, tau_q=c.student_temperature, tau_t=c.anchor_temperature)
        total += c.local_weight * local_relation(q, t, near, tau_q=c.student_temperature, tau_t=c.local_temperature)
    return total


def of_afgrl(method: Any, view: View, key: Key) -> Tensor:
    c, h, t = method.config, method.encoder(view), method.target(view)
    unit, source = functional.normalize(t), key.fold_in("clusters").generator()
    runs = [k_means(unit, c.centroids, c.cluster_iterations, source) for _ in range(c.clusterings)]
    pairs = positive_pairs(nearest_targets(h, t, c.neighbors), view.adjacency, torch.stack(runs, 1))
    return paired_cosine_regression(method.predictor(h), t, pairs)


def reconstructed(method: Any, z: Tensor, view: View, key: Key) -> Tensor:
    edges = Pairs.of(view.adjacency)
    count = round(method.config.non_edges * view.adjacency.num_entries)
    return sampled_reconstruction(z, edges, sample_non_edges(edges, count, key.fold_in("non-edges").generator()))


def of_gae(method: Any, view: View, key: Key) -> Tensor:
    return reconstructed(method, method.encoder(view), view, key)


def of_vgae(method: Any, view: View, key: Key) -> Tensor:
    mu, log_sigma = method.encoder(view).chunk(2, 1)
    noise = torch.randn(mu.shape, generator=key.fold_in("noise").generator(), dtype=mu.dtype)
    code = mu + log_sigma.exp() * noise
    weight: float = method.config.divergence_weight / GRAPH.num_nodes
    return reconstructed(method, code, view, key) + gaussian_kl(mu, log_sigma) * weight


def of_supervised(method: Any, view: View, key: Key) -> Tensor:
    c, source = method.config, key.fold_in("dropout").generator()
    dropped = view._replace(features=view.features.dropout(c.input_dropout, source))
    scores = method.encoder(dropped, partial(dropout, rate=c.dropout, generator=source))
    assert GRAPH.labels is not None
    return cross_entropy(scores[:40], torch.from_numpy(GRAPH.labels[LABELED])).total


def of_walks(method: Any, batch: Any, key: Key) -> Tensor:
    """Take all pairs of places in whole walks, which are never cut into pieces."""
    walks, place = batch.walks, torch.arange(batch.walks.shape[1])
    distance, there = (place[:, None] - place).abs(), moved(walks)
    near = (distance > 0) & (distance <= method.config.window)
    pairs = (near & there[:, :, None] & there[:, None, :]).double()
    nodes, contexts = method.encoder.weight, method.contexts.weight
    if hasattr(batch, "noise"):
        return negative_sampling(nodes[walks], contexts[walks], pairs, contexts[batch.noise], method.config.negatives)
    tree = huffman(torch.bincount(torch.from_numpy(GRAPH.edges[1]), minlength=GRAPH.num_nodes))
    return hierarchical_softmax(nodes[walks], contexts[tree.path[walks]], tree.side[walks].double(), pairs)


Objective: TypeAlias = Callable[[Any, Any, Key], Tensor]
OBJECTIVES: dict[str, Objective] = {
    "ssge": of_ssge,
    "cca_ssg": of_cca_ssg,
    "g_bt": of_g_bt,
    "bgrl": of_bgrl,
    "rgrl": of_rgrl,
    "afgrl": of_afgrl,
    "gae": of_gae,
    "vgae": of_vgae,
    "mlp": of_supervised,
    "gcn": of_supervised,
    "gat": of_supervised,
    "deepwalk": of_walks,
    "node2vec": of_walks,
}


@pytest.mark.parametrize(("name", "config"), [(name, config) for name in OBJECTIVES for config in SETTINGS[name]])
def test_a_step_descends_the_objective(name: str, config: dict[str, Any]) -> None:
    method = built(name, **config)
    graph = GRAPH.with_labels_of(LABELED) if method.supervised else GRAPH.without_labels()
    for batch, key in batches(method, method.prepare(graph), KEY):
        expected = OBJECTIVES[name](method, batch, key)
        torch.testing.assert_close(method(batch, key).total, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("name", "config"), [("deepwalk", {}), ("node2vec", {"p": 0.1, "q": 4.0})])
def test_an_epoch_walks_once_from_each_node(name: str, config: dict[str, Any]) -> None:
    method = built(name, **WALKS | config)
    walks = torch.cat([batch.walks for batch, _ in batches(method, method.prepare(GRAPH), KEY)])
    assert torch.equal(walks[:, 0].sort().values, torch.arange(GRAPH.num_nodes))
    walker = Walker(Adjacency.of(GRAPH.edges, GRAPH.num_nodes, dtype=torch.float64), **config)
    assert torch.equal(walks, walker(walks[:, 0], 12, KEY.fold_in("walks").generator()))


@pytest.mark.parametrize(("name", "config"), [("deepwalk", {"softmax": "negative"}), ("node2vec", {})])
def test_noise_is_as_frequent_as_visits_to_the_power_of_three_quarters(name: str, config: dict[str, Any]) -> None:
    method = built(name, **WALKS | config | {"batch": 4})
    prepared = method.prepare(GRAPH)
    expected, drawn = torch.zeros(2, GRAPH.num_nodes, dtype=torch.float64)
    for epoch in range(30):
        steps = [batch for batch, _ in batches(method, prepared, KEY.fold_in(epoch))]
        visited = torch.cat([batch.walks for batch in steps])
        share = torch.bincount(visited[moved(visited)], minlength=GRAPH.num_nodes).double() ** 0.75
        noise = torch.cat([batch.noise for batch in steps])
        expected += noise.numel() * share / share.sum()
        drawn += torch.bincount(noise, minlength=GRAPH.num_nodes)
    # Chi-square: its mean is the degrees of freedom, its deviation the root of twice that.
    freedom = GRAPH.num_nodes - 1
    assert ((drawn - expected).square() / expected).sum() < freedom + 4 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("name", ["bgrl", "g_bt"])
def test_the_learning_rate_rises_from_nothing_and_falls_along_a_cosine(name: str) -> None:
    method = built(name, warm_up=0.2, widths=(10, 6), epochs=4)
    factors = [method.lr_schedule(progress) for progress in (0, 0.05, 0.1, 0.2, 0.6, 1)]
    assert factors == pytest.approx([0, 0.25, 0.5, 1, 0.5, 0])
    trained = method.optimizer().param_groups[0]["params"]
    before = [parameter.clone() for parameter in trained]
    # The first epoch has a rate of 0, which lets nothing move.
    train(method, method.prepare(GRAPH), KEY, observers=[lambda line: line["epoch"] == 1])
    assert all(torch.equal(old, new) for old, new in zip(before, trained, strict=True))
    train(method, method.prepare(GRAPH), KEY, observers=[lambda line: line["epoch"] == 2])
    assert not any(torch.equal(old, new) for old, new in zip(before, trained, strict=True))


@pytest.mark.parametrize("name", ["ssge", "cca_ssg", "g_bt", "bgrl", "rgrl"])
def test_dropped_views_have_the_degrees_of_the_released_code(name: str) -> None:
    """In-degrees on both ends where it was written with PyTorch Geometric, out- and in-degrees where with DGL."""
    prepared = built(name).prepare(GRAPH)
    view = prepared if isinstance(prepared, View) else prepared.view
    dropped = DropEdges(0.5)(view, KEY).adjacency.matrix.to_dense()
    linked = (dropped != 0).double()
    incoming, outgoing = linked.sum(1), linked.sum(0)
    at_source = outgoing if name in ("ssge", "cca_ssg") else incoming
    torch.testing.assert_close(dropped, linked / (incoming[:, None] * at_source[None]).sqrt())
    assert not torch.equal(incoming, outgoing)
