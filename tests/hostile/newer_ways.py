"""JSON of bags, databases, graph folders, and the commands that write pages, pairs and vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from hostile.case import FIT, Case, Content, fitted

EDGES = "source,target\n1,2\n2,3\n3,4\n4,1\n"
BAGS: dict[str, tuple[str | bytes, str | int]] = {
    "plain": ('{"1": [3, 4], "2": [4], "3": [], "4": [3, 9]}', 4),
    "text": ('{"1": ["a"], "2": ["b"], "3": ["a", "b"], "4": ["b"]}', 4),
    "not JSON": ('{"1": [3', "cannot be read as JSON"),
    "a list": ("[1, 2]", "must hold one JSON object"),
    "records": ('[{"id": 1, "v": 2}]', "must hold one JSON object"),
    "a number": ('{"1": 3}', "a list of ids expected"),
    "lists of reals": ('{"1": [0.5]}', "a list of ids expected"),
    "lists of lists": ('{"1": [[1]]}', "a list of ids expected"),
    "lists of null": ('{"1": [null]}', "a list of ids expected"),
    "a node twice": ('{"1": [1], "1": [2]}', "occurs more than once"),
    "nothing": ("{}", "has no nodes"),
    "deeply nested": ('{"1": ' + "[" * 100_000, "nested too deeply|cannot be read"),
    "5,000 digits": ('{"1": [' + "9" * 5000 + "]}", "cannot be read as JSON"),
    "2^70": (f'{{"1": [{2**70}], "2": [1], "3": [1], "4": [2]}}', 4),
    "NaN": ('{"1": [NaN]}', "a list of ids expected"),
    "half a surrogate": ('{"1": ["\\ud800"], "2": [], "3": [], "4": []}', "no text"),
    "not UTF-8": (b'{"1": ["\xff"]}', "cannot be read as JSON"),
    "a node is missing": ('{"1": [1]}', "is not in"),
    "escapes": ('{"1": ["\\u001b[2J"], "2": ["b"], "3": ["b"], "4": ["b"]}', 4),
}


def database(*statements: str) -> Content:
    def write(path: Path) -> None:
        with duckdb.connect(str(path)) as connection:
            for statement in statements:
                connection.sql(statement)

    return write


RING = "CREATE TABLE e AS SELECT i AS source, (i + 1) % 6 AS target FROM range(6) t(i)"
SQL: dict[str, tuple[Content, str, str | int]] = {
    "plain": (database(RING), "edges=e", 6),
    "a query": (database(RING), "edges=SELECT source, target FROM e", 6),
    "no such table": (database(RING), "edges=x", "g.db"),
    "no edges": (database(RING), "", "needs edges=TABLE"),
    "another part": (database(RING), "edges=e&more=x", "more"),
    "two statements": (database(RING), "edges=SELECT 1; DROP TABLE e", "one SELECT"),
    "a deletion": (database(RING), "edges=DROP TABLE e", "one SELECT"),
    "a copy": (database(RING), "edges=COPY e TO 'out.csv'", "one SELECT"),
    "another file": (database(RING), "edges=SELECT * FROM read_csv('/etc/passwd')", "g.db"),
    "a view of another file": (database("CREATE TABLE r AS SELECT 1 AS a"), "edges=SELECT * FROM 'r.csv'", "g.db"),
    "a setting": (database(RING), "edges=SET enable_external_access = true", "one SELECT"),
    "not a database": (b"SQLite format 3\0" + bytes(500), "edges=e", "g.db"),
    "noise": (bytes(range(256)) * 40, "edges=e", "g.db"),
    "one column": (database("CREATE TABLE e AS SELECT 1 AS source"), "edges=e", "two columns"),
    "no rows": (database("CREATE TABLE e (source INT, target INT)"), "edges=e", "no rows"),
}

MANIFEST: dict[str, Callable[[dict[str, object]], object]] = {
    "10^12 nodes": lambda facts: facts.update(nodes=10**12),
    "-1 nodes": lambda facts: facts.update(nodes=-1),
    "nodes are text": lambda facts: facts.update(nodes="many"),
    "other edges": lambda facts: facts.update(edges=3),
    "other features": lambda facts: facts.update(features=10**9),
    "no sizes": lambda facts: facts.pop("nodes"),
    "files is a list": lambda facts: facts.update(files=[1]),
    "files upwards": lambda facts: facts["files"].update({"../x": {"bytes": 0}}),  # type: ignore[attr-defined]
    "another version": lambda facts: facts.update(version=99),
    "class_names is a number": lambda facts: facts.update(class_names=3),
    "name is a list": lambda facts: facts.update(name=[]),
    "max_degree is text": lambda facts: facts.update(max_degree="x"),
}


def folder_of(graph: dict[str, bytes], **changes: bytes | None) -> dict[str, Content]:
    files = graph | {name.replace("__", "."): data for name, data in changes.items() if data is not None}
    return {f"g/{name}": data for name, data in files.items() if changes.get(name.replace(".", "__"), b"") is not None}


def cases(graph: dict[str, bytes], embedding: bytes) -> Iterator[Case]:
    """Yield cases on a graph folder and on an embedding of the nodes 1 to 34, given as bytes."""
    for name, (content, expected) in BAGS.items():
        files: dict[str, Content] = {"e.csv": EDGES, "n.json": content}
        yield fitted(f"JSON, {name}", "e.csv", files, expected, "--nodes", "n.json")
    for name, (content, query, wanted) in SQL.items():
        source = "duckdb:///g.db" + (f"?{query}" if query else "")
        yield fitted(f"database, {name}", source, {"g.db": content}, wanted, "--features", "degree")
    yield fitted("database, no file", "duckdb:///g.db?edges=e", {}, "No such file: g.db", "--features", "degree")
    yield fitted("database, no path", "duckdb:///", {}, "A database is given as", "--features", "degree")
    words = ("fit", "g", *FIT)
    yield Case("graph folder, sound", words, folder_of(graph), None, -1)
    for name in (key for key in graph if key.endswith(".npy")):
        for what, data in {"gone": None, "cut": graph[name][:-9], "noise": bytes(range(256))}.items():
            files = folder_of(graph, **{name.replace(".", "__"): data})
            yield Case(f"graph folder {name}, {what}", words, files, r"\bg\b")
    for what, change in MANIFEST.items():
        facts = json.loads(graph["graph.json"])
        change(facts)
        files = folder_of(graph, graph__json=json.dumps(facts).encode())
        yield Case(f"graph folder, {what}", words, files, r"\bg\b")
    for what, text in {"a list": "[]", "deeply nested": "[" * 100_000, "nothing": "", "noise": "\x01\x02"}.items():
        yield Case(f"graph folder, manifest {what}", words, folder_of(graph, graph__json=text.encode()), r"\bg\b")
    for name, dtype in (("incoming.indptr.npy", "<i8"), ("incoming.indices.npy", "<i4")):
        data = bytearray(graph[name])
        data[-24:] = bytes([0xFF, 0xFF, 0xFF, 0x7F] * 6) if dtype == "<i4" else bytes([9] * 24)
        files = folder_of(graph, **{name.replace(".", "__"): bytes(data)})
        yield Case(f"graph folder {name}, points elsewhere", words, files, r"\bg\b")
    vectors: dict[str, Content] = {"e.parquet": embedding, "mine.parquet": "mine", "mine.html": "mine"}
    for line, says in (
        (("export", "e.parquet", "--out", "mine.parquet"), "mine.parquet exists"),
        (("export", "e.parquet", "--out", "v.xlsx"), "Unknown ending"),
        (("export", "e.parquet", "--out", "v.csv", "--format", "npy"), "needs a file that ends in"),
        (("export", "nowhere", "--out", "v.csv"), "No such"),
        (("map", "e.parquet", "--out", "mine.html"), "mine.html exists"),
        (("map", "e.parquet", "--out", "m.exe"), r"\.exe|ending|html"),
        (("map", "e.parquet", "--out", "m.png", "--color", "nope"), "nope|color|node table"),
        (("map", "e.parquet", "--out", "m.png", "--points", "0"), "points"),
        (("map", "nowhere", "--out", "m.png"), "No such"),
        (("report", "e.parquet", "--out", "mine.html"), "mine.html exists"),
        (("report", "nowhere", "--out", "r.html"), "No such"),
        (("plot", "e.parquet", "losses", "--out", "p.png"), "losses|run"),
        (("plot", "e.parquet", "spectrum", "--out", "p.txt"), "txt|png"),
        (("links", "e.parquet", "karate"), "must have 100 undirected edges or more"),
        (("links", "e.parquet", "karate", "--share", "2"), "share"),
        (("links", "e.parquet", "nowhere.csv"), "No such file"),
        (("links", "e.parquet", "karate", "--of", "nope"), "Unknown node"),
        (("links", "e.parquet"), "edges"),
        (("duplicates", "e.parquet", "-k", "0"), "k must be"),
        (("duplicates", "nowhere"), "No such"),
        (("convert", "nowhere.csv", "--out", "g2"), "No such file|Unknown dataset"),
        (("convert", "karate", "--out", "mine.html"), "folder|mine.html"),
        (("convert", "karate", "--out", "g2", "--memory", "lots"), "--memory"),
        (("convert", "karate", "--out", "g2", "--memory", "-1GB"), "memory"),
    ):
        yield Case(" ".join(line), line, vectors, says)
