"""Comparisons of methods or runs on one graph: reference rows, paired differences, label-free figures."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.evaluation import geometry
from ssge.evaluation.edges import edge_figures
from ssge.experiments.compare import Kept
from ssge.experiments.protocols import Protocol
from ssge.experiments.references import propagated_features, raw_features
from ssge.experiments.sources import reopen
from ssge.experiments.tables import by_method
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


def differences(records: Sequence[RunRecord], protocol: str, first: str) -> list[Difference]:
    """Return each other row of a comparison minus that of the first method, paired by split and by seed of k-means.

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
        Difference(name, paired(group, "accuracies"), paired(group, "nmi") or (float("nan"), float("nan")))
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
    seeds, splits = difference.shape
    variance = 0.0
    if splits > 1:
        variance += float(difference.mean(axis=0).var(ddof=1)) / splits
    if seeds > 1:
        variance += float(difference.mean(axis=1).var(ddof=1)) / seeds
    return float(difference.mean()), variance**0.5


def fit_methods(
    methods: Sequence[str],
    graph: Graph,
    protocol: Protocol,
    seeds: int,
    out: Path,
    *,
    dataset: str,
    reading: Mapping[str, Any] | None = None,
    device: str = "cpu",
    force: bool = False,
    quiet: bool = False,
) -> dict[str, list[RunFolder]]:
    """Fit methods with their defaults for the graph, several seeds each; return their folders by title.

    Parameters
    ----------
    methods, graph, protocol, seeds
        What to run, on what, on which splits a supervised method learns, and how often.
    out
        Folder of the runs. Finished ones in it are not run again.
    dataset, reading
        Where the graph came from, for the records.
    device, force, quiet
        As in `ssge.experiments.compare.compare`.
    """
    plans = [plan(graph.info, name.strip(), device=device) for name in methods if name.strip()]
    if not plans:
        raise InputError("methods must name one method at least; received none.")
    fitted = {}
    for planned in plans:
        config = planned.config.model_dump(mode="json")
        kept = Kept(out / planned.method.name, dataset, graph, protocol, config, force)
        fitted[planned.method.title] = kept.fit(planned, seeds, quiet, reading)
    return fitted


def group_runs(paths: Sequence[Path]) -> dict[str, list[RunFolder]]:
    """Return the folders of finished runs by the name of their row; those of one method and settings are one row."""
    groups: dict[str, list[RunFolder]] = {}
    for folder in map(RunFolder, paths):
        record = folder.read_record()
        settings = repr((record.method, sorted(record.config.items()), record.recipe))
        groups.setdefault(settings, []).append(folder)
    titles = [METHODS[group[0].read_record().method].title for group in groups.values()]
    return {
        title if titles.count(title) == 1 else f"{title} ({', '.join(str(folder.path) for folder in group)})": group
        for title, group in zip(titles, groups.values(), strict=True)
    }


def references_of(
    graph: Graph,
    protocol: Protocol,
    dataset: str,
    out: Path | None = None,
    force: bool = False,
    own_labels: bool = True,
) -> list[RunRecord]:
    """Score the reference rows of a graph with labels, and keep them in ``out``.

    Without ``out`` they are not kept: the folder of a run belongs to the run. Rows that are scored by other labels than
    the graph's own are marked with a digest of these labels.
    """
    assert graph.labels is not None
    marks = {} if own_labels else {"labels": hashlib.sha256(graph.labels.tobytes()).hexdigest()[:16]}
    with TemporaryDirectory() as place:
        return Kept(out or Path(place), dataset, graph, protocol, marks, force).references()


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
    parent = folder.path.resolve().parent
    kept = []
    for path in (*sorted(parent.glob("*-0.json")), *sorted((parent.parent / "references").glob("*-0.json"))):
        with suppress(InputError, OSError):
            kept.append(RunRecord.read(path))
    same = [
        other
        for other in kept
        if (other.dataset, other.graph) == (record.dataset, record.graph)
        and protocol.name in other.scores
        and "labels" not in other.config  # scored by other labels than those of the graph
    ]
    if same or not score:
        return same
    graph = graph or reopen(folder)
    log.info("Scoring reference rows by protocol %s; --skip-references leaves them out.", protocol.name)
    return references_of(graph, protocol, record.dataset) if graph.labels is not None else []


def label_nodes(graph: Graph, nodes: NDArray[np.int64], labels: Sequence[Any]) -> Graph:
    """Return a graph with these labels of some nodes, and -1 for the others."""
    names, classes = np.unique([str(label) for label in labels], return_inverse=True)
    found = np.full(graph.num_nodes, -1)
    found[nodes] = classes
    return replace(graph, labels=found, class_names=tuple(names.tolist()), splits=())


_LABEL_FREE = {
    "eff. rank": ("effective_rank", 1), "uniformity": ("uniformity", 2), "edge cosine": ("edge_cosine", 3),
    "pair cosine": ("pair_cosine", 3), "edge AUC": ("edge_auc", 3), "constant columns": ("collapsed_columns", 0),
}  # fmt: skip
"""Figures of a label-free table by heading: their names, and how many digits are shown."""
LABEL_FREE = ("", *_LABEL_FREE)


def label_free_rows(embeddings: Mapping[str, NDArray[np.floating[Any]]], graph: Graph) -> list[tuple[str, ...]]:
    """Return the label-free figures of embeddings by name, as text under `LABEL_FREE`."""
    rows = []
    for name, vectors in embeddings.items():
        found = label_free(vectors, graph)
        cells = (f"{found[key]:.{digits}f}" if key in found else "-" for key, digits in _LABEL_FREE.values())
        rows.append((name, *cells))
    return rows


def label_free(vectors: NDArray[np.floating[Any]], graph: Graph) -> dict[str, float]:
    """Return figures of an embedding that need no labels: its geometry, and how similar the ends of edges are."""
    return geometry(vectors) | edge_figures(vectors, graph.edges)


def label_free_references(graph: Graph) -> dict[str, NDArray[np.floating[Any]]]:
    """Return raw and propagated features, to compare an embedding with."""
    return {"raw features": raw_features(graph), "propagated features": propagated_features(graph)}
