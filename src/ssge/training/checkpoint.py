"""Models and checkpoints as safetensors files: tensors plus JSON, no pickle."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ssge.errors import InputError
from ssge.files import atomic
from ssge.graph import Graph, GraphInfo
from ssge.io.graph_folder import StoredGraph
from ssge.methods import METHODS, Method
from ssge.ops.random import Key
from ssge.training.best import Best

log = logging.getLogger(__name__)


def save_model(path: Path, method: Method, **facts: Any) -> None:
    """Write a method with everything needed to rebuild it, and additional JSON metadata."""
    _write(path, method.state_dict(), _description(method) | facts)


def load_model(path: Path, device: torch.device | str = "cpu") -> tuple[Method, dict[str, Any]]:
    """Read a method that `save_model` wrote, and its metadata."""
    tensors, facts = _read(path)
    kinds = {"method": str, "config": dict, "info": dict}
    if not all(isinstance(facts.get(key), kind) for key, kind in kinds.items()):
        raise InputError(f"{path} is not a model of ssge: its header names no method.")
    try:
        method = build(facts["method"], facts["config"], GraphInfo(**facts["info"]), dtype=_dtype(tensors))
        method.load_state_dict(tensors)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{path} is not a model of this version: {' '.join(str(error).split())}") from None
    return method.to(device), facts


def build(
    name: str,
    config: dict[str, Any],
    info: GraphInfo,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Method:
    """Build a method by name; the seed determines its initial weights, which are the same on every device."""
    cls = METHODS[name]
    generator = Key(seed).fold_in("weights").generator()
    method: Method = cls(cls.Config(**config), info, generator)  # type: ignore[call-arg]
    return method.to(device, dtype)


class Checkpoint:
    """The state of an unfinished training in one file: weights, the best epoch so far, optimizer state, history.

    Draws are functions of seed, epoch and step (`ssge.ops.random.Key`), so there is no generator state.

    Parameters
    ----------
    path
        The file; written atomically, so a killed run leaves the previous checkpoint intact.
    run
        The facts that must match to resume; see `describe_run`.
    every
        Save after this many epochs; 0 saves only when training is stopped.
    resuming
        Whether to resume from the file if it exists.
    """

    def __init__(self, path: Path, run: dict[str, Any], every: int = 10, resuming: bool = False) -> None:
        if every < 0:
            raise InputError(f"checkpoint_every must be 0 or more; received {every}.")
        self.path, self.run, self.every, self.resuming = path, run, every, resuming

    def due(self, epoch: int) -> bool:
        """Return whether to save after an epoch."""
        return self.every > 0 and epoch % self.every == 0

    def save(
        self,
        method: Method,
        optimizer: torch.optim.Optimizer,
        history: list[dict[str, float]],
        best: Best | None = None,
    ) -> None:
        """Write the state after the last epoch in ``history``."""
        tensors = {f"method.{key}": value for key, value in method.state_dict().items()}
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{key}": value for key, value in state.items()}
        if best is not None:
            tensors |= {f"best.{key}": value for key, value in best.weights.items()}
        facts = _description(method) | self.run | {"threads": torch.get_num_threads(), "history": history}
        _write(self.path, tensors, facts)

    def resume(
        self, method: Method, optimizer: torch.optim.Optimizer, best: Best | None = None
    ) -> list[dict[str, float]]:
        """Restore the state that `save` wrote into a new training of the same run, and return its history."""
        if not self.resuming or not self.path.exists():
            return []
        tensors, facts = _read(self.path)
        there, here = _flat(facts), _flat(_description(method) | self.run)
        for key, value in here.items():
            if there.get(key) != value:
                raise InputError(
                    f"{self.path} is of another run: its {key} is {there.get(key)}, this run's is {value}."
                )
        if facts["threads"] != torch.get_num_threads():
            log.warning(
                "The run began with %d threads and resumes with %d: it will not be bit-equal to an uninterrupted one.",
                facts["threads"],
                torch.get_num_threads(),
            )
        method.load_state_dict(_below(tensors, "method."))
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _below(tensors, "optimizer.").items():
            index, key = name.split(".", 1)
            state.setdefault(int(index), {})[key] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        history: list[dict[str, float]] = facts["history"]
        if best is not None:
            best.resume(history, _below(tensors, "best."))
        return history


def describe_run(method: Method, graph: Graph | StoredGraph, seed: int, best: Best | None = None) -> dict[str, Any]:
    """Return the facts that must match to resume: seed, device, precision, and a digest of the graph."""
    precision = "bf16" if method.bf16 else str(method.dtype).removeprefix("torch.")
    facts = {"seed": seed, "device": method.device.type, "precision": precision}
    if isinstance(graph, StoredGraph):
        return facts | {"graph": graph.digest[:16]}
    digest = hashlib.sha256()
    features = graph.features
    parts = [features] if isinstance(features, np.ndarray) else [features.data, features.indices, features.indptr]
    for part in (graph.edges, graph.weights, graph.labels, None if best is None else best.labels, *parts):
        if part is not None:
            digest.update(np.ascontiguousarray(part).data)
    return facts | {"graph": digest.hexdigest()[:16]}


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """Flatten the settings, so that an error can name the one that differs."""
    return {key: value for key, value in facts.items() if key != "config"} | dict(facts.get("config", {}))


def _write(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    try:
        with atomic(path) as temporary:
            text, ready = json.dumps(facts), _contiguous(tensors)
            save_file(ready, temporary, {"ssge": text, "sha256": _digest(ready, text)})
    except SafetensorError as error:  # raised instead of OSError, for example when the disk is full
        raise OSError(f"{path} cannot be written: {error}") from None


def _digest(tensors: dict[str, Tensor], facts: str) -> str:
    """Return a checksum of the content of a file."""
    found = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name].cpu()
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _description(method: Method) -> dict[str, Any]:
    return {
        "method": method.name,
        "config": json.loads(method.config.model_dump_json()),
        "info": method.info._asdict(),
    }


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key: value.detach().contiguous() for key, value in tensors.items()}


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _dtype(tensors: dict[str, Tensor]) -> torch.dtype:
    return next((t.dtype for t in tensors.values() if t.is_floating_point()), torch.float32)


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    if not path.is_file():
        raise InputError(f"No such file: {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
        facts = json.loads(header["ssge"])
        if header["sha256"] != _digest(tensors, header["ssge"]):
            raise ValueError("its checksum does not fit, so it was damaged or changed")
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a safetensors file of ssge: {error}.") from None
    return tensors, facts
