"""Columns as features: the encoding is fitted once, stored in a schema, and then applied in the same way."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.io.bags import encode_bag, encode_text, fit_text
from ssge.io.columns import Raw
from ssge.schema import Column

log = logging.getLogger(__name__)

_SPREADS = 100


def fit(raw: Raw, missing: Literal["error", "impute"], scale: Literal["none", "standard"]) -> Column:
    """Return how to encode a column: levels, fill values, means and standard deviations."""
    absent = raw.missing()
    fixed: dict[str, Any] = {"name": raw.name, "kind": raw.kind, "note": raw.note}
    fixed |= {"indicator": bool(absent.any()), "missing": float(absent.mean())}
    if raw.kind == "category":
        if not raw.levels:
            raise _no_values(raw)
        return Column(**fixed, levels=raw.levels, fill=(0.0,) if missing == "impute" else ())
    if raw.kind == "bag":
        if not raw.levels:
            raise _no_values(raw)
        return Column(**fixed, levels=raw.levels)
    if raw.kind == "text":
        words, idf = fit_text(raw.values)
        if not words:
            raise InputError(f"{raw.at(0)}: no word occurs in two rows; leave the column out of text.")
        return Column(**fixed, levels=words, idf=idf)
    width = int(raw.values.shape[1])
    if sp.issparse(raw.values):
        if scale == "standard":
            raise InputError("scale='standard' would make sparse features dense; give scale='none'.")
        return Column(**fixed, width=width)
    _refuse_infinite(raw, raw.values)
    if absent.all() or np.isnan(raw.values).all(axis=0).any():
        raise _no_values(raw)
    scaled = scale == "standard" and raw.kind != "boolean"
    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    if scaled or missing == "impute":
        means = tuple(np.asarray(np.nanmean(raw.values, axis=0, dtype=np.float64)).tolist())
    if scaled:
        spread = _deviations(raw.values)
        deviations = tuple(np.where(spread > 0, spread, 1.0).tolist())
    return Column(
        **fixed,
        width=width,
        fill=means if missing == "impute" else (),
        means=means if scaled else (),
        deviations=deviations,
    )


def _deviations(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the standard deviations of columns; exactly 0 where only rounding errors remain."""
    if not np.isnan(values).any():
        deviations, largest = np.std(values, axis=0, dtype=np.float64), np.abs(values).max(axis=0)
    else:
        deviations, largest = np.nanstd(values, axis=0, dtype=np.float64), np.nanmax(np.abs(values), axis=0)
    relative = max(4, len(values)) * np.finfo(np.float64).eps
    return np.where(deviations > relative * largest, deviations, 0.0)


def _refuse_missing(raw: Raw, column: Column, absent: NDArray[np.bool_]) -> None:
    """Refuse missing values if the column has no fill values."""
    if absent.any() and not column.fill:
        raise InputError(f"{raw.at(int(np.argmax(absent)))}: the value is missing; missing='impute' fills it in.")


def _no_values(raw: Raw) -> InputError:
    return InputError(f"{raw.at(0)}: no row has a value; leave the column out with ignore=[{raw.name!r}].")


def _refuse_infinite(raw: Raw, values: NDArray[Any]) -> None:
    with np.errstate(over="ignore"):
        infinite = np.isinf(values.astype(np.float32)).any(axis=1)
    if infinite.any():
        raise InputError(f"{raw.at(int(np.argmax(infinite)))}: a value is infinite in float32.")


def warn_of_spreads(raws: Sequence[Raw], name: str) -> None:
    """Warn if some columns of numbers vary far more than others, since they dominate the embedding."""
    spreads = {raw.name: float(_deviations(raw.values)[0]) for raw in raws if raw.kind == "number"}
    spreads = {column: spread for column, spread in spreads.items() if spread > 0}
    if spreads and max(spreads.values()) > _SPREADS * min(spreads.values()):
        wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
        log.warning(
            "%s: column %r varies %.0f times as much as %r; scale='standard' brings them to one scale.",
            *(name, wide, spreads[wide] / spreads[narrow], narrow),
        )


def encode(raw: Raw, column: Column) -> Any:
    """Return the features of one column, n x its number of names, dense or sparse."""
    absent = raw.missing()
    if raw.kind == "category":
        block = _one_hot(raw, column, absent)
    elif raw.kind == "bag":
        block, others = encode_bag(raw.values, raw.levels, column)
        if others:
            log.info("column %r: %s ids not seen before are left out.", raw.name, f"{others:,}")
    elif raw.kind == "text":
        block = encode_text(raw.values, column)
    elif sp.issparse(raw.values):
        block = raw.values
    else:
        block = _numbers(raw, column, absent)
    if column.indicator:
        flag = absent.astype(np.float32)[:, None]
        return sp.hstack([block, flag], format="csr") if sp.issparse(block) else np.hstack([block, flag])
    return block


def _numbers(raw: Raw, column: Column, absent: NDArray[np.bool_]) -> NDArray[np.float32]:
    values = raw.values
    if values.shape[1] != column.width:
        raise InputError(f"{raw.at(0)}: {column.width} numbers per row expected, {values.shape[1]} found.")
    _refuse_missing(raw, column, absent)
    if absent.any():
        values = np.where(np.isnan(values), column.fill, values)
    if column.means:
        values = (values - np.array(column.means)) / np.array(column.deviations)
    _refuse_infinite(raw, values)
    return np.asarray(values, dtype=np.float32)


def _one_hot(raw: Raw, column: Column, absent: NDArray[np.bool_]) -> sp.csr_array:
    place = {level: i for i, level in enumerate(column.levels)}
    rank = np.array([*(place.get(level, -1) for level in raw.levels), -1], dtype=np.int64)
    codes = rank[raw.values]  # the last entry is what -1, a missing value, leads to
    unseen = (codes < 0) & ~absent
    if unseen.any():
        new = [level for level in raw.levels if level not in place]
        count = f"{unseen.sum():,}"
        log.info("column %r: %s rows have a level not seen before (%s), encoded as zeros.", raw.name, count, shown(new))
    _refuse_missing(raw, column, absent)
    known = codes >= 0
    indptr = np.concatenate([[0], np.cumsum(known)])
    shape = (codes.size, len(column.levels))
    return sp.csr_array((np.ones(int(known.sum()), np.float32), codes[known], indptr), shape=shape)
