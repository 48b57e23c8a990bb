"""Training with products in bfloat16: gradients against float64, what stays in float32, and how it is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods import METHODS
from ssge.ops.moments import cross_moments, moments
from ssge.ops.random import Key
from ssge.runs.fit import fit
from ssge.runs.plan import plan
from ssge.training.checkpoint import build
from ssge.training.device import choose_precision

GRAPH = random_graph(n=600, p=48, m=3000)
KEY = Key(0).fold_in("train", 1)
BOUND = 0.05
"""Of the norm of a gradient: about ten roundings of 2^-9 each, which add up at random, and their growth backward."""


def gradients(graph: Graph, settings: dict[str, Any], bf16: bool = False, dtype: torch.dtype = torch.float64) -> Any:
    method = build("ssge", settings, graph.info, 0, torch.float32).to(dtype)  # the same weights to the bit
    method.bf16 = bf16
    with method.products():
        losses = method.train()(method.prepare(graph), KEY)
    losses.total.backward()
    found = torch.cat([p.grad.double().flatten() for p in method.parameters() if p.grad is not None])
    return float(losses.total.detach()), found


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "settings", [{"widths": (32, 32)}, {"widths": (32, 16)}, {"widths": (16, 16), "encoder": "mlp"}]
)
def test_gradient_of_the_objective_is_that_of_float64_within_the_bound(settings: dict[str, Any], sparse: bool) -> None:
    graph = random_graph(n=600, p=48, m=3000, sparse=sparse)
    loss, exact = gradients(graph, settings)
    low, rounded = gradients(graph, settings, bf16=True, dtype=torch.float32)
    error = float((rounded - exact).norm() / exact.norm())
    assert 1e-4 < error < BOUND  # below, nothing was in bfloat16
    assert low == pytest.approx(loss, rel=0.01)
    _, plain = gradients(graph, settings, dtype=torch.float32)
    assert float((plain - exact).norm() / exact.norm()) < 1e-4


@pytest.mark.parametrize("mean", [0.0, 4.0])
def test_moments_of_bfloat16_are_summed_in_float32(mean: float) -> None:
    z = (torch.randn(5000, 40, generator=torch.Generator().manual_seed(0)) + mean).bfloat16()
    for found in (moments(z, z.flip(0)).scatter[0], moments(z).scatter[0], cross_moments(z, z).cross):
        exact = torch.cov(z.double().t()) * (z.shape[0] - 1)
        assert found.dtype == torch.float32
        size = exact.diagonal().mean()
        assert float((found - exact).abs().max() / size) < 2**-8
        assert float((found - exact).norm() / exact.norm()) < 2**-9


@pytest.mark.parametrize("name", sorted(name for name in METHODS if METHODS[name].trained))
def test_every_method_trains_in_bf16_with_weights_and_embedding_in_float32(name: str) -> None:
    graph = random_graph(n=60, p=12, m=200)
    settings = {"epochs": 1}
    done = {p: fit(graph, plan(graph.info, name, settings=settings, precision=p)) for p in ("bf16", "float32")}  # type: ignore[arg-type]
    low, high = done["bf16"], done["float32"]
    assert low.record.precision == "bf16"
    assert all(p.dtype == torch.float32 for p in low.method.parameters())
    assert low.embedding.vectors.dtype == np.float32
    assert low.history[0]["total"] == pytest.approx(high.history[0]["total"], rel=0.05, abs=0.05)


def test_auto_is_bf16_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    assert choose_precision("auto", cpu) == "bf16"
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True})
    assert choose_precision("auto", cpu) == "float32"
    assert choose_precision("bf16", cpu) == "bf16"
    with pytest.raises(InputError, match=r"Unknown precision 'bf15'. Did you mean 'bf16'\?"):
        choose_precision("bf15", cpu)


def test_a_training_does_not_resume_in_another_precision(tmp_path: Any) -> None:
    from ssge.runs.folder import RunFolder

    def stop(line: dict[str, float]) -> bool:
        return line["epoch"] == 1

    settings = {"epochs": 3, "widths": (4, 4)}
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(Exception, match="Stopped"):
        fit(GRAPH, plan(GRAPH.info, settings=settings, precision="bf16"), folder, observers=[stop])
    with pytest.raises(InputError, match="precision"):
        fit(GRAPH, plan(GRAPH.info, settings=settings), folder, resume=True)
    resumed = fit(GRAPH, plan(GRAPH.info, settings=settings, precision="bf16"), folder, resume=True)
    whole = fit(GRAPH, plan(GRAPH.info, settings=settings, precision="bf16"))
    assert np.array_equal(resumed.embedding.vectors, whole.embedding.vectors)
