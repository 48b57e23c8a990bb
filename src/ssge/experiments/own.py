"""Several methods, or several runs, on one graph of one's own: beside references, with paired differences."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.evaluation import geometry
from ssge.evaluation.edges import edge_figures
from ssge.experiments.compare import Kept, Labeled, fit_seeds, score
from ssge.experiments.protocols import PROTOCOLS, Protocol
from ssge.experiments.references import propagated_features, raw_features
from ssge.experiments.sources import reopen
from ssge.experiments.tables import Row, rows
from ssge.graph import Graph
from ssge.methods import METHODS
from ssge.records import RunRecord
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan

log = logging.getLogger(__name__)


class Difference(NamedTuple):
    """How far a row is from the first method: the mean difference and its standard error, in points."""

    name: str
    accuracy: tuple[float, float] | None
    nmi: tuple[float, float]


class Comparison(NamedTuple):
    """Records of one graph under one protocol: reference rows, then the methods.

    Attributes
    ----------
    first
        The method that the others are compared with.
    """

    records: list[RunRecord]
    protocol: str
    first: str

    def rows(self) -> list[Row]:
        """Return the lines of the table."""
        return rows(self.records, self.protocol)

    def differences(self) -> list[Difference]:
        """Return each other row minus the first method, paired by split and by seed of k-means.

        With D the differences, one row per encoder seed and one column per split, the standard error is
        sqrt(var(column means) / splits + var(row means) / seeds). Splits overlap, so it is rather too small.
        """
        groups: dict[str, list[RunRecord]] = {}
        for record in self.records:
            groups.setdefault(record.method, []).append(record)
        base = groups[self.first]
        return [
            Difference(
                name,
                self._paired(group, base, "accuracies"),
                self._paired(group, base, "nmi") or (float("nan"), float("nan")),
            )
            for name, group in groups.items()
            if name != self.first
        ]

    def _paired(self, group: list[RunRecord], base: list[RunRecord], figure: str) -> tuple[float, float] | None:
        mine, theirs = ([getattr(record.scores[self.protocol], figure) for record in part] for part in (group, base))
        if not all((*mine, *theirs)):
            return None  # a clustering has no accuracy
        return paired_difference(100 * np.array(mine), 100 * np.array(theirs))


def paired_difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean of a - b and its standard error; see `Comparison.differences`.

    Parameters
    ----------
    a, b
        One row per encoder seed, one column per split. One that has a single seed is compared with each of the other.
    """
    if a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
        seeds = min(a.shape[0], b.shape[0])
        a, b = a[:seeds], b[:seeds]
    difference = a - b
    seeds, splits = difference.shape
    variance = 0.0
    if splits > 1:
        variance += float(difference.mean(axis=0).var(ddof=1)) / splits
    if seeds > 1:
        variance += float(difference.mean(axis=1).var(ddof=1)) / seeds
    return float(difference.mean()), variance**0.5


def compare_methods(
    methods: Sequence[str],
    graph: Graph,
    protocol: Protocol,
    seeds: int,
    out: Path,
    *,
    dataset: str,
    reading: Mapping[str, Any] | None = None,
    labeled: Labeled | None = None,
    referenced: bool = True,
    device: str = "cpu",
    force: bool = False,
    quiet: bool = False,
) -> Comparison:
    """Fit methods with their defaults for the graph, several seeds each, and score them beside the reference rows.

    Parameters
    ----------
    methods, graph, protocol, seeds
        What to run, on what, how to score it, and how often.
    out
        Folder of the runs. Finished ones in it are not run again.
    dataset, reading
        Where the graph came from, for the records.
    labeled
        Nodes with labels, if these did not come with the graph.
    referenced, device, force, quiet
        As in `ssge.experiments.compare.compare`.
    """
    fitted = fit_methods(
        methods, graph, seeds, out, dataset=dataset, reading=reading, protocol=protocol, device=device, force=force,
        quiet=quiet,
    )  # fmt: skip
    marks = {} if labeled is None else {"labels": digest(labeled)}
    shared = Kept(out / "references", dataset, graph, protocol, marks, force, labeled)
    records = shared.references() if referenced else []
    for title, folders in fitted.items():
        scored = (score(folder, graph, protocol, force, labeled) for folder in folders)
        records += [record.model_copy(update={"method": title}) for record in scored]
    return Comparison(records, protocol.name, next(iter(fitted)))


def fit_methods(
    methods: Sequence[str],
    graph: Graph,
    seeds: int,
    out: Path,
    *,
    dataset: str,
    reading: Mapping[str, Any] | None = None,
    protocol: Protocol = PROTOCOLS["quick"],
    device: str = "cpu",
    force: bool = False,
    quiet: bool = False,
) -> dict[str, list[RunFolder]]:
    """Fit methods as `compare_methods` does, without scoring them; return their folders by title."""
    if seeds < 1:
        raise InputError(f"seeds must be 1 or more; received {seeds}.")
    plans = [plan(graph.info, name.strip(), device=device) for name in methods if name.strip()]
    if not plans:
        raise InputError("methods must name one method at least; received none.")
    fitted = {}
    for planned in plans:
        config = planned.config.model_dump(mode="json")
        kept = Kept(out / planned.method.name, dataset, graph, protocol, config, force)
        fitted[planned.method.title] = fit_seeds(planned, graph, seeds, kept, quiet, dict(reading or {}))
    return fitted


def compare_runs(
    paths: Sequence[Path], protocol: Protocol, labeled: Labeled | None = None, referenced: bool = True
) -> Comparison:
    """Score finished runs on one graph beside the reference rows; those of one method and settings are one row."""
    opened = [RunFolder(path) for path in paths]
    graph = reopen(opened[0])
    groups: dict[str, list[RunFolder]] = {}
    for folder in opened:
        record = folder.read_record()
        settings = repr((record.method, sorted(record.config.items()), record.recipe))
        groups.setdefault(settings, []).append(folder)
    dataset = opened[0].read_record().dataset
    records = _references(graph, protocol, dataset, labeled) if referenced else []
    titles = [METHODS[group[0].read_record().method].title for group in groups.values()]
    names = []
    for title, group in zip(titles, groups.values(), strict=True):
        places = ", ".join(str(folder.path) for folder in group)
        name = title if titles.count(title) == 1 else f"{title} ({places})"
        names.append(name)
        for folder in group:
            record = score(folder, graph, protocol, labeled=labeled)
            records.append(record.model_copy(update={"method": name}))
    return Comparison(records, protocol.name, names[0])


def references_of(graph: Graph, protocol: Protocol, dataset: str) -> list[Row]:
    """Return the reference rows of a graph with labels."""
    return rows(_references(graph, protocol, dataset), protocol.name)


def _references(graph: Graph, protocol: Protocol, dataset: str, labeled: Labeled | None = None) -> list[RunRecord]:
    """Score the reference rows and keep them nowhere: a run's folder belongs to the run."""
    with TemporaryDirectory() as place:
        return Kept(Path(place), dataset, graph, protocol, {}, False, labeled).references()


def label_nodes(graph: Graph, nodes: NDArray[np.int64], labels: Sequence[Any]) -> Labeled:
    """Return some nodes of a graph with their labels."""
    order = np.argsort(nodes)
    names, classes = np.unique([str(labels[i]) for i in order], return_inverse=True)
    rows = nodes[order]
    part = replace(
        graph, features=graph.features[rows], edges=np.empty((2, 0), np.int64), weights=None, splits=(),
        node_ids=graph.node_ids[rows], labels=classes.astype(np.int64), class_names=tuple(names.tolist()),
    )  # fmt: skip
    return Labeled(rows, part)


def digest(labeled: Labeled) -> str:
    """Return what tells labels from others."""
    assert labeled.graph.labels is not None and isinstance(labeled.rows, np.ndarray)
    return hashlib.sha256(labeled.rows.tobytes() + labeled.graph.labels.tobytes()).hexdigest()[:16]


LABEL_FREE = ("", "eff. rank", "uniformity", "edge cosine", "pair cosine", "edge AUC", "constant columns")


def label_free_rows(vectors: Mapping[str, NDArray[np.floating[Any]]], graph: Graph) -> list[tuple[str, ...]]:
    """Return, for embeddings by name, what can be said of them without labels, as text under `LABEL_FREE`."""
    lines = []
    for name, rows_ in vectors.items():
        found = label_free(rows_, graph)
        figures = (
            f"{found[key]:.{digits}f}" if key in found else "-"
            for key, digits in (
                ("effective_rank", 1), ("uniformity", 2), ("edge_cosine", 3), ("pair_cosine", 3), ("edge_auc", 3),
                ("collapsed_columns", 0),
            )
        )  # fmt: skip
        lines.append((name, *figures))
    return lines


def label_free(vectors: NDArray[np.floating[Any]], graph: Graph) -> dict[str, float]:
    """Return geometry of an embedding, and what the edges of its graph say of it."""
    return geometry(vectors) | edge_figures(vectors, graph.edges)


def label_free_references(graph: Graph) -> dict[str, NDArray[np.floating[Any]]]:
    """Return raw and propagated features, to compare an embedding with."""
    return {"raw features": raw_features(graph), "propagated features": propagated_features(graph)}
