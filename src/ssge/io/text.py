"""Delimited text as a table: delimiter and header are found, rows are named by their line in the file."""

from __future__ import annotations

import csv
import io
import itertools
import logging
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from ssge.errors import InputError
from ssge.io.sources import LIMIT, Unpacked, one_line, shown

log = logging.getLogger(__name__)

DELIMITERS = ("\t", ",", ";", "|")
_SAMPLE = 1 << 18
_ROWS = 100
_BLOCK = 1 << 22
_MARK = b"\xef\xbb\xbf"
_NEWLINE, _NEWLINE_BYTES = re.compile(r"\r\n|\n|\r"), re.compile(rb"\r\n|\n|\r")


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
        self.where, self._path, self._limit = str(path), path, limit
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\n\r"\0'):
            raise InputError(f"delimiter must be one ASCII character, ' ' for runs of blanks; received {delimiter!r}.")
        sample, whole = self._sample()
        at, self._skipped = _top(sample)
        comments = [line.strip() for line in _NEWLINE_BYTES.split(sample[:at].removeprefix(_MARK)) if line.strip()]
        if comments:
            begin = shown(comments[0].decode("utf-8", "replace"))
            log.info("%s: %s comment lines at the top passed over, the first %s.", path, f"{len(comments):,}", begin)
        lines = [line for line in _NEWLINE.split(sample[at:].decode("utf-8", "replace")) if line.strip()]
        lines = lines[: max(1, len(lines) - (not whole))][:_ROWS]  # the last one may be cut
        if not lines:
            raise InputError(f"{path} is empty but for comments.")
        self._delimiter = delimiter or _delimiter(lines)
        self._quoted = b'"' in sample
        rows = list(_fields(lines, self._delimiter))
        if delimiter is None and len(rows[0]) < 2:
            raise InputError(
                f"{path} has one column only: no tab, comma, semicolon, pipe or blank divides its first row "
                f"({shown(lines[0])}); give delimiter=... if it is another."
            )
        self._block = max(_BLOCK, 4 * max(len(line) for line in lines))
        if header is None:
            header = self._has_header(rows, known, asked, doubt)
        self.header = header
        self.form = f"; delimiter {self._delimiter!r}, {'the first row is a header' if header else 'no header'}"
        self.names = [name.strip() for name in rows[0]] if header else [f"c{i}" for i in range(len(rows[0]))]
        if header:
            at = _line_end(sample, at)
            if lines[0].count('"') % 2:
                raise InputError(f"{path}: the name of a column must not hold a line break.")
            if len(lines) < 2:
                raise InputError(f"{path} has a header and no rows.")
        self._start = at

    def _sample(self) -> tuple[bytes, bool]:
        """Return the beginning of the file, one full line at least, and whether that is all of it."""
        with Unpacked(self._path, self._limit) as stream:
            sample = b""
            while True:
                more = stream.read(_SAMPLE)
                sample += more
                if not more or (len(sample) >= _SAMPLE and sample.count(b"\n") > 1 and _top(sample)[0] < len(sample)):
                    return sample, not more

    def _has_header(
        self,
        rows: Sequence[Sequence[str]],
        known: Collection[str | tuple[str, ...]],
        asked: Collection[str],
        doubt: bool,
    ) -> bool:
        first, below = [cell.strip().casefold() for cell in rows[0]], rows[1:]
        if any(cell in asked and not (cell.isdecimal() and int(cell) < len(first)) for cell in first):
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
        shown_cells = ", ".join(rows[0][:4])
        log.warning("%s: its first row (%s) is %s; header=... overrides this.", self.where, shown_cells, taken)
        return doubt

    def read(self, columns: Sequence[int], text: Collection[int] = ()) -> Any:
        """Return columns as a pyarrow table, in this order; those in ``text`` as strings, others by what they hold."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(i) for i in range(len(self.names))]
        stream = self._open()
        try:
            table = arrow_csv.read_csv(
                pa.PythonFile(stream, "r"),
                read_options=arrow_csv.ReadOptions(column_names=names, block_size=self._block),
                parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=self._quoted),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=[str(i) for i in columns], column_types={str(i): pa.string() for i in text}
                ),
            )
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._explained(error) from None
        if not table.num_rows:
            raise InputError(f"{self.where} has no rows.")
        return table.rename_columns([self.names[i] for i in columns])

    def _open(self) -> Unpacked:
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
                    return InputError(f"{self.where}, line {self._lines + number}: not UTF-8 text ({byte}).")
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
        ):
            reader = csv.reader(text, delimiter=self._delimiter)
            began = 0
            try:
                for row in reader:
                    if row:
                        yield self._lines + began + 1, row
                    began = reader.line_num
            except csv.Error:  # such as a field of more than 128 KiB: the line stays unknown
                return

    def place(self, row: int) -> str:
        """Return the line of a row, counted from 0."""
        found = next(itertools.islice(self._rows(), row, None), None)
        return f"{self.where}, line {found[0]}" if found else f"{self.where}, row {row + 1}"


class _Blanks(Unpacked):
    """A text in which runs of blanks and tabs are one blank, and lines begin and end without."""

    _rest, _ready, _ended = b"", b"", False

    def __init__(self, path: Path, limit: int, start: int) -> None:
        super().__init__(path, limit)
        while start > 0:
            start -= len(super().read(min(start, 1 << 20)))

    def read(self, size: int = -1) -> bytes:
        while not self._ended and (size < 0 or len(self._ready) < size):
            found = super().read(_BLOCK)
            self._ended = not found
            lines, newline, self._rest = (self._rest + found).rpartition(b"\n") if found else (self._rest, b"", b"")
            self._ready += _single_blanks(lines) + newline
        cut = len(self._ready) if size < 0 else size
        found, self._ready = self._ready[:cut], self._ready[cut:]
        return found


def _single_blanks(lines: bytes) -> bytes:
    lines = lines.translate(bytes.maketrans(b"\t", b" ")).replace(b"\r\n", b"\n")
    while b"  " in lines:
        lines = lines.replace(b"  ", b" ")
    return lines.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" \r")


def _top(sample: bytes) -> tuple[int, int]:
    """Return how many bytes and how many lines come before the first row: a byte-order mark, comments, blank lines."""
    at, lines = (len(_MARK), 0) if sample.startswith(_MARK) else (0, 0)
    while at < len(sample):
        end = _line_end(sample, at)
        line = sample[at:end].strip()
        if line and not line.startswith((b"#", b"%")):
            break
        at, lines = end, lines + 1
    return at, lines


def _line_end(sample: bytes, at: int) -> int:
    """Return where the next line begins."""
    found = _NEWLINE_BYTES.search(sample, at)
    return found.end() if found else len(sample)


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


def _fields(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    if delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    except csv.Error:  # a field too long for this reader, or a stray carriage return
        yield from (line.split(delimiter) for line in lines)


def _consecutive(cells: Sequence[str]) -> bool:
    """Return whether three cells or more are consecutive whole numbers, as names of columns often are."""
    if len(cells) < 3 or not all(cell.isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
