"""Embeddings as a joinable table: one row a node, columns ``id, e000, e001, ...``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.files import atomic


class Embedding(NamedTuple):
    """Vectors and the ids of the nodes they belong to."""

    node_ids: NDArray[Any]
    vectors: NDArray[np.floating[Any]]


def column_names(d: int) -> list[str]:
    """Return the names of d embedding columns, as wide as the last needs but three digits at least."""
    digits = max(3, len(str(d - 1)))
    return [f"e{i:0{digits}d}" for i in range(d)]


def write_embedding(path: Path, node_ids: NDArray[Any], vectors: NDArray[np.floating[Any]]) -> None:
    """Write a Parquet file, whole or not at all; the same input gives the same bytes.

    Parameters
    ----------
    path
        The file; its folder is made if need be.
    node_ids
        One id a row. Integers become int64, strings stay strings, anything else is written as its ``str``.
    vectors
        n x d array.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if vectors.ndim != 2 or node_ids.shape != vectors.shape[:1]:
        raise InputError(f"vectors must be a matrix with {node_ids.size} rows, one an id; received {vectors.shape}.")
    columns = [_id_column(node_ids), *(pa.array(np.ascontiguousarray(column)) for column in vectors.T)]
    table = pa.table(columns, names=["id", *column_names(vectors.shape[1])])
    with atomic(path) as temporary:
        # Floats of full precision hardly compress: a dictionary or a codec would only cost time.
        pq.write_table(table, temporary, compression="none", use_dictionary=False, write_statistics=["id"])


def _id_column(node_ids: NDArray[Any]) -> Any:
    import pyarrow as pa

    if np.issubdtype(node_ids.dtype, np.integer) and np.can_cast(node_ids.dtype, np.int64):
        return pa.array(node_ids.astype(np.int64))
    ids = node_ids.tolist()
    if all(isinstance(i, int) and not isinstance(i, bool) and abs(i) < 2**63 for i in ids):
        return pa.array(ids, pa.int64())
    texts = [str(i) for i in ids]
    if len(set(texts)) < len(texts):
        twice = next(text for text, count in Counter(texts).items() if count > 1)
        raise InputError(f"node_ids must differ when written as text; {twice!r} occurs more than once.")
    return pa.array(texts, pa.string())


def read_embedding(path: Path) -> Embedding:
    """Read what `write_embedding` wrote; ids come back as int64 or as strings."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"No such file: {path}.")
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    names = table.column_names
    if len(names) < 2 or names != ["id", *column_names(len(names) - 1)]:
        raise InputError(f"{path} must have the columns id, e000, ...; received {', '.join(names[:4])}, ...")
    for field, column in zip(table.schema, table.columns, strict=True):
        allowed = ("int64", "string") if field.name == "id" else ("float", "double")
        if str(field.type) not in allowed or column.null_count:
            found = f"{field.type} with {column.null_count} nulls"
            raise InputError(f"{path}: column {field.name} must be {' or '.join(allowed)}; received {found}.")
    vectors = np.empty((table.num_rows, len(names) - 1), dtype=table.schema.field(1).type.to_pandas_dtype())
    for i, column in enumerate(table.columns[1:]):
        vectors[:, i] = column.to_numpy()
    return Embedding(table.column("id").to_numpy(), vectors)
