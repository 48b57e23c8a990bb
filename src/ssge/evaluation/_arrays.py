"""Validation of the arrays for evaluation: a finite matrix, one class per row, and a split of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.graph import Split

_ROWS = 1 << 14
Matrix: TypeAlias = NDArray[np.floating[Any]]

SPARSE = 0.1
"""Density below which sparse products take less time than dense ones."""


def checked_embedding(embedding: ArrayLike, name: str = "embedding") -> Matrix:
    """Return the n x d matrix as float32 or float64; it keeps its precision if it is one of these."""
    array = np.asarray(embedding)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name} must be a matrix n x d with n, d >= 1; received shape {array.shape}.")
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} must be real numbers; received dtype {array.dtype}.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise InputError(f"{name} must be finite; row {row}, column {column} is {array[row, column]}.")
    return array


def checked_labels(labels: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return one class index >= 0 for each of n rows."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise InputError(f"labels must have one class for each row of embedding ({n}); received {array.shape}.")
    if array.dtype.kind not in "iu":
        raise InputError(f"labels must be integer classes; received dtype {array.dtype}.")
    if array.min() < 0:
        raise InputError(f"labels must be classes 0..k-1; received {array.min()}.")
    return array.astype(np.int64)


def checked_split(split: Split, n: int) -> Split:
    """Return the three index arrays; none may be empty, and no row may be in two of them."""
    parts = {name: np.asarray(part) for name, part in zip(Split._fields, split, strict=True)}
    for name, part in parts.items():
        if part.ndim != 1 or part.size == 0:
            raise InputError(f"split.{name} must be a list of at least one row; received shape {part.shape}.")
        if part.dtype.kind not in "iu":
            raise InputError(f"split.{name} must hold row numbers, not {part.dtype}; of a mask use its nonzero().")
        if part.min() < 0 or part.max() >= n:
            raise InputError(f"split.{name} must hold rows 0..{n - 1}; received {part.min()}..{part.max()}.")
    rows, count = np.unique(np.concatenate(list(parts.values())), return_counts=True)
    if (count > 1).any():
        raise InputError(f"split must be disjoint without repeats; row {rows[count > 1][0]} occurs twice.")
    return Split(*(part.astype(np.int64) for part in parts.values()))


def deviations(embedding: Matrix) -> NDArray[np.float64]:
    """Return the standard deviations of the columns, in float64; exactly 0 if within rounding."""
    mean = embedding.mean(axis=0, dtype=np.float64)
    squares, peak = np.zeros_like(mean), np.zeros_like(mean)
    for rows in blocks(embedding):
        squares += np.square(rows - mean).sum(axis=0)
        peak = np.maximum(peak, np.abs(rows).max(axis=0))
    deviation = np.sqrt(squares / embedding.shape[0])
    # Rounding of the values themselves, and of the mean of n of them.
    relative = max(4 * np.finfo(embedding.dtype).eps, embedding.shape[0] * np.finfo(np.float64).eps)
    return np.where(deviation > relative * peak, deviation, 0.0)


def blocks(embedding: Matrix) -> Iterator[Matrix]:
    """Yield chunks of rows, so that their float64 copies are small."""
    for start in range(0, embedding.shape[0], _ROWS):
        yield embedding[start : start + _ROWS]


def unit_rows(embedding: Matrix) -> Matrix:
    """Divide each row by its Euclidean norm; a row of zeros stays zero."""
    # The largest entry is divided out first, so that no square underflows or overflows.
    peak = np.abs(embedding).max(axis=1, keepdims=True)
    rows = embedding / np.where(peak > 0, peak, 1)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(norm > 0, norm, 1)
    return rows
