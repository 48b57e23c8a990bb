"""Compare: a recipe over several encoder seeds, beside what needs no training, in one summary."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ssge.errors import InputError
from ssge.experiments import references
from ssge.experiments.folder import RunFolder
from ssge.experiments.protocols import Protocol, evaluate
from ssge.experiments.recipes import Recipe
from ssge.experiments.run import fit, resolve_config
from ssge.experiments.tables import Row, rows
from ssge.files import atomic
from ssge.graph import Graph
from ssge.methods import METHODS, MethodConfig
from ssge.records import RunRecord, machine

log = logging.getLogger(__name__)


class Summary(BaseModel):
    """The records of one comparison, and under which protocol they were scored."""

    model_config = ConfigDict(extra="forbid")

    recipe: Recipe
    protocol: Protocol
    records: list[RunRecord]

    def rows(self) -> list[Row]:
        """Return the lines of the table."""
        return rows(self.records, self.protocol.name)

    def write(self, path: Path) -> None:
        """Write the summary as JSON, atomically."""
        with atomic(path) as temporary:
            temporary.write_text(self.model_dump_json(indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Summary:
        """Read what `write` wrote."""
        return cls.model_validate_json(path.read_text())


def compare(
    recipe: Recipe,
    graph: Graph,
    protocol: Protocol,
    seeds: int,
    out: Path,
    *,
    config: MethodConfig | None = None,
    device: str = "cpu",
    force: bool = False,
    quiet: bool = False,
) -> Summary:
    """Fit and score a recipe with encoder seeds 0, 1, ... and score the reference rows beside it.

    Finished seeds found in ``out`` are not run again, so an interrupted comparison goes on where it stopped.
    """
    if seeds < 1:
        raise InputError(f"seeds must be 1 or more; received {seeds}.")
    config = config or resolve_config(recipe.method, recipe.config)
    kept = _Kept(out, recipe.dataset, graph, protocol, config, force)
    records = [
        kept.reference("raw features", 0, lambda: references.raw_features(graph)),
        kept.reference("propagated features", 0, lambda: references.propagated_features(graph)),
    ]
    for seed in range(seeds):
        untrained = lambda: references.untrained_encoder(graph, recipe.method, config, seed)  # noqa: B023, E731
        records.append(kept.reference("untrained encoder", seed, untrained))
    title = METHODS[recipe.method].title
    for seed in range(seeds):
        folder = RunFolder(out / f"seed-{seed}")
        if force or not folder.record.exists():
            fit(
                graph, recipe.method, config, out=folder.path, seed=seed, device=device, resume=not force,
                force=force, quiet=quiet, recipe=recipe.name, dataset=recipe.dataset,
            )  # fmt: skip
        kept.check(folder.read_record(), folder.record, kept.config)
        record = score(folder, graph, protocol)
        records.append(record.model_copy(update={"method": title}))
    summary = Summary(recipe=recipe, protocol=protocol, records=records)
    summary.write(out / "summary.json")
    return summary


def score(folder: RunFolder, graph: Graph, protocol: Protocol, force: bool = False) -> RunRecord:
    """Score the embedding of a run and keep the scores in its record; what is scored already is not scored again."""
    record = folder.read_record()
    embedding = folder.read_embedding()
    if not np.array_equal(embedding.node_ids, graph.node_ids):
        raise InputError(f"The embedding in {folder.path} is not of {graph.name}: its node ids are others.")
    if force or protocol.name not in record.scores:
        log.info("scoring %s by protocol %s", folder.path, protocol.name)
        record.scores[protocol.name] = evaluate(embedding.vectors, graph, protocol, record.scale)
        record.write(folder.record)
    return record


class _Kept:
    """Reference rows that are computed once and then read back."""

    def __init__(
        self, out: Path, dataset: str, graph: Graph, protocol: Protocol, config: MethodConfig, force: bool
    ) -> None:
        self.out, self.dataset, self.graph, self.protocol, self.force = out, dataset, graph, protocol, force
        self.config: dict[str, Any] = config.model_dump(mode="json")

    def reference(self, name: str, seed: int, embedding: Callable[[], NDArray[np.floating[Any]]]) -> RunRecord:
        """Return the record of a reference row, scoring it if it is not there."""
        path = self.out / f"{name.replace(' ', '-')}-{seed}.json"
        config = self.config if name == "untrained encoder" else {}
        if path.exists() and not self.force:
            record = RunRecord.read(path)
            self.check(record, path, config)
        else:
            record = RunRecord(
                method=name,
                dataset=self.dataset,
                seed=seed,
                config=config,
                graph=self.graph.info._asdict(),
                machine=machine(),
            )
        if self.protocol.name not in record.scores:
            log.info("scoring %s, seed %d, by protocol %s", name, seed, self.protocol.name)
            record.scores[self.protocol.name] = evaluate(embedding(), self.graph, self.protocol)
            record.write(path)
        return record

    def check(self, record: RunRecord, path: Path, config: dict[str, Any]) -> None:
        """Refuse to mix runs of other settings or other data into the comparison."""
        data = (record.dataset, record.graph)
        if record.config != config or data != (self.dataset, self.graph.info._asdict()):
            raise InputError(
                f"{path} is of a run with other settings or data; choose another --out, or --force to replace it."
            )
