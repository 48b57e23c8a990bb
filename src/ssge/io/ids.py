"""Ids of nodes in several columns at once: one kind for all of them, and positions in one list of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.io.sources import explained
from ssge.io.tables import TableColumn, is_text

CANONICAL = r"^(0|-?[1-9][0-9]{0,18})$"


def encode(
    columns: Sequence[TableColumn], unique: bool, kind: Literal["integer", "text"] | None = None
) -> tuple[NDArray[Any], list[NDArray[np.int32]]]:
    """Return the different ids in the order they are met, int64 or str objects, and each column as positions in them.

    Ids are all integers or all text. Columns of text files are integers if every id in all of them is written as
    Python writes it (so 007 and +1 are text), and text otherwise, without blanks around it; columns with a type of
    their own keep it, and those of text files follow them. Two kinds at once are an error, and so is a missing id.

    With a ``kind``, that of a graph before, integers are read as their text, or text as the integers it writes. If the
    first column must be ``unique``, an id that occurs in it twice is an error.
    """
    columns = [c._replace(values=plain(c)) for c in columns]
    integers = next((c for c in columns if pa.types.is_int64(c.values.type)), None)
    text = next((c for c in columns if is_text(c.values.type) and not c.table.free), None)
    if kind is None and integers and text:
        raise _mixed(integers, text, 0)
    if kind == "integer" or (kind is None and integers):
        other, form = integers if kind is None else None, pa.int64()
        columns = [c._replace(values=_as_integers(c, other)) for c in columns]
    else:
        form = pa.string() if all(pa.types.is_string(c.values.type) for c in columns) else pa.large_string()
    chunks = [chunk for column in columns for chunk in column.values.cast(form).chunks]
    encoded = pc.dictionary_encode(pa.chunked_array(chunks, form)).combine_chunks()
    dictionary = encoded.dictionary
    codes = np.split(encoded.indices.to_numpy(), np.cumsum([len(c.values) for c in columns])[:-1])
    if kind is None and not integers and not text and pc.all(pc.match_substring_regex(dictionary, CANONICAL)).as_py():
        with suppress(pa.ArrowInvalid):  # too long for 64 bits: text
            dictionary = dictionary.cast(pa.int64())
    repeated = codes[0] != np.arange(codes[0].size)  # different ids have the positions 0, 1, 2, ...
    if unique and repeated.any():
        row = int(np.argmax(repeated))
        twice = shown(dictionary[int(codes[0][row])].as_py())
        raise InputError(f"{columns[0].at(row)}: the id {twice} occurs more than once.")
    return dictionary.to_numpy(zero_copy_only=False), codes


def hint(unknown: Any, known: NDArray[Any]) -> str:
    """Return what to do about an id that is not known where another spelling of it is, else nothing.

    Examples
    --------
    >>> hint("017", np.array([5, 17]))
    'it may be 17, written in another way: write ids alike everywhere; '
    """
    wanted = _number(unknown)
    for node in known.tolist() if wanted is not None else ():
        if _number(node) == wanted:
            return f"it may be {shown(node)}, written in another way: write ids alike everywhere; "
    return ""


def _number(node: Any) -> float | None:
    """Return the number that an id looks like: 017 and 17.0 like 17."""
    text = str(node).strip()
    try:
        return float(text) if len(text) < 20 and text[:1] in "+-.0123456789" else None
    except ValueError:
        return None


def plain(column: TableColumn) -> Any:
    """Return the values as int64 or text, that of text files without blanks around it; a missing one is an error."""
    values = column.values
    if values.null_count:
        raise InputError(f"{column.at(pc.index(values.is_null(), True).as_py())}: the id is missing.")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if is_text(values.type):
        values = values if pa.types.is_string(values.type) else values.cast(pa.large_string())
        values = pc.ascii_trim_whitespace(values) if column.table.free else values
        if (row := pc.index(values, "").as_py()) >= 0:
            raise InputError(f"{column.at(row)}: the id is missing.")
        return values
    if not pa.types.is_integer(values.type):
        raise InputError(f"{column}: ids must be integers or text; received {values.type}.")
    with explained(f"{column}: ids must fit into 64 bits"):
        return values.cast(pa.int64())


def _as_integers(column: TableColumn, other: TableColumn | None) -> Any:
    """Return a column as integers, since the ids of another table are, or those of the graph before."""
    values = column.values
    if pa.types.is_int64(values.type):
        return values
    good = pc.match_substring_regex(values, CANONICAL)
    if not pc.all(good).as_py():
        row = pc.index(good, False).as_py()
        if other is not None:
            raise _mixed(other, column, row)
        found = shown(values[row].as_py())
        raise InputError(f"{column.at(row)}: ids were integers in the graph of like; {found} is none.")
    with explained(f"{column}: ids must fit into 64 bits, as in {other or 'the graph of like'}"):
        return values.cast(pa.int64())


def _mixed(integers: TableColumn, text: TableColumn, row: int) -> InputError:
    whole, other = (shown(column.values[i].as_py()) for column, i in ((integers, 0), (text, row)))
    return InputError(
        f"Ids must be all integers or all text; {integers} holds integers such as {whole}, {text} text such as {other}."
    )
