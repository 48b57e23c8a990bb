"""What the reader finds out by itself: header, columns, comments; what it leaves out is said."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ssge
from ssge.graph import Graph

EDGES = pa.table({"source": ["p", "q"], "target": ["q", "r"]})


@pytest.fixture(autouse=True)
def everything_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def edges_of(path: Path, text: str, **options: Any) -> Graph:
    path.write_text(text)
    return ssge.read_graph(path, **{"features": "degree", "direction": "in"} | options)


def pairs(graph: Graph) -> set[str]:
    ids = graph.node_ids
    return {f"{ids[s]}{ids[t]}" for s, t in graph.edges.T}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u,v,2.5\nv,w,1.5\nw,x,3\n", {"uv", "vw", "wx"}),
        ("u,b\nb,c\n", {"ub", "bc"}),
        ("u,v\nv,w\nw,u\n", {"uv", "vw", "wu"}),
        ("from,1\nto,2\n", {"from1", "to2"}),
        ("to 5\n5 6\n", {"to5", "56"}),
    ],
)
def test_a_first_edge_is_not_taken_for_a_header(tmp_path: Path, text: str, expected: set[str]) -> None:
    assert pairs(edges_of(tmp_path / "e.csv", text)) == expected


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("u,v\na,b\n", {}),
        ("Source,TARGET,note\na,b,so\n", {}),
        ("source,target,2024\na,b,5\n", {"weight": "2024"}),
        ("one,two\na,b\n", {"source": "one", "target": "two"}),
        ("one,two,km\na,b,far\n", {"source": "0", "target": "1", "header": True}),
    ],
)
def test_a_header_is_found(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    assert pairs(edges_of(tmp_path / "e.csv", text, **options)) == {"ab"}


def test_digits_that_are_a_position_are_no_name(tmp_path: Path) -> None:
    graph = edges_of(tmp_path / "e.csv", "1,2,3\n2,3,4\n", weight="2")
    assert pairs(graph) == {"12", "23"} and graph.weights is not None


@pytest.mark.parametrize(
    ("text", "ids", "features"),
    [
        ("y,3,1\nx,2,5\n", ["y", "x"], [[3, 1], [2, 5]]),
        ("id,0,1,2\ny,3,1,4\nx,2,5,4\n", ["y", "x"], [[3, 1, 4], [2, 5, 4]]),
        ("id,10,30\n4,3,1\n7,2,5\n", [4, 7], [[3, 1], [2, 5]]),
        ("id,a\ny,3\nx,2\n", ["y", "x"], [[3], [2]]),
    ],
)
def test_header_of_a_node_table(tmp_path: Path, text: str, ids: list[Any], features: list[list[float]]) -> None:
    path = tmp_path / "n.csv"
    path.write_text(text)
    graph = ssge.read_graph(pa.table({"s": ids[:1], "t": ids[1:]}), path)
    assert graph.node_ids.tolist() == ids and graph.features.tolist() == features


def test_a_doubtful_header_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    edges_of(tmp_path / "e.csv", "u,v,2.5\nv,w,1.5\n")
    assert "its first row (u, v, 2.5) is taken as data; header=... overrides this" in caplog.text


def test_what_was_found_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    nodes = tmp_path / "n.tsv"
    nodes.write_text("key\tname\tage\n7\tq\t1\n8\tp\t2\n")
    edges_of(tmp_path / "e.csv", "from;to;weight\np;q;2\n", nodes=nodes, features="table", columns=["age"])
    assert "e.csv: ends 'from' and 'to', weights 'weight'; delimiter ';', the first row is a header." in caplog.text
    assert r"n.tsv: id 'name'; delimiter '\t', the first row is a header." in caplog.text
    edges_of(tmp_path / "e.csv", "1 2\n2 3\n")
    assert "e.csv: ends 'c0' and 'c1', no weights; delimiter ' ', no header." in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b 3\nb c 4\n", "column 3 is not used; weight=2 takes it as weights"),
        ("source,target,w\na,b,3\n", "column 'w' is not used; weight='w' takes it as weights"),
        ("source,target,w,km\na,b,3,4\n", "columns 'w', 'km' are not used; weight='w' takes the first of them"),
    ],
)
def test_columns_not_used_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, message: str) -> None:
    edges_of(tmp_path / "e.csv", text)
    assert message in caplog.text
    caplog.clear()
    edges_of(tmp_path / "e.csv", "source,target,weight,km\na,b,3,4\n", edge_columns=["km"], features=["table"])
    assert "not used" not in caplog.text


def test_comments_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    edges_of(tmp_path / "e.csv", "# made by hand\n\n%\n1,2\n")
    assert "e.csv: 2 comment lines at the top passed over, the first '# made by hand'" in caplog.text
    caplog.clear()
    edges_of(tmp_path / "e.csv", "\ufeff\n1,2\n")
    assert "comment lines" not in caplog.text


def test_columns_by_digits(tmp_path: Path) -> None:
    for header, expected in (("", 3.0), ("source,target,2,km\n", 3.0), ("source,2,target,km\n", 9.0)):
        ends = {"source": "0", "target": "1"} if "2,t" not in header else {}
        row = "a,b,3,9\n" if ends else "a,9,b,3\n"
        graph = edges_of(tmp_path / "e.csv", header + row, weight="2", header=bool(header), **ends)
        assert graph.weights is not None and graph.weights.tolist() == [expected]
    gathered = edges_of(tmp_path / "e.csv", "a,b,3,9\n", edge_columns={"3": "sum"}, features=None)
    assert gathered.features[:, 0].tolist() == [0, 9]


@pytest.mark.parametrize("label", [None, "team", 3])
def test_other_labels_are_no_features(label: Any) -> None:
    nodes = pa.table(
        {"id": ["p", "q", "r"], "age": [1, 2, 3], "Label": ["a", "b", "a"], "team": [0, 1, 1], "y": [2, 1, 2]}
    )
    with pytest.warns(UserWarning, match=r"'Label' looks like a label by its name.*columns=\[\.\.\.\]"):
        graph = ssge.read_graph(EDGES, nodes, label=label, ignore=["team"] if label is None else ())
    assert graph.schema is not None and graph.schema.names == ("age",)
    assert graph.labels is not None and graph.labels.tolist() == ([2, 1, 2] if label is None else [0, 1, 1])
    asked = ssge.read_graph(EDGES, nodes, label="team", columns=["age", "y"])
    assert asked.schema is not None and asked.schema.names == ("age", "y")


@pytest.mark.parametrize("frame", [False, True])
def test_a_matrix_of_zeros_and_ones_is_no_list_of_edges(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, frame: bool
) -> None:
    cycle = np.roll(np.eye(5, dtype=int), 1, axis=1)
    if frame:
        ssge.read_graph(pd.DataFrame(cycle), features="degree")
    else:
        edges_of(tmp_path / "e.csv", "\n".join(",".join(map(str, row)) for row in cycle))
    assert "looks like an adjacency matrix, 5 rows and 5 columns" in caplog.text
    caplog.clear()
    edges_of(tmp_path / "e.csv", "source,target,a,b\n" + "1,0,1,0\n" * 3 + "1,2,1,0\n")
    assert "adjacency matrix" not in caplog.text


def test_a_matrix_with_names_is_no_list_of_edges(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    edges_of(tmp_path / "e.csv", ",a,b,c\na,0,1,2\nb,1,0,0\nc,2,0,0\n")
    assert "looks like an adjacency matrix" in caplog.text


def test_postal_codes_are_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    rows = [
        ("p", "08001", 3),
        ("q", "08002", 4),
        ("r", "90210", 5),
        ("s", "08001", 6),
        ("t", "90210", 7),
        ("u", "08002", 8),
    ]
    path.write_text("id,zip,n\n" + "".join(f"{i},{code},{n}\n" for i, code, n in rows))
    graph = ssge.read_graph(EDGES, path)
    assert graph.schema is not None
    assert graph.schema.names == ("zip=08001", "zip=08002", "zip=90210", "n")
    assert np.array_equal(ssge.read_graph(EDGES, path, like=graph).features, graph.features)
    assert graph.features[0].tolist() == [1, 0, 0, 3]
