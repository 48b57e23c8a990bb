"""Uses of a fitted estimator: the commands of the command line as methods."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import pyarrow as pa
from sklearn.utils.validation import check_is_fitted

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.results import refuse_existing
from ssge.ops.neighbors import Metric
from ssge.runs.fit import Run
from ssge.runs.links import suggest_links
from ssge.runs.names import (
    Names,
    cluster_columns,
    neighbor_columns,
    outlier_columns,
    pair_columns,
    read_names,
)
from ssge.tasks.clusters import clusters
from ssge.tasks.duplicates import duplicates
from ssge.tasks.outliers import outlier_scores
from ssge.tasks.search import Backend, search

log = logging.getLogger(__name__)


class Naming(TypedDict, total=False):
    """Names of nodes beside their ids.

    ``show`` names columns of a node table, as in ``"page_name,page_type"``; nodes can be named by the first. The
    table is that of the run if the command line fitted it; else it is given as ``nodes``, a path or a data frame, whose
    ids are in the column ``id``.
    """

    show: str | Sequence[str] | None
    nodes: Any
    id: str | None


class Uses:
    """Answers about nodes as tables, plots and reports as files, for any estimator with a run.

    Tables are pandas data frames if pandas is installed, else pyarrow tables.
    """

    _run: Run

    def neighbors(
        self,
        ids: Sequence[Any] | None = None,
        k: int | None = None,
        *,
        metric: Metric = "cosine",
        backend: Backend = "exact",
        **naming: Unpack[Naming],
    ) -> Any:
        """Return the k nodes nearest to each of some nodes: id, rank, neighbor, cosine or distance.

        Parameters
        ----------
        ids
            Query nodes, by id or by name. Default: all.
        k, metric, backend
            See `ssge.tasks.search.search`.
        **naming
            ``show``, ``nodes`` and ``id``; see `Naming`.
        """
        names = self._names(**naming)
        queries = [ids] if np.isscalar(ids) else ids
        rows = np.arange(len(names.node_ids)) if queries is None else names.positions(list(queries))
        found = search(self._run.embedding.vectors, rows, k, metric, backend)
        (columns,) = neighbor_columns(names, rows, found, metric, size=max(1, len(rows)))
        return frame(columns)

    def cluster(self, k: int, *, seed: int = 0, **naming: Unpack[Naming]) -> Any:
        """Return a cluster for each node, by k-means: id, cluster, distance from its center.

        Clusters are numbered by their size, the largest first.
        """
        names = self._names(**naming)
        return frame(cluster_columns(names, clusters(self._run.embedding.vectors, k, seed)))

    def outliers(self, neighbors: int = 20, **naming: Unpack[Naming]) -> Any:
        """Return all nodes, outliers first: id, score; see `ssge.tasks.outliers.outlier_scores`."""
        names = self._names(**naming)
        return frame(outlier_columns(names, outlier_scores(self._run.embedding.vectors, neighbors)))

    def links(
        self,
        graph: Any,
        k: int = 20,
        *,
        of: Sequence[Any] | None = None,
        seed: int = 0,
        **naming: Unpack[Naming],
    ) -> Any:
        """Suggest edges that the graph lacks: source, target, score, odds and the parts of the score.

        The model is trained once more, without some of the edges, to calibrate the scores; the log has their AUC.

        Parameters
        ----------
        graph
            The `Graph` that the model was fitted on.
        k, of
            How many pairs: overall, or for each of the nodes in ``of``, by id or by name.
        seed
            Seed of the held-out edges.
        **naming
            ``show``, ``nodes`` and ``id``; see `Naming`.
        """
        names = self._names(**naming)
        if not isinstance(graph, Graph) or not np.array_equal(graph.node_ids, names.node_ids):
            raise InputError("graph must be the ssge.Graph that the model was fitted on.")
        rows = None if of is None else names.positions([of] if np.isscalar(of) else list(of))
        found = suggest_links(graph, self._run.embedding.vectors, self._run.record, k, rows, seed=seed)
        for score in found.scores:
            log.info("%s: AUC %.3f, hits@%d %.3f on held-out edges", score.name, score.auc, found.hits_at, score.hits)
        links = found.links
        return frame(pair_columns(names, links.pairs, {"score": links.score, "odds": links.odds, **links.parts}))

    def duplicates(self, k: int = 20, least: float = -1.0, **naming: Unpack[Naming]) -> Any:
        """Return likely duplicates; see `ssge.tasks.duplicates.duplicates`."""
        names = self._names(**naming)
        found = duplicates(self._run.embedding.vectors, k, least)
        return frame(pair_columns(names, found.pairs, {"cosine": found.cosine, "next": found.next}))

    def plot(
        self,
        path: str | Path,
        kind: Literal["map", "losses", "spectrum", "correlation"] = "map",
        *,
        force: bool = False,
        **options: Any,
    ) -> Path:
        """Draw a picture, ``.png`` or ``.svg``; a map may be ``.html`` too.

        Parameters
        ----------
        path
            The file.
        kind
            ``map``, ``losses``, ``spectrum`` or ``correlation``.
        force
            Replace the file if it exists.
        **options
            Of a map: ``color``, the columns of ``nodes`` to color by; ``show``, ``nodes`` and ``id`` as in `Naming`;
            ``layout``, ``points``, ``seed`` and ``title``. See `ssge.experiments.subject.draw_map`.
        """
        from ssge.experiments.subject import draw_map, draw_plot

        target, subject = self._drawn(path, force)
        return draw_map(target, subject, **options) if kind == "map" else draw_plot(target, subject, kind)

    def report(self, path: str | Path, *, force: bool = False, **options: Any) -> Path:
        """Write one HTML page about the run, with an interactive map; it loads nothing from elsewhere.

        Parameters
        ----------
        path
            The ``.html`` file.
        force
            Replace the file if it exists.
        **options
            As for the map of `plot`, without ``title``.
        """
        from ssge.experiments.report import write_report

        return write_report(*self._drawn(path, force), **options)

    def _names(self, show: str | Sequence[str] | None = None, **where: Any) -> Names:
        check_is_fitted(self)
        return read_names(self._run.embedding.node_ids, show, self._run.record, **where)

    def _drawn(self, path: str | Path, force: bool) -> tuple[Path, Any]:
        """Return a file that may be written, and the run to show in it."""
        from ssge.experiments.subject import Subject

        check_is_fitted(self)
        refuse_existing([Path(path)], force)
        return Path(path), Subject(self._run.embedding, self._run.record, self._run.history)


def frame(columns: Any) -> Any:
    """Return columns, or a pyarrow table, as a pandas data frame if pandas is installed, else as a pyarrow table."""
    table = pa.table(columns)
    try:
        return table.to_pandas()
    except ImportError:
        return table
