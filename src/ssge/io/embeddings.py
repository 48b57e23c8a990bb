"""Embeddings as a joinable table: one row per node, columns ``id, e000, e001, ...``; the ending decides the format."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import csv

from ssge.errors import InputError, UnknownNameError, cut, shown
from ssge.files import atomic
from ssge.foreign import find, ids_of
from ssge.io.graph_writer import ArrayFile
from ssge.io.ids import CANONICAL
from ssge.io.matrices import check_array
from ssge.io.results import refuse_existing, write_tables
from ssge.io.sources import LIMIT, errors_of, explained, refuse_unpacking
from ssge.io.tables import declared_size, is_text

VECTOR = "vector"
"""Name of the column of vectors, where they are in one."""
_LONGEST_HEADER = 1 << 24
_BYTES = 1 << 25
"""Of the rows that are written at a time."""
_PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_statistics": ["id"]}
"""Floats of full precision hardly compress: in Parquet, a dictionary or a codec would only cost time."""


class Embedding(NamedTuple):
    """Vectors and the ids of the nodes they belong to."""

    node_ids: NDArray[Any]
    vectors: NDArray[np.floating[Any]]


def find_ids(known: NDArray[Any], ids: Iterable[Any]) -> NDArray[np.int64]:
    """Return the positions of some ids among the known ones, -1 where they are not: the one rule for equal ids.

    Ids are equal if they are the same, or else if they are written in the same way: ``"12"`` names the node 12 where
    the known ids are integers, and 12 the node ``"12"`` where they are text; ``"012"`` does neither.
    """
    given = ids if isinstance(ids, np.ndarray) else list(ids)
    rows = find(known, given)
    missed = np.flatnonzero(rows < 0)
    if missed.size and not (isinstance(ids, np.ndarray) and ids.dtype == known.dtype and known.dtype.kind in "iu"):
        written = {str(node): row for row, node in enumerate(known.tolist())}
        rows[missed] = [written.get(str(given[i]), -1) for i in missed]
    return rows


def check_embedding_target(path: Path, force: bool) -> None:
    """Refuse an unknown ending, and a file or a file of ids beside it that exists, before anything is computed."""
    _reader(path)
    refuse_existing([path, _ids_beside(path)] if path.suffix.casefold() == ".npy" else [path], force)


def column_names(d: int) -> list[str]:
    """Return the names of d embedding columns, as wide as the last needs but three digits at least."""
    digits = max(3, len(str(d - 1)))
    return [f"e{i:0{digits}d}" for i in range(d)]


def write_embedding(
    path: Path,
    node_ids: NDArray[Any],
    vectors: NDArray[np.floating[Any]],
    safe_csv: bool = False,
    one_column: bool = False,
) -> None:
    """Write an embedding, whole or not at all; the same input gives the same bytes.

    Parameters
    ----------
    path
        The file; its folder is made if need be. The ending decides the format:

        - ``.parquet``: columns id, e000, ...;
        - ``.csv``: the same with a header line; text ids are in quotes, numbers in their shortest exact form;
        - ``.npy``: the matrix, for ``numpy.load``; the ids go to a Parquet file beside it, ``X.ids.parquet`` for
          ``X.npy``, because text cannot distinguish ``1`` from ``"1"``;
        - ``.txt``, ``.vec``, ``.emb``: the text format of word2vec, a line ``n d``, then an id and d numbers per line,
          separated by spaces. Ids with white space, or empty ones, are refused.
    node_ids
        One id per row. Integers become int64, strings stay strings, anything else is written as its ``str``.
    vectors
        n x d array.
    safe_csv
        Write CSV for spreadsheets, with `ssge.io.results.without_formulas`.
    one_column
        Write Parquet with the columns id and vector, a list of d numbers per row, as vector databases take it.
    """
    if vectors.ndim != 2 or node_ids.shape != vectors.shape[:1]:
        raise InputError(f"vectors must be a matrix with {node_ids.size} rows, one per id; received {vectors.shape}.")
    _reader(path)
    ids, ending = _id_column(node_ids), path.suffix.casefold()
    if one_column and ending != ".parquet":
        raise InputError(f"One column of vectors needs a .parquet file; received {path.name}.")
    if ending in (".parquet", ".csv"):
        write_tables(path, (_table(ids[rows], part, one_column) for rows, part in _parts(vectors)), safe_csv, **_PLAIN)
    elif ending == ".npy":
        _write_npy(path, ids, vectors)
    else:
        _write_word2vec(path, ids, vectors)


def as_table(node_ids: NDArray[Any], vectors: NDArray[np.floating[Any]]) -> Any:
    """Return a pyarrow table with the columns id, e000, ..., as `write_embedding` writes it."""
    return _table(_id_column(node_ids), vectors)


def read_embedding(path: Path) -> Embedding:
    """Read what `write_embedding` wrote, in as many columns or in one; ids come back as int64 or as strings.

    Parquet and NumPy keep the precision of the numbers. Text holds none: they come back as float64, which gives the
    numbers written when cast back. In the word2vec format, ids that are all integers come back as int64, even if
    they were strings; every other format distinguishes the two.
    """
    read = _reader(path)
    if not path.is_file():
        raise InputError(f"No such file: {path}.")
    return read(path)


def _parts(vectors: NDArray[np.floating[Any]]) -> Iterator[tuple[slice, NDArray[np.floating[Any]]]]:
    """Yield some rows at a time; pages of a memory map are given back after each."""
    step = max(1, _BYTES // max(1, vectors.shape[1] * vectors.itemsize))
    for start in range(0, max(len(vectors), 1), step):
        rows = slice(start, start + step)
        yield rows, vectors[rows]
        forget(vectors)


def forget(vectors: NDArray[np.floating[Any]]) -> None:
    """Give the pages of a memory map back to the system, which reads them again if need be."""
    if isinstance(vectors, np.memmap):
        vectors._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _read_parquet(path: Path) -> Embedding:
    table = _parquet_table(path)
    if table.column_names != ["id", VECTOR]:
        return _from_table(path, table)
    lists = table.column(VECTOR)
    if not (pa.types.is_fixed_size_list(lists.type) or pa.types.is_list(lists.type)) or not table.num_rows:
        raise InputError(f"{path}: column {VECTOR} must hold lists of numbers; received {lists.type}.")
    sizes = pc.unique(pc.list_value_length(lists)).to_pylist()
    if len(sizes) != 1 or not sizes[0]:
        raise InputError(f"{path}: column {VECTOR} must hold lists of one length; received {shown(sizes[:5])}.")
    flat = pc.list_flatten(lists)
    if str(flat.type) not in ("float", "double") or flat.null_count:
        raise InputError(f"{path}: column {VECTOR} must hold float or double; received {flat.type}.")
    return _from_table(path, _table(table.column("id"), flat.to_numpy().reshape(table.num_rows, sizes[0])))


def _parquet_table(path: Path) -> Any:
    with explained(f"{path} cannot be read as Parquet"), pq.ParquetFile(path) as file:
        refuse_unpacking(path, declared_size(file.metadata), path.stat().st_size, LIMIT)
        table = file.read()
        table.validate(full=True)  # text in Parquet may be no text at all
        return table


def _read_csv(path: Path) -> Embedding:
    with path.open("rb") as file:
        names = _first_line(path, file).strip().replace('"', "").split(",")
        text = file.read(1) == b'"'
    types = {name: pa.float64() for name in names[1:]} | {names[0]: pa.string()}
    table = _parsed(path, csv.ReadOptions(), csv.ParseOptions(newlines_in_values=True), types)
    return _from_table(path, table if text else _with_integers(table))


def _write_npy(path: Path, ids: Any, vectors: NDArray[np.floating[Any]]) -> None:
    with atomic(path) as matrix, atomic(_ids_beside(path)) as beside:
        with closing(ArrayFile(matrix, vectors.dtype, vectors.shape[1])) as file:
            for _, part in _parts(vectors):
                file.append(part)
        pq.write_table(pa.table([ids], names=["id"]), beside, **_PLAIN)
        path.unlink(missing_ok=True)  # never leave old vectors beside new ids


def _read_npy(path: Path) -> Embedding:
    beside = _ids_beside(path)
    if not beside.is_file():
        raise InputError(f"{path} needs the ids of its rows in {beside.name} beside it; no such file.")
    ids = _parquet_table(beside)
    if ids.column_names != ["id"] or str(ids.schema.field(0).type) not in ("int64", "string"):
        raise InputError(f"{beside} must have one column, id, of integers or text.")
    with explained(f"{path} cannot be read as a NumPy array"), path.open("rb") as file:
        check_array(file, path.stat().st_size, str(path))
        file.seek(0)
        vectors = np.lib.format.read_array(file, allow_pickle=False)
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or vectors.shape[0] != ids.num_rows:
        found = f"{vectors.dtype} {vectors.shape}"
        raise InputError(f"{path} must be a matrix of floats with {ids.num_rows} rows, one per id; received {found}.")
    return Embedding(ids.column("id").to_numpy(), vectors)


def _ids_beside(path: Path) -> Path:
    return path.with_suffix(".ids.parquet")


def _write_word2vec(path: Path, ids: Any, vectors: NDArray[np.floating[Any]]) -> None:
    names = [str(node) for node in ids.to_pylist()]
    bad = [name for name in names if name.split() != [name]]
    if bad:
        raise InputError(f"ids must not be empty or hold white space in {path.suffix} files; received {shown(bad[0])}.")
    options = csv.WriteOptions(include_header=False, delimiter=" ")
    with atomic(path) as temporary, temporary.open("wb") as file:
        file.write("{} {}\n".format(*vectors.shape).encode())
        for rows, part in _parts(vectors):
            numbers = pa.BufferOutputStream()
            csv.write_csv(_table(ids[rows], part).drop_columns("id"), numbers, options)
            lines = numbers.getvalue().to_pybytes().splitlines(keepends=True)
            file.writelines(f"{name} ".encode() + line for name, line in zip(names[rows], lines, strict=True))


def _read_word2vec(path: Path) -> Embedding:
    with path.open("rb") as file:
        sizes = re.fullmatch(r"\s*([0-9]{1,18})\s+([0-9]{1,18})\s*", _first_line(path, file))
    if sizes is None:
        raise InputError(f"{path} must begin with a line of two numbers, n d, as word2vec writes it.")
    n, d = int(sizes[1]), int(sizes[2])
    if n and 2 * d > path.stat().st_size:  # a number and what follows it take two bytes at least
        raise InputError(f"{path} announces {d:,} columns, more than its bytes can hold.")
    if n == 0:
        return Embedding(np.empty(0, dtype=np.int64), np.empty((0, d)))
    names = ["id", *column_names(d)]
    types = dict.fromkeys(names[1:], pa.float64()) | {"id": pa.string()}
    how = csv.ParseOptions(delimiter=" ", quote_char=False)
    table = _parsed(path, csv.ReadOptions(skip_rows=1, column_names=names), how, types)
    if table.num_rows != n:
        raise InputError(f"{path} announces {n} rows; received {table.num_rows}.")
    return _from_table(path, _with_integers(table))


def _with_integers(table: Any) -> Any:
    """Return a table of text with its first column as integers, if all are."""
    if pc.all(pc.match_substring_regex(table.column(0), CANONICAL)).as_py():
        with suppress(pa.ArrowInvalid):  # too long for 64 bits: text
            return table.set_column(0, table.column_names[0], table.column(0).cast(pa.int64()))
    return table


_READERS: dict[str, Callable[[Path], Embedding]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".npy": _read_npy,
    **dict.fromkeys((".txt", ".vec", ".emb"), _read_word2vec),
}


def _reader(path: Path) -> Callable[[Path], Embedding]:
    try:
        return _READERS[path.suffix.casefold()]
    except KeyError:
        raise UnknownNameError("ending of an embedding file", path.suffix, _READERS) from None


def _id_column(node_ids: NDArray[Any]) -> Any:
    ids = ids_of(node_ids)
    if ids.dtype == np.int64 or not ids.size:
        return pa.array(ids, pa.int64())
    with errors_of("Ids are written as text"):
        return pa.array(ids_of([str(node) for node in ids]), pa.string())


def _table(ids: Any, vectors: NDArray[np.floating[Any]], one_column: bool = False) -> Any:
    if one_column:
        flat = pa.array(np.ascontiguousarray(vectors).ravel())
        return pa.table([ids, pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])], names=["id", VECTOR])
    columns = [ids, *(pa.array(np.ascontiguousarray(column)) for column in vectors.T)]
    return pa.table(columns, names=["id", *column_names(vectors.shape[1])])


def _parsed(path: Path, read: Any, parse: Any, types: dict[str, Any]) -> Any:
    with explained(f"{path} cannot be read as text"):
        return csv.read_csv(path, read, parse, csv.ConvertOptions(column_types=types))


def _from_table(path: Path, table: Any) -> Embedding:
    names = table.column_names
    if len(names) < 2 or names != ["id", *column_names(len(names) - 1)]:
        raise InputError(f"{path} must have the columns id, e000, ...; received {cut(', '.join(names[:4]))}, ...")
    kind = table.schema.field(0).type  # other programs write the same ids in other types
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if is_text(kind) or pa.types.is_integer(kind):
        with explained(f"{path}: column id cannot be read"):
            table = table.set_column(0, "id", table.column(0).cast(pa.string() if is_text(kind) else pa.int64()))
    for field, column in zip(table.schema, table.columns, strict=True):
        allowed = ("int64", "string") if field.name == "id" else ("float", "double")
        if str(field.type) not in allowed or column.null_count:
            found = f"{field.type} with {column.null_count} nulls"
            raise InputError(f"{path}: column {field.name} must be {' or '.join(allowed)}; received {found}.")
    dtype = np.float32 if str(table.schema.field(1).type) == "float" else np.float64
    vectors = np.empty((table.num_rows, len(names) - 1), dtype)
    for i, column in enumerate(table.columns[1:]):
        vectors[:, i] = column.to_numpy()
    return Embedding(table.column("id").to_numpy(), vectors)


def _first_line(path: Path, file: IO[bytes]) -> str:
    line = file.readline(_LONGEST_HEADER + 1)
    if len(line) > _LONGEST_HEADER:
        raise InputError(f"{path} has a first line of more than {_LONGEST_HEADER:,} bytes; it is no embedding.")
    return line.decode("utf-8", "replace")
