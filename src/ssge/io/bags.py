"""Columns that hold many ids or words per node: bags, counted per id, and text, by TF-IDF. Both stay sparse."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.io.tables import TableColumn, is_text
from ssge.schema import Column

MOST_IDS = 200_000
"""Different ids in the bags of one column."""
MOST_WORDS = 4_096
"""Words of one text column, the most frequent ones; a word in one row only tells nothing about others."""

_ITEM = re.compile(r"[^\s,;|\[\](){}\"']+")


def read_bag(column: TableColumn) -> tuple[sp.csr_array, tuple[str, ...]]:
    """Return how often each id occurs in each row, n x ids, and the ids as text, in ascending order.

    Parameters
    ----------
    column
        Lists of integers or of text, or text that holds ids between blanks, commas, semicolons or bars. A missing
        list is an empty one.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.values
    if is_text(values.type):
        words = [_ITEM.findall(text or "") for text in values.to_pylist()]
        values = pa.chunked_array([pa.array(words, pa.list_(pa.string()))])
    if not is_list(values.type):
        raise InputError(f"{column}: bag needs lists of ids, or text; {values.type} found.")
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    flat = pc.list_flatten(values).combine_chunks()
    if isinstance(flat, pa.ChunkedArray):  # how much a chunk holds depends on the version
        flat = pa.concat_arrays(flat.chunks)
    if pa.types.is_dictionary(flat.type):
        flat = flat.cast(flat.type.value_type)
    whole = pa.types.is_integer(flat.type)
    if not whole and not is_text(flat.type) and not pa.types.is_null(flat.type):
        raise InputError(f"{column}: ids must be integers or text; lists of {flat.type} found.")
    if flat.null_count:
        row = int(np.searchsorted(np.cumsum(lengths), pc.index(flat.is_null(), True).as_py(), side="right"))
        raise InputError(f"{column.at(row)}: an id in the list is missing.")
    found = pc.unique(flat)
    if len(found) > MOST_IDS:
        raise InputError(f"{column}: {MOST_IDS:,} different ids at most; {len(found):,} found.")
    order = pc.array_sort_indices(found)
    levels = found.take(order)
    codes = pc.index_in(flat, levels).to_numpy(zero_copy_only=False) if len(flat) else np.empty(0, np.int32)
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    counts = sp.csr_array((np.ones(codes.size, np.float32), codes, indptr), shape=(len(lengths), len(levels)))
    counts.sum_duplicates()
    return counts, tuple(map(str, levels.to_pylist()))


def encode_bag(counts: sp.csr_array, levels: tuple[str, ...], column: Column) -> tuple[sp.csr_array, int]:
    """Return the counts of the ids that a column was fitted with, and how many ids of these rows are others."""
    if levels == column.levels:
        return counts, 0
    place = {level: i for i, level in enumerate(column.levels)}
    rank = np.array([place.get(level, -1) for level in levels], dtype=np.int64)
    known = np.flatnonzero(rank >= 0)
    pick = sp.csr_array(
        (np.ones(known.size, np.float32), (known, rank[known])), shape=(len(levels), len(column.levels))
    )
    return sp.csr_array(counts @ pick), len(levels) - known.size


def fit_text(texts: NDArray[Any]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return the words to look for, and the weight of each: log((1 + n) / (1 + rows that have it)) + 1."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    model = TfidfVectorizer(min_df=2, max_features=MOST_WORDS)
    try:
        model.fit(texts)
    except ValueError:  # scikit-learn's way to say that no word is left
        return (), ()
    return tuple(model.get_feature_names_out().tolist()), tuple(model.idf_.tolist())


def encode_text(texts: NDArray[Any], column: Column) -> sp.csr_array:
    """Return counts of words times their weights, rows of unit norm; a text without a known word has zeros."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    counts = CountVectorizer(vocabulary=list(column.levels)).transform(texts)
    weighted = sp.csr_array(counts @ sp.diags_array(np.array(column.idf)))
    return sp.csr_array(normalize(weighted), dtype=np.float32)


def is_list(kind: Any) -> bool:
    """Return whether a pyarrow type is a list."""
    import pyarrow.types as kinds

    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))
