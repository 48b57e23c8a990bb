"""Columns as features: the encoding is fitted once, stored in a schema, and applied to every graph."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.io.columns import MOST_NAMED_LEVELS, Raw
from ssge.schema import Column

log = logging.getLogger(__name__)

Missing: TypeAlias = Literal["error", "impute"]
Scale: TypeAlias = Literal["none", "standard"]

MOST_WORDS = 4_096
"""Words of one text column, the most frequent ones; words in one row only are left out."""
_SPREADS = 100


def fit(raw: Raw, missing: Missing, scale: Scale) -> Column:
    """Return how to encode a column: levels, fill values, means and standard deviations."""
    if raw.kind == "text":
        words, idf = _fit_text(raw.values)
        if not words:
            raise InputError(f"{raw.at(0)}: no word occurs in two rows; leave the column out of text.")
        return Column(name=raw.name, kind="text", note=raw.note, levels=words, idf=idf)
    if raw.kind == "bag":
        if not raw.levels:
            raise _no_values(raw)
        return Column(name=raw.name, kind="bag", note=raw.note, levels=raw.levels)
    if sp.issparse(raw.values):
        if scale == "standard":
            raise InputError("scale='standard' would make sparse features dense; give scale='none'.")
        return Column(name=raw.name, kind=raw.kind, note=raw.note, width=int(raw.values.shape[1]))
    found = ColumnFit(raw, missing, scale)
    found.add(raw)
    return found.column()


class ColumnFit:
    """The encoding of a column, fitted at once or in batches: levels, or means and standard deviations.

    Parameters
    ----------
    head
        The first rows, for name, kind and width.
    missing, scale
        As in `ssge.io.options.ReadOptions`.
    """

    def __init__(self, head: Raw, missing: Missing, scale: Scale) -> None:
        from sklearn.preprocessing import StandardScaler

        self.head, self.leveled, self.impute = head, head.kind == "category", missing == "impute"
        self.scaled = scale == "standard" and not self.leveled and head.kind != "boolean"
        self.rows = self.absent = 0
        self.levels: set[str] = set()
        self.scaler = StandardScaler()  # leaves out missing values, and does not divide a constant column

    @property
    def needed(self) -> bool:
        """Whether the encoding depends on more than the kind of the column."""
        return self.leveled or self.impute or self.scaled

    def add(self, raw: Raw) -> None:
        """Update the fit with some rows."""
        self.rows += raw.values.shape[0]
        self.absent += int(raw.missing().sum())
        if self.leveled:
            self.levels.update(raw.levels)
            if len(self.levels) > MOST_NAMED_LEVELS:
                raise InputError(f"{raw.at(0)}: {MOST_NAMED_LEVELS:,} levels at most; leave it out with ignore.")
            return
        _refuse_infinite(raw, raw.values)
        self.scaler.partial_fit(raw.values)

    def column(self) -> Column:
        """Return the encoding."""
        fixed: dict[str, Any] = {"name": self.head.name, "kind": self.head.kind, "note": self.head.note}
        fixed |= {"indicator": self.absent > 0, "missing": self.absent / max(self.rows, 1)}
        if self.leveled:
            if self.rows and not self.levels:
                raise _no_values(self.head)
            return Column(**fixed, levels=tuple(sorted(self.levels)), fill=(0.0,) if self.impute else ())
        fixed["width"] = int(self.head.values.shape[1])
        if not self.rows:  # nothing to fit was asked for
            return Column(**fixed)
        if self.absent == self.rows or not np.all(self.scaler.n_samples_seen_):
            raise _no_values(self.head)
        means, deviations = tuple(self.scaler.mean_.tolist()), tuple(self.scaler.scale_.tolist())
        scaled = {"means": means, "deviations": deviations} if self.scaled else {}
        return Column(**fixed, **scaled, fill=means if self.impute else ())


def _no_values(raw: Raw) -> InputError:
    return InputError(f"{raw.at(0)}: no row has a value; leave the column out with ignore=[{raw.name!r}].")


def _refuse_infinite(raw: Raw, values: NDArray[Any]) -> None:
    with np.errstate(over="ignore"):
        infinite = np.isinf(values.astype(np.float32)).any(axis=1)
    if infinite.any():
        raise InputError(f"{raw.at(int(np.argmax(infinite)))}: a value is infinite in float32.")


def warn_of_spreads(raws: Sequence[Raw], name: str) -> None:
    """Warn if some columns of numbers vary far more than others, since they dominate the embedding."""
    columns = {raw.name: raw.values for raw in raws if raw.kind == "number"}
    spreads = {column: float(np.nanstd(x)) for column, x in columns.items() if np.nanmin(x) < np.nanmax(x)}
    if spreads and max(spreads.values()) > _SPREADS * min(spreads.values()):
        wide, narrow = max(spreads, key=spreads.__getitem__), min(spreads, key=spreads.__getitem__)
        log.warning(
            "%s: column %r varies %.0f times as much as %r; scale='standard' brings them to one scale.",
            *(name, wide, spreads[wide] / spreads[narrow], narrow),
        )


def encode(raw: Raw, column: Column) -> Any:
    """Return the features of one column, n x its number of names, dense or sparse."""
    absent = raw.missing()
    if absent.any() and not column.fill:
        raise InputError(f"{raw.at(int(np.argmax(absent)))}: the value is missing; missing='impute' fills it in.")
    if raw.kind in ("category", "bag"):
        block = _counts(raw, column)
    elif raw.kind == "text":
        block = _encode_text(raw.values, column)
    elif sp.issparse(raw.values):
        block = raw.values
    else:
        block = _numbers(raw, column)
    if column.indicator:
        flag = absent.astype(np.float32)[:, None]
        return sp.hstack([block, flag], format="csr") if sp.issparse(block) else np.hstack([block, flag])
    return block


def _numbers(raw: Raw, column: Column) -> NDArray[np.float32]:
    values = raw.values
    if values.shape[1] != column.width:
        raise InputError(f"{raw.at(0)}: {column.width} numbers per row expected, {values.shape[1]} found.")
    if np.isnan(values).any():
        values = np.where(np.isnan(values), column.fill, values)
    if column.means:
        values = (values - np.array(column.means)) / np.array(column.deviations)
    _refuse_infinite(raw, values)
    return np.asarray(values, dtype=np.float32)


def _counts(raw: Raw, column: Column) -> sp.csr_array:
    """Return the counts of the fitted levels per row: one-hot for a category, any counts for a bag.

    Levels not seen before are left out.
    """
    counts = raw.values
    if raw.kind == "category":
        known = raw.values >= 0
        indptr = np.concatenate([[0], np.cumsum(known)])
        shape = (known.size, len(raw.levels))
        counts = sp.csr_array((np.ones(indptr[-1], np.float32), raw.values[known], indptr), shape=shape)
    if raw.levels == column.levels:
        return counts
    place = {level: i for i, level in enumerate(column.levels)}
    rank = np.array([place.get(level, -1) for level in raw.levels], dtype=np.int64)
    old, new = np.flatnonzero(rank >= 0), np.flatnonzero(rank < 0)
    if rows := np.count_nonzero(np.diff(counts[:, new].indptr)):
        found = shown([raw.levels[i] for i in new])
        log.info(
            "column %r: %s rows have a level not seen before (%s), encoded as zeros.", raw.name, f"{rows:,}", found
        )
    pick = sp.csr_array((np.ones(old.size, np.float32), (old, rank[old])), shape=(rank.size, len(place)))
    return sp.csr_array(counts @ pick)


def _fit_text(texts: NDArray[Any]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the vocabulary and the idf of each word: log((1 + n) / (1 + rows with the word)) + 1."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    model = TfidfVectorizer(min_df=2, max_features=MOST_WORDS)
    try:
        model.fit(texts)
    except ValueError:  # scikit-learn raises it when no word is left
        return (), ()
    return tuple(model.get_feature_names_out().tolist()), tuple(model.idf_.tolist())


def _encode_text(texts: NDArray[Any], column: Column) -> sp.csr_array:
    """Return the TF-IDF of the vocabulary, rows of unit norm; zeros for a text without any of its words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    model = TfidfVectorizer(vocabulary=list(column.levels))
    model.idf_ = np.array(column.idf)
    return sp.csr_array(model.transform(texts), dtype=np.float32)
