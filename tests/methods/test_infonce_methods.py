"""GRACE, GCA, gCooL, COSTA and HomoGCL beyond the contract: what a step descends, by dense formulas; their views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from graphs import dense, random_graph
from ssge.graph import Graph, GraphInfo
from ssge.methods import METHODS
from ssge.methods._adaptive import Central
from ssge.ops.positives import k_means
from ssge.ops.random import Key
from ssge.ops.sketching import gaussian_sketch, sparse_sketch
from ssge.runs.plan import plan
from ssge.runs.recipes import load_recipe
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import train
from ssge.views import DropEdges, MaskFeatures, View

GRAPH = random_graph(n=80, p=12, m=300)  # its last node has no edge
KEY = Key(0).fold_in("train", 1)
N = GRAPH.num_nodes
VIEWS = {"edge_drops": (0.5, 0.2), "feature_masks": (0.1, 0.4), "widths": (10, 6), "temperature": 0.3}


def built(name: str, graph: Graph = GRAPH, **config: Any) -> Any:
    return build(name, config, graph.info, 0, torch.float64)


def unit(rows: Tensor) -> Tensor:
    return rows / rows.norm(dim=1, keepdim=True).clamp_min(1e-300)  # a node without input has a row of zeros


def kernel(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """Return exp(cos / tau) of all rows with all rows."""
    return (unit(a) @ unit(b).T / temperature).exp()


def contrast(u: Tensor, v: Tensor, temperature: float, intra: bool = True) -> Tensor:
    """Return InfoNCE with the rows of u as anchors, from full matrices."""
    between, within = kernel(u, v, temperature), kernel(u, u, temperature)
    others = between.sum(1) + intra * (within.sum(1) - within.diagonal())
    return -(between.diagonal() / others).log().mean()


def both_ways(u: Tensor, v: Tensor, temperature: float, intra: bool = True) -> Tensor:
    return (contrast(u, v, temperature, intra) + contrast(v, u, temperature, intra)) / 2


def linked(view: View) -> Tensor:
    """Return 1 for each pair of seeds with an edge in a view, from the full matrix."""
    found = (view.adjacency.matrix.to_dense() != 0).double().fill_diagonal_(0)
    return found if view.seeds is None else found[view.seeds][:, view.seeds]


def drawn(view: View, edge_drops: Sequence[Any], feature_masks: Sequence[Any], key: Key) -> list[View]:
    rates = zip(edge_drops, feature_masks, strict=True)
    views = [
        MaskFeatures(mask)(DropEdges(drop)(view, key.fold_in(i)), key.fold_in(i))
        for i, (drop, mask) in enumerate(rates)
    ]
    assert not torch.equal(views[0].adjacency.kept, views[1].adjacency.kept)  # type: ignore[arg-type]
    return views


@pytest.mark.parametrize("batch_nodes", [None, 30])
@pytest.mark.parametrize("projector_width", [None, 9])
def test_grace_contrasts_the_projections_of_two_views(batch_nodes: int | None, projector_width: int | None) -> None:
    method = built("grace", **VIEWS, batch_nodes=batch_nodes, projector_width=projector_width)
    assert method.projector.hidden.weight.shape[1] == (projector_width or 6)
    steps = list(batches(method, method.prepare(GRAPH), KEY))
    assert len(steps) == (1 if batch_nodes is None else 3)
    for view, key in steps:
        first, second = drawn(view, (0.5, 0.2), (0.1, 0.4), key)
        q1, q2 = (method.projector(view.at_seeds(method.encoder(one))) for one in (first, second))
        torch.testing.assert_close(method(view, key).total, both_ways(q1, q2, 0.3))


def test_every_layer_ends_in_the_activation() -> None:
    embedding = built("grace", **VIEWS).embed(GRAPH)
    assert embedding.min() == 0 < embedding.max()
    slopes = built("grace", **VIEWS, activation="leaky_relu")
    z, positive = slopes.embed(GRAPH), slopes.encoder.affine[1]
    hidden = torch.nn.functional.leaky_relu(view_of(slopes).features.propagate(view_of(slopes).adjacency,
        slopes.encoder.affine[0].weight), 11 / 48)  # fmt: skip
    expected = torch.nn.functional.leaky_relu(view_of(slopes).adjacency @ hidden @ positive.weight, 11 / 48)
    torch.testing.assert_close(z, expected)


def view_of(method: Any, graph: Graph = GRAPH) -> View:
    prepared = method.prepare(graph)
    return prepared if isinstance(prepared, View) else prepared.view


def probabilities(centrality: np.ndarray, rate: float) -> np.ndarray:
    """Return the formula of GCA as printed, in NumPy."""
    s = np.log(centrality)
    w = (s.max() - s) / (s.max() - s.mean())
    return np.minimum(rate * w / w.mean(), 0.7)


def rates_of(prepared: Central) -> list[tuple[Tensor, Tensor]]:
    return [tuple(part.rate for part in both.augmentations) for both in prepared.augmentations]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["gca", "gcool"])
def test_rates_follow_the_degrees(name: str) -> None:
    graph = random_graph(n=80, p=12, m=300, sparse=True)
    prepared = built(name, graph, **VIEWS).prepare(graph)
    adjacency = dense(graph)
    degree, column = adjacency.sum(1), (graph.features.toarray() != 0).astype(float)
    target, source = (adjacency + np.eye(N)).nonzero()  # in the order of the entries
    for (edges, columns), drop, mask in zip(rates_of(prepared), (0.5, 0.2), (0.1, 0.4), strict=True):
        real = target != source
        np.testing.assert_allclose(edges[real], probabilities(degree[target[real]], drop), rtol=1e-12)
        assert (edges[~real] == 0).all()
        np.testing.assert_allclose(columns, probabilities(column.T @ degree, mask), rtol=1e-12)
    assert rates_of(prepared)[0][0].max() == 0.7


@pytest.mark.parametrize("name", ["gca", "gcool"])
@pytest.mark.parametrize("lazy", [False, True])
def test_rates_follow_pagerank_as_defined_or_as_released(name: str, lazy: bool) -> None:
    graph = random_graph(n=80, p=12, m=900)
    settings = {"centrality": "pagerank", "lazy_pagerank": lazy, "binary_features": False, "normalize_features": False}
    prepared = built(name, graph, **VIEWS | settings).prepare(graph)
    adjacency = dense(graph)
    walk = adjacency / np.maximum(adjacency.sum(0), 1)
    walk[:, -1] = 0 if lazy else 1 / N  # no edge leaves the last node
    x, after_ten = np.full(N, 1 / N), np.zeros(N)
    for step in range(200):
        after_ten = x if step == 10 else after_ten
        x = 0.85 * walk @ x + 0.15 * (x if lazy else np.full(N, 1 / N))
    target = (adjacency + np.eye(N)).nonzero()[0]
    real = np.not_equal(*(adjacency + np.eye(N)).nonzero())
    edges, columns = rates_of(prepared)[1]
    np.testing.assert_allclose(edges[real], probabilities(x[target[real]], 0.2), rtol=1e-6)
    by_column = np.abs(graph.features).T @ (after_ten if lazy else x)
    np.testing.assert_allclose(columns, probabilities(by_column, 0.4), rtol=1e-6)


def test_rates_follow_the_leading_eigenvector() -> None:
    graph = random_graph(n=80, p=12, m=900, sparse=True)
    prepared = built("gca", graph, **VIEWS, centrality="eigenvector").prepare(graph)
    leading = np.abs(np.linalg.eigh(dense(graph))[1][:, -1])
    target, source = (dense(graph) + np.eye(N)).nonzero()
    edges = rates_of(prepared)[1][0][target != source]
    np.testing.assert_allclose(edges, probabilities(leading[target[target != source]], 0.2), rtol=1e-5)


def test_gca_is_grace_where_all_nodes_are_equally_central() -> None:
    """On a ring with all features the rates are one rate, and every draw is the same."""
    ring = np.stack([np.arange(30), np.roll(np.arange(30), 1)])
    graph = Graph.of(edges=ring, features=np.random.default_rng(0).uniform(1, 2, (30, 8)), dtype=np.float64)
    settings = {"widths": (10, 6), "epochs": 3, "edge_drops": (0.5, 0.2), "feature_masks": (0.1, 0.4)}
    first, second = (
        train(method, method.prepare(graph), Key(0)).embedding
        for method in (built("grace", graph, **settings), built("gca", graph, **settings))
    )
    assert torch.equal(first, second)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_nodes", [None, 30])
def test_gca_contrasts_views_drawn_at_these_rates(batch_nodes: int | None) -> None:
    method = built("gca", **VIEWS, batch_nodes=batch_nodes)
    prepared = method.prepare(GRAPH)
    (drop1, mask1), (drop2, mask2) = rates_of(prepared)
    steps = list(batches(method, prepared, KEY))
    assert len(steps) == (1 if batch_nodes is None else 3)
    for batch, key in steps:
        nodes = torch.arange(N) if batch_nodes is None else batch.view.at_seeds(batch.view.adjacency.pattern.nodes)
        whole = (
            MaskFeatures(mask)(DropEdges(drop)(prepared.view, key.fold_in(i)), key.fold_in(i))
            for i, (drop, mask) in enumerate(((drop1, mask1), (drop2, mask2)))
        )
        q1, q2 = (method.projector(method.encoder(one)[nodes]) for one in whole)
        torch.testing.assert_close(method(batch, key).total, both_ways(q1, q2, 0.3))


def test_centralities_are_not_computed_to_embed() -> None:
    prepared = built("gca", **VIEWS).prepare(GRAPH)
    built("gca", **VIEWS).encode(prepared)
    assert "augmentations" not in vars(prepared)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize(("epoch", "batch_nodes"), [(0, None), (3, None), (7, None), (3, 30)])
def test_gcool_adds_communities_that_fade(one_sided: bool, epoch: int, batch_nodes: int | None) -> None:
    settings = {"communities": 4, "density_penalty": 0.7, "stride": 30, "fading": 0.2, "epochs": 10}
    method = built("gcool", **VIEWS | settings, one_sided=one_sided, batch_nodes=batch_nodes)
    method.after_step(epoch / 10)
    prepared = method.prepare(GRAPH)
    (drop1, mask1), (drop2, mask2) = rates_of(prepared)
    steps = list(batches(method, prepared, KEY))
    assert len(steps) == (1 if batch_nodes is None else 3)
    for batch, key in steps:
        views = drawn(batch.view, (drop1, drop2), (mask1, mask2), key)
        h = [unit(method.projector(one.at_seeds(method.encoder(one)))) for one in views]
        nodes = contrast(*h, 0.3, intra=False) if one_sided else both_ways(*h, 0.3, intra=False)
        r = [(one @ unit(method.centers).T / 0.3).softmax(1) for one in h]
        density, labels, n = torch.zeros(()).double(), [one.argmax(1) for one in r], len(h[0])
        for soft, view in zip(r, views, strict=True):
            between = soft.T @ linked(view) @ soft
            density += (0.7 * between.sum() - (n - 1 + 0.7) * between.trace()) / (n * (n - 1)) / 2
            density += soft.square().sum() / (2 * n) / 2
        community = torch.zeros(()).double()
        for own, other, label in ((h[0], h[1], labels[1]), (h[1], h[0], labels[0])):
            there = [k for k in range(4) if (label == k).any()]
            scores = torch.stack([(own @ other[label == k].mean(0) / 0.3).exp() for k in there], 1)
            right = torch.tensor([there.index(int(k)) for k in label])
            community += -(scores[torch.arange(n), right] / scores.sum(1)).log().mean() / 2
        part, share = max(0, 1 - epoch / 6), math.exp(-epoch / 30)
        losses = method(batch, key)
        torch.testing.assert_close(losses.total, nodes + part * (share * density + (1 - share) * community))
        torch.testing.assert_close(losses.terms["density"], density.detach())
        torch.testing.assert_close(losses.terms["communities"], community.detach())


def test_gcool_counts_epochs_from_zero_and_its_centers_learn_from_the_density_alone() -> None:
    method = built("gcool", **VIEWS, epochs=4, stride=10)
    prepared, seen = method.prepare(GRAPH), list[tuple[float, float]]()
    honest = method.weights
    method.weights = lambda: seen.append(honest()) or honest()
    train(method, prepared, Key(0))
    assert [round(-10 * math.log(share), 9) for _, share in seen] == [0, 1, 2, 3]
    assert [part for part, _ in seen] == pytest.approx([1, 0.5, 0, 0])
    method.weights = lambda: (1.0, 0.0)  # all weight to the contrast of nodes and communities
    method(prepared, KEY).total.backward()
    assert method.centers.grad.abs().max() == 0 < method.projector.output.weight.grad.abs().max()


@pytest.mark.parametrize(("sketch", "mix"), [("gaussian", gaussian_sketch), ("sparse", sparse_sketch)])
@pytest.mark.parametrize("batch_nodes", [None, 30])
def test_costa_contrasts_mixtures_of_nodes(sketch: str, mix: Any, batch_nodes: int | None) -> None:
    method = built("costa", **VIEWS, ratio=0.3, sketch=sketch, batch_nodes=batch_nodes)
    for view, key in batches(method, method.prepare(GRAPH), KEY):
        h1, h2 = (view.at_seeds(method.encoder(one)) for one in drawn(view, (0.5, 0.2), (0.1, 0.4), key))
        size = 24 if batch_nodes is None else int(0.3 * len(h1))
        mixed = mix((h1, h2), size, key.fold_in("mixtures").generator())
        assert mixed[0].shape == (size, 6)
        q1, q2 = (method.projector(one) for one in mixed)
        torch.testing.assert_close(method(view, key).total, both_ways(q1, q2, 0.3, intra=False))


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(("projector_width", "batch_nodes"), [(None, None), (9, None), (None, 30)])
def test_homogcl_takes_neighbors_for_positives(
    mean: bool, projector_width: int | None, batch_nodes: int | None
) -> None:
    settings = {"widths": (10, 6), "temperature": 0.3, "edge_drop": 0.4, "feature_mask": 0.2, "homophily_weight": 0.7}
    clusters = {"clusters": 5, "cluster_iterations": 3, "cluster_variance": 0.4, "batch_nodes": batch_nodes}
    method = built("homogcl", **settings, **clusters, mean_neighbors=mean, projector_width=projector_width)
    steps = list(batches(method, method.prepare(GRAPH), KEY))
    assert len(steps) == (1 if batch_nodes is None else 3)
    for view, key in steps:
        z = view.at_seeds(method.encoder(view))
        labels = k_means(z.detach(), 5, 3, key.fold_in("clusters").generator())
        centers = torch.stack([z[labels == k].mean(0) for k in labels.unique()]).detach()  # type: ignore[no-untyped-call]
        r = (-torch.cdist(z, centers).square() / 0.4).softmax(1)
        alike = unit(r) @ unit(r).T
        views = drawn(view, (0.4, 0.4), (0.2, 0.2), key)
        h = [method.projector(view.at_seeds(method.encoder(one))) for one in views]
        near = [linked(one) for one in views]
        total, away = torch.zeros(()).double(), torch.eye(len(z)).double()
        for own, other in ((0, 1), (1, 0)):
            within, between = kernel(h[own], h[own], 0.3), kernel(h[own], h[other], 0.3)
            soft = (within * near[own] * alike).sum(1)
            positive = between.diagonal() + (soft / near[own].sum(1).clamp_min(1) if mean else soft)
            negative = (within * (1 - away - near[own])).sum(1) + (between * (1 - away - near[other])).sum(1)
            total += -(positive / (positive + negative)).log().mean() / 2
        loops = (linked(view) + away).nonzero().T
        total += 0.7 * (r[loops[0]] - r[loops[1]]).square().mean()
        losses = method(view, key)
        torch.testing.assert_close(losses.total, total)
        gradients = torch.autograd.grad(losses.total, method.encoder.affine[0].weight, retain_graph=True)
        torch.testing.assert_close(gradients, torch.autograd.grad(total, method.encoder.affine[0].weight))


def test_homogcl_has_no_cluster_that_is_empty() -> None:
    """Three distinct rows cannot fill eight clusters; an empty one at the origin would draw the nodes near it."""
    method = built("homogcl", widths=(6, 2), clusters=8, cluster_iterations=2, cluster_variance=0.1)
    z = torch.tensor([[0.3, 0.0], [1.0, 0.0], [0.0, 2.0]], dtype=torch.float64).repeat(20, 1)
    r = method.soft_clusters(z, KEY.generator())
    assert r.shape[1] < 8
    torch.testing.assert_close(r.sum(1), torch.ones(60, dtype=torch.float64))


@pytest.mark.parametrize(("name", "normalization"), [("grace", "in"), ("gca", "in"), ("gcool", "in"), ("costa", "in"),
                                                     ("homogcl", "out-in")])  # fmt: skip
def test_views_have_the_degrees_and_rows_of_the_released_code(name: str, normalization: str) -> None:
    view = view_of(built(name))
    assert view.adjacency.normalization == normalization
    sums = view.features.matrix.abs().sum(1)  # type: ignore[union-attr]
    assert torch.allclose(sums, torch.ones_like(sums)) == (name != "homogcl")


@pytest.mark.parametrize("name", ["grace", "gca", "gcool", "costa"])
def test_large_graphs_are_trained_in_batches_with_as_many_steps(name: str) -> None:
    assert METHODS[name].default_config(GraphInfo(16_384, 50_000, 100)) == {}
    assert METHODS[name].default_config(GraphInfo(40_960, 50_000, 100)) == {"batch_nodes": 2048, "epochs": 10}
    assert METHODS[name].default_config(GraphInfo(10**7, 10**8, 100)) == {"batch_nodes": 2048, "epochs": 1}
    assert plan(GraphInfo(40_960, 50_000, 100), "homogcl").config.model_dump()["epochs"] == 50


# Parameters, in thousands, by the SSGE paper's table of efficiency.
@pytest.mark.parametrize(
    ("recipe", "features", "thousands"),
    [("homogcl/cora", 1433, 866), ("homogcl/citeseer", 3703, 2028), ("homogcl/pubmed", 500, 388),
     ("homogcl/computer", 767, 525)],
)  # fmt: skip
def test_parameter_counts_are_those_of_the_paper(recipe: str, features: int, thousands: int) -> None:
    method = build("homogcl", load_recipe(recipe).config, GraphInfo(1, 1, features))
    assert round(sum(p.numel() for p in method.parameters()) / 1000) == thousands
