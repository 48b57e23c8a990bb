"""The feature matrix of a graph: columns of its tables encoded, structural features computed from its edges.

The encoding of a column is fitted once, stored in a schema, and applied to every graph.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.foreign import Parts
from ssge.graph import FeatureMatrix, Graph
from ssge.io.columns import MOST_NAMED_LEVELS, Raw
from ssge.ops.structural import structural_features
from ssge.schema import HEADINGS, STATED, Column, FeatureSchema

log = logging.getLogger(__name__)

MOST_WORDS = 4_096
"""Words of one text column, the most frequent ones; words in one row only are left out."""
_SPREADS = 100
SPARSE_BELOW = 0.10
"""Share of nonzero entries below which a matrix is stored sparse. On one thread, the product with a weight matrix
takes the same time dense and sparse at about 15 %; below a tenth, sparse is always faster."""


def make_features(
    parts: Parts, raws: Sequence[Raw], schema: FeatureSchema, where: str
) -> tuple[FeatureMatrix, FeatureSchema]:
    """Return the features of a graph, and the fitted schema that reproduces them.

    Parameters
    ----------
    parts
        The graph, with arranged edges.
    raws
        The columns that become features.
    schema
        Which features to make; where it is fitted, columns are encoded as it says.
    where
        Name of the source in messages.
    """
    if "table" not in schema.features:
        raws = ()
    elif not raws:
        guessed = _guessed(schema)
        name = f" Columns are left out: {guessed}; give columns=[...] to use some of them." if guessed else ""
        raise InputError(f"{where} has no node features: features='structural' makes some from the edges alone.{name}")
    columns = schema.columns
    if not schema.fitted:
        columns = tuple(fit(raw, schema) for raw in raws)
        if schema.scale == "none":
            warn_of_spreads(raws, where)
    expected, received = [column.name for column in columns], [raw.name for raw in raws]
    if expected != received:
        raise InputError(f"{where}: like expects the columns {shown(expected)}; received {shown(received)}.")
    if "laplacian" in schema.features and schema.fitted:
        log.warning("%s: its Laplacian coordinates are not comparable with those of another graph.", where)
    done = schema.model_copy(update={"columns": columns})
    table = [encode(raw, column) for raw, column in zip(raws, columns, strict=True)]
    for raw in raws:  # only now: encoding refuses missing values unless they are to be filled in
        if count := int(raw.missing().sum()):
            log.info("column %r: %s missing values filled in.", raw.name, f"{count:,}")
    features, names = _joined(done, table, parts.edges, parts.weights, parts.num_nodes or 0)
    if schema.fitted and tuple(names) != schema.names:
        raise InputError(f"{where} has {len(names)} features, and {len(schema.names)} in like: {shown(names)}.")
    if not schema.fitted and schema.left_out:
        log_columns(done, where)
    return features, done.model_copy(update={"names": tuple(names)})


def _joined(
    schema: FeatureSchema, table: Sequence[Any], edges: Any, weights: Any, n: int
) -> tuple[FeatureMatrix, list[str]]:
    """Return the features of a schema in its order, given those of its columns, and their names."""
    blocks, names = list[Any](), list[str]()
    for kind in schema.features:
        if kind == "table":
            blocks += table
            names += [name for column in schema.columns for name in column.names]
        else:
            block, found = structural_features(edges, weights, n, [kind], schema.direction)
            blocks.append(block)
            names += found
    return compact(*blocks), names


def renew_structure(graph: Graph) -> Graph:
    """Return a graph with its structural features computed again, after some edges were removed."""
    schema = graph.schema
    if schema is not None and schema.edge_columns:
        log.warning("%s: its aggregated edge columns still count the edges that were removed.", graph.name)
    if schema is None or set(schema.features) == {"table"}:
        return graph
    names = tuple(name for column in schema.columns for name in column.names)
    at = next(i for i in range(len(schema.names) + 1) if schema.names[i : i + len(names)] == names)
    table = [graph.features[:, at : at + len(names)]] if names else []
    features, _ = _joined(schema, table, graph.edges, graph.weights, graph.num_nodes)
    return replace(graph, features=features.astype(graph.features.dtype))


def log_columns(schema: FeatureSchema, where: str) -> None:
    """Log how each column of the node table is used; warn of those that were left out by a guess."""
    lines = [HEADINGS, *schema.table()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    log.info("%s: columns of the node table\n  %s", where, "\n  ".join(text))
    if guessed := _guessed(schema):
        warnings.warn(
            f"{where}: columns left out of the features: {guessed}; give columns=[...] to use some of them.",
            stacklevel=5,
        )


def _guessed(schema: FeatureSchema, most: int = 8) -> str:
    """Return the columns that were left out by a guess, and why, for messages."""
    found = [
        f"{repr(entry.name) if entry.name else 'one without a name'} {entry.why}"
        for entry in schema.left_out
        if entry.why not in STATED
    ]
    more = f", and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def compact(*blocks: Any) -> FeatureMatrix:
    """Concatenate blocks of features into one float32 matrix; sparse indices have 32 bits where they fit."""
    n, p = int(blocks[0].shape[0]), sum(int(block.shape[1]) for block in blocks)
    # Not block.count_nonzero(), which sorts the indices of the matrix that was given.
    filled = sum(np.count_nonzero(sp.csr_array(b).data if sp.issparse(b) else b) for b in blocks)
    with np.errstate(over="ignore"):  # the validator names a value that float32 cannot hold
        if filled >= SPARSE_BELOW * n * p:
            arrays = [block.toarray() if sp.issparse(block) else block for block in blocks]
            joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1, dtype=np.float32)
            return np.ascontiguousarray(joined, dtype=np.float32)
        matrix = sp.hstack([sp.csr_array(block, dtype=np.float32) for block in blocks], format="csr")
    matrix = sp.csr_array(matrix, copy=len(blocks) == 1)  # one block comes back as it was given
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if max(matrix.nnz, p) < np.iinfo(np.int32).max:  # scikit-learn takes no 64-bit indices
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


def fit(raw: Raw, schema: FeatureSchema) -> Column:
    """Return how to encode a column: levels, fill values, means and standard deviations.

    The idf of a word of a text is log((1 + n) / (1 + rows with the word)) + 1.
    """
    if raw.kind == "text":
        from sklearn.feature_extraction.text import TfidfVectorizer

        model = TfidfVectorizer(min_df=2, max_features=MOST_WORDS)
        try:
            model.fit(raw.values)
        except ValueError:  # scikit-learn raises it when no word is left
            raise InputError(f"{raw.at(0)}: no word occurs in two rows; leave the column out of text.") from None
        words = tuple(model.get_feature_names_out().tolist())
        return Column(name=raw.name, kind="text", note=raw.note, levels=words, idf=tuple(model.idf_.tolist()))
    if raw.kind == "bag":
        if not raw.levels:
            raise _no_values(raw)
        return Column(name=raw.name, kind="bag", note=raw.note, levels=raw.levels)
    if sp.issparse(raw.values):
        if schema.scale == "standard":
            raise InputError("scale='standard' would make sparse features dense; give scale='none'.")
        return Column(name=raw.name, kind=raw.kind, note=raw.note, width=int(raw.values.shape[1]))
    found = ColumnFit(raw, schema)
    found.add(raw)
    return found.column()


class ColumnFit:
    """The encoding of a column, fitted at once or in batches: levels, or means and standard deviations.

    Parameters
    ----------
    head
        The first rows, for name, kind and width.
    schema
        Whether to fill in missing values, and to scale numbers.
    """

    def __init__(self, head: Raw, schema: FeatureSchema) -> None:
        from sklearn.preprocessing import StandardScaler

        self.head, self.leveled, self.impute = head, head.kind == "category", schema.missing == "impute"
        self.scaled = schema.scale == "standard" and not self.leveled and head.kind != "boolean"
        self.needed = self.leveled or self.impute or self.scaled  # else the kind of the column decides all
        self.rows = self.absent = 0
        self.levels: set[str] = set()
        self.scaler = StandardScaler()  # leaves out missing values, and does not divide a constant column

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
        from sklearn.feature_extraction.text import TfidfVectorizer

        model = TfidfVectorizer(vocabulary=list(column.levels))  # rows of unit norm; zeros without any of these words
        model.idf_ = np.array(column.idf)
        block = sp.csr_array(model.transform(raw.values), dtype=np.float32)
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
