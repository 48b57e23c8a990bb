"""Random and damaged files: either the right graph or one `InputError`, never anything else."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import ssge
from ssge.errors import InputError
from ssge.graph import Graph

BLANKS = " \t\n\v\f\r"
Truth = tuple[list[Any], dict[tuple[Any, Any], float]]


def cases(number: int) -> settings:
    return settings(
        max_examples=number, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def truth(rows: list[tuple[str, str, float]]) -> Truth:
    """Return ids and weights of a directed graph, found with nothing but Python."""
    rows = [(a.strip(BLANKS), b.strip(BLANKS), w) for a, b, w in rows]
    ends: list[Any] = [end for row in rows for end in row[:2]]
    kind: Callable[[str], Any] = str
    if all(re.fullmatch(r"0|-?[1-9][0-9]*", end, re.ASCII) and abs(int(end)) < 2**63 for end in ends):
        kind = int
    found: dict[tuple[Any, Any], float] = {}
    for a, b, weight in rows:
        if a != b and weight > 0:
            found[kind(a), kind(b)] = found.get((kind(a), kind(b)), 0.0) + weight
    return sorted({kind(end) for end in ends}), found


def as_truth(graph: Graph) -> Truth:
    ids = graph.node_ids.tolist()
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    pairs = zip(*graph.edges.tolist(), weights.tolist(), strict=True)
    return ids, {(ids[s], ids[t]): w for s, t, w in pairs}


def read(path: Path, **options: Any) -> Graph:
    graph = ssge.read_graph(path, **{"features": "degree", "direction": "in"} | options)
    n = graph.num_nodes
    assert len(graph.node_ids) == n > 0
    assert graph.edges.shape[0] == 2
    assert not graph.edges.size or 0 <= graph.edges.min() <= graph.edges.max() < n
    assert np.isfinite(graph.features.data).all()
    return graph


integers = st.integers(-(2**65), 2**65).map(str) | st.integers(0, 12).map(str)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\u2028\u2029\x85"), max_size=6)
tricky = st.sampled_from(
    ["007", "1", "+1", "-0", "-7", "NA", "nan", "", " a", "a ", "1.0", "1e3", "#5", 'q"q', "a,b", "x\ny"]
)
ids = st.one_of(integers, words, tricky)
weights = st.floats(2.0**-100, 1e6, width=32) | st.sampled_from([0.0, 1.0, 0.5])


@cases(700)
@given(
    rows=st.lists(st.tuples(ids, ids, weights), min_size=1, max_size=8)
    | st.lists(st.tuples(integers, integers, weights), min_size=1, max_size=8),
    delimiter=st.sampled_from(",\t;|"),
    header=st.booleans(),
    weighted=st.booleans(),
    ending=st.sampled_from(["\n", "\r\n"]),
    packed=st.booleans(),
)
def test_tables_with_known_truth(
    folder: Path,
    rows: list[tuple[str, str, float]],
    delimiter: str,
    header: bool,
    weighted: bool,
    ending: str,
    packed: bool,
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=ending)
    for row in ([("source", "target", "weight")] if header else []) + rows:
        writer.writerow(row[: 3 if weighted else 2])
    content = text.getvalue().encode()
    path = folder / "known.csv"
    path.write_bytes(gzip.compress(content, 1) if packed else content)
    if not weighted:
        rows = [(a, b, 1.0) for a, b, _ in rows]
    options: dict[str, Any] = {"delimiter": delimiter, "header": header, "weight": 2 if weighted else None}
    first = "source" if header else rows[0][0]
    missing = any(not end.strip(BLANKS) for row in rows for end in row[:2])
    try:
        graph = read(path, **options)
    except InputError:
        # Only a missing id is a fault; a first row that looks like a comment, or blank, is passed over as one.
        assert missing or first.lstrip().startswith(("#", "%", '"#', '"%')) or not first.strip(), content
        return
    if first.strip().startswith(("#", "%")) or not (header or any(map(str.strip, rows[0][:2]))):
        return
    assert not missing, content
    expected_ids, expected = truth(rows)
    found_ids, found = as_truth(graph)
    assert found_ids == expected_ids, content
    if weighted:
        assert found.keys() == {pair for pair, w in expected.items() if np.float32(w) > 0}, content
        assert all(np.isclose(w, expected[pair], rtol=1e-5) for pair, w in found.items()), content
    else:
        assert found.keys() == expected.keys(), content


@cases(300)
@given(
    rows=st.lists(st.tuples(integers, integers, weights), min_size=1, max_size=8)
    | st.lists(st.tuples(*[st.text("abcxyz0189_.-", min_size=1, max_size=4)] * 2, weights), min_size=1, max_size=8),
    delimiter=st.sampled_from([",", "\t", ";", "|", " ", "   ", " \t"]),
    top=st.sampled_from(["", "# made\n", "%%\n\n#\n"]),
)
def test_delimiter_and_header_are_found(
    folder: Path, rows: list[tuple[str, str, float]], delimiter: str, top: str
) -> None:
    path = folder / "sniffed.txt"
    lines = [delimiter.join(("source", "target", "weight")), *(delimiter.join(map(str, row)) for row in rows)]
    path.write_text(top + "\n".join(lines))
    expected_ids, expected = truth(rows)
    found_ids, found = as_truth(read(path))
    assert found_ids == expected_ids
    assert found.keys() == expected.keys()


DAMAGE = [b",", b"\n", b"\r", b"\0", b"#", b" ", b"0", b"x", b"\xc3", b"\xff", b"", "é".encode()]


def parsed(content: bytes) -> Truth | None:
    """Read the first two columns of fields divided by commas, no header, no quotes; None if anything is wrong."""
    lines = re.split(rb"\r\n|\n|\r", content)
    while lines and (not lines[0].strip() or lines[0].strip()[:1] in b"#%"):
        lines.pop(0)
    rows = [line.split(b",") for line in lines if line]
    if not rows or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return None
    try:
        ends = [(row[0].decode("utf-8").strip(BLANKS), row[1].decode("utf-8").strip(BLANKS)) for row in rows]
    except UnicodeDecodeError:
        return None
    return truth([(a, b, 1.0) for a, b in ends]) if all(a and b for a, b in ends) else None


@cases(500)
@given(
    rows=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=12),
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(DAMAGE)), min_size=1, max_size=4),
)
def test_damaged_text_is_read_as_a_plain_parser_reads_it(
    folder: Path, rows: list[tuple[int, int]], changes: list[tuple[int, bytes]]
) -> None:
    content = "".join(f"{a},{b}\n" for a, b in rows).encode()
    for place, new in changes:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + 1 :]
    path = folder / "damaged.csv"
    path.write_bytes(content)
    expected = parsed(content)
    try:
        graph = read(path, delimiter=",", header=False)
    except InputError as error:
        assert expected is None or b"\0" in content, (content, str(error))
        assert "\n" not in str(error)
        return
    assert expected is not None, content
    found_ids, found = as_truth(graph)
    assert (found_ids, found.keys()) == (expected[0], expected[1].keys()), content


def network() -> Any:
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    nx.set_node_attributes(graph, {node: float(i) for i, node in enumerate(graph)}, "v")
    return graph


def save_torch(path: Path) -> None:
    torch.save(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, 0])), path)


MATRIX = sp.csr_array(np.roll(np.eye(6), 1, axis=1) * 2)
TABLE = pa.table(
    {"source": [f"n{i}" for i in range(9)], "target": [f"n{i * 2 % 9}" for i in range(9)], "weight": [0.5] * 9}
)
WRITERS: dict[str, Callable[[Path], Any]] = {
    "g.npz": lambda path: sp.save_npz(path, MATRIX),
    "g.mtx": lambda path: scipy.io.mmwrite(path, MATRIX),
    "g.graphml": lambda path: nx.write_graphml(network(), path),
    "g.gml": lambda path: nx.write_gml(network(), path),
    "g.pt": save_torch,
    "g.parquet": lambda path: pq.write_table(TABLE, path),
    "g.csv.gz": lambda path: path.write_bytes(gzip.compress(b"source,target\n1,2\n2,3\n3,14\n" * 1, mtime=0)),
    "g.csv.zst": lambda path: path.write_bytes(pa.Codec("zstd").compress(b"u,v\n1,2\n2,3\n3,14\n", asbytes=True)),
    "g.csv": lambda path: path.write_bytes(b'source,target,weight\n"a ""b""",c,1\nc,"d\ne",2.5\n'),
}
CHECKED = ("g.npz", "g.csv.gz")  # a checksum inside: what can be read is what was written


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_files(folder: Path, name: str) -> None:
    path = folder / name
    WRITERS[name](path)
    whole = path.read_bytes()
    original = as_truth(read(path))

    @cases(120)
    @given(
        changes=st.lists(st.tuples(st.integers(0, len(whole) - 1), st.binary(min_size=0, max_size=3)), max_size=3),
        cut=st.none() | st.integers(0, len(whole)),
    )
    def damage(changes: list[tuple[int, bytes]], cut: int | None) -> None:
        content = whole
        for at, new in changes:
            content = content[:at] + new + content[at + 1 :]
        path.write_bytes(content[:cut])
        try:
            graph = read(path)
        except InputError as error:
            assert "\n" not in str(error)
            assert path.name in str(error)
            return
        if name in CHECKED:
            assert as_truth(graph) == original

    damage()
