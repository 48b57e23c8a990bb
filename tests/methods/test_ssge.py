"""SSGE beyond the contract: where the origin of its embeddings lies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from graphs import random_graph
from ssge.experiments.references import untrained_encoder
from ssge.methods.ssge import SSGE, SSGEConfig
from ssge.ops.random import Key
from ssge.runs.plan import Plan
from ssge.training.checkpoint import build
from ssge.training.trainer import train

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
