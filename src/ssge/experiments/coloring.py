"""Colors of nodes by a column: classes, or numbers on a scale; the same for pictures and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.runs.names import as_text

FEW = 12
"""Different numbers that still are classes."""
MOST_CLASSES = 100
"""Classes that are told apart; those with the fewest nodes are one class more."""
OTHER = "other"


class Coloring(NamedTuple):
    """How a column colors the nodes.

    Attributes
    ----------
    name
        Of the column.
    classes, codes
        The classes, those of most nodes first, and the class of each node, -1 for none. No classes: numbers.
    numbers
        The number of each node, NaN for none; None for classes.
    """

    name: str
    classes: list[str]
    codes: NDArray[np.int64]
    numbers: NDArray[np.float64] | None = None


def color_by(name: str, values: Sequence[Any]) -> Coloring:
    """Decide how a column colors the nodes: more than twelve different numbers are a scale, all else is classes."""
    known = [value for value in values if as_text(value)]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in known) and len(set(known)) > FEW:
        numbers = np.array([float(v) if as_text(v) else np.nan for v in values])
        return Coloring(name, [], np.full(len(values), -1), np.where(np.isfinite(numbers), numbers, np.nan))
    texts = [as_text(value) for value in values]
    counts = Counter(text for text in texts if text)
    classes = sorted(counts, key=lambda text: (-counts[text], text))
    if len(classes) > MOST_CLASSES:
        classes = [text for text in classes[: MOST_CLASSES - 1] if text != OTHER] + [OTHER]
    code = {text: i for i, text in enumerate(classes)}
    codes = [code.get(text, code.get(OTHER, -1)) if text else -1 for text in texts]
    return Coloring(name, classes, np.array(codes, dtype=np.int64))


def tells_apart(column: Coloring) -> bool:
    """Return whether a column is worth coloring by: some classes with several nodes each, or different numbers."""
    if column.numbers is not None:
        return bool(np.isfinite(column.numbers).any())
    return 1 < len(column.classes) <= min(MOST_CLASSES - 1, len(column.codes) / 2)


def agreement(column: Coloring, position: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return the share of neighbors that have the class of their node, and that of nodes drawn at random.

    Parameters
    ----------
    column
        Classes; None is returned for numbers.
    position
        n x k neighbors of all nodes.
    """
    known = column.codes >= 0
    if not column.classes or not known.any():
        return None
    own, theirs = column.codes[known][:, None], column.codes[position[known]]
    counted = theirs >= 0
    if not counted.any():
        return None
    share = np.bincount(column.codes[known]) / known.sum()
    return float((own == theirs)[counted].mean()), float(np.square(share).sum())
