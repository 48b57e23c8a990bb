"""Columns that look like something else than features: labels, ids, dates, an index."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssge.io.columns import MOST_LEVELS, Raw

LABEL_WORDS = frozenset(
    ("y", "label", "labels", "class", "classes", "target", "targets", "category", "categories", "outcome", "truth")
)
ID_WORDS = frozenset(("id", "ids", "uuid", "guid"))
DATE_WORDS = frozenset(("date", "datetime", "timestamp"))
_BESIDE = frozenset(("id", "name", "code", "true", "ground", "node", "gt", "index", "idx"))
_INDEX = re.compile(r"|unnamed: ?\d+(_level_\d+)?|__index_level_\d+__|level_\d+|index", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

FEWEST_ROWS = 20
"""In fewer rows, values that all differ or that go with the classes may do so by chance."""
MOST_EDGES = 50_000
"""Edges that are looked at, evenly spread, to judge a column."""
MOST_FLAGS = 100
"""A table with more columns of zeros and ones holds a bag of words: none of them is a label."""
STRONG = 0.5
"""Assortativity from which on a column looks like a label."""
_WIDEST = 10_000
"""Integers that span more are no levels."""


def by_name(name: str) -> str | None:
    """Return what a column looks like by its name; None if like a feature."""
    if _INDEX.fullmatch(name):
        return "looks like the index of a data frame"
    words = {word.casefold() for word in _WORD.findall(name)}
    if words & LABEL_WORDS and words <= LABEL_WORDS | _BESIDE:
        return "looks like a label by its name"
    if words & ID_WORDS:
        return "looks like an id by its name"
    if words & DATE_WORDS and words <= DATE_WORDS | _BESIDE:
        return "looks like a date by its name"
    return None


def by_values(raw: Raw, column: Any) -> str | None:
    """Return what a column looks like by its values: integers that all differ are ids."""
    n = len(column)
    if raw.kind != "number" or not pa.types.is_integer(column.type) or n < FEWEST_ROWS:
        return None
    values = raw.values[:, 0]
    different = np.unique(values[:1000]).size == min(n, 1000) and np.unique(values).size == n
    return f"looks like an id: {n:,} integers that all differ" if different else None


def by_neighbors(raws: Sequence[Raw], edges: NDArray[Any]) -> dict[str, str]:
    """Return which columns look like labels, because edges join equal values far more often than by chance.

    With h the share of edges between equal values and e = sum_k p_k^2 the share by chance, p_k that of level k among
    the ends of edges, these are columns with few levels, an assortativity (h - e) / (1 - e) of 0.5 or more, and h five
    standard errors above e.
    """
    edges = edges[:, edges[0] != edges[1]]
    edges = edges[:, :: max(1, edges.shape[1] // MOST_EDGES)]
    coded = {raw.name: codes for raw in raws if (codes := _levels(raw)) is not None}
    flags = {raw.name for raw in raws if raw.kind == "number" and raw.name in coded and coded[raw.name].max() == 1}
    found = {}
    for name, codes in coded.items():
        if name in flags and len(flags) > MOST_FLAGS:
            continue
        ends = codes[edges]
        ends = ends[:, (ends >= 0).all(axis=0)]
        m = ends.shape[1]
        if not m:
            continue
        share = float((ends[0] == ends[1]).mean())
        chance = float(np.square(np.bincount(ends.ravel()) / (2 * m)).sum())
        if share - chance >= max(STRONG * (1 - chance), 5 * np.sqrt(chance * (1 - chance) / m)) and chance < 1:
            found[name] = (
                f"looks like a label: {share:.0%} of the edges join nodes with equal values, {chance:.0%} by chance"
            )
    return found


def by_label(raws: Sequence[Raw], labels: NDArray[Any], what: str) -> dict[str, str]:
    """Return which columns determine the class of a node; ``what`` names the labels."""
    classes = np.unique(labels.astype(str), return_inverse=True)[1]
    known = {raw.name: values[: classes.size] for raw in raws if (values := raw.plain()) is not None}
    return dict.fromkeys(told_by(known, classes), f"says the {what}: each of its values goes with one class")


def told_by(columns: Mapping[str, NDArray[Any]], classes: NDArray[np.int64]) -> list[str]:
    """Return the columns that determine classes.

    A class is predicted as the most frequent one of the *other* rows with the same value, so that values that occur
    once predict nothing. A column determines classes if this is right for 99 % of the rows, and for 90 % of those that
    are not of the most frequent class of all.

    Parameters
    ----------
    columns
        Values per row, n or n x width each.
    classes
        n classes, 0, 1, ...

    Examples
    --------
    >>> classes = np.arange(60) % 3
    >>> told_by({"color": classes * 7.0, "shade": np.arange(60), "size": np.arange(60) // 20}, classes)
    ['color']
    """
    n = classes.size
    if n < FEWEST_ROWS:
        return []
    majority = float(np.bincount(classes).max() / n)
    found = []
    for name, values in columns.items():
        rows = np.ascontiguousarray(values).reshape(n, -1)
        if rows.shape[1] > MOST_LEVELS:
            continue
        several = rows.shape[1] > 1
        codes = np.unique(rows, axis=0 if several else None, return_inverse=True)[1].ravel()
        if codes.max() >= n // 2:
            continue
        right = _predicted(codes, classes)
        if right >= 0.99 and right - majority >= 0.9 * (1 - majority):
            found.append(name)
    return found


def _predicted(codes: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """Return the share of rows with the class that is the most frequent one of the other rows with their value."""
    counts = np.zeros((codes.max() + 1, classes.max() + 1), dtype=np.int64)
    np.add.at(counts, (codes, classes), 1)
    own = counts[codes, classes]
    best = counts.argmax(axis=1)
    others = np.where(np.arange(counts.shape[1]) == best[:, None], -1, counts).max(axis=1, initial=-1)
    # Without the row itself its class must still be ahead of every other one.
    return float(((best[codes] == classes) & (own - 1 > others[codes])).mean())


def _levels(raw: Raw) -> NDArray[np.int64] | None:
    """Return the levels of a column with few of them, -1 where missing; None for any other column."""
    if raw.kind == "category":
        return np.asarray(raw.values) if 1 < len(raw.levels) <= MOST_LEVELS else None
    if raw.kind not in ("boolean", "number") or np.isinf(raw.values[:, 0]).any():
        return None
    values = raw.values[:, 0]
    known = ~np.isnan(values)
    some = values[known] if not known.all() else values
    if not some.size or (some[:1000] % 1).any():
        return None
    low, high = some.min(), some.max()
    if high - low >= _WIDEST or (some % 1).any():  # codes are seldom that far apart
        return None
    found = np.full(values.size, -1, dtype=np.int64)
    found[known] = some - low
    return found if 1 < np.count_nonzero(np.bincount(found[known])) <= MOST_LEVELS else None
