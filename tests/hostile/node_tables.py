"""Node tables and tables of labels."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from hostile.case import Case, Content, fitted

EDGES = "source,target\n1,2\n2,3\n3,4\n4,1\n"
NODES = "id,v\n1,0.5\n2,1.5\n3,2.5\n4,0.1\n"
HEAD = "id,v\n1,0.5\n2,1.5\n3,2.5\n"


def row(value: str, identity: str = "4") -> str:
    return HEAD + f"{identity},{value}\n"


TABLES: dict[str, tuple[Content, str | int]] = {
    "plain": (NODES, 4),
    "more nodes than edges name": (NODES + "9,1.0\n", 5),
    "mark": (b"\xef\xbb\xbf" + NODES.encode(), 4),
    "in another order": ("id,v\n4,0.1\n2,1.5\n1,0.5\n3,2.5\n", 4),
    "booleans": ("id,v\n1,true\n2,false\n3,true\n4,false\n", 4),
    "categories": ("id,v\n1,x\n2,y\n3,x\n4,y\n", 4),
    "a constant column": ("id,v,w\n1,1,1\n2,1,2\n3,1,3\n4,1,1\n", 4),
    "one feature twice under two names": ("id,v,w\n1,1,1\n2,2,2\n3,3,3\n4,1,1\n", 4),
    "escapes in names": ("id,\x1b[2Jv\n1,1\n2,2\n3,2\n4,1\n", 4),
    "markup in names": ("id,<script>|x|`y`\n1,1\n2,2\n3,2\n4,1\n", 4),
    "markup in levels": ("id,v\n1,<b>|\n2,](x)\n3,<b>|\n4,](x)\n", 4),
    "a name of 100 kB": (f"id,{'v' * 100_000}\n1,1\n2,2\n3,2\n4,1\n", 4),
    "nothing": ("", "n.csv is empty"),
    "only a header": ("id,v\n", "n.csv has a header and no rows"),
    "one column": ("id\n1\n2\n3\n4\n", "one column only"),
    "a node is missing": (HEAD, r"e.csv, line 4, column 'target': the node 4 is not in n.csv"),
    "an id twice": (NODES + "4,2\n", r"line 6, column 'id': the id 4 occurs more than once"),
    "no id": (NODES + ",2\n", "line 6, column 'id': the id is missing"),
    "missing value": (row(""), "line 5, column 'v': the value is missing; --missing impute"),
    "NaN": (row("nan"), "line 5, column 'v': the value is missing"),
    "infinite": (row("inf"), "line 5, column 'v': a value is infinite"),
    "minus infinite": (row("-inf"), "line 5, column 'v': a value is infinite"),
    "1e39": (row("1e39"), "line 5, column 'v': a value is infinite in float32"),
    "1e400": (row("1e400"), "line 5, column 'v'"),
    "5,000 digits": (row("9" * 5000), "line 5, column 'v'"),
    "a word": (row("x"), "line 5, column 'v': most values are numbers, but not 'x'"),
    "a comma": ("id;v\n1;0,5\n2;1,5\n3;2,5\n4;1,0\n", "numbers need a point, not a comma as in '0,5'"),
    "17 for 4": (row("1", "17"), "the node 4 is not in n.csv"),
    "04 for 4": (row("1", "04"), r"the node '?4'? is not in n.csv.*may be '04', written in another way"),
    "4.0 for 4": (row("1", "4.0"), r"the node '?4'? is not in n.csv.*may be '4.0', written in another way"),
    "ids in another column": ("person,name,v\n1,p,0.5\n2,q,1.5\n3,r,2.5\n4,s,0.1\n", "it is in column 'person': --id person takes"),
    "no number at all": ("id,v\n1,p\n2,q\n3,r\n4,s\n", "no node features.*'v' is text"),
    "dates": ("id,v\n1,2020-01-01\n2,2020-01-02\n3,2020-01-03\n4,2020-01-04\n", "no node features.*dates"),
    "labels alone": ("id,class\n1,0\n2,1\n3,0\n4,1\n", "no node features.*'class' looks like a label"),
    "two columns of one name": ("id,v,v\n1,1,1\n2,2,2\n3,3,3\n4,4,5\n", "'v' occurs more than once"),
    "two ids": ("id,id,v\n1,1,1\n2,2,2\n3,3,3\n4,4,5\n", 4),
    "too few fields": (NODES + "5\n", "line 6: 2 fields as in the first row expected, 1 found"),
    "Latin-1": (b"id,v\n1,caf\xe9\n2,b\n3,c\n4,d\n", r"n.csv, line 2: not UTF-8 text"),
    "UTF-16": (NODES.encode("utf-16"), "n.csv is UTF-16 text; save it as UTF-8"),
    "a pickle": (b"\x80\x04}q\x00.", "n.csv is a pickle"),
    "cut gzip": (gzip.compress(NODES.encode() * 20, mtime=0)[:-9], "damaged or cut off"),
    "swapped": ("source,target\n1,2\n", "n.csv"),
}  # fmt: skip


def parquet(table: pa.Table) -> Content:
    return lambda path: pq.write_table(table, path)


IDS = pa.array([1, 2, 3, 4])
PARQUET: dict[str, tuple[pa.Table, str | int]] = {
    "lists": (pa.table({"id": IDS, "v": [[1.0, 2.0]] * 3 + [[0.0, 1.0]]}), 4),
    "lists of other lengths": (pa.table({"id": IDS, "v": [[1.0]] * 3 + [[1.0, 2.0]]}), "row 4, column 'v'"),
    "empty lists": (pa.table({"id": IDS, "v": pa.array([[]] * 4, pa.list_(pa.float64()))}), "'v': the lists are empty|no node features"),
    "lists of text": (pa.table({"id": IDS, "v": [["a"]] * 3 + [["b"]]}), 4),
    "structs": (pa.table({"id": IDS, "v": [{"a": 1}] * 4}), "'v'"),
    "null ids": (pa.table({"id": pa.array([1, 2, 3, None]), "v": [1.0, 2, 3, 4]}), "row 4, column 'id': the id is missing"),
    "only nulls": (pa.table({"id": IDS, "v": pa.nulls(4)}), "'v'"),
    "real ids": (pa.table({"id": [1.0, 2.0, 3.0, 4.0], "v": [1.0, 2, 3, 4]}), "ids must be integers or text; received double"),
    "text ids": (pa.table({"id": ["1", "2", "3", "4"], "v": [1.0, 2, 3, 3]}), 4),
    "unsigned ids": (pa.table({"id": pa.array([1, 2, 3, 2**64 - 1], pa.uint64()), "v": [1.0, 2, 3, 4]}), "64 bits"),
    "decimals": (pa.table({"id": IDS, "v": pa.array([1, 2, 3, 3]).cast(pa.decimal128(21, 2))}), 4),
    "dictionaries": (pa.table({"id": IDS, "v": pa.array(["x", "y", "x", "y"]).dictionary_encode()}), 4),
    "binary": (pa.table({"id": IDS, "v": [b"x", b"y", b"x", b"\xff"]}), "'v'"),
    "times": (pa.table({"id": IDS, "v": pa.array([1, 2, 3, 4]).cast(pa.timestamp("s"))}), "no node features.*'v' holds dates"),
    "no rows": (pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.float64())}), "has no rows"),
    "no columns": (pa.table({}), "n.parquet"),
}  # fmt: skip


def cases() -> Iterator[Case]:
    for name, (content, expected) in TABLES.items():
        yield fitted(f"nodes, {name}", "e.csv", {"e.csv": EDGES, "n.csv": content}, expected, "--nodes", "n.csv")
    for name, (table, wanted) in PARQUET.items():
        files: dict[str, Content] = {"e.csv": EDGES, "n.parquet": parquet(table)}
        yield fitted(f"nodes, Parquet, {name}", "e.csv", files, wanted, "--nodes", "n.parquet")
    for words, says in (
        (("--columns", "w"), "Unknown column in columns"),
        (("--columns", "id"), "must not hold the id"),
        (("--ignore", "w"), "Unknown column in ignore"),
        (("--ignore", "v"), "no node features"),
        (("--id", "w"), "Unknown column in id"),
        (("--label", "w"), "Unknown column in label"),
        (("--missing", "zero"), "missing"),
        (("--scale", "max"), "scale"),
        (("--unknown", "keep"), "unknown"),
    ):
        files = {"e.csv": EDGES, "n.csv": NODES}
        yield fitted(f"nodes, {' '.join(words)}", "e.csv", files, says, "--nodes", "n.csv", *words)
    yield fitted(
        "nodes, tables swapped", "n.csv", {"e.csv": EDGES, "n.csv": NODES},
        "n.csv one for ids: give the edges first, and the nodes as --nodes", "--nodes", "e.csv",
    )  # fmt: skip


LABELS: dict[str, tuple[str | bytes, str | None]] = {
    "plain": ("id,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(1, 21)), None),
    "an id and a no-break space": ("id,label\n" + "".join(f"{i}\u00a0,{'ab'[i % 2]}\n" for i in range(1, 21)), "20 of 20 labeled ids are not in"),
    "codes 0 and 10^9": ("id,label\n" + "".join(f"{i},{(i % 2) * 10**9}\n" for i in range(1, 21)), None),
    "labels of 5,000 digits": ("id,label\n" + "".join(f"{i},{'9' * 5000}{i % 2}\n" for i in range(1, 21)), None),
    "escapes in labels": ("id,label\n" + "".join(f"{i},\x1b[3{i % 2}m\n" for i in range(1, 21)), None),
    "all empty": ("id,label\n" + "".join(f"{i},\n" for i in range(1, 21)), "label"),
    "one class": ("id,label\n" + "".join(f"{i},a\n" for i in range(1, 21)), "class"),
    "one node of a class": ("id,label\n1,a\n2,b\n3,b\n4,b\n", "class|fold|label"),
    "all ids unknown": ("id,label\nx,a\ny,b\n", "2 of 2 labeled ids are not in the embedding, such as 'x'"),
    "ids 01, 02": ("id,label\n" + "".join(f"0{i},{'ab'[i % 2]}\n" for i in range(1, 10)), "it may be 1, written in another way"),
    "ids 1.0, 2.0": ("id,label\n" + "".join(f"{i}.0,{'ab'[i % 2]}\n" for i in range(1, 10)), "it may be 1, written in another way"),
    "an id twice": ("id,label\n1,a\n2,b\n1,a\n", "line 4: the id '1' has a label already"),
    "no id": ("id,label\n1,a\n,b\n", "line 3, column 'id': the id is missing"),
    "one column": ("id\n1\n", "one column only"),
    "three columns": ("id,u,v\n1,a,b\n2,b,a\n", "label must name the column|label"),
    "nothing": ("", "is empty"),
    "a pickle": (b"\x80\x04}q\x00.", "is a pickle"),
    "Latin-1": (b"id,label\n1,caf\xe9\n2,b\n", "not UTF-8 text"),
}  # fmt: skip


def label_cases(embedding: bytes) -> Iterator[Case]:
    """Yield tables of labels for an embedding of the nodes 1 to 34."""
    for name, (content, says) in LABELS.items():
        files: dict[str, Content] = {"e.parquet": embedding, "l.csv": content}
        words = ("classify", "e.parquet", "--labels", "l.csv", "--folds", "2", "--quiet")
        yield Case(f"labels, {name}", words, files, says, None if says else -1)
    sound: dict[str, Content] = {"e.parquet": embedding, "l.csv": LABELS["plain"][0]}
    for words, says in (
        (("--folds", "1"), "folds"),
        (("--folds", "0"), "folds"),
        (("--seed", "-1"), "seed"),
        (("--seed", "9" * 30), "seed"),
        (("--id", "nope"), "Unknown column"),
        (("--label", "id"), "two columns"),
        (("--out", "p.xlsx"), "Unknown ending of a table"),
        (("--out", "l.csv"), "l.csv exists; choose another file, or --force"),
    ):
        yield Case(
            f"labels, {' '.join(words)[:40]}",
            ("classify", "e.parquet", "--labels", "l.csv", *words, "--quiet"),
            sound,
            says,
        )
