"""A DuckDB database as the source of a graph: ``duckdb:///flights.db?edges=routes&nodes=airports``.

Each of ``edges`` and ``nodes`` is a table or view, or a query. The database is opened for reading only, and it cannot
reach other files: one from elsewhere may hold views that would.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ssge.errors import InputError, UnknownNameError
from ssge.io.sources import explained, too_large

SCHEME = "duckdb:///"
_PARTS = ("edges", "nodes")


class Source(NamedTuple):
    """A database, and the table or query of each part of the graph."""

    path: Path
    edges: str
    nodes: str | None

    @property
    def url(self) -> str:
        """The source with the whole path, as a record keeps it."""
        parts = {"edges": self.edges} | ({"nodes": self.nodes} if self.nodes else {})
        return f"{SCHEME}{quote(str(self.path.resolve()))}?{urlencode(parts)}"


def is_sql(source: Any) -> bool:
    """Return whether a source of a graph is a database."""
    return isinstance(source, str) and source.startswith("duckdb:")


def parse(url: str) -> Source:
    """Take a URL apart; ``duckdb:////data/flights.db`` is a whole path."""
    path, _, query = url.partition("?")
    if not path.startswith(SCHEME) or not path.removeprefix(SCHEME):
        raise InputError(f"A database is given as {SCHEME}FILE?edges=TABLE&nodes=TABLE; received {url}.")
    given = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := next((name for name in given if name not in _PARTS), None):
        raise UnknownNameError("part of a graph in a database", unknown, _PARTS)
    if not given.get("edges", "").strip():
        raise InputError(f"A database needs edges=TABLE, or a query, after a question mark; received {url}.")
    return Source(Path(unquote(path.removeprefix(SCHEME))), given["edges"], given.get("nodes") or None)


def read_tables(source: Source, limit: int) -> tuple[Any, Any]:
    """Return the edges and the nodes as pyarrow tables; None for nodes that are not given."""
    try:
        import duckdb
    except ImportError:
        raise InputError("A DuckDB database needs a package that is not here: pip install ssge[duckdb]") from None
    if not source.path.is_file():
        raise InputError(f"No such file: {source.path}.")
    settings: Any = {"enable_external_access": False, "lock_configuration": True}
    with (
        explained(str(source.path)),
        duckdb.connect(str(source.path), read_only=True, config=settings) as connection,
    ):
        tables = [_table(duckdb, connection, part, limit) for part in (source.edges, source.nodes) if part]
    return tables[0], tables[1] if source.nodes else None


def _table(duckdb: Any, connection: Any, part: str, limit: int) -> Any:
    """Return a table by its name, or what a query gives."""
    if len(part.split()) == 1:
        relation = connection.table(part)
    else:
        statements = connection.extract_statements(part)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError(f"edges and nodes must be a table or one SELECT; received {part!r}.")
        relation = connection.sql(part)
    table = relation.to_arrow_table()
    if table.nbytes > limit:
        raise too_large(part, f"gives {table.nbytes:,} bytes", limit)
    return table
