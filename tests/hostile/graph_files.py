"""Files that hold a whole graph, and files that hold something else."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from hostile.case import Case, Content, fit, fitted

RING = np.roll(np.eye(6), 1, axis=1)
CSR = {"data": np.ones(6), "indices": np.array([1, 2, 3, 4, 5, 0]), "indptr": np.arange(7), "shape": np.array([6, 6])}
COO = {"data": np.ones(6), "row": np.arange(6), "col": np.array([1, 2, 3, 4, 5, 0]), "shape": np.array([6, 6]), "format": np.array(b"coo")}  # fmt: skip
BENCH = {f"adj_{key}": value for key, value in CSR.items()}
ENDS = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])


class Bomb:
    """A pickle that would leave a trace."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("opened"),)


def npz(**arrays: Any) -> Content:
    return lambda path: np.savez(path, **arrays)


def member(content: bytes, name: str = "data.npy", how: int = zipfile.ZIP_DEFLATED) -> Content:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", how, compresslevel=1) as archive:
            archive.writestr(name, content)

    return write


def header(shape: tuple[int, ...], descr: str = "<f8", version: bytes = b"\x01\x00") -> bytes:
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", len(text)) + text


NPZ: dict[str, tuple[Content, str | int]] = {
    "csr": (npz(**CSR), 6),
    "coo": (npz(**COO), 6),
    "gnn-benchmark": (npz(**BENCH), 6),
    "duplicate entries": (npz(**COO | {"data": np.ones(7), "row": np.arange(7) % 6, "col": np.array([1, 2, 3, 4, 5, 0, 1])}), 6),
    "explicit zeros": (npz(**CSR | {"data": np.array([1.0, 0, 1, 1, 1, 1])}), 6),
    "integers": (npz(**CSR | {"data": np.ones(6, np.int8)}), 6),
    "booleans": (npz(**CSR | {"data": np.ones(6, bool)}), 6),
    "index out of range": (npz(**CSR | {"indices": np.array([1, 2, 3, 4, 5, 99])}), "no matrix"),
    "negative index": (npz(**CSR | {"indices": np.array([1, 2, 3, 4, 5, -1])}), "no matrix"),
    "indptr goes back": (npz(**CSR | {"indptr": np.array([0, 3, 1, 3, 4, 5, 6])}), "no matrix"),
    "indptr too long": (npz(**CSR | {"indptr": np.arange(9)}), "no matrix"),
    "indptr beyond": (npz(**CSR | {"indptr": np.array([0, 1, 2, 3, 4, 5, 9999])}), "no matrix"),
    "indices 1.7": (npz(**CSR | {"indices": np.array([1.7, 2, 3, 4, 5, 0])}), "indices must hold whole numbers; received float64"),
    "indptr 0.5": (npz(**CSR | {"indptr": np.arange(7) + 0.5}), "indptr must hold whole numbers"),
    "rows 1.7": (npz(**COO | {"row": np.arange(6) + 0.7}), "row must hold whole numbers"),
    "huge rows": (npz(**COO | {"row": np.array([0, 1, 2, 3, 4, 2**40])}), "no matrix"),
    "shape 10^12": (npz(**COO | {"shape": np.array([10**12] * 2)}), "declares 1,000,000,000,000 nodes"),
    "shape 2^31": (npz(**COO | {"shape": np.array([2**31] * 2)}), "declares 2,147,483,648 nodes"),
    "negative shape": (npz(**COO | {"shape": np.array([-1, -1])}), "shape"),
    "not square": (npz(**CSR | {"shape": np.array([6, 7])}), "square"),
    "three sides": (npz(**CSR | {"shape": np.array([6, 6, 6])}), "shape"),
    "empty shape": (npz(**CSR | {"shape": np.array([])}), "shape|no matrix"),
    "shape of text": (npz(**CSR | {"shape": np.array(["6", "x"])}), "no matrix|shape"),
    "complex": (npz(**CSR | {"data": np.ones(6) * 1j}), "real numbers"),
    "text": (npz(**CSR | {"data": np.array(["a"] * 6)}), "no matrix|numbers"),
    "dates": (npz(**CSR | {"data": np.array(["2020-01-01"] * 6, "datetime64[D]")}), "no matrix|numbers"),
    "records": (npz(**CSR | {"data": np.zeros(6, [("a", "f8")])}), "no matrix|numbers"),
    "nan": (npz(**CSR | {"data": np.array([np.nan, 1, 1, 1, 1, 1])}), "finite"),
    "negative": (npz(**CSR | {"data": np.array([-1.0, 1, 1, 1, 1, 1])}), "finite"),
    "3e38": (npz(**CSR | {"data": np.full(6, 3e38)}), "overflow|too large|finite|sum"),
    "1e300": (npz(**CSR | {"data": np.full(6, 1e300)}), "finite"),
    "bsr": (npz(**CSR | {"format": np.array(b"bsr")}), "csr, csc or coo"),
    "format of noise": (npz(**CSR | {"format": np.array(b"\xff\xfe")}), "matrix"),
    "no data": (npz(**{key: value for key, value in CSR.items() if key != "data"}), "the array data is missing"),
    "pickled data": (npz(**CSR | {"data": np.array([Bomb()] * 6, object)}), "data"),
    "something else": (npz(a=np.eye(3)), "must hold a scipy matrix"),
    "nothing": (npz(), r"must hold|damaged|empty"),
    "attributes of 10^9": (npz(**BENCH, attr_data=np.ones(1), attr_indices=np.array([0]), attr_indptr=np.array([0, 1, 1, 1, 1, 1, 1]), attr_shape=np.array([6, 10**9])), "declares features 6 x 1,000,000,000"),
    "declares 2^50": (member(header((1 << 50,)) + b"12345678"), "declares .* bytes but does not hold as many"),
    "declares 10^30": (member(header((10**30,)) + b"12345678"), "declares .* bytes but does not hold as many|damaged"),
    "declares -1": (member(header((-1,))), "shape|damaged"),
    "unknown version": (member(header((1,), version=b"\x09\x00")), "damaged|npz"),
    "header is code": (member(b"\x93NUMPY\x01\x00" + struct.pack("<H", 30) + b"__import__('os').getcwd()     "), "damaged"),
    "header deeply nested": (member(b"\x93NUMPY\x02\x00" + struct.pack("<I", 60_000) + b"(" * 60_000), "damaged"),
    "a member of noise": (member(random.Random(0).randbytes(500), how=zipfile.ZIP_STORED), "damaged"),
    "a member upwards": (member(header((1,)) + bytes(8), "../../up.npy"), "must hold a scipy matrix"),
    "encrypted": (lambda path: (member(header((1,)) + bytes(8))(path), path.write_bytes(path.read_bytes().replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01").replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"))), "damaged"),
}  # fmt: skip

MARKET = "%%MatrixMarket matrix coordinate real general\n"
MTX: dict[str, tuple[str, str | int]] = {
    "plain": (MARKET + "3 3 3\n1 2 1\n2 3 1\n3 1 1\n", 3),
    "pattern": ("%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 2\n2 3\n3 1\n", 3),
    "symmetric": ("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1\n3 2 1\n", 3),
    "array": ("%%MatrixMarket matrix array real general\n2 2\n0\n1\n1\n0\n", 2),
    "capitals": ("%%MATRIXMARKET MATRIX COORDINATE REAL GENERAL\n3 3 3\n1 2 1\n2 3 1\n3 1 1\n", r"g\.mtx"),
    "comments": (MARKET + "% a\n%\n\n3 3 3\n1 2 1\n2 3 1\n3 1 1\n", 3),
    "200,000 comments": (MARKET + "% a\n" * 200_000 + "3 3 3\n1 2 1\n2 3 1\n3 1 1\n", 3),
    "header alone": (MARKET, r"g\.mtx"),
    "no sizes": (MARKET + "\n", r"g\.mtx"),
    "sizes of words": (MARKET + "a b c\n", "rows, columns and entries expected"),
    "negative sizes": (MARKET + "-3 -3 1\n1 2 1\n", "rows, columns and entries expected"),
    "sizes of 5,000 digits": (MARKET + "9" * 5000 + " 3 1\n1 2 1\n", "rows, columns and entries expected"),
    "10^12 nodes": (MARKET + "1000000000000 1000000000000 1\n1 2 1\n", "declares 1,000,000,000,000 nodes"),
    "10^10 entries": (MARKET + "3 3 9999999999\n1 2 1\n", "declares 9,999,999,999 entries"),
    "array of 90,000": ("%%MatrixMarket matrix array real general\n90000 90000\n1\n", "declares"),
    "not square": (MARKET + "3 4 1\n1 2 1\n", "square"),
    "too few entries": (MARKET + "3 3 3\n1 2 1.0\n2 3 1.0\n", "declares 3 entries"),
    "too many entries": (MARKET + "3 3 1\n1 2 1\n2 3 1\n3 1 1\n", "declares 1 entries"),
    "index 0": (MARKET + "3 3 2\n0 1 1\n1 2 1\n", "entry 1: row and column must be whole numbers 1..3"),
    "index 9": (MARKET + "3 3 2\n1 2 1\n9 1 1\n", "entry 2: row and column"),
    "index 1.5": (MARKET + "3 3 2\n1 2 1\n1.5 1 1\n", "entry 2: row and column"),
    "index nan": (MARKET + "3 3 2\n1 2 1\nnan 1 1\n", "entry 2: row and column"),
    "a word": (MARKET + "3 3 2\n1 2 x\n2 3 1\n", r"g\.mtx, after line 2"),
    "negative": (MARKET + "3 3 2\n1 2 -1\n2 3 1\n", "finite"),
    "infinite": (MARKET + "3 3 2\n1 2 inf\n2 3 1\n", "finite"),
    "5,000 digits": (MARKET + f"3 3 2\n1 2 {'9' * 5000}\n2 3 1\n", "finite|g.mtx"),
    "complex": ("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1 1\n", "of these kinds"),
    "hermitian": ("%%MatrixMarket matrix coordinate real hermitian\n2 2 1\n1 2 1\n", "of these kinds"),
    "symmetric array": ("%%MatrixMarket matrix array real symmetric\n2 2\n1\n1\n1\n", "of these kinds"),
    "a vector": ("%%MatrixMarket vector coordinate real general\n2 1\n1 1\n", "of these kinds"),
    "no entries": (MARKET + "3 3 0\n", "zero everywhere"),
    "a line of 9 MB": (MARKET + " " * 9_000_000 + "\n3 3 1\n1 2 1\n", 3),
}  # fmt: skip

XML = '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
GRAPH = '<graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="c"/><edge source="a" target="b"/>'
CLOSED = GRAPH + '<edge source="b" target="c"/></graph></graphml>'
GRAPHML: dict[str, tuple[str | bytes, str | int]] = {
    "plain": (XML + CLOSED, 3),
    "directed": (XML + CLOSED.replace("undirected", "directed"), 3),
    "comments": (XML + "<!-- x -->" + CLOSED, 3),
    "UTF-16": ((XML.replace("1.0", "1.0") + CLOSED).encode("utf-16"), "UTF-16"),
    "entities": ('<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>', "declares a document type"),
    "a file as entity": ('<?xml version="1.0"?><!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]><graphml>&a;</graphml>', "declares a document type"),
    "a document type": (XML.replace("\n", '<!DOCTYPE graphml SYSTEM "http://127.0.0.1/x.dtd">') + CLOSED, "declares a document type"),
    "unknown entity": (XML + CLOSED.replace('id="a"', 'id="&x;"'), "damaged or no GraphML"),
    "cut": (XML + GRAPH, "damaged or no GraphML"),
    "no graph": (XML + "</graphml>", "damaged or no GraphML|no nodes"),
    "no nodes": (XML + '<graph edgedefault="undirected"></graph></graphml>', "no nodes"),
    "no edges": (XML + '<graph edgedefault="undirected"><node id="a"/><node id="b"/></graph></graphml>', "no edges"),
    "edge without an end": (XML + GRAPH + '<edge source="a"/></graph></graphml>', "damaged or no GraphML"),
    "other root": ("<?xml version='1.0'?><svg></svg>", "damaged or no GraphML|no nodes"),
    "deeply nested": (XML + "<graph>" * 20_000, "damaged or no GraphML"),
    "number that is none": (XML + '<key id="k" for="node" attr.name="v" attr.type="double"/>' + GRAPH.replace('<node id="c"/>', '<node id="c"><data key="k">x</data></node>') + "</graph></graphml>", "damaged or no GraphML"),
    "unknown type": (XML + '<key id="k" for="node" attr.name="v" attr.type="blob"/>' + CLOSED, "damaged or no GraphML"),
    "attribute of 8 MB": (XML + CLOSED.replace('id="a"', f'id="a" label="{"x" * 8_000_000}"'), 3),
    "escapes in ids": (XML + CLOSED.replace('"a"', '"a&#27;[2J"'), "damaged or no GraphML"),
    "hyperedges": (XML + GRAPH + "<hyperedge/></graph></graphml>", "damaged or no GraphML"),
}  # fmt: skip
GML: dict[str, tuple[str | bytes, str | int]] = {
    "plain": ("graph [ node [ id 1 ] node [ id 2 ] node [ id 3 ] edge [ source 1 target 2 ] edge [ source 2 target 3 ] ]", 3),
    "labels": ('graph [\nnode [ id 1 label "a" ]\nnode [ id 2 label "b" ]\nedge [ source 1 target 2 ]\n]', 2),
    "on one line": ('graph [ node [ id 1 label "a" ] node [ id 2 label "b" ] edge [ source 1 target 2 ] ]', 2),
    "cut": ("graph [ node [ id 1 ", "damaged or no GML"),
    "no edges": ("graph [ node [ id 1 ] ]", "no edges"),
    "no nodes": ("graph [ ]", "no nodes"),
    "unknown end": ("graph [ node [ id 1 ] edge [ source 1 target 9 ] ]", "damaged or no GML"),
    "an id twice": ("graph [ node [ id 1 ] node [ id 1 ] edge [ source 1 target 1 ] ]", "damaged or no GML"),
    "no id": ("graph [ node [ label \"a\" ] ]", "damaged or no GML"),
    "deeply nested": ("graph [ " + "a [ " * 5_000, "damaged or no GML"),
    "Latin-1": (b"graph [ node [ id 1 label \"caf\xe9\" ] ]", "not UTF-8"),
    "5,000 digits": (f"graph [ node [ id {'9' * 5000} ] ]", "damaged or no GML"),
    "noise": (b"graph [ \x01\x02\x03 ]", "damaged or no GML"),
}  # fmt: skip


def save(value: Any) -> Content:
    return lambda path: torch.save(value, path)


PT: dict[str, tuple[Content, str | int]] = {
    "Data": (save(Data(x=torch.eye(6), edge_index=ENDS)), 6),
    "dict": (save({"x": torch.eye(6), "edge_index": ENDS}), 6),
    "tuple": (save((Data(x=torch.eye(6), edge_index=ENDS), None)), 6),
    "half": (save({"x": torch.eye(6).bfloat16(), "edge_index": ENDS}), 6),
    "a program": (save(Bomb()), "damaged, or holds more than"),
    "a program inside": (save({"x": torch.eye(6), "edge_index": ENDS, "b": Bomb()}), "damaged, or holds more than"),
    "a module": (save(torch.nn.Linear(2, 2)), "damaged, or holds more than"),
    "no edges": (save(Data(x=torch.eye(3))), r"g\.pt"),
    "a tensor": (save(torch.eye(3)), r"g\.pt"),
    "a number": (save(3), r"g\.pt"),
    "an empty list": (save([]), r"g\.pt"),
    "ends out of range": (save({"x": torch.eye(3), "edge_index": ENDS}), "edges"),
    "negative ends": (save({"x": torch.eye(6), "edge_index": -ENDS}), "edges"),
    "ends of floats": (save({"x": torch.eye(6), "edge_index": ENDS + 0.5}), "edges"),
    "three rows of ends": (save({"x": torch.eye(6), "edge_index": torch.cat([ENDS, ENDS[:1]])}), "edges"),
    "end 10^15": (save({"edge_index": torch.tensor([[0, 10**15], [1, 0]])}), "declares"),
    "stride 0": (save({"edge_index": torch.zeros(1, dtype=torch.long).expand(2, 10**13)}), "unpacks to"),
    "stride 0 features": (save({"x": torch.zeros(1).expand(10**8, 10**4), "edge_index": ENDS}), "unpacks to"),
    "quantized": (save({"x": torch.quantize_per_tensor(torch.eye(6), 0.1, 0, torch.qint8), "edge_index": ENDS}), r"g\.pt"),
    "sparse": (save({"x": torch.eye(6).to_sparse(), "edge_index": ENDS}), 6),
    "sparse, declares 10^12": (save({"x": torch.sparse_coo_tensor(torch.tensor([[0], [0]]), torch.ones(1), (10**12, 2), check_invariants=False), "edge_index": ENDS}), "declares"),
    "num_nodes 10^12": (save(Data(edge_index=ENDS, num_nodes=10**12)), "declares"),
    "num_nodes -1": (save(Data(edge_index=ENDS, num_nodes=-1)), r"g\.pt"),
    "negative weights": (save(Data(x=torch.eye(6), edge_index=ENDS, edge_weight=-torch.ones(6))), "weights"),
    "weights of others": (save(Data(x=torch.eye(6), edge_index=ENDS, edge_weight=torch.ones(3))), "weights"),
    "a pickle in old form": (lambda path: torch.save(Bomb(), path, _use_new_zipfile_serialization=False), r"g\.pt"),
    "a zip of text": (member(b"text", "a.txt"), r"g\.pt"),
    "a pickle": (pickle.dumps(Bomb()), "is a pickle"),
}  # fmt: skip


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


EDGES = pa.table({"source": list("abcdef"), "target": list("bcdefa")})
WHOLE = parquet_bytes(EDGES)
NOT_TEXT = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]
)
PARQUET: dict[str, tuple[Content, str | int]] = {
    "plain": (WHOLE, 6),
    "zstd": (parquet_bytes(EDGES, compression="zstd"), 6),
    "large text": (parquet_bytes(EDGES.cast(pa.schema([("source", pa.large_string()), ("target", pa.large_string())]))), 6),
    "dictionaries": (parquet_bytes(pa.table({"source": EDGES["source"].dictionary_encode(), "target": EDGES["target"]})), 6),
    "no end": (WHOLE[:-4], "cannot be read as Parquet"),
    "half": (WHOLE[: len(WHOLE) // 2], "cannot be read as Parquet"),
    "magic alone": (b"PAR1", "cannot be read as Parquet"),
    "magic twice": (b"PAR1PAR1", "cannot be read as Parquet"),
    "huge footer": (WHOLE[:-8] + struct.pack("<I", 2**31) + b"PAR1", "cannot be read as Parquet"),
    "footer of noise": (b"PAR1" + random.Random(0).randbytes(300) + struct.pack("<I", 300) + b"PAR1", "cannot be read as Parquet"),
    "no rows": (parquet_bytes(EDGES.slice(0, 0)), "has no rows"),
    "one column": (parquet_bytes(EDGES.select(["source"])), "two columns at least"),
    "text that is none": (parquet_bytes(pa.table({"source": NOT_TEXT, "target": ["a", "b"]})), r"g\.parquet"),
    "real ids": (parquet_bytes(pa.table({"source": [0.5], "target": [1.5]})), "ids must be integers or text"),
    "binary ids": (parquet_bytes(pa.table({"source": [b"a"], "target": [b"b"]})), "ids must be integers or text"),
    "lists as ids": (parquet_bytes(pa.table({"source": [[1]], "target": [[2]]})), "ids must be integers or text"),
    "null ids": (parquet_bytes(pa.table({"source": ["a", None], "target": ["b", "c"]})), "row 2, column 'source': the id is missing"),
    "text and integers": (parquet_bytes(pa.table({"source": ["a"], "target": [1]})), "all integers or all text"),
    "weights of text": (parquet_bytes(EDGES.append_column("weight", [["1"] * 6])), "numbers? expected"),
}  # fmt: skip

OWN_FEATURES: dict[str, tuple[str, Content, str]] = {
    "npz of other nodes": ("g.npz", npz(**BENCH, attr_matrix=np.ones((4, 2))), "features"),
    "npz of NaN": ("g.npz", npz(**BENCH, attr_matrix=np.full((6, 2), np.nan)), "no row has a value"),
    "npz of 1e39": ("g.npz", npz(**BENCH, attr_matrix=np.full((6, 2), 1e39)), "features|finite"),
    "npz of text": ("g.npz", npz(**BENCH, attr_matrix=np.full((6, 2), "x")), "features"),
    "npz, none": ("g.npz", npz(**CSR), "has no node features"),
    "pt of NaN": ("g.pt", save({"x": torch.full((6, 2), torch.nan), "edge_index": ENDS}), "no row has a value"),
    "pt of complex numbers": ("g.pt", save({"x": torch.eye(6) * 1j, "edge_index": ENDS}), r"g\.pt"),
    "pt of three sides": ("g.pt", save({"x": torch.zeros(6, 2, 2), "edge_index": ENDS}), "features"),
    "pt of other nodes": ("g.pt", save({"x": torch.eye(9)[:, :3], "edge_index": ENDS, "num_nodes": 4}), r"g\.pt"),
}
OTHERS: dict[str, tuple[str, Content, str]] = {
    "a workbook": ("g.xlsx", member(b"<x/>", "xl/workbook.xml"), "is a spreadsheet .*save the sheet as CSV"),
    "a workbook called csv": ("g.csv", member(b"<x/>", "xl/workbook.xml"), "is a spreadsheet"),
    "an OpenDocument": ("g.ods", member(b"<x/>", "content.xml"), "is a spreadsheet"),
    "an old workbook": ("g.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "an old Excel workbook"),
    "a zip": ("g.zip", member(b"a,b\n", "e.csv"), "is a zip archive; unpack it and give the file inside"),
    "a zip called csv": ("g.csv", member(b"a,b\n", "e.csv"), "is a zip archive"),
    "bzip2": ("g.csv.bz2", b"BZh9" + bytes(99), "packed with bzip2"),
    "xz": ("g.csv.xz", b"\xfd7zXZ\0" + bytes(99), "packed with xz"),
    "7z": ("g.7z", b"7z\xbc\xaf\x27\x1c" + bytes(99), "a 7z archive"),
    "rar": ("g.rar", b"Rar!" + bytes(99), "a RAR archive"),
    "SQLite": ("g.db", b"SQLite format 3\0" + bytes(99), "an SQLite database"),
    "HDF5": ("g.h5", b"\x89HDF\r\n\x1a\n" + bytes(99), "HDF5"),
    "Feather": ("g.feather", b"ARROW1\0\0" + bytes(99), "Arrow or Feather"),
    "an array": ("g.npy", lambda path: np.save(path, np.eye(3)), "one NumPy array"),
    "a PDF": ("g.pdf", b"%PDF-1.7\n" + bytes(99), "a PDF"),
    "a picture": ("g.png", b"\x89PNG\r\n\x1a\n" + bytes(99), "no format|g.png"),
    "a program": ("g.csv", b"\x7fELF\x02\x01\x01" + bytes(300), "no format|g.csv"),
    "a pickle": ("g.csv", pickle.dumps(Bomb()), "is a pickle"),
    "a pickle of protocol 0": ("g.pkl", pickle.dumps(Bomb(), 0), "is a pickle"),
    "a packed pickle": ("g.csv.gz", gzip.compress(pickle.dumps(Bomb()), mtime=0), "is a pickle"),
    "JSON": ("g.json", json.dumps({"nodes": [], "links": []}), "is JSON"),
    "JSON lines": ("g.jsonl", '{"source": 1, "target": 2}\n' * 3, "is JSON"),
    "deep JSON": ("g.json", "[" * 100_000, "is JSON"),
    "text called npz": ("g.npz", "a,b\n", "ends in .npz but does not begin like such a file"),
    "text called pt": ("g.pt", "a,b\n", "ends in .pt but does not begin"),
    "text called parquet": ("g.parquet", "a,b\n", "ends in .parquet but does not begin"),
    "text called graphml": ("g.graphml", "a,b\n", "ends in .graphml but does not begin"),
    "text called mtx": ("g.mtx", "a,b\n", "ends in .mtx but does not begin"),
    "text called gml": ("g.gml", "a,b\n", "damaged or no GML"),
}  # fmt: skip

SOUND: dict[str, Callable[[Path], Any]] = {
    "g.npz": lambda path: sp.save_npz(path, sp.csr_array(RING)),
    "g.mtx": lambda path: scipy.io.mmwrite(path, sp.csr_array(RING)),
    "g.graphml": lambda path: nx.write_graphml(nx.cycle_graph(6), path),
    "g.gml": lambda path: nx.write_gml(nx.cycle_graph(6), path),
    "g.pt": lambda path: torch.save({"x": torch.eye(6), "edge_index": ENDS}, path),
    "g.parquet": lambda path: path.write_bytes(WHOLE),
    "g.csv.gz": lambda path: path.write_bytes(gzip.compress(b"source,target\na,b\nb,c\nc,a\n", mtime=0)),
}


def damaged(write: Callable[[Path], Any], seed: int) -> Content:
    """Return a writer of a sound file with one to four bytes changed, or cut off, as the seed decides."""

    def change(path: Path) -> None:
        write(path)
        rng, data = random.Random(seed), bytearray(path.read_bytes())
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((0, 0x7F, 0xFF, rng.randrange(256)))
        path.write_bytes(data[: rng.randrange(len(data))] if seed % 3 == 0 else data)

    return change


def cases() -> Iterator[Case]:
    for file, group in (("g.npz", NPZ), ("g.mtx", MTX), ("g.graphml", GRAPHML), ("g.gml", GML), ("g.pt", PT), ("g.parquet", PARQUET)):  # fmt: skip
        for name, (content, expected) in group.items():  # type: ignore[attr-defined]
            yield fit(f"{file[2:]}, {name}", file, content, expected)
    for name, (file, content, says) in OWN_FEATURES.items():
        yield fitted(f"own features, {name}", file, {file: content}, says)
    for name, (file, content, says) in OTHERS.items():
        yield fit(f"other, {name}", file, content, says)
    for file, write in SOUND.items():
        for seed in range(10):
            yield fit(f"{file[2:]}, damaged {seed}", file, damaged(write, seed), None)
    folder: dict[str, Content] = {
        "d/1.parquet": WHOLE,
        "d/2.parquet": parquet_bytes(EDGES.rename_columns(["source", "aim"])),
    }
    yield fitted("folder, other columns", "d", folder, "has the columns", "--features", "degree")
    yield fitted(
        "folder, one damaged",
        "d",
        {"d/1.parquet": WHOLE, "d/2.parquet": WHOLE[:-4]},
        "2.parquet cannot be read",
        "--features",
        "degree",
    )
    yield fitted("folder, two parts", "d", {"d/1.parquet": WHOLE, "d/2.parquet": WHOLE}, 6, "--features", "degree")
    yield fitted("folder, empty", "d", {"d/.keep": ""}, "is a folder without Parquet files", "--features", "degree")
    ogb = {name: gzip.compress(text.encode(), mtime=0) for name, text in {
        "edge.csv.gz": "0,1\n1,2\n2,0\n", "num-node-list.csv.gz": "3\n", "num-edge-list.csv.gz": "3\n", "node-feat.csv.gz": "1,2\n3,4\n5,6\n",
    }.items()}  # fmt: skip
    for name, file, text, expected in (
        ("sound", "edge.csv.gz", "0,1\n1,2\n2,0\n", 3),
        ("ends out of range", "edge.csv.gz", "0,1\n1,9\n2,0\n", "d"),
        ("ends of words", "edge.csv.gz", "0,1\n1,x\n2,0\n", "d"),
        ("ends of reals", "edge.csv.gz", "0,1\n1,1.5\n2,0\n", "d"),
        ("10^12 nodes", "num-node-list.csv.gz", "1000000000000\n", "d"),
        ("no number of nodes", "num-node-list.csv.gz", "x\n", "d"),
        ("other rows of features", "node-feat.csv.gz", "1,2\n3,4\n", "d"),
        ("features of words", "node-feat.csv.gz", "1,2\n3,x\n5,6\n", "d"),
        ("features of nan", "node-feat.csv.gz", "1,2\n3,nan\n5,6\n", "d"),
    ):
        files = {f"d/raw/{key}": value for key, value in ogb.items()} | {
            f"d/raw/{file}": gzip.compress(text.encode(), mtime=0)
        }
        yield Case(
            f"OGB, {name}",
            ("fit", "d", "--epochs", "1", "--widths", "4", "--out", "run", "--quiet"),
            files,
            expected if isinstance(expected, str) else None,
            expected if isinstance(expected, int) else None,
        )
