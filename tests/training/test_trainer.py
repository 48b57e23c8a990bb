"""The loop's own promises: observers, non-finite losses, checkpoints of another run."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from graphs import random_graph
from ssge.errors import InputError, TrainingError
from ssge.methods import METHODS, Method
from ssge.objectives import Losses
from ssge.training.checkpoint import Checkpoint, build, load_model, save_model
from ssge.training.trainer import train
from ssge.views import View

GRAPH = random_graph()
CONFIG = {"epochs": 5, "widths": (8, 4)}


def method() -> Method:
    return build("ssge", CONFIG, GRAPH.info)


def test_history_has_every_epoch_and_every_term() -> None:
    seen: list[dict[str, float]] = []
    history = train(method(), GRAPH, observers=[seen.append]).history
    assert history == seen
    assert [line["epoch"] for line in history] == [1, 2, 3, 4, 5]
    assert set(history[0]) == {"epoch", "total", "alignment", "uniformity", "effective_rank", "seconds"}
    weight = METHODS["ssge"].Config(**CONFIG).uniformity_weight  # type: ignore[attr-defined]
    for line in history:
        assert line["total"] == pytest.approx(line["alignment"] + weight * line["uniformity"], rel=1e-5)


def test_non_finite_loss_names_epoch_and_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = method()
    honest = broken.forward
    steps = []

    def forward(view: View, generator: torch.Generator) -> Losses:
        steps.append(1)
        losses = honest(view, generator)
        bad = losses.terms | {"uniformity": torch.tensor(float("nan"))}
        return losses if len(steps) < 3 else Losses(losses.total * float("nan"), bad)

    monkeypatch.setattr(broken, "forward", forward)
    with pytest.raises(TrainingError, match=r"not finite in epoch 3: total nan, alignment -.*, uniformity nan"):
        train(broken, GRAPH)


def test_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c.safetensors", every=2)
    train(method(), GRAPH, checkpoint=checkpoint)
    other = build("ssge", CONFIG | {"edge_drop": 0.5}, GRAPH.info)
    with pytest.raises(InputError, match=r"another run: its edge_drop is 0\.3, this run's is 0\.5"):
        train(other, GRAPH, checkpoint=checkpoint, resume=True)
    with pytest.raises(InputError, match="another run: its seed is 0, this run's is 1"):
        train(method(), GRAPH, seed=1, checkpoint=checkpoint, resume=True)


def test_checkpoints_come_when_due(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    there = []
    train(method(), GRAPH, checkpoint=Checkpoint(path, every=2), observers=[lambda _: there.append(path.exists())])
    assert there == [False, False, True, True, True]
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]


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
    checkpoint = Checkpoint(tmp_path / "c.safetensors", every=2)
    train(method(), GRAPH, checkpoint=checkpoint)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        train(method(), GRAPH, checkpoint=checkpoint, resume=True)
    finally:
        torch.set_num_threads(threads)
    assert f"began with {threads} threads and goes on with {threads + 1}" in caplog.text


@pytest.mark.parametrize("encoder", ["gcn", "mlp"])
def test_float32_training_is_the_same_to_the_byte(encoder: str) -> None:
    graph = random_graph(n=3000, p=40, m=60_000)  # several pieces of rows, and products by panels
    config = {"epochs": 3, "widths": (160, 160), "encoder": encoder}
    found = []
    for _ in range(2):
        model = build("ssge", config, graph.info, dtype=torch.float32)
        train(model, graph)
        found.append(model.embed(graph).numpy().tobytes())
    assert found[0] == found[1]
