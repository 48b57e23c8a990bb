"""Results as a table in a file: CSV or Parquet, by the ending, whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from ssge.errors import InputError
from ssge.files import atomic


def refuse_existing(files: Iterable[Path], force: bool) -> None:
    """Refuse files that are there already, unless they may be replaced."""
    there = next((file for file in files if file.exists()), None)
    if there is not None and not force:
        raise InputError(f"{there} exists; choose another file, or --force to replace it.")


_FORMULA = r"^[=+\-@\t\r]"


def without_formulas(table: Any) -> Any:
    """Return a pyarrow table whose text no spreadsheet takes for a formula: ``=1+1`` becomes ``'=1+1``.

    Names of columns count as well. Ids change with it, so such a table cannot be joined to others by these ids.
    """

    def safe(column: Any) -> Any:
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        quoted = pc.binary_join_element_wise(pa.scalar("'", column.type), column, pa.scalar("", column.type))
        return pc.if_else(pc.match_substring_regex(column, _FORMULA), quoted, column)

    names = [f"'{name}" if re.match(_FORMULA, name) else name for name in table.column_names]
    return pa.table([safe(column) for column in table.columns], names=names)


def write_tables(path: Path, tables: Iterable[Any], safe_csv: bool = False, **how: Any) -> int:
    """Concatenate pyarrow tables with one schema in a file, CSV or Parquet; return the number of rows.

    Tables are made and written one at a time, so their generator decides the memory. There must be one at least.

    Parameters
    ----------
    safe_csv
        Write CSV for spreadsheets, with `without_formulas`. Ids come from files, and one such as ``=cmd|...`` could run
        a program there. Not for Parquet, which no spreadsheet computes.
    **how
        Options of ``pyarrow.parquet.ParquetWriter``.
    """
    rows, writer, text = 0, None, path.suffix.casefold() == ".csv"
    with atomic(path) as temporary, ExitStack() as stack:
        for given in tables:
            table = without_formulas(given) if safe_csv and text else given
            if writer is None:
                schema = table.schema
                opened = csv.CSVWriter(temporary, schema) if text else pq.ParquetWriter(temporary, schema, **how)
                writer = stack.enter_context(opened)
            writer.write_table(table)
            rows += table.num_rows
    return rows
