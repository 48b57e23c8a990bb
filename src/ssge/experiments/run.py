"""Runs: fit a method on a graph, keep everything in one folder, score it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from pydantic import ValidationError

from ssge.datasets import SplitKind, facts_of, split_of
from ssge.errors import InputError, InterruptedRun, UnknownNameError
from ssge.experiments.card import write_card
from ssge.experiments.estimate import check_memory
from ssge.experiments.folder import RunFolder
from ssge.experiments.recipes import read_toml, write_toml
from ssge.files import atomic
from ssge.graph import Graph
from ssge.io.embeddings import Embedding, write_embedding
from ssge.methods import METHODS, Method, MethodConfig
from ssge.records import RunRecord, machine, peak_memory_mb
from ssge.training.checkpoint import Checkpoint, build, save_model
from ssge.training.device import choose_device
from ssge.training.interrupt import Interrupt
from ssge.training.progress import ProgressBar
from ssge.training.trainer import Epoch, Observer, train

log = logging.getLogger(__name__)

Precision: TypeAlias = Literal["float32", "float64"]


class Run(NamedTuple):
    """A finished run in memory."""

    record: RunRecord
    history: list[Epoch]
    embedding: Embedding
    method: Method


def resolve_config(method: str, *layers: dict[str, Any]) -> MethodConfig:
    """Lay settings over a method's defaults, later layers over earlier ones; unknown keys are named."""
    cls = METHODS[method].Config
    merged: dict[str, Any] = {}
    for layer in layers:
        for key in layer:
            if key not in cls.model_fields:
                raise UnknownNameError(f"setting of {METHODS.canonical(method)}", key, cls.model_fields)
        merged |= layer
    try:
        return cls(**merged)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where}: {first['msg']}; received {first['input']!r}.") from None


def suited(method: str, graph: Graph) -> dict[str, Any]:
    """Return the settings that a method takes for a graph of this size when no recipe says otherwise."""
    return METHODS[method].suited(graph.info)


def config_file(path: Path | None) -> dict[str, Any]:
    """Read a TOML file of settings, as found in a run's folder."""
    return {} if path is None else read_toml(path)


def fit(
    graph: Graph,
    method: str = "ssge",
    config: MethodConfig | None = None,
    *,
    out: Path | None = None,
    seed: int = 0,
    device: str = "cpu",
    dtype: Precision = "float32",
    checkpoint_every: int = 10,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    recipe: str | None = None,
    dataset: str | None = None,
    reading: dict[str, Any] | None = None,
    start: Path | None = None,
    splits: SplitKind = "paper",
    observers: Iterable[Observer] = (),
) -> Run:
    """Fit a method on a graph and, with ``out``, keep the run in a folder.

    ``dataset`` and ``reading`` are what `ssge.experiments.sources.open_graph` takes to give this graph again, kept in
    the record for later scoring. ``start`` is the folder of a run whose weights training begins with. ``splits`` says
    on whose training nodes a supervised method learns, and on whose validation nodes its best epoch is chosen where
    that one is kept: `ssge.datasets.split_of`.
    The folder gets ``config.toml`` and ``history.jsonl`` at once, checkpoints on the way, and ``embedding.parquet``,
    ``model.safetensors``, ``README.md``, for a user's tables ``features.json``, and last ``record.json`` at the end.
    """
    if not 0 <= seed < 2**63:
        raise InputError(f"seed must be 0..2^63-1; received {seed}.")
    config = config or resolve_config(method)
    place = choose_device(device)
    if place.type == "cpu":
        check_memory(graph, method, config, dtype)
    supervised = METHODS[method].supervised
    if supervised and start is not None:
        raise InputError(
            f"{METHODS[method].title} cannot start from another run, which has seen labels that may be tested here."
        )
    split = split_of(graph, splits, seed, facts_of(dataset or "")) if supervised else None
    built = build(method, config.model_dump(), METHODS[method].sizes(graph), seed, getattr(torch, dtype), place)
    if start is not None:
        built.begin_with(RunFolder(start).read_model())
    folder = None if out is None else RunFolder(out)
    if folder is not None:
        folder.claim(force, resume)
        if not folder.checkpoint.exists():  # else the settings are there, and the checkpoint checks that they are these
            if resume and folder.history.exists():
                log.info("No checkpoint in %s yet: starting from the beginning.", out)
            with atomic(folder.config) as temporary:
                temporary.write_text(write_toml(json.loads(config.model_dump_json())))
    checkpoint = None if folder is None else Checkpoint(folder.checkpoint, checkpoint_every)

    with Interrupt() as interrupt, History(None if folder is None else folder.history) as history:
        watching: list[Observer] = [history, interrupt, *observers]
        bar = nullcontext() if quiet else ProgressBar(config.epochs, f"{built.title} on {graph.name}, seed {seed}")
        with bar as shown:
            watching += [] if shown is None else [shown]
            trained = train(
                built,
                graph,
                seed=seed,
                labeled=None if split is None else split.train,
                validation=None if split is None else split.valid,
                observers=watching,
                checkpoint=checkpoint,
                resume=resume,
            )
        history.rewrite(trained.history)
    if not trained.finished:
        raise InterruptedRun(
            f"Stopped after epoch {len(trained.history)} of {config.epochs}."
            + (
                ""
                if folder is None
                else f" The state is kept in {folder.path}: go on with --resume (ssge run: by itself)."
            )
        )

    embedding = Embedding(graph.node_ids, built.embed(graph).cpu().numpy())
    record = RunRecord(
        method=built.name,
        dataset=dataset or graph.name,
        seed=seed,
        config=json.loads(config.model_dump_json()),
        recipe=recipe,
        reading=reading or {},
        warm_start=None if start is None else str(start),
        splits=splits if supervised else None,
        graph=graph.info._asdict(),
        parameters=sum(p.numel() for p in built.parameters() if p.requires_grad),
        scale=float(built.scale),
        seconds=trained.seconds,
        peak_memory_mb=peak_memory_mb(),
        final=trained.kept,
        device=str(built.weight.device),
        dtype=dtype,
        threads=torch.get_num_threads(),
        machine=machine(),
    )
    if folder is not None and checkpoint is not None:
        write_embedding(folder.embedding, *embedding)
        save_model(folder.model, built, seed=seed, graph=graph.name)
        if graph.schema is not None:
            graph.schema.write(folder.schema)
        write_card(folder, record, graph, embedding)
        record.write(folder.record)
        checkpoint.remove()
    return Run(record, trained.history, embedding, built)


class History:
    """An observer that appends each epoch to a file as a JSON line, so that a killed run leaves its history."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file = None if path is None else path.open("a")

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def __call__(self, line: Epoch) -> None:
        """Append one epoch."""
        if self._file is not None:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()

    def rewrite(self, history: list[Epoch]) -> None:
        """Replace the file by the whole history: after a resumed run some epochs stand there twice."""
        if self.path is not None:
            with atomic(self.path) as temporary:
                temporary.write_text("".join(json.dumps(line) + "\n" for line in history))
