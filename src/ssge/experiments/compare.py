"""Compare: recipes, methods or runs over several encoder seeds, beside what needs no training.

Tables with reference rows, paired differences, and label-free figures.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.datasets import facts_of
from ssge.errors import InputError
from ssge.evaluation import geometry
from ssge.evaluation.edges import edge_figures
from ssge.experiments.protocols import Protocol, evaluate, evaluate_classifier
from ssge.experiments.references import CLUSTERINGS, UNTRAINED, untrained_encoder
from ssge.experiments.sources import reopen
from ssge.experiments.tables import Row, by_method, rows
from ssge.graph import Graph
from ssge.methods import METHODS
from ssge.records import Document, RunRecord, Scores
from ssge.runs.digests import changed, digests
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
        The run. Scores that its record holds are not computed again, unless the labels have changed.
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
    labels = {part: digest for part, digest in digests(graph).items() if part == "labels"}
    if not keep or changed(record.digests, labels, "labels"):
        record = record.model_copy(update={"scores": {}})
    record.digests |= labels
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


def _judged(vectors: NDArray[np.floating[Any]], graph: Graph, protocol: Protocol, record: RunRecord) -> Scores:
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
        return evaluate(vectors, graph, protocol, record.scale, record.method not in CLUSTERINGS, known, facts)
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
        The folder; None: nothing is kept, since the folder of a run belongs to the run.
    dataset, graph, protocol, config
        What everything in it must agree on.
    force
        Compute everything again.
    """

    out: Path | None
    dataset: str
    graph: Graph
    protocol: Protocol
    config: dict[str, Any]
    force: bool

    @cached_property
    def digests(self) -> dict[str, str]:
        """Digests of the graph."""
        return digests(self.graph)

    def fit(
        self, planned: Plan, seeds: int, quiet: bool = True, reading: Mapping[str, Any] | None = None
    ) -> list[RunFolder]:
        """Fit a method with encoder seeds 0, 1, ...; finished ones are not run again."""
        if seeds < 1:
            raise InputError(f"seeds must be 1 or more; received {seeds}.")
        assert self.out is not None
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
        return [self.reference(name, 0, partial(make, self.graph)) for name, make in UNTRAINED.items()]

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
        self, name: str, seed: int, embedding: Callable[[], NDArray[np.floating[Any]]], supervised: bool = False
    ) -> RunRecord:
        """Return the record of a reference row, scoring it if it is not there."""
        path = self.out / f"{name.replace(' ', '-')}-{seed}.json" if self.out else None
        record = None
        if path is not None and path.exists() and not self.force:
            record = RunRecord.read(path)
            self.check(record, path)
        if record is None or changed(record.digests, self.digests, "labels"):
            record = RunRecord.now(
                name,
                dataset=self.dataset,
                seed=seed,
                config=self.config,
                splits=self.protocol.splits if supervised else None,
                graph=self.graph.info._asdict(),
                digests=self.digests,
            )
        if self.protocol.name not in record.scores:
            log.info("scoring %s, seed %d, by protocol %s", name, seed, self.protocol.name)
            record.scores[self.protocol.name] = _judged(embedding(), self.graph, self.protocol, record)
            if path is not None:
                record.write(path)
        return record

    def check(self, record: RunRecord, path: Path) -> None:
        """Refuse to mix runs of other settings or other data into the comparison."""
        data, splits = (record.dataset, record.graph), (None, self.protocol.splits)
        known = record.config == self.config and data == (self.dataset, self.graph.info._asdict())
        parts = ("edges", "features", *([] if record.splits is None else ["labels"]))
        if not known or record.splits not in splits or changed(record.digests, self.digests, *parts):
            raise InputError(
                f"{path} is of a run with other settings, data or training nodes; choose another --out, "
                "or --force to replace it."
            )


def differences(records: Sequence[RunRecord], protocol: str, first: str) -> list[dict[str, Any]]:
    """Return each other row of a comparison minus that of the first method, paired by split and by seed of k-means.

    A row has its name, and of accuracy and nmi the mean difference and its standard error, in points, or None.

    With D the differences, one row per encoder seed and one column per split, the standard error is
    sqrt(var(column means) / splits + var(row means) / seeds). Splits overlap, so it is rather too small.
    """
    groups = by_method(records)

    def paired(group: list[RunRecord], figure: str) -> tuple[float, float] | None:
        mine, theirs = ([getattr(r.scores[protocol], figure) for r in part] for part in (group, groups[first]))
        if not all((*mine, *theirs)):
            return None  # a clustering has no accuracy
        return paired_difference(100 * np.array(mine), 100 * np.array(theirs))

    return [
        {"name": name, "accuracy": paired(group, "accuracies"), "nmi": paired(group, "nmi")}
        for name, group in groups.items()
        if name != first
    ]


def paired_difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean of a - b and its standard error; see `differences`.

    Parameters
    ----------
    a, b
        One row per encoder seed, one column per split. One that has a single seed is compared with each of the other.
    """
    if a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
        seeds = min(a.shape[0], b.shape[0])
        a, b = a[:seeds], b[:seeds]
    difference = a - b
    means = difference.mean(axis=0), difference.mean(axis=1)
    variance = sum(float(part.var(ddof=1)) / part.size for part in means if part.size > 1)
    return float(difference.mean()), variance**0.5


def group_runs(paths: Sequence[Path]) -> dict[str, list[RunFolder]]:
    """Return the folders of finished runs by the name of their row; those of one method and settings are one row."""
    groups: dict[tuple[str, str], list[RunFolder]] = {}
    for folder in map(RunFolder, paths):
        record = folder.read_record()
        settings = repr((sorted(record.config.items()), record.recipe))
        groups.setdefault((METHODS[record.method].title, settings), []).append(folder)
    titles = [title for title, _ in groups]
    return {
        title if titles.count(title) == 1 else f"{title} ({', '.join(str(folder.path) for folder in group)})": group
        for (title, _), group in groups.items()
    }


def references_beside(
    folder: RunFolder, record: RunRecord, protocol: Protocol, graph: Graph | None = None, score: bool = True
) -> list[RunRecord]:
    """Return the reference rows of a run's graph: those that a comparison has kept beside the run, else new ones.

    Parameters
    ----------
    folder, record
        The run and its record.
    protocol
        How to score.
    graph
        The graph of the run, if it was read already.
    score
        Whether to score reference rows if none are kept.
    """
    beside, *above = folder.path.resolve().parents
    shared = [up / "references" / part for up in above[:2] for part in ("", Path(record.dataset).name)]
    kept = []
    for path in (path for place in (beside, *shared) for path in sorted(place.glob("*-0.json"))):
        with suppress(InputError, OSError):
            kept.append(RunRecord.read(path))
    same = [
        other
        for other in kept
        if (other.dataset, other.graph) == (record.dataset, record.graph)
        and protocol.name in other.scores
        and not changed(other.digests, record.digests, "edges", "features", "labels")
    ]
    if same or not score:
        return same
    graph = graph or reopen(folder)
    log.info("Scoring reference rows by protocol %s; --skip-references leaves them out.", protocol.name)
    return Kept(None, record.dataset, graph, protocol, {}, False).references() if graph.labels is not None else []


def label_nodes(graph: Graph, nodes: NDArray[np.int64], labels: Sequence[Any]) -> Graph:
    """Return a graph with these labels of some nodes, and -1 for the others."""
    names, classes = np.unique([str(label) for label in labels], return_inverse=True)
    found = np.full(graph.num_nodes, -1)
    found[nodes] = classes
    return replace(graph, labels=found, class_names=tuple(names.tolist()), splits=())


_FIGURES = {
    "eff. rank": ("effective_rank", 1), "uniformity": ("uniformity", 2), "edge cosine": ("edge_cosine", 3),
    "pair cosine": ("pair_cosine", 3), "edge AUC": ("edge_auc", 3), "constant columns": ("collapsed_columns", 0),
}  # fmt: skip
"""Figures of a label-free table by heading: their names, and how many digits are shown."""


def label_free_rows(
    embeddings: Mapping[str, NDArray[np.floating[Any]]], graph: Graph, referenced: bool
) -> list[dict[str, str]]:
    """Return the label-free figures of embeddings as text by heading, those of raw and propagated features first."""
    free = {name: UNTRAINED[name](graph) for name in ("raw features", "propagated features") if referenced}
    rows = []
    for name, vectors in {**free, **embeddings}.items():
        found = label_free(vectors, graph)
        cells = {head: f"{found[key]:.{digits}f}" if key in found else "-" for head, (key, digits) in _FIGURES.items()}
        rows.append({"name": name, **cells})
    return rows


def label_free(vectors: NDArray[np.floating[Any]], graph: Graph) -> dict[str, float]:
    """Return figures of an embedding that need no labels: its geometry, and how similar the ends of edges are."""
    return geometry(vectors) | edge_figures(vectors, graph.edges)
