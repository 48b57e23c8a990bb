"""The loop's own promises: history, observers, one embedding at the end, checkpoints, non-finite losses."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from graphs import random_graph
from ssge.errors import InputError, TrainingError
from ssge.graph import Graph
from ssge.methods import Method
from ssge.methods.ssge import SSGE
from ssge.objectives import Losses
from ssge.ops.random import Key
from ssge.training.batches import batches
from ssge.training.checkpoint import Checkpoint, build, describe_run, load_model, save_model
from ssge.training.trainer import Trained, train
from ssge.views import View

GRAPH = random_graph()
EPOCHS = 5


def method(graph: Graph = GRAPH, seed: int = 0, **settings: Any) -> Method:
    return build("ssge", {"epochs": EPOCHS, "widths": (8, 4)} | settings, graph.info, seed)


def fit(model: Method, graph: Graph = GRAPH, seed: int = 0, **options: Any) -> Trained:
    return train(model, model.prepare(graph.without_labels()), Key(seed), **options)


def checkpoint(path: Path, seed: int = 0, **options: Any) -> Checkpoint:
    return Checkpoint(path / "c.safetensors", describe_run(method(), GRAPH.without_labels(), seed), **options)


def bits(trained: Trained) -> bytes:
    assert trained.embedding is not None
    return trained.embedding.numpy().tobytes()


def test_history_has_every_epoch_and_every_term() -> None:
    seen: list[dict[str, float]] = []
    model = method(uniformity_weight=0.7)
    trained = fit(model, observers=[seen.append])
    assert trained.history == seen
    assert [line["epoch"] for line in seen] == [1, 2, 3, 4, 5]
    assert set(seen[0]) == {"epoch", "total", "alignment", "uniformity", "effective_rank", "seconds"}
    for line in seen:
        assert line["total"] == pytest.approx(line["alignment"] + 0.7 * line["uniformity"], rel=1e-5)
    assert trained.kept == seen[-1]
    assert seen[-1]["seconds"] <= trained.seconds


def test_steps_of_all_epochs_have_keys_of_their_own_and_schedules_their_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    totals: list[float] = []
    keys: list[Key] = []
    started: list[float] = []
    stepped: list[float] = []
    honest = SSGE.forward

    def forward(self: SSGE, view: View, key: Key) -> Losses:
        losses = honest(self, view, key)
        totals.append(losses.total.item())
        keys.append(key)
        return losses

    monkeypatch.setattr(SSGE, "forward", forward)
    monkeypatch.setattr(SSGE, "lr_schedule", lambda _, progress: started.append(progress) or 1.0)
    monkeypatch.setattr(SSGE, "after_step", lambda _, progress: stepped.append(progress))
    history = fit(method(batch_nodes=20), seed=3).history
    assert keys == [Key(3).fold_in("train", epoch).at_step(step) for epoch in range(1, 6) for step in range(3)]
    assert started == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert stepped == pytest.approx([progress for progress in (0.2, 0.4, 0.6, 0.8, 1) for _ in range(3)])
    means = [sum(totals[3 * epoch : 3 * epoch + 3]) / 3 for epoch in range(EPOCHS)]
    assert [line["total"] for line in history] == pytest.approx(means, rel=1e-6)


def test_the_schedule_scales_the_learning_rate() -> None:
    """Adam's first step has the size of its rate, whatever the gradient; of a rate of nothing none is left."""
    moved = []
    for factor in (1.0, 0.25, 0.0):
        model = method(epochs=1, lr=1e-3, weight_decay=0)
        model.lr_schedule = lambda _, factor=factor: factor  # type: ignore[method-assign, misc]
        before = [p.detach().clone() for p in model.parameters()]
        fit(model)
        moved.append(max(float((p.detach() - b).abs().max()) for p, b in zip(model.parameters(), before, strict=True)))
    assert moved == pytest.approx([1e-3, 0.25e-3, 0], rel=1e-3)


def test_the_graph_is_encoded_once_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Tensor | None] = []
    honest = SSGE.encode

    def encode(self: SSGE, prepared: Any, nodes: Tensor | None = None) -> Tensor:
        encoded.append(nodes)
        return honest(self, prepared, nodes)

    monkeypatch.setattr(SSGE, "encode", encode)
    model = method()
    trained = fit(model)
    assert encoded == [None]
    assert trained.embedding is not None
    assert torch.equal(trained.embedding, model.embed(GRAPH))
    encoded.clear()
    stopped = fit(method(), observers=[lambda line: line["epoch"] == 2])
    assert stopped.embedding is None and len(stopped.history) == 2
    assert encoded == []


def test_one_observer_stops_and_all_are_called() -> None:
    seen: list[float] = []
    stopped = fit(method(), observers=[lambda line: line["epoch"] == 3, lambda line: seen.append(line["epoch"])])
    assert seen == [1, 2, 3]
    assert [line["epoch"] for line in stopped.history] == seen


def test_without_epochs_the_untrained_encoder_is_calibrated() -> None:
    model = method(epochs=0)
    trained = fit(model)
    assert trained.history == [] and trained.kept == {}
    assert trained.embedding is not None
    assert float(trained.embedding.square().mean()) == pytest.approx(1)


def test_non_finite_loss_names_epoch_and_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    model = method()
    honest, steps = model.forward, []

    def forward(view: View, key: Key) -> Losses:
        steps.append(1)
        losses = honest(view, key)
        bad = losses.terms | {"uniformity": torch.tensor(float("nan"))}
        return losses if len(steps) < 3 else Losses(losses.total * float("nan"), bad)

    monkeypatch.setattr(model, "forward", forward)
    with pytest.raises(TrainingError, match=r"not finite in epoch 3: total nan, alignment -.*, uniformity nan"):
        fit(model)


@pytest.mark.parametrize("settings", [{}, {"batch_nodes": 20}], ids=["full", "batches"])
@pytest.mark.parametrize("stop", range(1, EPOCHS))
def test_resuming_after_any_epoch_is_bit_equal(settings: dict[str, Any], stop: int, tmp_path: Path) -> None:
    whole = fit(method(**settings))
    fit(method(**settings), checkpoint=checkpoint(tmp_path, every=0), observers=[lambda line: line["epoch"] == stop])
    torch.manual_seed(stop)
    again = fit(method(seed=9, **settings), checkpoint=checkpoint(tmp_path, resuming=True))
    assert bits(again) == bits(whole)
    assert [line["total"] for line in again.history] == [line["total"] for line in whole.history]


def test_a_checkpoint_holds_weights_and_state_of_the_optimizer_and_no_generator(tmp_path: Path) -> None:
    fit(method(), checkpoint=checkpoint(tmp_path, every=2))
    with safe_open(tmp_path / "c.safetensors", framework="pt") as file:
        kinds = {name.split(".")[0] for name in file.keys()}  # noqa: SIM118 - not a mapping
    assert kinds == {"method", "optimizer"}


def test_batches_of_an_epoch_need_no_epoch_before_it() -> None:
    """What resuming rests on: keys of an epoch give its batches, whatever was drawn before."""
    model = method(batch_nodes=20)
    view = model.prepare(GRAPH)
    alone, (_, after) = (
        [[part.adjacency.pattern.nodes for part, _ in batches(model, view, Key(0).fold_in("train", e))] for e in epochs]
        for epochs in ((2,), (1, 2))
    )
    assert all(map(torch.equal, alone[0], after))


def test_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    fit(method(), checkpoint=checkpoint(tmp_path, every=2))
    resuming = checkpoint(tmp_path, resuming=True)
    with pytest.raises(InputError, match=r"another run: its edge_drop is 0\.3, this run's is 0\.5"):
        fit(method(edge_drop=0.5), checkpoint=resuming)
    with pytest.raises(InputError, match="another run: its seed is 0, this run's is 1"):
        fit(method(), checkpoint=checkpoint(tmp_path, seed=1, resuming=True))
    for other in (random_graph(seed=1), random_graph(weighted=True), random_graph(dtype=np.float32)):
        there = describe_run(method(), other.without_labels(), 0)
        with pytest.raises(InputError, match="another run: its graph is"):
            fit(method(), checkpoint=Checkpoint(resuming.path, there, resuming=True))


def test_checkpoints_come_when_due(tmp_path: Path) -> None:
    path, there = tmp_path / "c.safetensors", []
    fit(method(), checkpoint=checkpoint(tmp_path, every=2), observers=[lambda _: there.append(path.exists())])
    assert there == [False, False, True, True, True]
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]
    with pytest.raises(InputError, match="checkpoint_every must be 0 or more; received -1"):
        checkpoint(tmp_path, every=-1)


@pytest.mark.parametrize("content", [b"", b"not safetensors", b"\x80\x04\x95junk"])
def test_corrupt_model_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read as a safetensors file"):
        load_model(path)


def test_truncated_model_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model(path, method())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot be read as a safetensors file"):
        load_model(path)
    with pytest.raises(InputError, match="No such file"):
        load_model(tmp_path / "missing.safetensors")


def test_other_thread_count_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # whatever another test has set
    fit(method(), checkpoint=checkpoint(tmp_path, every=2))
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        fit(method(), checkpoint=checkpoint(tmp_path, resuming=True))
    finally:
        torch.set_num_threads(threads)
    assert f"began with {threads} threads and resumes with {threads + 1}" in caplog.text


@pytest.mark.parametrize("encoder", ["gcn", "mlp"])
def test_float32_training_is_the_same_to_the_byte(encoder: str) -> None:
    graph = random_graph(n=3000, p=40, m=60_000)  # several pieces of rows, and products by panels
    first, second = (fit(method(graph, epochs=3, widths=(160, 160), encoder=encoder), graph) for _ in range(2))
    assert bits(first) == bits(second)
