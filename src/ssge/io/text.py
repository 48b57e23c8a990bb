"""Delimited text as a table: delimiter and header are found, rows are named by their line in the file."""

from __future__ import annotations

import csv
import itertools
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from ssge.errors import InputError, one_line, printable, shown
from ssge.io.options import ReadOptions
from ssge.io.sources import LIMIT, arrow_source, in_memory, unpacked

log = logging.getLogger(__name__)

DELIMITERS = ("\t", ",", ";", "|")
_SAMPLE = 1 << 18
_ROWS = 100
_PIECE = 1 << 24
"""Bytes that are read at a time where a file may be larger than memory."""
_MARK = b"\xef\xbb\xbf"
_WRONG_BYTE = re.compile("[\udc80-\udcff]")
"""What Python makes of a byte that is not UTF-8."""
_LONGEST = 1 << 25
"""Bytes of the longest row, 32 MiB."""
_MOST_COLUMNS = 1_000_000
_WIDE = 10_000  # a task per column and block costs more than it gains


class TextTable:
    """A text file with one row per line.

    Comment lines (# or %) at the top are skipped, and so are blank lines anywhere. The delimiter is the one of tab,
    comma, semicolon and pipe that divides the first rows into equally many fields, the most fields first; else runs of
    blanks. The first row is a header if one of its fields is among ``asked``. If one is a number it is data,
    unless a name in ``known`` is above numbers only, or three or more numbers are consecutive (0, 1, ...). Else it is a
    header if it holds a name in ``known`` that no row below holds again, or if a column below holds only numbers;
    where both are text throughout, ``doubt`` decides.

    Parameters
    ----------
    path
        The file, plain or packed with gzip or zstd.
    options
        The delimiter, one character, of which a blank means any run of blanks and tabs; whether the first row holds the
        names, else columns are called c0, c1, ...; most bytes to unpack.
    known
        Names that are usual in a header, in lower case; those in a tuple only together.
    asked
        Names that must be in a header, since an option names them, in lower case. Digits that can be the position of
        a column are none.
    doubt
        Whether a first row that could be either is a header.
    """

    free, undirected = True, False

    def __init__(
        self,
        path: Path,
        options: ReadOptions,
        known: Collection[str | tuple[str, ...]] = (),
        asked: Collection[str] = (),
        doubt: bool = False,
    ) -> None:
        self.where, self._path, self._limit = printable(str(path)), path, options.limit or LIMIT
        delimiter, header = options.delimiter, options.header
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\n\r"\0'):
            raise InputError(f"delimiter must be one ASCII character, ' ' for runs of blanks; received {delimiter!r}.")
        first = self._first_rows()
        lines = [line.decode("utf-8", "replace").strip("\r\n") for line in first]
        if not lines:
            raise InputError(f"{path} is empty but for comments.")
        widest = max(lines[0].count(d) for d in ([delimiter] if delimiter else [*DELIMITERS, " "]))
        if widest >= _MOST_COLUMNS:
            raise InputError(f"{path} has more than {_MOST_COLUMNS:,} columns; give such features as a matrix (.npz).")
        self._delimiter = delimiter or _delimiter(lines)
        rows = _fields(lines, self._delimiter)
        if delimiter is None and len(rows[0]) < 2:
            raise InputError(
                f"{path} has one column only: no tab, comma, semicolon, pipe or blank divides its first row "
                f"({shown(lines[0])}); give delimiter=... if it is another."
            )
        if header is None:
            header = self._has_header(rows, known, asked, doubt)
        self._before = self._skipped + header  # lines before the data
        self.form = f"; delimiter {self._delimiter!r}, {'the first row is a header' if header else 'no header'}"
        self.names = [name.strip() for name in rows[0]] if header else [f"c{i}" for i in range(len(rows[0]))]
        if header:
            if lines[0].count('"') % 2:
                raise InputError(f"{path}: the name of a column must not hold a line break.")
            if len(lines) < 2:
                raise InputError(f"{path} has a header and no rows.")
            self._start += len(first[0])

    def _first_rows(self) -> list[bytes]:
        """Return some rows, two at least; note the lines and bytes before them, and whether there are quotes."""
        self._skipped = self._start = sampled = comments = 0
        self._quoted = False
        rows, comment = list[bytes](), b""
        for line in _lines(unpacked(self._path, self._limit, size=_SAMPLE)):
            if len(line) > _LONGEST:
                where = f"{self._path}, line {self._skipped + len(rows) + 1}"
                raise InputError(f"{where} has more than {_LONGEST:,} bytes, which is no row of a table.")
            mark = len(_MARK) if not self._start and line.startswith(_MARK) else 0
            text = line[mark:].strip()
            if not rows and (not text or text.startswith((b"#", b"%"))):
                self._skipped, self._start = self._skipped + 1, self._start + len(line)
                comments, comment = comments + bool(text), comment or text
            elif text:
                self._start += mark
                self._quoted = self._quoted or b'"' in line
                sampled += len(line)
                if len(rows) < 2 or (sampled < _SAMPLE and len(rows) < _ROWS):
                    rows.append(line[mark:])
                elif sampled > 2 * _SAMPLE:
                    break
        if comments:
            begin = shown(comment.decode("utf-8", "replace"), 60)
            log.info("%s: %s comment lines at the top passed over, the first %s.", self.where, comments, begin)
        return rows

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
        blanks = self._delimiter == " "
        source = in_memory(self._pieces()) if blanks else arrow_source(self._path, self._limit, self._start)
        table = self._parsed(source, columns, kinds, _LONGEST, len(columns) < _WIDE)
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
        for piece in self._pieces(size):
            table = self._parsed(pa.BufferReader(piece), columns, kinds or {}, len(piece) + 1, False)
            if table.num_rows:
                yield table

    def _parsed(self, source: Any, columns: Sequence[int], kinds: Mapping[int, str], block: int, threads: bool) -> Any:
        """Return columns of some rows as a pyarrow table; no row may be longer than a block."""
        types = {"text": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}
        names = [str(i) for i in range(len(self.names))]
        reading = arrow_csv.ReadOptions(column_names=names, block_size=block, use_threads=threads)
        parsing = arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=self._quoted)
        chosen, forms = [str(i) for i in columns], {str(i): types[kind] for i, kind in kinds.items()}
        converting = arrow_csv.ConvertOptions(include_columns=chosen, column_types=forms)
        try:
            table = arrow_csv.read_csv(source, reading, parsing, converting)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._explained(error) from None
        if any(pa.types.is_binary(column.type) for column in table.columns):
            raise self._explained(ValueError("it is not UTF-8 text"))
        return table.rename_columns([self.names[i] for i in columns])

    def _pieces(self, size: int = _SAMPLE) -> Iterator[bytes]:
        """Yield the bytes of whole rows: a line break ends a row unless it is between quotes."""
        rest = b""
        for block in unpacked(self._path, self._limit, self._start, size):
            rest += block
            end = rest.rfind(b"\n") + 1
            while self._quoted and end and rest.count(b'"', 0, end) % 2:
                end = rest.rfind(b"\n", 0, end - 1) + 1
            if end:
                yield self._divided(rest[:end])
                rest = rest[end:]
            elif len(rest) > _LONGEST:
                raise InputError(f"{self.where}: a row has {_LONGEST:,} bytes at most; received more.")
        if rest.strip():
            yield self._divided(rest)

    def _divided(self, rows: bytes) -> bytes:
        """Return rows with one delimiter between two fields: runs of blanks and tabs become one blank."""
        if self._delimiter != " ":
            return rows
        rows = rows.replace(b"\t", b" ").replace(b"\r\n", b"\n")
        while b"  " in rows:
            rows = rows.replace(b"  ", b" ")
        return rows.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \r")

    def _explained(self, error: Exception) -> InputError:
        """Return what is wrong with the file, found by reading it once more, row by row."""
        for number, row in self._rows():
            where = f"{self.where}, line {number}"
            if wrong := _WRONG_BYTE.search("".join(row)):
                byte = f"byte 0x{ord(wrong[0]) & 0xFF:02x}"
                return InputError(f"{where}: not UTF-8 text ({byte}); save the file as UTF-8.")
            if len(row) != len(self.names):
                expected = f"{len(self.names)} fields as in the first row"
                return InputError(f"{where}: {expected} expected, {len(row)} found.")
        return InputError(f"{self.where} cannot be read as a table: {one_line(error)}")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line of each row, and its fields."""
        text = (line.decode("utf-8", "surrogateescape") for line in _lines(self._pieces()))
        with _long_fields():
            reader = csv.reader(text, delimiter=self._delimiter)
            began = 0
            try:
                for row in reader:
                    if row:
                        yield self._before + began + 1, row
                    began = reader.line_num
            except csv.Error:  # the line stays unknown
                return

    def place(self, row: int) -> str:
        """Return the line of a row, counted from 0."""
        found = next(itertools.islice(self._rows(), row, None), None)
        return f"{self.where}, line {found[0]}" if found else f"{self.where}, row {row + 1}"


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines, which end in any of the three ways; the last one of blocks without an end is cut at `_LONGEST`."""
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).splitlines(keepends=True)
        yield from whole
        if len(rest) > _LONGEST:
            break
    if rest:
        yield rest


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
