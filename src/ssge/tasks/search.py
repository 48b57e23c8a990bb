"""Nearest neighbors of nodes: exact, or approximate with FAISS and a measured recall."""

from __future__ import annotations

import logging
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError, UnknownNameError
from ssge.evaluation._arrays import checked_embedding
from ssge.ops.neighbors import Metric, Neighbors, check_count, comparable, nearest, scored

log = logging.getLogger(__name__)

Backend: TypeAlias = Literal["exact", "faiss"]

RECALL = 0.95
"""Share of the true neighbors that an approximate search must find."""
_QUERIES = 1 << 14  # searched at once


def search(
    vectors: ArrayLike,
    queries: NDArray[np.int64],
    k: int | None = None,
    metric: Metric = "cosine",
    backend: Backend = "exact",
    exclude: sp.csr_array | None = None,
) -> Neighbors:
    """Return the k nodes nearest to each of some nodes, themselves left out.

    Cosines are those of the vectors as they are, so that any other program finds the same neighbors.

    Parameters
    ----------
    vectors
        n x d embedding.
    queries
        Positions of the nodes asked about.
    k
        How many neighbors; None: 10, or all other nodes where there are fewer.
    metric
        ``cosine`` (scores are cosines, largest first) or ``euclidean`` (scores are distances, smallest first).
    backend
        ``exact`` compares with every row: O(q n d), fine up to some hundred thousand rows. ``faiss`` looks into the
        cells of an inverted file that are nearest to the query (needs ``pip install ssge[faiss]``): into as many as
        find 95 % of the true neighbors of a sample of nodes. The objective makes embeddings nearly isotropic, the
        hardest case for any approximate index, so the share is measured and never assumed.
    exclude
        n x n: entry (i, j) leaves node j out of the neighbors of node i; with ``exact`` only. Where fewer than k nodes
        are left, positions are -1.
    """
    rows = checked_embedding(vectors)
    k = max(1, min(10, rows.shape[0] - 1)) if k is None else k
    if backend not in get_args(Backend):
        raise UnknownNameError("backend", backend, get_args(Backend))
    if backend == "exact":
        return nearest(rows, queries, k, metric, exclude=exclude)
    if exclude is not None:
        raise InputError("The backend faiss cannot leave out linked nodes; use exact.")
    return _search_cells(rows, queries, k, metric)


def recall_of(found: Neighbors, true: Neighbors) -> float:
    """Return the share of the true neighbors that were found, over the same queries."""
    hits = (found.position[:, :, None] == true.position[:, None, :]).any(axis=1)
    return float(hits.mean())


def _search_cells(vectors: NDArray[np.floating[Any]], queries: NDArray[np.int64], k: int, metric: Metric) -> Neighbors:
    """Search an inverted file of about 4 sqrt(n) cells, as many of them per query as `RECALL` asks for."""
    try:
        import faiss
    except ImportError:
        raise InputError("The backend faiss needs a package that is not here: pip install ssge[faiss]") from None
    n, d = vectors.shape
    check_count(k, n)
    rows = np.ascontiguousarray(comparable(vectors, metric), dtype=np.float32)
    cells = max(1, min(round(4 * n**0.5), n // 40))  # FAISS asks for 39 rows per cell to train its centroids
    kind = faiss.METRIC_INNER_PRODUCT if metric == "cosine" else faiss.METRIC_L2
    index: Any = faiss.index_factory(d, f"IVF{cells},Flat", kind)
    index.train(rows)
    index.add(rows)

    def found(asked: NDArray[np.int64]) -> Neighbors:
        _, near = index.search(rows[asked], k + 1)
        while (near < 0).any():  # the cells searched hold too few rows; all cells hold enough
            index.nprobe = min(cells, 2 * index.nprobe)
            _, near = index.search(rows[asked], k + 1)
        # The node itself is among them, unless others coincide with it: then the last one goes.
        other = near != asked[:, None]
        other[other.all(axis=1), -1] = False
        return scored(rows, asked, near[other].reshape(-1, k), metric)

    sample = np.random.default_rng(0).choice(n, min(200, n), replace=False)
    true = nearest(vectors, sample, k, metric)
    index.nprobe = max(1, cells // 64)
    while (reached := recall_of(found(sample), true)) < RECALL and index.nprobe < cells:
        index.nprobe = min(cells, 2 * index.nprobe)
    log.info(
        "FAISS finds %.1f %% of the true %d nearest of %d sampled nodes, looking into %d of %d cells.",
        100 * reached, k, sample.size, index.nprobe, cells,
    )  # fmt: skip
    parts = [found(queries[start : start + _QUERIES]) for start in range(0, max(1, len(queries)), _QUERIES)]
    return Neighbors(np.concatenate([p.position for p in parts]), np.concatenate([p.score for p in parts]))
