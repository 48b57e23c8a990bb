"""One interface to tables in files and data frames: names, columns as pyarrow, and the place of a row."""

from __future__ import annotations

import bisect
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ssge.errors import InputError, UnknownNameError, one_line, printable, shown
from ssge.io.options import ReadOptions
from ssge.io.sources import LIMIT, explained, kind_of, refuse_unpacking, too_large, unpacked
from ssge.io.text import TextTable

_MOST_JSON = 1 << 30
"""Bytes of JSON, which takes about ten times its size in memory."""
_HALF_PAIR = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which JSON can write, but which is no text."""


class TableColumn(NamedTuple):
    """Some values of a column, as pyarrow, the table they are in, and the row of the first of them."""

    table: Table
    name: str
    values: Any
    begin: int = 0

    def at(self, row: int) -> str:
        """Return the place of a value, for messages."""
        return f"{self.table.place(self.begin + row)}, column {self.name!r}"

    def __str__(self) -> str:
        return f"{self.table.where}, column {self.name!r}"


class ArrowTable:
    """A table in memory."""

    free, form = False, ""

    def __init__(self, table: Any, where: str, undirected: bool = False) -> None:
        self.table, self.where, self.names = table, printable(where), list(table.column_names)
        self.undirected = undirected
        if not table.num_rows:
            raise InputError(f"{where} has no rows.")

    def read(self, columns: Sequence[int], text: Collection[int] = ()) -> Any:
        """Return columns as a pyarrow table."""
        return self.table.select(list(columns))

    def batches(self, columns: Sequence[int], kinds: Mapping[int, str] | None = None, size: int = 0) -> Iterator[Any]:
        """Yield columns as pyarrow tables."""
        yield self.read(columns)

    def place(self, row: int) -> str:
        """Return the place of a row."""
        return f"{self.where}, row {row + 1}"


class JsonTable(ArrowTable):
    """The lists of a JSON object, by node. Its keys are text even where they stand for integers."""

    free = True

    def place(self, row: int) -> str:
        """Return the node of a row."""
        return f"{self.where}, node {shown(self.table.column(0)[row].as_py())}"


class ParquetTable:
    """A Parquet file, or the Parquet files below a folder in the order of their names."""

    free, form, undirected = False, "", False

    def __init__(self, path: Path, limit: int) -> None:
        self.where, self._limit = printable(str(path)), limit
        self._files = sorted(p for p in path.rglob("*.parquet") if p.name[0] not in "._") if path.is_dir() else [path]
        if not self._files:
            raise InputError(f"{path} is a folder without Parquet files.")
        rows, size, self.names = [], 0, list[str]()
        for part in self._files:
            with explained(f"{part} cannot be read as Parquet"), pq.ParquetFile(part) as file:
                rows.append(file.metadata.num_rows)
                size += declared_size(file.metadata)
                names = list(file.schema_arrow.names)
            if rows[1:] and names != self.names:
                raise InputError(f"{part} has the columns {shown(names)}, the parts before it {shown(self.names)}.")
            self.names = names
        refuse_unpacking(path, size, sum(part.stat().st_size for part in self._files), limit)
        self._ends = np.cumsum(rows)
        if not self._ends[-1]:
            raise InputError(f"{path} has no rows.")

    def read(self, columns: Sequence[int], text: Collection[int] = ()) -> Any:
        """Return columns as a pyarrow table."""
        tables, size = [], 0
        for table in self._tables(columns):
            size += table.nbytes
            if size > self._limit:
                raise too_large(self.where, "unpacks to too much", self._limit)
            tables.append(table)
        with explained(f"{self.where} cannot be read as Parquet"):
            return pa.concat_tables(tables, promote_options="permissive")

    def batches(
        self, columns: Sequence[int], kinds: Mapping[int, str] | None = None, size: int = 1 << 24
    ) -> Iterator[Any]:
        """Yield columns as pyarrow tables of some rows each, so that the files may be larger than memory."""
        return self._tables(columns, batch_size=max(1 << 10, size // (8 * len(columns))), use_threads=False)

    def _tables(self, columns: Sequence[int], **how: Any) -> Iterator[Any]:
        """Yield the batches of all parts, each as a table; ``how`` is that of `pyarrow.parquet.ParquetFile`."""
        names = [self.names[i] for i in columns]
        counts = Counter(self.names)
        if twice := next((name for name in names if counts[name] > 1), None):
            raise InputError(f"{self.where} has more than one column named {shown(twice)}.")
        for part in self._files:
            with explained(f"{part} cannot be read as Parquet"), pq.ParquetFile(part, pre_buffer=False) as file:
                for batch in file.iter_batches(columns=names, **how):
                    batch.validate(full=True)  # text in Parquet may be no text at all
                    yield pa.Table.from_batches([batch]).select(names)

    def place(self, row: int) -> str:
        """Return the place of a row within its part."""
        part = bisect.bisect_right(self._ends, row)
        before = self._ends[part - 1] if part else 0
        return f"{self._files[part]}, row {row - before + 1}"


Table: TypeAlias = TextTable | ArrowTable | ParquetTable
"""What edges and nodes are read from. All have the methods of `TextTable`, and the attributes ``where``, the name in
messages; ``names`` of the columns; ``free``, whether columns have no types, so that their content decides; ``form`` of
a text, for the log; ``undirected``, whether each edge has both directions."""


def declared_size(metadata: Any) -> int:
    """Return how many bytes a Parquet file declares at least.

    Runs of equal values may be stored in no space at all, so rows count besides bytes.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return int(max(sum(group.total_byte_size for group in groups), 8 * metadata.num_rows))


def is_frame(value: Any) -> bool:
    """Return whether an object is a table: pandas, polars, pyarrow, or anything that exports Arrow data."""
    return hasattr(value, "__arrow_c_stream__") or (hasattr(value, "columns") and hasattr(value, "iloc"))


def open_table(
    source: Any,
    what: str,
    options: ReadOptions,
    known: Collection[str | tuple[str, ...]],
    asked: Collection[Any] = (),
    doubt: bool = True,
) -> Table:
    """Open a path or a data frame as a table.

    Parameters
    ----------
    source
        A path to text or Parquet, a folder of Parquet files; a pandas, polars or pyarrow table; a table that is open
        already. The index of a pandas frame is a column if it has a name.
    what
        The parameter, for messages.
    options
        The delimiter, header and limit of text.
    known, asked, doubt
        Names of columns that help to find a header, in any case; see `TextTable`.
    """
    if isinstance(source, ArrowTable):
        return source
    if is_frame(source):
        return ArrowTable(_arrow(source, what), what)
    if not isinstance(source, str | Path):
        received = type(source).__name__
        raise InputError(f"{what} must be a path or a pandas, polars or pyarrow table; received {received}.")
    path, limit = Path(source), options.limit or LIMIT
    kind = kind_of(path)
    if kind in ("folder", "parquet"):
        return ParquetTable(path, limit)
    if kind == "json" and what == "nodes":
        return JsonTable(_read_json(path, limit), str(path))
    if kind == "json":
        raise InputError(
            f"{path} is JSON, which is read as features of nodes alone, {{node: [ids]}}; turn it into a table "
            "(pandas.read_json(...).to_csv(...)) or pass the graph that networkx.node_link_graph makes of it."
        )
    if kind != "text":
        raise InputError(f"{what} must be a table (CSV, TSV, Parquet); {path} is {kind}.")
    names = [name.casefold() for name in asked if isinstance(name, str)]
    return TextTable(path, options, known, names, doubt)


def _arrow(source: Any, what: str) -> Any:
    with explained(f"{what} cannot be read as a table"):
        if hasattr(source, "iloc"):
            named = [name for name in source.index.names if name is not None]
            table = pa.Table.from_pandas(source.reset_index(level=named) if named else source, preserve_index=False)
        elif type(source).__module__.partition(".")[0] == "polars":  # its newest text has no kernels in pyarrow
            table = source.to_arrow(compat_level=sys.modules["polars"].CompatLevel.oldest())
        else:
            table = pa.table(source)
    return table.rename_columns([str(name) for name in table.column_names])


def position(table: Table, which: str | int, option: str) -> int:
    """Return the position of a column given by name or position; digits as text are a name if a column has it."""
    if isinstance(which, bool) or not isinstance(which, str | int):
        raise InputError(f"{option} must be the name or the position of a column; received {shown(which)}.")
    if isinstance(which, str) and which.isdecimal() and len(which) < 19 and which not in table.names:
        which = int(which)
    if isinstance(which, int):
        if not 0 <= which < len(table.names):
            raise InputError(
                f"{option} must be a position 0..{len(table.names) - 1} in {table.where}; received {shown(which)}."
            )
        return which
    if table.names.count(which) > 1:
        raise InputError(f"{option}: {table.where} has more than one column named {shown(which)}.")
    if which not in table.names:
        raise UnknownNameError(f"column in {option}, {table.where}:", which, table.names)
    return table.names.index(which)


def named(table: Table, names: Collection[str]) -> int | None:
    """Return the position of the first of the names that a column has, in any case."""
    folded = [name.casefold() for name in table.names]
    return next((folded.index(name) for name in names if name in folded), None)


def numbers(column: TableColumn) -> NDArray[np.float64]:
    """Return a column of numbers or booleans as float64, missing ones as NaN; what is neither is named by its row."""
    values = column.values
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif is_text(values.type) and column.table.free:  # one field that is no number makes a column text
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:
            row = bisect.bisect_left(range(len(values)), True, key=lambda row: _unreadable(values[: row + 1]))
            raise InputError(f"{column.at(row)}: a number expected, {shown(values[row].as_py())} found.") from None
    if not is_number(values.type):
        raise InputError(f"{column}: numbers expected, {values.type} found.")
    parts = [chunk.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for chunk in values.chunks]
    return np.concatenate(parts) if parts else np.empty(0)


def is_number(kind: Any) -> bool:
    """Return whether a pyarrow type is numeric."""
    return any(
        check(kind) for check in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    )


def is_text(kind: Any) -> bool:
    """Return whether a pyarrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _unreadable(values: Any) -> bool:
    """Return whether some text is no number."""
    try:
        values.cast(pa.float64())
    except pa.ArrowInvalid:
        return True
    return False


def _read_json(path: Path, limit: int) -> Any:
    """Return a JSON object of nodes and lists, ``{"node": [3, 17, ...], ...}``, as a table: an id and a bag of ids."""
    try:
        entries = json.loads(b"".join(unpacked(path, min(limit, _MOST_JSON))), object_pairs_hook=_Members)
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; a JSON object of lists is expected.") from None
    except ValueError as error:  # no JSON, no UTF-8, or numbers of thousands of digits
        raise InputError(f"{path} cannot be read as JSON: {one_line(error)}") from None
    if not isinstance(entries, _Members):
        raise InputError(f"{path} must hold one JSON object of lists, {{node: [ids]}}; turn records into a table.")
    if not entries:
        raise InputError(f"{path} has no nodes.")
    names = [name for name, _ in entries]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{path}: the node {shown(twice)} occurs more than once.")
    for name, items in entries:
        if type(items) is not list or any(type(item) not in (int, str) for item in items):
            raise InputError(f"{path}, node {shown(name)}: a list of ids expected, integers or text.")
        if text := next((item for item in (name, *items) if type(item) is str and _HALF_PAIR.search(item)), None):
            raise InputError(f"{path}, node {shown(name)}: its ids are no text: {shown(text)}.")
    try:
        bags = pa.array([items for _, items in entries], pa.list_(pa.int64()))
    except (pa.ArrowException, OverflowError, TypeError):  # some are text, or too large
        bags = pa.array([list(map(str, items)) for _, items in entries], pa.list_(pa.string()))
    return pa.table({"id": pa.array(names, pa.string()), "features": bags})


class _Members(list):  # type: ignore[type-arg]
    """The members of a JSON object as pairs, duplicates kept; unlike a JSON array."""
