"""The references compute the objective that ours does: equal losses from equal weights, in each form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import random_graph
from reference import FORMS, Form, Reference
from ssge.ops.random import Key
from ssge.training.checkpoint import build
from ssge.training.trainer import step

CONFIG = {
    "widths": (10, 6), "edge_drop": 0.0, "feature_mask": 0.0, "uniformity_weight": 0.7, "lr": 0.01, "weight_decay": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_descend_as_ours_does(form: Form) -> None:
    graph = random_graph(n=60, p=12, m=200, dtype=np.float32)
    clamped = {"eigenvalue_floor": 1e-8, "floor_mode": "clamp", "output_bias": True}
    ours = build("ssge", CONFIG | clamped, graph.info)
    theirs = Reference(graph, CONFIG, form)
    with torch.no_grad():
        for layer, mine in zip(theirs.model.layers, ours.encoder.layers, strict=True):  # type: ignore[arg-type]
            found = layer.lin if form != "released" else layer
            found.weight.copy_(mine.weight.t())
            layer.bias.copy_(mine.bias)
    prepared, optimizer = ours.prepare(graph), ours.optimizer()
    ours.train()
    for epoch in range(3):
        expected = float(step(ours, prepared, optimizer, Key(epoch)).total)
        assert theirs.step() == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("form", FORMS[1:])
def test_dropped_edges_leave_a_matrix_and_its_transpose(form: Form) -> None:
    graph = random_graph(n=60, p=12, m=400, directed=True, dtype=np.float32)
    edges = Reference(graph, CONFIG, form)._edges(drop=0.5)
    forward = edges if form == "csr" else edges.forward
    dense = forward.to_dense()
    assert 60 < int((dense > 0).sum()) < graph.num_edges
    assert bool((dense.diagonal() > 0).all())
    if form == "released":
        assert torch.equal(edges.backward.to_dense(), dense.t())
