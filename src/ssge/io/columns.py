"""The kinds of columns of a node table: numbers, booleans, categories, vectors, bags, text; others are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.io.sources import explained
from ssge.io.tables import TableColumn, is_number, is_text, numbers

MOST_LEVELS = 50
"""A text column with more levels is text, not a category, unless it is asked for by name."""
MOST_NAMED_LEVELS = 10_000
MOST_IDS = 200_000
"""Different ids in the bags of one column."""
EMPTY = ("bag", "text")
"""Kinds of columns in which a missing value is an empty one."""

_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_COMMA = r"^\s*[-+]?[0-9]+,[0-9]+\s*$"
_DATE = r"^\s*[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.+Z -]*)?\s*$"
_CODE = r"^\s*0[0-9]+\s*$"
_ITEM = re.compile(r"[^\s,;|\[\](){}\"']+")


class NotAFeatureError(InputError):
    """A column that cannot be a feature as it is: text, dates. ``why`` describes what it looks like."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


class Raw(NamedTuple):
    """A column as it was found, before any encoding.

    Attributes
    ----------
    name, kind
        As in `ssge.schema.Column`.
    values
        Numbers, n x width, NaN where missing, or a scipy sparse matrix; of a category positions in ``levels``, -1
        where missing; of a bag counts, n x levels, sparse; of a text n strings.
    at
        Returns the place of the value in a row, for messages.
    levels
        Of a category; the ids of a bag.
    note
        What it looks like, if not like a feature.
    """

    name: str
    kind: str
    values: Any
    at: Callable[[int], str]
    levels: tuple[str, ...] = ()
    note: str = ""

    def missing(self) -> NDArray[np.bool_]:
        """Return whether each row lacks its value, or one of its values."""
        if self.kind == "category":
            return np.asarray(self.values < 0)
        if self.kind in EMPTY or sp.issparse(self.values):
            return np.zeros(self.values.shape[0], dtype=bool)
        return np.asarray(np.isnan(self.values).any(axis=1))

    def padded(self, n: int) -> Raw:
        """Return the column with rows without a value up to n rows."""
        more = n - self.values.shape[0]
        if not more:
            return self
        if sp.issparse(self.values):
            return self._replace(values=sp.vstack([self.values, sp.csr_array((more, self.values.shape[1]))], "csr"))
        none: Any = {"category": -1, "text": ""}.get(self.kind, np.nan)
        rows = ((0, more), (0, 0))[: self.values.ndim]
        return self._replace(values=np.pad(self.values, rows, constant_values=none))

    def plain(self) -> NDArray[Any] | None:
        """Return the values as an array; None for a sparse matrix of many columns."""
        if not sp.issparse(self.values):
            return np.asarray(self.values)
        return np.asarray(self.values.toarray()) if self.values.shape[1] <= MOST_LEVELS else None


def raw_column(column: TableColumn, named: bool = False, kind: str | None = None) -> Raw:
    """Find the kind of a column of a node table, and read it.

    Parameters
    ----------
    column
        The column.
    named
        Whether it was asked for by name, so that text may have more levels.
    kind
        What it must be; by default what it holds decides.
    """
    form = column.values.type
    if kind == "bag" or (kind is None and _is_list(form) and _is_bag(column, named)):
        return _bag(column)
    if kind == "text":
        return Raw(column.name, "text", _texts(column), column.at)
    if kind == "category" or (kind is None and (is_text(form) or pa.types.is_dictionary(form))):
        return _category(column, named or kind is not None or pa.types.is_dictionary(form), kind is not None)
    if _is_list(form):
        if kind not in (None, "vector"):
            raise InputError(f"{column}: {kind} expected, a list found.")
        return _vector(column)
    if kind == "vector":
        raise InputError(f"{column}: a list of numbers expected, {form} found.")
    if pa.types.is_temporal(form):
        _refuse(column, f"holds dates or times ({form}), which must be turned into numbers")
    if kind is None and not (is_number(form) or pa.types.is_boolean(form)):
        _refuse(column, f"is of type {form}, which is no feature")
    kind = kind or ("boolean" if pa.types.is_boolean(form) else "number")
    values = numbers(column)
    if kind == "boolean" and (other := ~np.isnan(values) & (values != 0) & (values != 1)).any():
        row = int(np.argmax(other))
        raise InputError(f"{column.at(row)}: a boolean, 0 or 1, expected, {values[row]:g} found.")
    return Raw(column.name, kind, values[:, None], column.at)


def _is_bag(column: TableColumn, named: bool) -> bool:
    """Return whether lists hold ids: text, or integers that are not as many in each row.

    As many integers in each row may be quantities as well as ids, so such a column becomes a feature only if it is
    named; zeros and ones are a vector.
    """
    form = column.values.type
    if is_text(form.value_type):
        return True
    if not pa.types.is_integer(form.value_type) or pa.types.is_fixed_size_list(form):
        return False
    lengths = pc.min_max(pc.list_value_length(column.values)).as_py()
    if lengths["min"] != lengths["max"]:
        return True
    span = pc.min_max(pc.list_flatten(column.values)).as_py()
    if not named and not (span["min"] in (0, None) and span["max"] in (0, 1, None)):
        _refuse(
            column, f"holds lists of {lengths['max']} integers, quantities or ids",
            f": bag=[{column.name!r}] takes them as ids, columns=[{column.name!r}] as quantities",
        )  # fmt: skip
    return False


def _texts(column: TableColumn) -> NDArray[Any]:
    values = column.values
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not is_text(values.type):
        raise InputError(f"{column}: text needs a column of text; {values.type} found.")
    return np.array(pc.fill_null(values, "").to_pylist(), dtype=object)


def has_codes(column: Any) -> bool:
    """Return whether a text column has digits after a zero, as in postal codes, which are no numbers."""
    return bool(pc.any(pc.match_substring_regex(column, _CODE)).as_py())


def _refuse(column: TableColumn, why: str, instead: str = "") -> NoReturn:
    name = column.name
    message = f"{column.table.where}: column {name!r} {why}{instead}, or leave it out with ignore=[{name!r}]."
    raise NotAFeatureError(message, why)


def _category(column: TableColumn, explicit: bool, fixed: bool) -> Raw:
    with explained(f"{column}: no category"):
        values = column.values.cast(pa.string())
    if column.table.free:
        values = pc.ascii_trim_whitespace(values)
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    codes, levels = coded(values)
    found: list[str] = levels.to_pylist()
    known = len(values) - values.null_count
    if not fixed:
        if not explicit and known and pc.all(pc.match_substring_regex(values, _DATE)).as_py():
            _refuse(column, "looks like dates")
        if column.table.free:
            _refuse_typos(column._replace(values=values), known, explicit)
        most = MOST_NAMED_LEVELS if explicit else min(MOST_LEVELS, max(known // 2, 2))
        if len(found) > most:
            why = f"is text: {len(found):,} different values, such as {shown(found[0])}"
            if len(found) == known and known >= 20:
                why = f"looks like an id: {known:,} texts that all differ, such as {shown(found[0])}"
            _refuse(column, why, f" (a category has {most:,} at most in {known:,} rows); encode it yourself")
    return Raw(column.name, "category", codes, column.at, tuple(found))


def coded(values: Any) -> tuple[NDArray[np.int64], Any]:
    """Return the position of each value among the different ones in ascending order, -1 where missing, and these."""
    encoded = pc.dictionary_encode(values).combine_chunks()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.full(order.size + 1, -1, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return rank[encoded.indices.fill_null(-1).to_numpy()], encoded.dictionary.take(order)


def _refuse_typos(column: TableColumn, known: int, explicit: bool) -> None:
    """Refuse a column of which most are numbers: taken for a category, one typing error would change its meaning.

    Codes of one length are no numbers. A column that was asked for is refused only if all are numbers, with commas.
    """

    def count(which: Any) -> int:
        return int(pc.sum(which).as_py() or 0)

    values, name = column.values, column.name
    code, comma = (pc.match_substring_regex(values, pattern) for pattern in (_CODE, _COMMA))
    good = pc.and_(pc.match_substring_regex(values, _NUMBER), pc.invert(code))
    lengths = pc.min_max(pc.utf8_length(values)).as_py()
    if count(code) and lengths["min"] == lengths["max"] and pc.all(pc.utf8_is_digit(values)).as_py():
        return
    both = count(good) + count(comma)
    if count(comma) and (both == known if explicit else 2 * both > known):
        row = pc.index(comma, True).as_py()
        raise InputError(
            f"{column.at(row)}: numbers need a point, not a comma as in {shown(values[row].as_py())}; "
            f"write them so, or leave the column out with ignore=[{name!r}]."
        )
    if 2 * count(good) > known and not explicit:
        row = max(pc.index(good, False).as_py(), 0)
        raise InputError(
            f"{column.at(row)}: most values are numbers, but not {shown(values[row].as_py())}; "
            f"correct it, take it as a category with columns=[..., {name!r}], or leave it out with ignore=[{name!r}]."
        )


def _vector(column: TableColumn) -> Raw:
    whole = pa.concat_arrays(column.values.chunks)
    sizes = pc.list_value_length(whole).fill_null(-1).to_numpy()
    valid = sizes >= 0
    if not valid.any():
        raise InputError(f"{column}: every list is missing.")
    width = int(sizes[np.argmax(valid)])
    if (other := valid & (sizes != width)).any():
        row = int(np.argmax(other))
        found = f"{sizes[row]} found, {width} before"
        raise InputError(f"{column.at(row)}: lists must be as long in every row; {found}.")
    flat = whole.flatten()
    if not is_number(flat.type) and not pa.types.is_boolean(flat.type):
        raise InputError(f"{column}: a list of numbers expected, one of {flat.type} found.")
    if not width:
        raise InputError(f"{column}: the lists are empty.")
    values = np.full((len(valid), width), np.nan)
    values[valid] = numbers(column._replace(values=pa.chunked_array([flat]))).reshape(-1, width)
    return Raw(column.name, "vector", values, column.at)


def _bag(column: TableColumn) -> Raw:
    """Count how often each id occurs in each row, n x ids; the ids are levels, as text, in ascending order.

    Parameters
    ----------
    column
        Lists of integers or of text, or text that holds ids between blanks, commas, semicolons or bars. A missing
        list is an empty one.
    """
    values = column.values
    if is_text(values.type):
        words = [_ITEM.findall(text or "") for text in values.to_pylist()]
        values = pa.chunked_array([pa.array(words, pa.list_(pa.string()))])
    if not _is_list(values.type):
        raise InputError(f"{column}: bag needs lists of ids, or text; {values.type} found.")
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    flat = pc.list_flatten(values)
    if pa.types.is_dictionary(flat.type) or pa.types.is_null(flat.type):
        flat = flat.cast(pa.string() if pa.types.is_null(flat.type) else flat.type.value_type)
    if not pa.types.is_integer(flat.type) and not is_text(flat.type):
        raise InputError(f"{column}: ids must be integers or text; lists of {flat.type} found.")
    if flat.null_count:
        row = int(np.searchsorted(np.cumsum(lengths), pc.index(flat.is_null(), True).as_py(), side="right"))
        raise InputError(f"{column.at(row)}: an id in the list is missing.")
    codes, levels = coded(flat)
    if len(levels) > MOST_IDS:
        raise InputError(f"{column}: {MOST_IDS:,} different ids at most; {len(levels):,} found.")
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    counts = sp.csr_array((np.ones(codes.size, np.float32), codes, indptr), shape=(len(lengths), len(levels)))
    counts.sum_duplicates()
    return Raw(column.name, "bag", counts, column.at, tuple(map(str, levels.to_pylist())))


def _is_list(kind: Any) -> bool:
    """Return whether a pyarrow type is a list."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
