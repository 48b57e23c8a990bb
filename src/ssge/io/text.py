"""Delimited text as a table: delimiter and header are found, rows are named by their line in the file."""

from __future__ import annotations

import csv
import io
import itertools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ssge.errors import InputError, one_line, printable, shown
from ssge.io.sources import LIMIT, Unpacked, arrow_source, in_memory

log = logging.getLogger(__name__)

DELIMITERS = ("\t", ",", ";", "|")
_SAMPLE = 1 << 18
_ROWS = 100
_BLOCK = 1 << 22
_PIECE = 1 << 24
"""Bytes that are read at a time where a file may be larger than memory."""
_MARK = b"\xef\xbb\xbf"
_LONGEST = 1 << 25
"""Bytes of the longest row, 32 MiB."""
_MOST_COLUMNS = 1_000_000
_WIDE = 10_000  # a task per column and block costs more than it gains


class _Beginning(NamedTuple):
    """The beginning of a text: its first rows, the bytes and lines before them, and comments among these."""

    rows: list[bytes]
    comment: bytes
    size: int
    lines: int
    comments: int
    quoted: bool


class TextTable:
    """A text file with one row per line.

    Lines at the top that begin with # or % are passed over, and so are blank lines anywhere. The delimiter is the one
    of tab, comma, semicolon and pipe that divides the first rows into as many fields each, the most fields first; else
    runs of blanks. The first row is a header if one of its fields is among ``asked``. If one is a number it is data,
    unless a name in ``known`` is above numbers only, or three or more numbers are consecutive (0, 1, ...). Else it is a
    header if it holds a name in ``known`` that no row below holds again, or if a column below holds only numbers;
    where both are text throughout, ``doubt`` decides.

    Parameters
    ----------
    path
        The file, plain or packed with gzip or zstd.
    delimiter
        One character; a blank means any run of blanks and tabs.
    header
        Whether the first row holds the names. Columns without a name are called c0, c1, ...
    known
        Names that are usual in a header, in lower case; those in a tuple only together.
    asked
        Names that must be in a header, since an option names them, in lower case. Digits that can be the position of
        a column are none.
    doubt
        Whether a first row that could be either is a header.
    limit
        Most bytes to unpack.
    """

    free = True

    def __init__(
        self,
        path: Path,
        delimiter: str | None = None,
        header: bool | None = None,
        known: Collection[str | tuple[str, ...]] = (),
        asked: Collection[str] = (),
        doubt: bool = False,
        limit: int = LIMIT,
    ) -> None:
        self.where, self._path, self._limit = printable(str(path)), path, limit
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\n\r"\0'):
            raise InputError(f"delimiter must be one ASCII character, ' ' for runs of blanks; received {delimiter!r}.")
        found = self._first_rows()
        lines, self._skipped = [line.decode("utf-8", "replace").strip("\r\n") for line in found.rows], found.lines
        if found.comments:
            begin = shown(found.comment.decode("utf-8", "replace"), 60)
            log.info("%s: %s comment lines at the top passed over, the first %s.", self.where, found.comments, begin)
        if not lines:
            raise InputError(f"{path} is empty but for comments.")
        widest = max(lines[0].count(d) for d in ([delimiter] if delimiter else [*DELIMITERS, " "]))
        if widest >= _MOST_COLUMNS:
            raise InputError(f"{path} has more than {_MOST_COLUMNS:,} columns; give such features as a matrix (.npz).")
        self._delimiter = delimiter or _delimiter(lines)
        self._quoted = found.quoted
        rows = _fields(lines, self._delimiter)
        if delimiter is None and len(rows[0]) < 2:
            raise InputError(
                f"{path} has one column only: no tab, comma, semicolon, pipe or blank divides its first row "
                f"({shown(lines[0])}); give delimiter=... if it is another."
            )
        self._block = max(_BLOCK, 4 * max(len(line) for line in found.rows))
        if header is None:
            header = self._has_header(rows, known, asked, doubt)
        self.header = header
        self.form = f"; delimiter {self._delimiter!r}, {'the first row is a header' if header else 'no header'}"
        self.names = [name.strip() for name in rows[0]] if header else [f"c{i}" for i in range(len(rows[0]))]
        if header:
            if lines[0].count('"') % 2:
                raise InputError(f"{path}: the name of a column must not hold a line break.")
            if len(lines) < 2:
                raise InputError(f"{path} has a header and no rows.")
        self._start = found.size + (len(found.rows[0]) if header else 0)

    def _first_rows(self) -> _Beginning:
        """Read the beginning of the file: what comes before the first row, and some rows, two at least."""
        lines, size, comments, sampled, comment = 0, 0, 0, 0, b""
        rows: list[bytes] = []
        with _lines(self._path, self._limit) as stream:
            while line := stream.readline(_LONGEST + 1).encode("latin-1"):
                if len(line) > _LONGEST:
                    where = f"{self._path}, line {lines + len(rows) + 1}"
                    raise InputError(f"{where} has more than {_LONGEST:,} bytes, which is no row of a table.")
                mark = len(_MARK) if not size and line.startswith(_MARK) else 0
                text = line[mark:].strip()
                if not rows and (not text or text.startswith((b"#", b"%"))):
                    lines, size, comments = lines + 1, size + len(line), comments + bool(text)
                    comment = comment or text
                elif text:
                    size += mark
                    rows.append(line[mark:])
                    sampled += len(line)
                    if len(rows) >= 2 and (sampled >= _SAMPLE or len(rows) >= _ROWS):
                        break
            quoted = any(b'"' in row for row in rows) or '"' in stream.read(_SAMPLE)
        return _Beginning(rows, comment, size, lines, comments, quoted)

    def _has_header(
        self,
        rows: Sequence[Sequence[str]],
        known: Collection[str | tuple[str, ...]],
        asked: Collection[str],
        doubt: bool,
    ) -> bool:
        first, below = [cell.strip().casefold() for cell in rows[0]], rows[1:]
        if any(cell in asked and not (_is_short(cell) and int(cell) < len(first)) for cell in first):
            return True
        groups = [(names,) if isinstance(names, str) else names for names in known]
        found = {name for names in groups if set(names) <= set(first) for name in names if not _is_number(name)}
        columns = itertools.zip_longest(*below, fillvalue="")
        numeric = {i for i, column in enumerate(columns) if all(_is_number(cell) for cell in column)}
        counted = [cell for cell in first if _is_number(cell)]
        if counted:
            if any(first.index(name) in numeric for name in found) or (found and _consecutive(counted)):
                return True
            if not found:
                return False
            doubt = False
        elif numeric or (found and not any(cell.strip().casefold() in found for row in below for cell in row)):
            return True
        taken = "taken as the names of columns" if doubt else "taken as data"
        cells = ", ".join(shown(cell, 60)[1:-1] for cell in rows[0][:4])
        log.warning("%s: its first row (%s) is %s; header=... overrides this.", self.where, cells, taken)
        return doubt

    def read(self, columns: Sequence[int], text: Collection[int] = ()) -> Any:
        """Return columns as a pyarrow table, in this order; those in ``text`` as strings, others by what they hold."""
        kinds = dict.fromkeys(text, "text")
        while (table := self._parsed(self._source(), columns, kinds, self._block, len(columns) < _WIDE)) is None:
            self._block *= 8  # a row is longer than a block
        if not table.num_rows:
            raise InputError(f"{self.where} has no rows.")
        return table

    def batches(
        self, columns: Sequence[int], kinds: Mapping[int, str] | None = None, size: int = _PIECE
    ) -> Iterator[Any]:
        """Yield columns as pyarrow tables of some rows each, so that the file may be larger than memory.

        Parameters
        ----------
        columns
            Their positions.
        kinds
            ``text``, ``number`` or ``boolean`` for columns that must be read as such; others by what a piece holds.
        size
            Bytes of the file per table.
        """
        import pyarrow as pa

        for piece in self._pieces(size):
            table = self._parsed(pa.BufferReader(piece), columns, kinds or {}, len(piece) + 1, False)
            if table.num_rows:
                yield table

    def _parsed(self, source: Any, columns: Sequence[int], kinds: Mapping[int, str], block: int, threads: bool) -> Any:
        """Return columns of some rows as a pyarrow table; None if a row is longer than a block."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        types = {"text": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}
        names = [str(i) for i in range(len(self.names))]
        reading = arrow_csv.ReadOptions(column_names=names, block_size=block, use_threads=threads)
        parsing = arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=self._quoted)
        chosen, forms = [str(i) for i in columns], {str(i): types[kind] for i, kind in kinds.items()}
        converting = arrow_csv.ConvertOptions(include_columns=chosen, column_types=forms)
        try:
            table = arrow_csv.read_csv(source, reading, parsing, converting)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if "straddling" in str(error) and block < _LONGEST:
                return None
            raise self._explained(error) from None
        if any(pa.types.is_binary(column.type) for column in table.columns):
            raise self._explained(ValueError("it is not UTF-8 text"))
        return table.rename_columns([self.names[i] for i in columns])

    def _pieces(self, size: int) -> Iterator[bytes]:
        """Yield the bytes of whole rows: a line break ends a row unless it is between quotes."""
        rest = b""
        with self._open() as stream:
            while more := stream.read(size):
                rest += more
                end = rest.rfind(b"\n") + 1
                while self._quoted and end and rest.count(b'"', 0, end) % 2:
                    end = rest.rfind(b"\n", 0, end - 1) + 1
                if end:
                    yield rest[:end]
                    rest = rest[end:]
                elif len(rest) > _LONGEST:
                    raise InputError(f"{self.where}: a row has {_LONGEST:,} bytes at most; received more.")
        if rest.strip():
            yield rest

    def _source(self) -> Any:
        """Return the rows for Arrow."""
        if self._delimiter != " ":
            return arrow_source(self._path, self._limit, self._start)
        with self._open() as stream:
            return in_memory(stream)

    def _open(self) -> Unpacked:
        """Return the rows for Python."""
        kind = _Blanks if self._delimiter == " " else Unpacked
        return kind(self._path, self._limit, self._start)

    def _explained(self, error: Exception) -> InputError:
        """Return what is wrong with the file, found by reading it once more, row by row."""
        with self._open() as stream:
            for number, line in enumerate(io.BufferedReader(stream), start=1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as fault:
                    byte = f"byte 0x{line[fault.start]:02x}"
                    where = f"{self.where}, line {self._lines + number}"
                    return InputError(f"{where}: not UTF-8 text ({byte}); save the file as UTF-8.")
        for number, row in self._rows():
            if len(row) != len(self.names):
                expected = f"{len(self.names)} fields as in the first row"
                return InputError(f"{self.where}, line {number}: {expected} expected, {len(row)} found.")
        return InputError(f"{self.where} cannot be read as a table: {one_line(error)}")

    @property
    def _lines(self) -> int:
        """Lines before the data."""
        return self._skipped + self.header

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line of each row, and its fields."""
        with (
            self._open() as stream,
            io.TextIOWrapper(io.BufferedReader(stream), "utf-8", "replace", newline="") as text,
            _long_fields(),
        ):
            reader = csv.reader(text, delimiter=self._delimiter)
            began = 0
            try:
                for row in reader:
                    if row:
                        yield self._lines + began + 1, row
                    began = reader.line_num
            except csv.Error:  # the line stays unknown
                return

    def place(self, row: int) -> str:
        """Return the line of a row, counted from 0."""
        found = next(itertools.islice(self._rows(), row, None), None)
        return f"{self.where}, line {found[0]}" if found else f"{self.where}, row {row + 1}"


class _Blanks(Unpacked):
    """A text in which runs of blanks and tabs are one blank, and lines begin and end without."""

    def __init__(self, path: Path, limit: int, start: int) -> None:
        super().__init__(path, limit, start)
        self._ready, self._rest, self._ended = io.BytesIO(), list[bytes](), False

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return super().read()
        while not (found := self._ready.read(size)) and not self._ended:
            more = super().read(_BLOCK)
            self._ended = not more
            lines, newline, rest = more.rpartition(b"\n") if more else (b"", b"", b"")
            if newline or self._ended:
                self._ready = io.BytesIO(_single_blanks(b"".join([*self._rest, lines])) + newline)
                self._rest = [rest]
            else:  # a line goes on; joining it only once keeps the time linear
                self._rest.append(more)
        return found


def _single_blanks(lines: bytes) -> bytes:
    lines = lines.translate(bytes.maketrans(b"\t", b" ")).replace(b"\r\n", b"\n")
    while b"  " in lines:
        lines = lines.replace(b"  ", b" ")
    return lines.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \r")


def _lines(path: Path, limit: int) -> io.TextIOWrapper:
    """Open a text by lines, which end in any of the three ways; one character stands for one byte."""
    return io.TextIOWrapper(io.BufferedReader(Unpacked(path, limit), _SAMPLE), "latin-1", newline="")


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let the reader of Python take fields of more than 128 KiB; its limit is one for the whole process."""
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that the rows agree on, else the one that most of them have, else a blank."""
    counts = {d: [len(row) for row in _fields(lines, d)] for d in DELIMITERS}
    agreed = {d: n[0] for d, n in counts.items() if n[0] > 1 and min(n) == max(n)}
    if agreed:
        return max(agreed, key=lambda d: agreed[d])
    often = {d: sum(i > 1 for i in n) for d, n in counts.items() if sum(i > 1 for i in n) >= len(lines) / 2}
    blanks = {len(line.split()) for line in lines}
    if often and (len(blanks) > 1 or blanks == {1}):
        return max(often, key=lambda d: often[d])
    return " "


def _fields(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    try:
        with _long_fields():
            return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:  # a stray carriage return
        return [line.split(delimiter) for line in lines]


def _consecutive(cells: Sequence[str]) -> bool:
    """Return whether three cells or more are consecutive whole numbers, as names of columns often are."""
    if len(cells) < 3 or not all(_is_short(cell) for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_short(cell: str) -> bool:
    """Return whether a cell is a whole number that can be a position; Python reads no 5,000 digits."""
    return cell.isdecimal() and len(cell) < 19


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
