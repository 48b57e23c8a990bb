"""SSGE beyond the contract: where the origin of its embeddings lies, and its other objectives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from graphs import random_graph
from ssge.experiments.references import untrained_encoder
from ssge.methods.ssge import SSGE, SSGEConfig
from ssge.ops.random import Key
from ssge.runs.plan import Plan
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import train
from ssge.views import DropEdges, MaskFeatures

GRAPH = random_graph(n=80, p=12, m=300)
SMALL = {"epochs": 4, "widths": (10, 6)}


def trained(**config: float) -> SSGE:
    method = build("ssge", SMALL | config, GRAPH.info, 0, torch.float64)
    train(method, method.prepare(GRAPH.without_labels()), Key(0))
    assert isinstance(method, SSGE)
    return method


def test_offset_moves_every_number_of_an_embedding_by_as_much_and_changes_no_weight() -> None:
    plain, moved = trained(), trained(offset=2.0)
    for (name, weight), other in zip(plain.state_dict().items(), moved.state_dict().values(), strict=True):
        assert torch.equal(weight, other), name
    assert plain.embed(GRAPH).square().mean() == pytest.approx(1)
    torch.testing.assert_close(moved.embed(GRAPH), plain.embed(GRAPH) + 2, rtol=0, atol=1e-12)
    some = np.array([3, 70, 79])
    torch.testing.assert_close(moved.embed(GRAPH, nodes=some), moved.embed(GRAPH)[some], rtol=0, atol=1e-12)


def test_untrained_encoder_has_no_offset() -> None:
    plans = (Plan(SSGE, SSGEConfig(widths=(10, 6), offset=at)) for at in (0, 2))
    plain, moved = (untrained_encoder(GRAPH, plan) for plan in plans)
    assert np.array_equal(plain, moved)


def test_negative_offset_is_refused() -> None:
    with pytest.raises(ValidationError, match="offset"):
        SSGEConfig(offset=-1)


VIEWS = {"edge_drop": 0.3, "feature_mask": 0.2}


@pytest.mark.parametrize("widths", [(10, 6), (6, 10)])  # the second leaves its last layer to the objective
@pytest.mark.parametrize("batch_nodes", [None, 40])
def test_other_objectives_take_the_same_views_and_encoder(widths: tuple[int, int], batch_nodes: int | None) -> None:
    settings = VIEWS | {"widths": widths, "batch_nodes": batch_nodes}
    for config, objective in (
        ({"objective": "w-mse", "shrinkage": 0.2}, lambda u, v: whitened_distance(u, v, 0.2)),
        ({"objective": "directclr", "direct_width": 4, "temperature": 0.3}, lambda u, v: first_columns(u, v, 4, 0.3)),
        ({"objective": "directclr"}, lambda u, v: first_columns(u, v, 2, 0.1)),  # 360/2048 of 6 or 10 columns, up
    ):
        method = build("ssge", settings | config, GRAPH.info, 0, torch.float64)
        for view, key in batches(method, method.prepare(GRAPH), Key(0).fold_in("train", 1)):
            views = (MaskFeatures(0.2)(DropEdges(0.3)(view, k), k) for k in (key.fold_in(0), key.fold_in(1)))
            u, v = (view.at_seeds(method.encoder(one)) for one in views)
            losses = method(view, key)
            torch.testing.assert_close(losses.total, objective(u, v))
            assert set(losses.terms) == {config["objective"]}


def whitened_distance(u: Tensor, v: Tensor, shrinkage: float) -> Tensor:
    """Return the mean squared distance of unit rows, whitened by the shrunk correlation matrix."""
    rows = []
    for z in (u, v):
        standard = (z - z.mean(0)) / z.std(0)
        correlation = (1 - shrinkage) * torch.cov(standard.T) + shrinkage * torch.eye(z.shape[1]).double()
        rows.append(torch.nn.functional.normalize(standard @ torch.linalg.cholesky(correlation).inverse().T))
    return (rows[0] - rows[1]).square().sum(1).mean()


def first_columns(u: Tensor, v: Tensor, width: int, temperature: float) -> Tensor:
    """Return the cross-entropy of a node's own row of the other view among all of that view."""
    u, v = (torch.nn.functional.normalize(z[:, :width]) for z in (u, v))
    scores, own = u @ v.T / temperature, torch.arange(len(u))
    entropy = torch.nn.functional.cross_entropy
    return (entropy(scores, own) + entropy(scores.T, own)) / 2


def test_settings_of_other_objectives_change_nothing() -> None:
    plain, same = trained(), trained(shrinkage=0.5, direct_width=3, temperature=0.7)
    for (name, weight), other in zip(plain.state_dict().items(), same.state_dict().values(), strict=True):
        assert torch.equal(weight, other), name


def test_columns_of_directclr_are_columns_of_the_embedding() -> None:
    assert SSGEConfig(direct_width=300).direct_width == 300  # plays no part
    with pytest.raises(ValidationError, match=r"direct_width\n.*must be at most 256, the last of widths"):
        SSGEConfig(objective="directclr", direct_width=300)
