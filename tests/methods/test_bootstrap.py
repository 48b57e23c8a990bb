"""BGRL, RGRL and AFGRL beyond the contract: the target, the switches of released code, anchors and positives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from graphs import random_graph
from ssge.methods import Method
from ssge.methods.afgrl import AFGRL
from ssge.methods.bgrl import BGRL
from ssge.methods.rgrl import RGRL
from ssge.ops.diffusion import top_pagerank
from ssge.ops.random import Key
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import train
from ssge.views import View

GRAPH = random_graph(n=80, p=12, m=300)
NAMES = ["bgrl", "rgrl", "afgrl"]


def built(name: str, **config: Any) -> Any:
    settings = {"epochs": 4, "widths": (10, 6), "predictor_width": 8} | config
    return build(name, settings, GRAPH.info, 0, torch.float64)


def fit(method: Method) -> None:
    train(method, method.prepare(GRAPH.without_labels()), Key(0))


def view_of(method: Method) -> View:
    prepared = method.prepare(GRAPH)
    return prepared if isinstance(prepared, View) else prepared.view


def target_weights(method: Any) -> list[torch.Tensor]:
    return [p.clone() for p in method.target.parameters()]


@pytest.mark.parametrize("name", NAMES)
def test_target_stays_at_momentum_one_and_is_the_online_network_at_zero(name: str) -> None:
    method = built(name, momentum=1.0)
    before, online = target_weights(method), [p.clone() for p in method.encoder.parameters()]
    fit(method)
    for old, new in zip(before, method.target.parameters(), strict=True):
        assert torch.equal(old, new)
    assert not all(torch.equal(a, b) for a, b in zip(online, method.encoder.parameters(), strict=True))
    method.target.update(method.encoder, 0.0)
    for own, other in zip(method.target.parameters(), method.encoder.parameters(), strict=True):
        torch.testing.assert_close(own.data, other.data)


@pytest.mark.parametrize(("name", "same"), [("bgrl", False), ("rgrl", True), ("afgrl", True)])
def test_where_the_target_begins(name: str, same: bool) -> None:
    method = built(name)
    first, own = method.encoder.layers[0].weight, method.target.network.layers[0].weight
    assert torch.equal(first, own) == same


@pytest.mark.parametrize("name", NAMES)
def test_target_is_saved_but_not_trained(name: str) -> None:
    method = built(name)
    assert any(key.startswith("target.") for key in method.state_dict())
    trained = {id(p) for group in method.optimizer().param_groups for p in group["params"]}
    assert not trained & {id(p) for p in method.target.parameters()}
    assert trained >= {id(p) for p in (*method.encoder.parameters(), *method.predictor.parameters())}


def test_bgrl_s_loss_is_two_less_the_cosines() -> None:
    method: BGRL = built("bgrl", edge_drops=(0, 0), feature_masks=(0, 0))
    view = method.prepare(GRAPH)
    losses = method(view, Key(0))
    q, t = method.predictor(method.encoder(view)), method.target(view)
    expected = 2 - 2 * torch.nn.functional.cosine_similarity(q, t).mean()
    torch.testing.assert_close(losses.total, expected)


def test_bgrl_s_momentum_rises_to_one() -> None:
    method: BGRL = built("bgrl")
    assert [method.momentum_at(p) for p in (0, 0.5, 1)] == pytest.approx([0.99, 0.995, 1])


@pytest.mark.parametrize("name", ["rgrl", "afgrl"])
def test_released_bn_trains_without_normalizing(name: str) -> None:
    method = built(name, released_bn=True)
    fit(method)
    for norm in _norms(method):
        assert torch.equal(norm.running_mean, torch.zeros_like(norm.running_mean))
        assert torch.equal(norm.running_var, torch.ones_like(norm.running_var))
    view = view_of(method)
    trained = method.train().encoder(view)
    assert torch.equal(trained, method.eval().encoder(view))
    usual = built(name)
    fit(usual)
    assert all(norm.running_mean.abs().max() > 0 for norm in _norms(usual))


def _norms(method: Method) -> Iterator[Any]:
    return (module for module in method.modules() if isinstance(module, torch.nn.BatchNorm1d))


def test_released_momentum_advances_with_each_tensor() -> None:
    method: AFGRL = built("afgrl", released_momentum=True, epochs=100)

    def expected(step: int) -> float:
        return 1 - 0.1 * (1 + math.cos(math.pi * step / 100)) / 2

    tensors = sum(1 for _ in method.encoder.parameters())
    assert tensors == 8  # two layers; the released ones have a bias more
    assert method.momentum_at(1 / 100) == pytest.approx([expected(i) for i in range(8)])
    assert method.momentum_at(30 / 100) == pytest.approx([expected(29 * 10 + i) for i in range(8)])
    assert built("afgrl", epochs=100).momentum_at(0.5) == pytest.approx(0.95)


def test_rgrl_draws_different_anchors_of_low_degree() -> None:
    method: RGRL = built("rgrl", anchors=20, anchor_base=0.2, anchor_floor=0.0)
    adjacency = view_of(method).adjacency
    source, degree = Key(0).generator(), adjacency.pattern.incoming.indptr.diff()
    drawn = torch.stack([method.drawn_anchors(adjacency, source) for _ in range(400)])
    assert all(row.unique().numel() == 20 for row in drawn)
    often = torch.bincount(drawn.flatten(), minlength=80).double()
    assert often[degree <= 3].mean() > 2 * often[degree >= 6].mean()
    assert built("rgrl", anchors=500).drawn_anchors(adjacency, source).unique().numel() == 80


def test_rgrl_finds_neighbors_by_pagerank_once_for_a_graph() -> None:
    method: RGRL = built("rgrl", neighbors=3, teleport=0.3)
    prepared = method.prepare(GRAPH)
    for epoch in range(2):
        ((batch, _),) = batches(method, prepared, Key(0).fold_in("train", epoch))
        assert batch is prepared
    near = top_pagerank(prepared.view.adjacency, 3, 0.3)
    assert torch.equal(prepared.near, near)


def test_afgrl_s_positives_hold_each_node_and_grow_with_clusterings() -> None:
    view = built("afgrl").prepare(GRAPH)
    counts = []
    for clusterings in (1, 5):
        method: AFGRL = built("afgrl", clusterings=clusterings, neighbors=8, centroids=10)
        h, t = method.encoder(view), method.target(view)
        pairs = method.positives(h, t, view, Key(0).generator())
        assert set(pairs[0, pairs[0] == pairs[1]].tolist()) == set(range(80))
        counts.append(pairs.shape[1])
    assert 80 < counts[0] < counts[1] <= 80 * 8


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_normalized_if_so_configured(name: str) -> None:
    plain, normal = (view_of(built(name, normalize_features=on)).features.matrix for on in (False, True))
    assert isinstance(plain, torch.Tensor) and isinstance(normal, torch.Tensor)
    torch.testing.assert_close(plain / plain.abs().sum(1, keepdim=True), normal)


def test_bgrl_s_attention_heads_share_the_width_and_must_divide_it() -> None:
    method: BGRL = built("bgrl", encoder="gat", heads=2)
    assert [layer.weight.shape[1] for layer in method.encoder.layers] == [10, 6]
    assert method.embed(GRAPH).shape == (80, 6)
    for heads in ({}, {"heads": 4}):
        with pytest.raises(ValidationError, match="must divide every one of widths, which are 10, 6"):
            built("bgrl", encoder="gat", **heads)
    assert built("bgrl", heads=4).config.heads == 4  # plays no part without attention
