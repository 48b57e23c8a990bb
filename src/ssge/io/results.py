"""Results as a table in a file: CSV or Parquet, by the ending, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ssge.errors import InputError, UnknownNameError
from ssge.files import atomic


def check_target(path: Path | None, force: bool) -> None:
    """Refuse a file that exists or has another ending, before anything is computed for it."""
    if path is None:
        return
    if path.suffix.casefold() not in (".csv", ".parquet"):
        raise UnknownNameError("ending of a table", path.suffix, (".csv", ".parquet"))
    refuse_existing([path], force)


def refuse_existing(files: Iterable[Path], force: bool) -> None:
    """Refuse files that are there already, unless they may be replaced."""
    there = next((file for file in files if file.exists()), None)
    if there is not None and not force:
        raise InputError(f"{there} exists; choose another file, or --force to replace it.")


def write_results(path: Path, batches: Iterable[Mapping[str, Any]]) -> int:
    """Write batches of equally named columns one below the other; return the number of rows.

    Batches are made and written one at a time, so their generator decides the memory. There must be one at least.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    rows, writer = 0, None
    with atomic(path) as temporary:
        try:
            for batch in batches:
                table = pa.table({name: pa.array(column) for name, column in batch.items()})
                if writer is None:
                    kind = csv.CSVWriter if path.suffix.casefold() == ".csv" else pq.ParquetWriter
                    writer = kind(temporary, table.schema)
                writer.write_table(table)
                rows += table.num_rows
        finally:
            if writer is not None:
                writer.close()
    return rows
