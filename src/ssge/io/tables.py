"""One interface to tables in files and data frames: names, columns as pyarrow, and the place of a row."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError, UnknownNameError, one_line, printable, shown
from ssge.io.jsons import read_json
from ssge.io.kinds import kind_of
from ssge.io.options import ReadOptions
from ssge.io.sources import LIMIT, refuse_unpacking, too_large
from ssge.io.text import TextTable


class Table(Protocol):
    """What edges and nodes are read from.

    Attributes
    ----------
    where
        Its name in messages.
    names
        Of its columns.
    free
        Whether the columns have no types, so that their content decides.
    form
        The form that was found for a text, for the log; empty for others.
    """

    where: str
    names: list[str]
    free: bool
    form: str

    def read(self, columns: Sequence[int], text: Collection[int] = ()) -> Any:
        """Return columns as a pyarrow table, those in ``text`` as strings if the table is free."""

    def batches(self, columns: Sequence[int], kinds: Mapping[int, str] | None = None, size: int = ...) -> Iterator[Any]:
        """Yield columns as pyarrow tables of some rows each; ``kinds`` as in `TextTable.batches`."""

    def place(self, row: int) -> str:
        """Return the place of a row, counted from 0, for messages."""


class TableColumn(NamedTuple):
    """Some values of a column, as pyarrow, the table they are in, and the row of the first of them."""

    table: Table
    name: str
    values: Any
    begin: int = 0

    def place(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return self.table.place(self.begin + row)

    def at(self, row: int) -> str:
        """Return the place of a value, for messages."""
        return f"{self.place(row)}, column {self.name!r}"

    def __str__(self) -> str:
        return f"{self.table.where}, column {self.name!r}"


class ArrowTable:
    """A table in memory."""

    free, form = False, ""

    def __init__(self, table: Any, where: str) -> None:
        self.table, self.where, self.names = table, printable(where), list(table.column_names)
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

    free, form = False, ""

    def __init__(self, path: Path, limit: int) -> None:
        import pyarrow.parquet as pq

        self.where = printable(str(path))
        parts = sorted(p for p in path.rglob("*.parquet") if p.name[0] not in "._") if path.is_dir() else [path]
        if not parts:
            raise InputError(f"{path} is a folder without Parquet files.")
        self.names: list[str] = []
        self._files: list[Path] = []
        self._ends: list[int] = []
        size = packed = 0
        for part in parts:
            with parquet_errors(part), pq.ParquetFile(part) as file:
                found = file.metadata
                size += declared_size(found)
                packed += part.stat().st_size
                names = list(file.schema_arrow.names)
            refuse_unpacking(path, size, packed, limit)
            if self._files and names != self.names:
                raise InputError(f"{part} has the columns {shown(names)}, the parts before it {shown(self.names)}.")
            self.names = names
            self._files.append(part)
            self._ends.append(found.num_rows + (self._ends[-1] if self._ends else 0))
        if not self._ends[-1]:
            raise InputError(f"{path} has no rows.")
        self._limit = limit

    def read(self, columns: Sequence[int], text: Collection[int] = ()) -> Any:
        """Return columns as a pyarrow table."""
        import pyarrow as pa

        tables, size = [], 0
        for table in self._tables(columns):
            size += table.nbytes
            if size > self._limit:
                raise too_large(self.where, "unpacks to too much", self._limit)
            tables.append(table)
        with parquet_errors(self.where):
            table = pa.concat_tables(tables, promote_options="permissive")
            table.validate(full=True)  # text in Parquet may be no text at all
            return table

    def batches(
        self, columns: Sequence[int], kinds: Mapping[int, str] | None = None, size: int = 1 << 24
    ) -> Iterator[Any]:
        """Yield columns as pyarrow tables of some rows each, so that the files may be larger than memory."""
        rows = max(1 << 10, size // (8 * len(columns)))
        for table in self._tables(columns, batch_size=rows, use_threads=False):
            with parquet_errors(self.where):
                table.validate(full=True)
            yield table

    def _tables(self, columns: Sequence[int], **how: Any) -> Iterator[Any]:
        """Yield the batches of all parts, each as a table; ``how`` is that of `pyarrow.parquet.ParquetFile`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = [self.names[i] for i in columns]
        counts = Counter(self.names)
        if twice := next((name for name in names if counts[name] > 1), None):
            raise InputError(f"{self.where} has more than one column named {shown(twice)}.")
        for part in self._files:
            with parquet_errors(part), pq.ParquetFile(part, pre_buffer=False) as file:
                for batch in file.iter_batches(columns=names, **how):
                    yield pa.Table.from_batches([batch]).select(names)

    def place(self, row: int) -> str:
        """Return the place of a row within its part."""
        part = bisect.bisect_right(self._ends, row)
        before = self._ends[part - 1] if part else 0
        return f"{self._files[part]}, row {row - before + 1}"


def declared_size(metadata: Any) -> int:
    """Return how many bytes a Parquet file declares at least.

    Runs of equal values may be stored in no space at all, so rows count besides bytes.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return int(max(sum(group.total_byte_size for group in groups), 8 * metadata.num_rows))


@contextmanager
def parquet_errors(path: Path | str) -> Iterator[None]:
    """Turn an error of pyarrow into one line that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError, OverflowError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {one_line(error)}") from None


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
        A path to text or Parquet, a folder of Parquet files; a pandas, polars or pyarrow table. The index of a pandas
        frame is a column if it has a name.
    what
        The parameter, for messages.
    options
        The delimiter, header and limit of text.
    known, asked, doubt
        Names of columns that help to find a header, in any case; see `TextTable`.
    """
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
        return JsonTable(read_json(path, limit), str(path))
    if kind == "json":
        raise InputError(
            f"{path} is JSON, which is read as features of nodes alone, {{node: [ids]}}; turn it into a table "
            "(pandas.read_json(...).to_csv(...)) or pass the graph that networkx.node_link_graph makes of it."
        )
    if kind != "text":
        raise InputError(f"{what} must be a table (CSV, TSV, Parquet); {path} is {kind}.")
    names = [name.casefold() for name in asked if isinstance(name, str)]
    return TextTable(path, options.delimiter, options.header, known, names, doubt, limit)


def _arrow(source: Any, what: str) -> Any:
    import pyarrow as pa

    try:
        if hasattr(source, "iloc"):
            named = [name for name in source.index.names if name is not None]
            table = pa.Table.from_pandas(source.reset_index(level=named) if named else source, preserve_index=False)
        else:
            table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what} cannot be read as a table: {one_line(error)}") from None
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
    import pyarrow as pa
    import pyarrow.types as kinds

    values = column.values
    if kinds.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kinds.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif is_text(values.type) and column.table.free:  # one field that is no number makes a column text
        row = _first_unreadable(values)
        if row is not None:
            raise InputError(f"{column.at(row)}: a number expected, {shown(values[row].as_py())} found.")
        values = values.cast(pa.float64())
    if not is_number(values.type):
        raise InputError(f"{column}: numbers expected, {values.type} found.")
    parts = [chunk.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for chunk in values.chunks]
    return np.concatenate(parts) if parts else np.empty(0)


def is_number(kind: Any) -> bool:
    """Return whether a pyarrow type is numeric."""
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind) or kinds.is_null(kind))


def is_text(kind: Any) -> bool:
    """Return whether a pyarrow type is text."""
    import pyarrow.types as kinds

    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def _first_unreadable(column: Any) -> int | None:
    """Return the first row of a text column that is no number."""
    import pyarrow as pa

    def readable(begin: int, length: int) -> bool:
        try:
            column.slice(begin, length).cast(pa.float64())
        except pa.ArrowInvalid:
            return False
        return True

    begin, length = 0, len(column)
    if readable(begin, length):
        return None
    while length > 1:  # halve the rows, stay with the first half that has a fault
        half = length // 2
        if readable(begin, half):
            begin, half = begin + half, length - half
        length = half
    return begin
