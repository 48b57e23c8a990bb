"""From ids of any number to positions: integers in memory, text in a DuckDB file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError, shown

_ROWS = 1 << 18


class Ends(NamedTuple):
    """Some edges: positions of their ends, -1 where a node is not known, and weights if there are any.

    ``strange`` is an id that is not known, or None.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    strange: Any


class IntegerIds:
    """Positions of integer ids, 8 or 24 bytes a node."""

    def add(self, batches: Iterable[NDArray[np.int64]]) -> None:
        """Add the ids of all nodes in their order."""
        ids = np.concatenate(list(batches))
        self.count, self._order = ids.size, None
        self._first = int(ids[0])
        self._dense = int(ids[-1]) - self._first == ids.size - 1 and bool((np.diff(ids) == 1).all())
        if not self._dense:
            self._order = np.argsort(ids, kind="stable")
            self._sorted = ids[self._order]

    def repeated(self) -> Any:
        """Return an id that occurs twice, or None."""
        if self._dense:
            return None
        twice = self._sorted[1:] == self._sorted[:-1]
        return int(self._sorted[1:][twice][0]) if twice.any() else None

    def ends(self, batches: Iterable[tuple[Any, Any, Any]]) -> Iterator[Ends]:
        """Yield edges by position, from columns with the ids of sources and targets, and weights or None."""
        for source, target, weights in batches:
            pair = [self._positions(column) for column in (source, target)]
            both = zip((source, target), pair, strict=True)
            strange = next((ids[np.argmin(found)] for ids, found in both if found.min() < 0), None)
            yield Ends(pair[0], pair[1], weights, strange)

    def close(self) -> None:
        """Nothing is open."""

    def _positions(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._order is None:
            found = values - self._first
            return np.where((found >= 0) & (found < self.count), found, -1)
        at = np.minimum(np.searchsorted(self._sorted, values), self.count - 1)
        return np.where(self._sorted[at] == values, self._order[at], -1)


class TextIds:
    """Positions of text ids, in a DuckDB database on disk.

    Each statement has one operator that must see all of its input, because the limit of memory holds for each such
    operator, not for their sum.

    Parameters
    ----------
    folder
        For the database and what it cannot hold in memory.
    memory
        Bytes that it may take.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        try:
            import duckdb
        except ImportError:
            raise InputError(
                "Text ids of tables of any size need DuckDB: pip install 'ssge[duckdb]', or number the nodes."
            ) from None
        config: dict[str, Any] = {
            "memory_limit": f"{max(memory // 10**6, 200)}MB",
            "temp_directory": str(folder / "spilled"),
            "preserve_insertion_order": "false",
        }
        self._database = duckdb.connect(str(folder / "ids.duckdb"), config=config)

    def add(self, batches: Iterable[Any]) -> None:
        """Add the ids of all nodes in their order, from pyarrow columns of text."""
        import pyarrow as pa

        self.count = 0

        def rows() -> Iterator[Any]:
            for column in batches:
                position = pa.array(np.arange(self.count, self.count + len(column)))
                self.count += len(column)
                yield from pa.table({"id": column.cast(pa.string()), "position": position}).to_batches()

        self._table("nodes", pa.schema({"id": pa.string(), "position": pa.int64()}), rows(), "SELECT * FROM given")

    def repeated(self) -> Any:
        """Return an id that occurs twice, or None."""
        found = self._database.execute("SELECT id FROM nodes GROUP BY id HAVING count(*) > 1 LIMIT 1").fetchone()
        return found[0] if found else None

    def ends(self, batches: Iterable[tuple[Any, Any, Any]]) -> Iterator[Ends]:
        """Yield edges by position, from pyarrow columns with the ids of sources and targets, and weights or None."""
        import pyarrow as pa

        def rows() -> Iterator[Any]:
            for source, target, weights in batches:
                weight = pa.nulls(len(source), pa.float64()) if weights is None else pa.array(weights)
                columns = {"source": source.cast(pa.string()), "target": target.cast(pa.string()), "weight": weight}
                yield from pa.table(columns).to_batches()

        schema = pa.schema({"source": pa.string(), "target": pa.string(), "weight": pa.float64()})
        self._table(
            "half",
            schema,
            rows(),
            "SELECT position AS source, CASE WHEN position IS NULL THEN source END AS strange, target, weight "
            "FROM given LEFT JOIN nodes ON source = id",
        )
        query = (
            "SELECT coalesce(source, -1) AS source, coalesce(position, -1) AS target, weight, "
            "coalesce(strange, CASE WHEN position IS NULL THEN target END) AS strange "
            "FROM half LEFT JOIN nodes ON target = id"
        )
        found: Any = self._database.sql(query).to_arrow_reader(_ROWS)
        for batch in found:
            weight, strange = batch.column("weight"), batch.column("strange")
            other = None if strange.null_count == len(strange) else strange.drop_null()[0].as_py()
            source, target = (batch.column(name).to_numpy() for name in ("source", "target"))
            yield Ends(source, target, None if weight.null_count else weight.to_numpy(), other)
        self._database.execute("DROP TABLE half")

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _table(self, name: str, schema: Any, rows: Iterator[Any], query: str) -> None:
        """Make a table of a query over given rows, which are read once."""
        import pyarrow as pa

        failed: list[BaseException] = []

        def watched() -> Iterator[Any]:
            try:
                yield from rows
            except BaseException as error:  # DuckDB would turn it into an error of its own
                failed.append(error)
                raise

        self._database.register("given", pa.RecordBatchReader.from_batches(schema, watched()))
        try:
            self._database.execute(f"CREATE TABLE {name} AS {query}")
        except Exception as error:
            raise (failed[0] if failed else InputError(f"The ids cannot be matched: {shown(str(error))}.")) from None
        self._database.unregister("given")
