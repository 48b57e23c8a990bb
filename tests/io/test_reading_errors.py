"""What is wrong with a file is said in one line that names the file, the row and the column."""

from __future__ import annotations

import datetime
import gzip
import io
import pickle
import re
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import ssge
from ssge.errors import InputError

NODES = pa.table({"id": ["a", "b"], "v": [1.0, 2.0]})


def refused(message: str, *tables: Any, **options: Any) -> None:
    with pytest.raises(InputError) as caught:
        ssge.read_graph(*tables, **({"features": "degree"} if len(tables) < 2 else {}) | options)
    text = str(caught.value)
    assert re.search(message, text), text
    assert "\n" not in text
    assert len(text) < 600


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"e.csv is empty"),
        (b"\n \n", r"e.csv is empty"),
        (b"# only\n# this\n", r"e.csv is empty but for comments"),
        (b"source,target\n", r"e.csv has a header and no rows"),
        (b"source,target\n\n\n", r"e.csv has a header and no rows"),
        (b"a\nb\n", r"e.csv has one column only.*'a'.*delimiter="),
        (b"1:2\n3:4\n", r"e.csv has one column only.*delimiter="),
        (b"1,2\n3,4\n5\n", r"e.csv, line 3: 2 fields as in the first row expected, 1 found"),
        (b"# c\n1,2\n\n3,4,5\n", r"e.csv, line 4: 2 fields as in the first row expected, 3 found"),
        (b"1 2 3\n4 5 6\n7 8\n", r"e.csv, line 3: 3 fields as in the first row expected, 2 found"),
        (b"source,target,weight\n1,2,1\n\n2,3,heavy\n", r"e.csv, line 4, column 'weight': a number expected, 'heavy'"),
        (b"source,target,weight\n1,2,1\n2,3,-1\n", r"e.csv, line 3, column 'weight': a weight must be .*found -1"),
        (b"source,target,weight\n1,2,\n2,3,1\n", r"e.csv, line 2, column 'weight': a weight must be .*found none"),
        (b"source,target,weight\n1,2,inf\n", r"e.csv, line 2, column 'weight': .*found inf"),
        (b"source,target,weight\n1,2,1e300\n", r"e.csv, line 2, column 'weight': .*found 1e\+300"),
        (b"source;target;weight\n1;2;0,5\n", r"e.csv, line 2, column 'weight': a number expected, '0,5' found"),
        (b"source,target\n1,2\n,3\n", r"e.csv, line 3, column 'source': the id is missing"),
        (b'source,target\n1,2\n4," "\n', r"e.csv, line 3, column 'target': the id is missing"),
        (b"source,target\n1,2\ncaf\xe9,3\n", r"e.csv, line 3: not UTF-8 text \(byte 0xe9\)"),
        ("source,target\n1,2\n".encode("utf-16"), r"e.csv is UTF-16 text; save it as UTF-8"),
        ("source,target\n1,2\n".encode("utf-16-le"), r"e.csv is UTF-16 text without a mark"),
        (b"\x89HDF\r\n\x1a\n\0\0", r"e.csv is HDF5; export its tables"),
        (b"\x01\0\xff" * 9, r"e.csv holds bytes of no format that can be read"),
        (b'"a,b\n1,2\n', r"e.csv"),
        (pickle.dumps({"a": 1}), r"e.csv is a pickle"),
        (gzip.compress(pickle.dumps({"a": 1}), mtime=0), r"e.csv is a pickle"),
        (gzip.compress(b"1,2\n" * 90, mtime=0)[:-9], r"e.csv is damaged or cut off: its gzip"),
        (gzip.compress(b"1,2\n" * 90, mtime=0)[:-6] + b"abcdef", r"e.csv is damaged or cut off: its gzip"),
        (pa.Codec("zstd").compress(b"1,2\n" * 90, asbytes=True)[:-5], r"e.csv is damaged or cut off: its zstd"),
    ],
)
def test_edge_lists(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes(content)
    refused(message, path)


def test_rows_far_below_are_named(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    rows = [f"{i},{i + 1},1\n" for i in range(400_000)]
    rows[354_321] = "5,6,x\n"
    path.write_text("source,target,weight\n" + "".join(rows))
    refused(r"e.csv, line 354323, column 'weight': a number expected, 'x' found", path)
    rows[354_321] = "5,6\n"
    path.write_text("source,target,weight\n" + "".join(rows))
    refused(r"e.csv, line 354323: 3 fields as in the first row expected, 2 found", path)
    rows[354_321] = "5,\udcff6,1\n"
    path.write_text("source,target,weight\n" + "".join(rows), errors="surrogateescape")
    refused(r"e.csv, line 354323: not UTF-8 text", path)


def test_paths_and_objects(tmp_path: Path) -> None:
    refused("No such file: .*nowhere.csv", tmp_path / "nowhere.csv")
    refused("is a folder without Parquet files", tmp_path)
    refused("edges must be a path or a pandas, polars or pyarrow table; received int", 3)
    refused("nodes must be a path .*; received list", pa.table({"u": ["a"], "v": ["b"]}), [1])
    for name in ("g.pkl", "g.gpickle", "g.pickle.gz"):
        (tmp_path / name).write_bytes(b"anything")
        refused("is a pickle, which could run any program", tmp_path / name)
    for name in ("g.parquet", "g.npz", "g.mtx", "g.pt", "g.graphml"):
        (tmp_path / name).write_bytes(b"1,2\n")
        refused(r"ends in \.\w+ but does not begin like such a file", tmp_path / name)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("id,v\na,1\nb,2\na,3\n", r"n.csv, line 4, column 'id': the id 'a' occurs more than once"),
        ("id,v\n a,1\nb,2\na ,3\n", r"n.csv, line 4, column 'id': the id 'a' occurs more than once"),
        ("id,v\na,1\n", r"e.csv, line 2, column 'target': the node 'b' is not in .*n.csv, column 'id'; unknown='add'"),
        ("id,v\na,1\nb,\n", r"n.csv, line 3, column 'v': the value is missing; missing='impute'"),
        ("id,v\na,1\n,2\n", r"n.csv, line 3, column 'id': the id is missing"),
        ("id,v\na,1\nb,inf\n", r"n.csv, line 3, column 'v': a value is infinite"),
        ("id,v\na,1\nb,1e39\n", r"n.csv, line 3, column 'v': a value is infinite in float32"),
        ("id,v\na,1\nb,2\nc,x\n", r"n.csv, line 4, column 'v': most values are numbers, but not 'x'"),
        ("id;v\na;1,5\nb;2,5\nc;3\n", r"n.csv, line 2, column 'v': numbers need a point, not a comma as in '1,5'"),
        ("id,v\na,12\nb,7\nc,008\n", r"n.csv, line 4, column 'v': most values are numbers, but not '008'"),
        ("id,v\n1,5\n2,6\n1,7\n", r"n.csv, line 4, column 'id': the id 1 occurs more than once"),
        ("id,v\na,p\nb,q\nc,r\n", r"no node features.*'v' is text: 3 different values.*columns=\[\.\.\.\]"),
        ("id,v\na,2020-01-01\nb,2020-01-02\n", r"no node features.*'v' holds dates or times"),
        ("id,v\na,\nb,\n", r"n.csv, line 2, column 'v': (the value is missing|no row has a value)"),
        ("id\n", r"n.csv has (a header and no rows|one column only)"),
        ("id,v,v\na,1,1\nb,2,2\n", r"names; 'v' occurs more than once"),
    ],
)
def test_node_tables(tmp_path: Path, nodes: str, message: str) -> None:
    edges = tmp_path / "e.csv"
    edges.write_text("source,target\na,b\n" if "\na" in nodes else "source,target\n1,2\n")
    path = tmp_path / "n.csv"
    path.write_text(nodes)
    refused(message, edges, path)


def test_typed_tables() -> None:
    edges = pa.table({"source": ["a"], "target": ["b"]})
    day = datetime.date(2020, 1, 1)
    refused(r"column 'd' holds dates or times", edges, NODES.append_column("d", [[day, day]]), columns=["d"])
    refused(r"nodes, row 2, column 'l': lists must be as long.*1 found, 2 before", edges,
            NODES.append_column("l", [[[1.5, 2.5], [3.5]]]))  # fmt: skip
    refused(r"column 's' is of type struct", edges, NODES.append_column("s", [[{"a": 1}, {"a": 2}]]), columns=["s"])
    refused(
        r"edges, row 2, column 'source': the id is missing", pa.table({"source": ["a", None], "target": ["b", "c"]})
    )
    refused(r"ids must be integers or text; received double", pa.table({"source": [0.5], "target": [1.5]}))
    refused(r"edges has no rows", edges.slice(1))
    refused(r"two columns at least", edges.select(["source"]))
    refused(r"weight'?: .*number.* expected, string found", edges.append_column("weight", [["1"]]))


def test_options() -> None:
    edges = pa.table({"source": ["a"], "target": ["b"], "km": [1.0]})
    refused(r"Unknown column in source, edges: 'sourc'. Did you mean 'source'", edges, source="sourc", target="km")
    refused(r"both source and target", edges, source="source")
    refused(r"source must be a position 0..2 in edges; received 7", edges, source=7, target=0)
    refused(r"Unknown kind of features 'degre'. Did you mean 'degree'", edges, features="degre")
    refused(r"Unknown aggregation in edge_columns 'median'", edges, edge_columns={"km": "median"})
    refused(r"no node features: features='structural'", edges, features=None)
    refused(r"unknown must be", edges, unknown="keep")
    refused(r"missing must be", edges, missing="zero")
    refused(r"scale must be", edges, scale="max")
    refused(r"direction must be", edges, direction="up")
    refused(r"limit must be", edges, limit=0)
    refused(r"give nodes=", edges, label="y")
    refused(r"columns must be a list", edges, NODES, columns="v")
    refused(r"Unknown column in ignore, nodes: 'w'", edges, NODES, ignore=["w"])
    refused(r"must not hold the id", edges, NODES, columns=["id"])


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"source": ["a", None], "target": ["b", "c"]}), path)
    refused(r"e.parquet, row 2, column 'source': the id is missing", path)
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2, 5):
        path.write_bytes(whole[:cut])
        refused(r"e.parquet cannot be read as Parquet", path)
    folder = tmp_path / "parts"
    folder.mkdir()
    pq.write_table(pa.table({"source": ["a"], "target": ["b"]}), folder / "0.parquet")
    pq.write_table(pa.table({"source": ["a"], "aim": ["b"]}), folder / "1.parquet")
    refused(r"1.parquet has the columns \['source', 'aim'\]", folder)
    pq.write_table(
        pa.table({"source": [None], "target": ["b"]}, pq.read_schema(folder / "0.parquet")), folder / "1.parquet"
    )
    refused(r"1.parquet, row 1, column 'source': the id is missing", folder)


@pytest.mark.parametrize("form", ["gz", "zst", "blanks", "plain"])
def test_threads_of_arrow_own_nothing_of_python(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They go on after an error, and one that frees an object of Python while Python exits aborts the process."""
    text, given = b"source,target\n" + b"a,b\nb,c\n" * 50, []
    pack = {"gz": gzip.compress, "zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True)}
    path = tmp_path / "e.csv"
    path.write_bytes(pack.get(form, bytes)(text.replace(b",", b"  ") if form == "blanks" else text))
    real = pyarrow.csv.read_csv

    def spy(source: Any, *options: Any) -> Any:
        given.append(source)
        return real(source, *options)

    monkeypatch.setattr(pyarrow.csv, "read_csv", spy)
    monkeypatch.setattr(pa, "py_buffer", lambda data: pytest.fail("memory of Python"))
    before = pa.total_allocated_bytes()
    assert ssge.read_graph(path, features="degree").num_nodes == 3
    (source,) = given
    assert isinstance(source, pa.OSFile | pa.BufferReader)
    if isinstance(source, pa.BufferReader):  # the text is in memory of Arrow as long as the source lives
        held = pa.total_allocated_bytes() - before
        del source
        given.clear()
        deadline = time.monotonic() + 60
        while held - (pa.total_allocated_bytes() - before) < 400:  # a thread may still hold the source
            assert time.monotonic() < deadline, "the source is gone, its memory is not"


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.csr_array(np.eye(3)[[1, 2, 0]]))
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) // 2):
        path.write_bytes(whole[:cut])
        refused(r"a.npz is damaged or no npz", path)
    refused(r"must hold a scipy matrix", npz(path, a=np.eye(2)))
    good = {"data": np.ones(1), "indptr": np.array([0, 1, 1]), "indices": np.array([1]), "shape": np.array([2, 2])}
    refused(r"the arrays ... are no matrix", npz(path, **good | {"indices": np.array([7])}))
    refused(r"square", npz(path, **good | {"shape": np.array([2, 3])}))
    refused(r"received bsr", npz(path, **good | {"format": np.array(b"bsr")}))
    refused(r"weights, entry 0 .*must be finite", npz(path, **good | {"data": np.array([-1.0])}))
    refused(r"the array data is missing", npz(path, **{k: v for k, v in good.items() if k != "data"}))
    objects = good | {"data": np.array([{}], dtype=object)}
    refused(r"the array data is missing", npz(path, **objects))


def header_of(shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def test_sizes_are_checked_before_memory_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.npy", header_of((1 << 50,)) + b"12345678")
    refused(r"the array 'data' declares .* bytes but does not hold as many", path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", header_of((1 << 20,)) + bytes(8 << 20))
    refused(r"a.npz unpacks to 8,388,736 bytes or more, more than limit=1,000,000 bytes", path, limit=1_000_000)
    coo = {"row": np.array([0]), "col": np.array([1]), "data": np.ones(1), "format": np.array(b"coo")}
    refused(r"declares 1,000,000,000,000 nodes", npz(path, **coo, shape=np.array([10**12, 10**12])))
    market = tmp_path / "a.mtx"
    for sizes in ("1000000000000 1000000000000 1", "3 3 99999999999", "9 9"):
        market.write_text(f"%%MatrixMarket matrix coordinate real general\n{sizes}\n1 2 1\n")
        refused(r"a.mtx(, line 2: rows, columns and| declares)", market)
    for body in ("1 2 1\n", "1 2 1\n4 1 1\n", "1 2 1\n1.5 1 1\n", "1 2\n2 3\n", "1 2 x\n2 3 1\n", "1 2 -1\n2 3 1\n"):
        market.write_text(f"%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n{body}")
        refused(
            r"a.mtx(, entry 2: row and| declares 2 entries|, after line 3: .* at row 0|: weights, entry 0 .* finite)",
            market,
        )
    market.write_text("%%MatrixMarket matrix array real general\n90000 90000\n1\n")
    refused(r"a.mtx declares", market)
    bomb = tmp_path / "e.csv.gz"
    bomb.write_bytes(gzip.compress(b"1,2\n" * 500_000, mtime=0))
    refused(
        r"e.csv.gz unpacks to .* bytes or more, more than limit=1,000,000 bytes; a larger limit=", bomb, limit=1_000_000
    )
    bomb.write_bytes(pa.Codec("zstd").compress(b"1,2\n" * 500_000, asbytes=True))
    refused(r"e.csv.gz unpacks to .* more than limit", bomb, limit=1_000_000)
    runs = tmp_path / "e.parquet"
    pq.write_table(pa.table({"source": np.zeros(400_000, int), "target": np.ones(400_000, int)}), runs)
    assert runs.stat().st_size < 100_000
    refused(r"e.parquet unpacks to", runs, limit=1_000_000)


def test_graphml_with_entities(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    path.write_text('<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>')
    refused(r"g.graphml declares a document type", path)
    path.write_text('<?xml version="1.0"?><graphml><graph edgedefault="undirected"><node id="a"')
    refused(r"g.graphml is damaged or no GraphML", path)
    (tmp_path / "g.gml").write_text("graph [ node [ id 1 ")
    refused(r"g.gml is damaged or no GML", tmp_path / "g.gml")
    (tmp_path / "g.gml").write_text("graph [ node [ id 1 ] ]")
    refused(r"g.gml has no edges", tmp_path / "g.gml")


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    for content in ('{"nodes": [], "links": []}', '\n[{"source": 1, "target": 2}]'):
        path.write_text(content)
        refused(r"g.json is JSON, which is read as features of nodes alone, .*.*to_csv.*node_link_graph", path)
    path.write_text("source,target\n1,2\n")
    assert ssge.read_graph(path, features="degree").node_ids.tolist() == [1, 2]
    path = tmp_path / "g.csv"
    path.write_text('[{"source": 1, "target": 2}]')  # would be an edge from [{"source": 1 to "target": 2}]
    refused(r"g.csv is JSON", path)


def test_columns_that_were_asked_for_with_decimal_commas(tmp_path: Path) -> None:
    edges, path = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("source,target\na,b\n")
    path.write_text("id;v\na;1,5\nb;2\n")
    refused(r"n.csv, line 2, column 'v': numbers need a point, not a comma as in '1,5'", edges, path, columns=["v"])


def test_ids_in_another_column_of_the_node_table_are_pointed_at() -> None:
    """A column called name is taken as ids before the first one."""
    edges = pa.table({"source": ["k", "l"], "target": ["l", "m"]})
    nodes = {"account": list("xyz"), "person": list("klm"), "name": list("abc"), "v": [0.5, 1.5, 2.5]}
    with pytest.raises(InputError, match=r"'k' is not in .*it is in column 'person': id='person' takes that as ids"):
        ssge.read_graph(edges, pa.table(nodes))
    assert ssge.read_graph(edges, pa.table(nodes), id="person").node_ids.tolist() == list("klm")
    with pytest.raises(InputError, match=r"lets it through") as caught:
        ssge.read_graph(edges, pa.table(nodes | {"person": list("rst")}))
    assert "takes that" not in str(caught.value)
