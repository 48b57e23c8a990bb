"""The data of an interactive map: places, names, colors and nearest neighbors of the nodes that are drawn."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.errors import cut
from ssge.experiments.figures.map import class_colors
from ssge.experiments.layout import Coloring, Method, agreement, color_by, drawing_order, lay_out, tells_apart
from ssge.ops.neighbors import Neighbors, comparable, nearest, scored
from ssge.runs.names import Names, as_text
from ssge.tasks.clusters import clusters

MOST_POINTS = 50_000
NEIGHBORS = 10
CLUSTERS = 8
_MOST_EXACT = 10_000


def map_data(
    vectors: NDArray[np.floating[Any]],
    names: Names,
    colors: Sequence[str],
    *,
    layout: Method = "auto",
    points: int | None = None,
    seed: int = 0,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lay out the nodes and find their nearest neighbors; return what the page's script draws, and what it says.

    Parameters
    ----------
    vectors
        n x d embedding.
    names
        Columns to show for each node.
    colors
        Columns to color by, in addition to all others that tell nodes apart and to k-means clusters.
    layout, points, seed
        As in `ssge.experiments.figures.embedding_map`; by default at most 50,000 nodes are drawn.
    """
    n = len(vectors)
    rows = drawing_order(n, MOST_POINTS if points is None else points, seed)
    drawn = vectors[rows]
    placed = lay_out(drawn, seed, layout)
    k = min(NEIGHBORS, len(rows) - 1)
    near = _near(drawn, k) if k else None
    columns = {name: [values[row] for row in rows.tolist()] for name, values in names.columns.items()}
    found = _colorings(columns, colors, drawn, seed)
    data = {
        "n": len(rows),
        "ids": [as_text(node) for node in names.node_ids[rows].tolist()],
        "name": next(iter(columns), None) if next(iter(columns), None) not in colors else None,
        "columns": {name: [cut(as_text(value), 120) for value in values] for name, values in columns.items()},
        "x": packed(placed.points[:, 0], np.float32),
        "y": packed(placed.points[:, 1], np.float32),
        "k": k,
        "neighbors": packed(near.position, np.int32) if near else "",
        "cosines": packed(np.rint(1e4 * near.score), np.int16) if near else "",
        "colors": [_packed_coloring(column) for column in found],
    }
    shares = [(c.name, *s) for c in found if near and (s := agreement(c, near.position)) and c.name in names.columns]
    words = {
        "method": placed.method,
        "drawn": len(rows),
        "nodes": n,
        "k": k,
        "agreement": [(name, f"{100 * share:.0f} %", f"{100 * chance:.0f} %") for name, share, chance in shares],
        "classes": [_counts(column) for column in found],
    }
    return data, words


def _near(vectors: NDArray[np.floating[Any]], k: int) -> Neighbors:
    """Return the neighbors of all rows: those of `ssge neighbors`, but for ties when there are very many rows."""
    if len(vectors) <= _MOST_EXACT:
        return nearest(vectors, np.arange(len(vectors)), k)
    from sklearn.neighbors import NearestNeighbors  # a quarter of the time, but with ties in any order

    rows = comparable(vectors, "cosine")
    found = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(rows).kneighbors(return_distance=False)
    return scored(rows, np.arange(len(rows)), found, "cosine")


def packed(values: NDArray[Any], kind: Any) -> str:
    """Return an array as base64 of its little-endian bytes, which a page unpacks without parsing."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()).decode()


def _colorings(
    columns: dict[str, list[Any]], colors: Sequence[str], drawn: NDArray[np.floating[Any]], seed: int
) -> list[Coloring]:
    """Return the columns to color by: those given, then all others that tell nodes apart, then clusters."""
    given = [color_by(name, columns[name]) for name in colors]
    others = [color_by(name, values) for name, values in columns.items() if name not in colors]
    found = [*given, *(column for column in others if tells_apart(column))]
    if len(drawn) > 2 * CLUSTERS:
        parts = clusters(drawn, CLUSTERS, seed)
        found.append(Coloring("cluster (k-means)", [f"cluster {i}" for i in range(CLUSTERS)], parts.cluster))
    return found


def _packed_coloring(column: Coloring) -> dict[str, Any]:
    if column.numbers is not None:
        low, high = (float(edge) for edge in np.nanpercentile(column.numbers, [1, 99]))  # few extremes hide the rest
        return {"name": column.name, "low": low, "high": high, "numbers": packed(column.numbers, np.float32)}
    paints = class_colors(column.classes)[0]
    paint = ["#" + "".join(f"{round(255 * part):02x}" for part in color) for color in paints]
    classes = [list(entry) for entry in zip(column.classes, paint, column.counts, strict=True)]
    return {"name": column.name, "classes": classes, "codes": packed(column.codes, np.int16)}


def _counts(column: Coloring) -> tuple[str, list[tuple[str, str]]]:
    """Return the classes of a column, or the range of its numbers, as text."""
    if column.numbers is not None:
        known = column.numbers[np.isfinite(column.numbers)]
        named = ("lowest", known.min()), ("median", np.median(known)), ("highest", known.max())
        return column.name, [(name, f"{value:,.4g}") for name, value in named]
    return column.name, [(name, f"{n:,}") for name, n in zip(column.classes, column.counts, strict=True)]
