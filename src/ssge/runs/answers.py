"""Answers about nodes as columns of a table: the same for the command line, for files and for estimators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.ops.neighbors import Metric, Neighbors
from ssge.runs.names import Names
from ssge.tasks.clusters import Clusters


def value_of(metric: Metric) -> str:
    """Return what the score of a neighbor is called."""
    return "cosine" if metric == "cosine" else "distance"


def neighbor_columns(
    names: Names, rows: NDArray[np.int64], found: Neighbors, metric: Metric, size: int = 1 << 14
) -> Iterator[dict[str, Any]]:
    """Yield id, rank, neighbor and its score, then the shown columns of both, in batches of some nodes."""
    k = found.position.shape[1]
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        near = found.position[part].ravel()
        there = near >= 0  # fewer than k, where linked nodes are left out
        asked, near = np.repeat(rows[part], k)[there], near[there]
        own = {
            "id": names.node_ids[asked],
            "rank": np.tile(np.arange(1, k + 1), len(rows[part]))[there],
            "neighbor": names.node_ids[near],
            value_of(metric): found.score[part].ravel()[there],
        }
        others = {f"neighbor {name}": values for name, values in names.take(near).items()}
        yield {**own, **(names.take(asked) | others | own)}


def pair_columns(names: Names, pairs: NDArray[np.int64], own: dict[str, Any]) -> dict[str, Any]:
    """Return the ids of two nodes per row and what is said of them, then the shown columns of both."""
    first, second = pairs
    own = {"source": names.node_ids[first], "target": names.node_ids[second], **own}
    ends = {"source": first, "target": second}
    shown = {f"{end} {name}": values for end, rows in ends.items() for name, values in names.take(rows).items()}
    return {**own, **(shown | own)}


def cluster_columns(names: Names, found: Clusters) -> dict[str, Any]:
    """Return id, cluster and distance from its center, then the shown columns."""
    own = {"id": names.node_ids, "cluster": found.cluster, "distance": found.distance}
    return {**own, **(names.take(np.arange(len(names.node_ids))) | own)}


def outlier_columns(names: Names, scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return id and score of all nodes, the highest first, then the shown columns."""
    order = np.argsort(-scores, kind="stable")
    own = {"id": names.node_ids[order], "score": scores[order]}
    return {**own, **(names.take(order) | own)}
