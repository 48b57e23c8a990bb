"""From ids of any number to positions: integers by NumPy in memory, text by DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.io.sources import explained

_ROWS = 1 << 18


class Ends(NamedTuple):
    """Some edges: positions of their ends, -1 for an unknown node; weights, if any; an id that no node has, or None."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    unknown: Any


class IntegerIds:
    """Positions of integer ids, 8 bytes a node where they ascend and 24 elsewhere.

    Parameters
    ----------
    batches
        The ids of all nodes in their order.
    """

    def __init__(self, batches: Iterable[NDArray[np.int64]]) -> None:
        ids = np.concatenate(list(batches))
        self.count = ids.size
        self._order = None if (ids[1:] > ids[:-1]).all() else np.argsort(ids, kind="stable")
        self._sorted = ids if self._order is None else ids[self._order]

    def repeated(self) -> Any:
        """Return an id that occurs twice, or None."""
        twice = self._sorted[1:] == self._sorted[:-1]
        return int(self._sorted[1:][twice][0]) if twice.any() else None

    def ends(self, batches: Iterable[tuple[Any, Any, Any]]) -> Iterator[Ends]:
        """Yield edges by position, from columns with the ids of sources and targets, and weights or None."""
        for source, target, weights in batches:
            pair = [self._positions(column) for column in (source, target)]
            both = zip((source, target), pair, strict=True)
            unknown = next((ids[np.argmin(found)] for ids, found in both if found.min() < 0), None)
            yield Ends(pair[0], pair[1], weights, unknown)

    def _positions(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.minimum(np.searchsorted(self._sorted, values), self.count - 1)
        return np.where(self._sorted[at] == values, at if self._order is None else self._order[at], -1)


class TextIds:
    """Positions of text ids, by joins in DuckDB, which spills to disk.

    Each statement has one operator that must see all of its input, because the limit of memory holds for each such
    operator, not for their sum.

    Parameters
    ----------
    folder
        For what the database cannot hold in memory.
    memory
        Bytes that it may take.
    batches
        The ids of all nodes in their order, as pyarrow columns of text.
    """

    def __init__(self, folder: Path, memory: int, batches: Iterable[Any]) -> None:
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
        self._database = duckdb.connect(config=config)
        self._run("CREATE TABLE nodes (id VARCHAR, position BIGINT)")
        self.count = 0
        for column in batches:
            position = np.arange(self.count, self.count + len(column))
            self.count += len(column)
            self._run("INSERT INTO nodes SELECT * FROM given", {"id": column, "position": position})

    def repeated(self) -> Any:
        """Return an id that occurs twice, or None."""
        found = self._run("SELECT id FROM nodes GROUP BY id HAVING count(*) > 1 LIMIT 1").fetchall()
        return found[0][0] if found else None

    def ends(self, batches: Iterable[tuple[Any, Any, Any]]) -> Iterator[Ends]:
        """Yield edges by position, from pyarrow columns with the ids of sources and targets, and weights or None."""
        self._run("CREATE TABLE edges (source VARCHAR, target VARCHAR, weight DOUBLE)")
        for source, target, weights in batches:
            weight = np.full(len(source), np.nan) if weights is None else weights
            self._run("INSERT INTO edges SELECT * FROM given", {"source": source, "target": target, "weight": weight})
        self._run(
            "CREATE TABLE half AS SELECT coalesce(position, -1) AS source, "
            "CASE WHEN position IS NULL THEN source END AS unknown, target, weight "
            "FROM edges LEFT JOIN nodes ON source = id"
        )
        self._run("DROP TABLE edges")
        query = (
            "SELECT source, coalesce(position, -1) AS target, weight, "
            "coalesce(unknown, CASE WHEN position IS NULL THEN target END) AS unknown "
            "FROM half LEFT JOIN nodes ON target = id"
        )
        for batch in self._run(query).to_arrow_reader(_ROWS):
            source, target, weight = (batch.column(name).to_numpy() for name in ("source", "target", "weight"))
            unknown = batch.column("unknown").drop_null()
            weights = None if np.isnan(weight).any() else weight
            yield Ends(source, target, weights, unknown[0].as_py() if len(unknown) else None)
        self._run("DROP TABLE half")

    def _run(self, query: str, given: dict[str, Any] | None = None) -> Any:
        """Run a statement; ``given`` are the columns of a table that it reads."""
        with explained("The ids cannot be matched"):
            if given is not None:
                self._database.register("given", pa.table(given))
            return self._database.sql(query)
