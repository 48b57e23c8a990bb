"""The kinds of columns of a node table: numbers, booleans, categories, vectors, bags, text; others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, one_line, shown
from ssge.io.bags import is_list, read_bag
from ssge.io.tables import Table, is_number, is_text, numbers

MOST_LEVELS = 50
"""A text column with more levels is text, not a category, unless it is asked for by name."""
MOST_NAMED_LEVELS = 10_000
EMPTY = ("bag", "text")
"""Kinds of columns in which a missing value is an empty one."""

_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_COMMA = r"^\s*[-+]?[0-9]+,[0-9]+\s*$"
_DATE = r"^\s*[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T][0-9:.+Z -]*)?\s*$"
_CODE = r"^\s*0[0-9]+\s*$"


class NotAFeatureError(InputError):
    """A column that cannot be a feature as it is: text, dates. ``why`` says what it looks like."""

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
    levels
        Of a category; the ids of a bag.
    place
        Returns the name of a row for messages.
    note
        What it looks like, if not like a feature.
    """

    name: str
    kind: str
    values: Any
    levels: tuple[str, ...] = ()
    place: Callable[[int], str] = "row {}".format
    note: str = ""

    def at(self, row: int) -> str:
        """Return the place of a value, for messages."""
        return f"{self.place(row)}, column {self.name!r}"

    def missing(self) -> NDArray[np.bool_]:
        """Return whether each row lacks its value, or one of its values."""
        if self.kind == "category":
            return np.asarray(self.values < 0)
        if self.kind in EMPTY:
            return np.zeros(self.values.shape[0], dtype=bool)
        values = self.values
        if not isinstance(values, np.ndarray):
            return np.zeros(values.shape[0], dtype=bool)
        return np.asarray(np.isnan(values).any(axis=1))

    def padded(self, n: int) -> Raw:
        """Return the column with rows without a value up to n rows."""
        more = n - self.values.shape[0]
        if not more:
            return self
        if self.kind == "category":
            return self._replace(values=np.pad(self.values, (0, more), constant_values=-1))
        if self.kind == "text":
            return self._replace(values=np.append(self.values, [""] * more))
        if sp.issparse(self.values):
            return self._replace(values=sp.vstack([self.values, sp.csr_array((more, self.values.shape[1]))], "csr"))
        return self._replace(values=np.pad(self.values, ((0, more), (0, 0)), constant_values=np.nan))

    def plain(self) -> NDArray[Any] | None:
        """Return the values as an array; None for a sparse matrix of many columns."""
        if not sp.issparse(self.values):
            return np.asarray(self.values)
        return np.asarray(self.values.toarray()) if self.values.shape[1] <= MOST_LEVELS else None


def raw_column(table: Table, name: str, column: Any, named: bool = False, kind: str | None = None) -> Raw:
    """Find the kind of a column of a node table, and read it.

    Parameters
    ----------
    table, name, column
        The table, and the column as pyarrow.
    named
        Whether it was asked for by name, so that text may have more levels.
    kind
        What it must be; by default what it holds decides.
    """
    from pyarrow import types

    form = column.type
    if kind == "bag" or (kind is None and is_list(form) and _is_bag(table, name, column, named)):
        return Raw(name, "bag", *read_bag(table, name, column), table.place)
    if kind == "text":
        return Raw(name, "text", _texts(table, name, column), place=table.place)
    if kind == "category" or (kind is None and (is_text(form) or types.is_dictionary(form))):
        explicit = named or kind is not None or types.is_dictionary(form)
        return _category(table, name, column, explicit, kind is not None)
    if is_list(form):
        if kind not in (None, "vector"):
            raise InputError(f"{table.where}, column {name!r}: {kind} expected, a list found.")
        return _vector(table, name, column)
    if kind == "vector":
        raise InputError(f"{table.where}, column {name!r}: a list of numbers expected, {form} found.")
    if types.is_temporal(form):
        _refuse(table, name, f"holds dates or times ({form}), which must be turned into numbers")
    if kind is None and not (is_number(form) or types.is_boolean(form)):
        _refuse(table, name, f"is of type {form}, which is no feature")
    kind = kind or ("boolean" if types.is_boolean(form) else "number")
    values = numbers(table, column, name)
    if kind == "boolean" and (other := ~np.isnan(values) & (values != 0) & (values != 1)).any():
        row = int(np.argmax(other))
        raise InputError(f"{table.place(row)}, column {name!r}: a boolean, 0 or 1, expected, {values[row]:g} found.")
    return Raw(name, kind, values[:, None], place=table.place)


def _is_bag(table: Table, name: str, column: Any, named: bool) -> bool:
    """Return whether lists hold ids: text, or integers that are not as many in each row.

    As many integers in each row may be quantities as well as ids, so such a column becomes a feature only if it is
    named; zeros and ones are a vector.
    """
    import pyarrow.compute as pc
    from pyarrow import types

    items = column.type.value_type
    if is_text(items):
        return True
    if not types.is_integer(items) or types.is_fixed_size_list(column.type):
        return False
    lengths = pc.min_max(pc.list_value_length(column)).as_py()
    if lengths["min"] != lengths["max"]:
        return True
    span = pc.min_max(pc.list_flatten(column)).as_py()
    if not named and not (span["min"] in (0, None) and span["max"] in (0, 1, None)):
        _refuse(
            table, name, f"holds lists of {lengths['max']} integers, quantities or ids",
            f": bag=[{name!r}] takes them as ids, columns=[{name!r}] as quantities",
        )  # fmt: skip
    return False


def _texts(table: Table, name: str, column: Any) -> NDArray[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        raise InputError(f"{table.where}, column {name!r}: text needs a column of text; {column.type} found.")
    return np.array(pc.fill_null(column, "").to_pylist(), dtype=object)


def has_codes(column: Any) -> bool:
    """Return whether a text column has digits after a zero, as in postal codes, which are no numbers."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(column, _CODE)).as_py())


def _refuse(table: Table, name: str, why: str, instead: str = "") -> NoReturn:
    message = f"{table.where}: column {name!r} {why}{instead}, or leave it out with ignore=[{name!r}]."
    raise NotAFeatureError(message, why)


def _category(table: Table, name: str, column: Any, explicit: bool, fixed: bool) -> Raw:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = column.cast(pa.string())
    except pa.ArrowException as error:
        raise InputError(f"{table.where}, column {name!r}: no category ({one_line(error)}).") from None
    if table.free:
        column = pc.ascii_trim_whitespace(column)
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    encoded = pc.dictionary_encode(column).combine_chunks()
    found: list[str] = encoded.dictionary.to_pylist()
    known = len(column) - column.null_count
    if not fixed:
        if not explicit and known and pc.all(pc.match_substring_regex(column, _DATE)).as_py():
            _refuse(table, name, "looks like dates")
        if table.free:
            _refuse_typos(table, name, column, known, explicit)
        most = MOST_NAMED_LEVELS if explicit else min(MOST_LEVELS, max(known // 2, 2))
        if len(found) > most:
            why = f"is text: {len(found):,} different values, such as {shown(found[0])}"
            if len(found) == known and known >= 20:
                why = f"looks like an id: {known:,} texts that all differ, such as {shown(found[0])}"
            _refuse(table, name, why, f" (a category has {most:,} at most in {known:,} rows); encode it yourself")
    order = sorted(range(len(found)), key=found.__getitem__)
    rank = np.empty(len(found) + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(len(found)), -1
    codes = encoded.indices.fill_null(len(found)).to_numpy()
    return Raw(name, "category", rank[codes], tuple(found[i] for i in order), table.place)


def _refuse_typos(table: Table, name: str, column: Any, known: int, explicit: bool) -> None:
    """Refuse a column of which most are numbers: taken for a category, one typing error would change its meaning.

    Codes of one length are no numbers. A column that was asked for is refused only if all are numbers, with commas.
    """
    import pyarrow.compute as pc

    def count(which: Any) -> int:
        return int(pc.sum(which).as_py() or 0)

    code, comma = (pc.match_substring_regex(column, pattern) for pattern in (_CODE, _COMMA))
    good = pc.and_(pc.match_substring_regex(column, _NUMBER), pc.invert(code))
    lengths = pc.min_max(pc.utf8_length(column)).as_py()
    if count(code) and lengths["min"] == lengths["max"] and pc.all(pc.utf8_is_digit(column)).as_py():
        return
    both = count(good) + count(comma)
    if count(comma) and (both == known if explicit else 2 * both > known):
        row = pc.index(comma, True).as_py()
        found = shown(column[row].as_py())
        raise InputError(
            f"{table.place(row)}, column {name!r}: numbers need a point, not a comma as in {found}; "
            f"write them so, or leave the column out with ignore=[{name!r}]."
        )
    if 2 * count(good) > known and not explicit:
        row = max(pc.index(good, False).as_py(), 0)
        raise InputError(
            f"{table.place(row)}, column {name!r}: most values are numbers, but not {shown(column[row].as_py())}; "
            f"correct it, take it as a category with columns=[..., {name!r}], or leave it out with ignore=[{name!r}]."
        )


def _vector(table: Table, name: str, column: Any) -> Raw:
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # how much a chunk holds depends on the version
        whole = pa.concat_arrays(whole.chunks)
    lengths = pc.list_value_length(whole)
    valid = whole.is_valid().to_numpy(zero_copy_only=False)
    sizes = lengths.fill_null(-1).to_numpy(zero_copy_only=False)
    if not valid.any():
        raise InputError(f"{table.where}, column {name!r}: every list is missing.")
    width = int(sizes[np.argmax(valid)])
    if (other := valid & (sizes != width)).any():
        row = int(np.argmax(other))
        found = f"{sizes[row]} found, {width} before"
        raise InputError(f"{table.place(row)}, column {name!r}: lists must be as long in every row; {found}.")
    flat = whole.flatten()
    if not is_number(flat.type) and not pa.types.is_boolean(flat.type):
        raise InputError(f"{table.where}, column {name!r}: a list of numbers expected, one of {flat.type} found.")
    if not width:
        raise InputError(f"{table.where}, column {name!r}: the lists are empty.")
    values = np.full((len(valid), width), np.nan)
    values[valid] = numbers(table, pa.chunked_array([flat]), name).reshape(-1, width)
    return Raw(name, "vector", values, place=table.place)
