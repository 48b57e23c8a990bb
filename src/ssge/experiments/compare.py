"""Compare: a recipe over several encoder seeds, beside what needs no training, in one summary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ssge.datasets import facts_of
from ssge.errors import InputError
from ssge.experiments.protocols import Protocol, evaluate, evaluate_classifier
from ssge.experiments.references import CLUSTERINGS, UNTRAINED, untrained_encoder
from ssge.experiments.tables import Row, rows
from ssge.files import atomic
from ssge.graph import Graph
from ssge.records import RunRecord, Scores
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import Plan, plan
from ssge.runs.recipes import Recipe

log = logging.getLogger(__name__)


class Labeled(NamedTuple):
    """Nodes with a label: their positions, and a graph that has these nodes alone."""

    rows: NDArray[np.int64] | slice
    graph: Graph


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
    if seeds < 1:
        raise InputError(f"seeds must be 1 or more; received {seeds}.")
    planned = plan(graph.info, recipe.method, settings={**recipe.config, **(settings or {})}, device=device)
    planned = replace(planned, recipe=recipe.name)
    shared = Kept(references or out, recipe.dataset, graph, protocol, {}, force)
    kept = Kept(out, recipe.dataset, graph, protocol, planned.config.model_dump(mode="json"), force)
    # All before any scoring, which would count in the peak of their memory.
    folders = fit_seeds(planned, graph, seeds, kept, quiet)
    records = shared.references() if referenced else []
    records += kept.untrained(planned, seeds) if referenced else []
    scored = (score(folder, graph, protocol) for folder in folders)
    records += [record.model_copy(update={"method": planned.method.title}) for record in scored]
    summary = Summary(recipe=recipe, protocol=protocol, records=records)
    summary.write(out / "summary.json")
    return summary


def fit_seeds(
    planned: Plan, graph: Graph, seeds: int, kept: Kept, quiet: bool = True, reading: dict[str, Any] | None = None
) -> list[RunFolder]:
    """Fit a method with encoder seeds 0, 1, ... into folders of a comparison; finished ones are not run again."""
    folders = [RunFolder(kept.out / f"seed-{seed}") for seed in range(seeds)]
    for seed, folder in enumerate(folders):
        if kept.force or not folder.complete:
            fit(
                graph, replace(planned, seed=seed), folder, resume=not kept.force, force=kept.force, quiet=quiet,
                dataset=kept.dataset, reading=reading, splits=kept.protocol.splits,
            )  # fmt: skip
        kept.check(folder.read_record(), folder.record)
    return folders


def score(
    folder: RunFolder, graph: Graph, protocol: Protocol, force: bool = False, labeled: Labeled | None = None
) -> RunRecord:
    """Score the embedding of a run and keep the scores in its record and card; scores that are there are kept.

    Scores by other labels than the graph's are kept nowhere.
    """
    record = folder.read_record()
    embedding = folder.read_embedding()
    if not np.array_equal(embedding.node_ids, graph.node_ids):
        raise InputError(f"The embedding in {folder.path} is not of {graph.name}: its node ids are others.")
    if labeled is not None:
        record = record.model_copy(update={"scores": {}})
    if force or protocol.name not in record.scores:
        log.info("scoring %s by protocol %s", folder.path, protocol.name)
        record.scores[protocol.name] = _judged(embedding.vectors, graph, protocol, record, labeled)
        if labeled is None:
            folder.write_record(record)
    return record


def _judged(
    vectors: NDArray[np.floating[Any]],
    graph: Graph,
    protocol: Protocol,
    record: RunRecord,
    labeled: Labeled | None,
    probed: bool = True,
) -> Scores:
    """Score an embedding of all nodes by probes, or a supervised method by its own class scores."""
    rows, graph = labeled or Labeled(slice(None), graph)
    vectors, facts = vectors[rows], facts_of(record.dataset)
    if record.splits is None:
        known = [scores for name, scores in record.scores.items() if name != protocol.name]
        return evaluate(vectors, graph, protocol, record.scale, probed, known, facts)
    if record.splits != protocol.splits:
        raise InputError(
            f"The run was trained on the training nodes of splits {record.splits!r}, so protocol {protocol.name!r} "
            f"with its splits {protocol.splits!r} cannot score it."
        )
    return evaluate_classifier(vectors, graph, protocol, record.seed, facts)


class Kept:
    """What a comparison keeps in a folder: runs, and reference rows that are computed once and then read back.

    Parameters
    ----------
    out
        The folder.
    dataset, graph, protocol, config
        What everything in it must agree on.
    force
        Compute everything again.
    labeled
        The labeled nodes and the part of the graph that they are, where others have no label.
    """

    def __init__(
        self,
        out: Path,
        dataset: str,
        graph: Graph,
        protocol: Protocol,
        config: dict[str, Any],
        force: bool,
        labeled: Labeled | None = None,
    ) -> None:
        self.out, self.dataset, self.graph, self.protocol, self.force = out, dataset, graph, protocol, force
        self.config, self.labeled = config, labeled

    def references(self) -> list[RunRecord]:
        """Return the records of the reference rows that depend on the graph alone."""
        return [
            self.reference(name, 0, partial(make, self.graph), probed=name not in CLUSTERINGS)
            for name, make in UNTRAINED.items()
            if name not in CLUSTERINGS or self.graph.labels is not None
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
            record.scores[self.protocol.name] = _judged(
                embedding(), self.graph, self.protocol, record, self.labeled, probed
            )
            path.parent.mkdir(parents=True, exist_ok=True)
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
