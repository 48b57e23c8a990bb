"""Compare: a recipe over several encoder seeds, beside what needs no training, in one summary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.datasets import facts_of
from ssge.errors import InputError
from ssge.experiments.protocols import Protocol, evaluate, evaluate_classifier
from ssge.experiments.references import CLUSTERINGS, UNTRAINED, untrained_encoder
from ssge.experiments.tables import Row, rows
from ssge.graph import Graph
from ssge.records import Document, RunRecord, Scores
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import Plan, plan
from ssge.runs.recipes import Recipe

log = logging.getLogger(__name__)


class Summary(Document):
    """The records of one comparison, and under which protocol they were scored."""

    recipe: Recipe
    protocol: Protocol
    records: list[RunRecord]

    def rows(self) -> list[Row]:
        """Return the lines of the table."""
        return rows(self.records, self.protocol.name)


def compare(
    recipe: Recipe,
    graph: Graph,
    protocol: Protocol,
    seeds: int,
    out: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    references: Path | None = None,
    referenced: bool = True,
    device: str = "cpu",
    force: bool = False,
    quiet: bool = False,
) -> Summary:
    """Fit and score a recipe with encoder seeds 0, 1, ... and score the reference rows beside it.

    Parameters
    ----------
    recipe, graph, protocol, seeds
        What to run, on what, how to score it, and how often.
    out
        Folder of the runs. Finished seeds in it are not run again, so an interrupted comparison continues.
    settings
        Settings that override those of the recipe.
    references
        Folder of the reference rows that do not depend on the method, which comparisons on one dataset can share.
        Default: ``out``.
    referenced
        Whether to score reference rows at all.
    device
        Where to train.
    force
        Run and score everything again, shared reference rows included.
    quiet
        Show no progress.
    """
    planned = plan(graph.info, recipe=recipe, settings=settings, device=device)
    shared = Kept(references or out, recipe.dataset, graph, protocol, {}, force)
    kept = Kept(out, recipe.dataset, graph, protocol, planned.config.model_dump(mode="json"), force)
    # All before any scoring, which would count in the peak of their memory.
    folders = kept.fit(planned, seeds, quiet)
    records = shared.references() if referenced else []
    records += kept.untrained(planned, seeds) if referenced else []
    records += score_row(planned.method.title, folders, graph, protocol)
    summary = Summary(recipe=recipe, protocol=protocol, records=records)
    summary.write(out / "summary.json")
    return summary


def score(folder: RunFolder, graph: Graph, protocol: Protocol, force: bool = False, keep: bool = True) -> RunRecord:
    """Score the embedding of a run against the labels of a graph.

    Parameters
    ----------
    folder
        The run. Scores that its record holds are not computed again.
    graph
        The graph of the run. Nodes with label -1 do not count.
    protocol
        How to score.
    force
        Score again what is scored already.
    keep
        Whether to read scores from the record and card of the run, and to write them there; not for labels that are not
        those of the run's own graph.
    """
    record = folder.read_record()
    embedding = folder.read_embedding()
    if not np.array_equal(embedding.node_ids, graph.node_ids):
        raise InputError(f"The embedding in {folder.path} is not of {graph.name}: its node ids are others.")
    if not keep:
        record = record.model_copy(update={"scores": {}})
    if force or protocol.name not in record.scores:
        log.info("scoring %s by protocol %s", folder.path, protocol.name)
        record.scores[protocol.name] = _judged(embedding.vectors, graph, protocol, record)
        if keep:
            folder.write_record(record)
    return record


def score_row(name: str, folders: Sequence[RunFolder], graph: Graph, protocol: Protocol, **how: Any) -> list[RunRecord]:
    """Score the runs of one row of a table, as `score` does, and return their records under the name of the row."""
    records = (score(folder, graph, protocol, **how) for folder in folders)
    return [record.model_copy(update={"method": name}) for record in records]


def _judged(
    vectors: NDArray[np.floating[Any]], graph: Graph, protocol: Protocol, record: RunRecord, probed: bool = True
) -> Scores:
    """Score an embedding of all nodes by probes, or a supervised method by its own class scores."""
    facts = facts_of(record.dataset)
    if graph.labels is not None and (graph.labels < 0).any():
        labeled = np.flatnonzero(graph.labels >= 0)
        vectors = vectors[labeled]
        graph = replace(
            graph, features=graph.features[labeled], edges=np.empty((2, 0), np.int64), weights=None, splits=(),
            node_ids=graph.node_ids[labeled], labels=graph.labels[labeled],
        )  # fmt: skip
    if record.splits is None:
        known = [scores for name, scores in record.scores.items() if name != protocol.name]
        return evaluate(vectors, graph, protocol, record.scale, probed, known, facts)
    if record.splits != protocol.splits:
        raise InputError(
            f"The run was trained on the training nodes of splits {record.splits!r}, so protocol {protocol.name!r} "
            f"with its splits {protocol.splits!r} cannot score it."
        )
    return evaluate_classifier(vectors, graph, protocol, record.seed, facts)


@dataclass(frozen=True)
class Kept:
    """What a comparison keeps in a folder: runs, and reference rows that are computed once and then read back.

    Attributes
    ----------
    out
        The folder.
    dataset, graph, protocol, config
        What everything in it must agree on.
    force
        Compute everything again.
    """

    out: Path
    dataset: str
    graph: Graph
    protocol: Protocol
    config: dict[str, Any]
    force: bool

    def fit(
        self, planned: Plan, seeds: int, quiet: bool = True, reading: Mapping[str, Any] | None = None
    ) -> list[RunFolder]:
        """Fit a method with encoder seeds 0, 1, ...; finished ones are not run again."""
        if seeds < 1:
            raise InputError(f"seeds must be 1 or more; received {seeds}.")
        folders = [RunFolder(self.out / f"seed-{seed}") for seed in range(seeds)]
        for seed, folder in enumerate(folders):
            if self.force or not folder.complete:
                fit(
                    self.graph, replace(planned, seed=seed), folder, resume=not self.force, force=self.force,
                    quiet=quiet, dataset=self.dataset, reading=dict(reading or {}), splits=self.protocol.splits,
                )  # fmt: skip
            self.check(folder.read_record(), folder.path)
        return folders

    def references(self) -> list[RunRecord]:
        """Return the records of the reference rows that depend on the graph alone."""
        return [
            self.reference(name, 0, partial(make, self.graph), probed=name not in CLUSTERINGS)
            for name, make in UNTRAINED.items()
        ]

    def untrained(self, planned: Plan, seeds: int) -> list[RunRecord]:
        """Return the records of an encoder that was never trained."""
        return [
            self.reference(
                "untrained encoder", seed, partial(untrained_encoder, self.graph, replace(planned, seed=seed)),
                planned.method.supervised,
            )
            for seed in range(seeds if planned.method.trained else 0)
        ]  # fmt: skip

    def reference(
        self,
        name: str,
        seed: int,
        embedding: Callable[[], NDArray[np.floating[Any]]],
        supervised: bool = False,
        probed: bool = True,
    ) -> RunRecord:
        """Return the record of a reference row, scoring it if it is not there."""
        path = self.out / f"{name.replace(' ', '-')}-{seed}.json"
        if path.exists() and not self.force:
            record = RunRecord.read(path)
            self.check(record, path)
        else:
            record = RunRecord.now(
                name,
                dataset=self.dataset,
                seed=seed,
                config=self.config,
                splits=self.protocol.splits if supervised else None,
                graph=self.graph.info._asdict(),
            )
        if self.protocol.name not in record.scores:
            log.info("scoring %s, seed %d, by protocol %s", name, seed, self.protocol.name)
            record.scores[self.protocol.name] = _judged(embedding(), self.graph, self.protocol, record, probed)
            record.write(path)
        return record

    def check(self, record: RunRecord, path: Path) -> None:
        """Refuse to mix runs of other settings or other data into the comparison."""
        data, splits = (record.dataset, record.graph), (None, self.protocol.splits)
        known = record.config == self.config and data == (self.dataset, self.graph.info._asdict())
        if not known or record.splits not in splits:
            raise InputError(
                f"{path} is of a run with other settings, data or training nodes; choose another --out, "
                "or --force to replace it."
            )
