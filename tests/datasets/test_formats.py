"""Small files in the format of each source: read right, and refused when they are broken or hostile."""

from __future__ import annotations

import builtins
import gzip
import json
import os
import pickle
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ssge.datasets import DATASETS, File, from_facts
from ssge.datasets.benchmarks import unpickle
from ssge.errors import InputError
from ssge.graph import Graph

ABSENT = "https://nowhere.invalid/found"


def unchecked(name: str, root: Path) -> Graph:
    """Load files in the place of a known dataset, without a checksum or an address to fetch them from."""
    facts = DATASETS[name]
    files = tuple(File(file.path, ABSENT, member=file.member) for file in facts.files)
    small = dict.fromkeys(("num_nodes", "num_edges", "num_features", "num_classes"))
    return from_facts(replace(facts, files=files, **small), root)


def dense(graph: Graph) -> Any:
    return graph.features.toarray() if sp.issparse(graph.features) else graph.features


# -- planetoid -------------------------------------------------------------------------------------


def write_planetoid(root: Path, **changes: Any) -> None:
    """Five nodes at first, then three of which the middle one is missing from test.index, as in CiteSeer."""
    folder = root / "Cora" / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    allx = np.arange(1.0, 16).reshape(5, 3)
    content = {
        "x": sp.csr_matrix(allx[:2]),
        "allx": sp.csr_matrix(allx),
        "tx": sp.csr_matrix([[0.0, 0, 4], [3, 1, 0]]),
        "y": np.eye(2)[[0, 1]],
        "ally": np.eye(2)[[0, 1, 1, 0, 1]],
        "ty": np.eye(2)[[1, 1]],
        "graph": defaultdict(list, {0: [1, 7], 1: [0], 2: [2, 3], 3: [2], 7: [0]}),
    }
    for suffix, value in (content | changes).items():
        (folder / f"ind.cora.{suffix}").write_bytes(pickle.dumps(value, protocol=3))
    (folder / "ind.cora.test.index").write_text("7\n5\n")


def test_planetoid_puts_test_rows_where_the_index_says(tmp_path: Path) -> None:
    write_planetoid(tmp_path)
    graph = unchecked("cora", tmp_path)
    assert graph.num_nodes == 8
    np.testing.assert_allclose(dense(graph)[0], np.array([1, 2, 3]) / 6)
    np.testing.assert_allclose(dense(graph)[5:], [[0.75, 0.25, 0], [0, 0, 0], [0, 0, 1]])
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 1, 0, 1, 1, 0, 1]
    assert graph.edges.T.tolist() == [[1, 0], [7, 0], [0, 1], [3, 2], [2, 3], [0, 7]]
    assert graph.splits[0].train.tolist() == [0, 1]
    assert graph.splits[0].test.tolist() == [5, 7]


def test_planetoid_files_that_do_not_fit_together(tmp_path: Path, cache: Path) -> None:
    write_planetoid(tmp_path, tx=sp.csr_matrix(np.eye(3)))
    with pytest.raises(InputError, match=r"Cora: the files .* do not fit together"):
        unchecked("cora", tmp_path)


class Hostile:
    def __init__(self, function: Any, argument: str) -> None:
        self.call = (function, (argument,))

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("function", [os.system, builtins.eval, builtins.exec, np.load])
def test_hostile_pickle_is_refused_and_not_run(tmp_path: Path, function: Any, protocol: int) -> None:
    marker, path = tmp_path / "marker", tmp_path / "ind.cora.x"
    code = f"touch {marker}" if function is os.system else f"open({str(marker)!r}, 'w')"
    path.write_bytes(pickle.dumps({"graph": [Hostile(function, code)]}, protocol=protocol))
    with pytest.raises(InputError, match="was refused: it names"):
        unpickle(path)
    assert not marker.exists()


def test_hostile_pickle_among_the_files_of_a_dataset(tmp_path: Path, cache: Path) -> None:
    marker = tmp_path / "marker"
    write_planetoid(tmp_path, graph=Hostile(os.system, f"touch {marker}"))
    with pytest.raises(InputError, match=r"ind\.cora\.graph was refused"):
        unchecked("cora", tmp_path)
    assert not marker.exists()


def test_pickle_cannot_smuggle_a_dotted_name(tmp_path: Path) -> None:
    path = tmp_path / "pickle"
    path.write_bytes(b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.dumps\x93.")
    with pytest.raises(InputError, match=r"names numpy\.ndarray\.dumps"):
        unpickle(path)


@pytest.mark.parametrize("array", [np.array([None, 1], dtype=object), np.array(["a"])])
def test_pickled_arrays_hold_numbers(tmp_path: Path, array: Any) -> None:
    path = tmp_path / "pickle"
    path.write_bytes(pickle.dumps(array, protocol=3))
    with pytest.raises(InputError, match="allowed are numbers"):
        unpickle(path)


def test_truncated_pickle(tmp_path: Path) -> None:
    path = tmp_path / "pickle"
    path.write_bytes(pickle.dumps(np.arange(10), protocol=3)[:-20])
    with pytest.raises(InputError, match="not a readable pickle"):
        unpickle(path)


def test_matrix_with_indices_out_of_range(tmp_path: Path, cache: Path) -> None:
    matrix = sp.csr_matrix([[0.0, 0, 4], [3, 1, 0]])
    matrix.indices[0] = 10**6
    write_planetoid(tmp_path, tx=matrix)
    with pytest.raises(InputError, match="do not fit together"):
        unchecked("cora", tmp_path)


# -- npz -------------------------------------------------------------------------------------------


def write_npz(root: Path, **changes: Any) -> Path:
    path = root / "CS" / "raw" / "ms_academic_cs.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    adjacency = sp.csr_array(np.array([[0, 1, 0], [0, 0, 0], [0, 1, 1]], dtype=np.float32))
    attributes = sp.csr_array(np.array([[2, 0], [0, 1], [0, 3]], dtype=np.float32))
    content = {"labels": np.array([0, 1, 1])}
    for part, matrix in (("adj", adjacency), ("attr", attributes)):
        for key in ("data", "indices", "indptr"):
            content[f"{part}_{key}"] = getattr(matrix, key)
        content[f"{part}_shape"] = np.array(matrix.shape)
    np.savez_compressed(path, **(content | changes))
    return path


def test_npz_is_made_symmetric_and_keeps_counts(tmp_path: Path) -> None:
    write_npz(tmp_path)
    graph = unchecked("coauthor_cs", tmp_path)
    assert graph.edges.T.tolist() == [[1, 0], [0, 1], [2, 1], [1, 2]]
    assert graph.weights is None
    assert dense(graph).tolist() == [[2, 0], [0, 1], [0, 3]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.array([0, None, 1], dtype=object)}, "must hold features and one class per node"),
        ({"adj_indices": np.array([1, 1, 10**6], dtype=np.int32)}, "the arrays adj_... are no matrix"),
        ({"attr_indptr": np.array([0, 1], dtype=np.int32)}, "the arrays attr_... are no matrix"),
        ({"attr_shape": np.array([3, 2, 1])}, r"received csr, shape \(3, 2, 1\)"),
    ],
)
def test_npz_with_wrong_content(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    write_npz(tmp_path, **changes)
    with pytest.raises(InputError, match=rf"ms_academic_cs\.npz.*{message}"):
        unchecked("coauthor_cs", tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_truncated_npz(tmp_path: Path, share: float) -> None:
    path = write_npz(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=r"ms_academic_cs\.npz is damaged"):
        unchecked("coauthor_cs", tmp_path)


def test_damaged_npz(tmp_path: Path) -> None:
    path = write_npz(tmp_path)
    content = bytearray(path.read_bytes())
    content[100:140] = bytes(40)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"ms_academic_cs\.npz is damaged"):
        unchecked("coauthor_cs", tmp_path)


# -- WikiCS ----------------------------------------------------------------------------------------


def wikics_content() -> dict[str, Any]:
    return {
        "features": [[0.5, -1.0], [0.25, 2.0], [1.0, 1.0], [0.0, 3.0]],
        "labels": [0, 1, 1, 0],
        "links": [[1, 1, 0], [], [0], [2]],
        "train_masks": [[True, False, False, False], [False, True, False, False]],
        "val_masks": [[False, True, False, False], [False, False, True, False]],
        "stopping_masks": [[False, False, True, False], [True, False, False, False]],
        "test_mask": [False, False, False, True],
    }


def write_wikics(root: Path, content: Any) -> None:
    path = root / "WikiCS" / "raw" / "data.json"
    path.parent.mkdir(parents=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_wikics(tmp_path: Path) -> None:
    write_wikics(tmp_path, wikics_content())
    graph = unchecked("wikics", tmp_path)
    assert graph.edges.T.tolist() == [[1, 0], [2, 0], [0, 1], [0, 2], [3, 2], [2, 3]]
    assert dense(graph).tolist() == wikics_content()["features"]
    assert [[part.tolist() for part in split] for split in graph.splits] == [[[0], [1], [3]], [[1], [2], [3]]]
    assert graph.labels is not None
    assert graph.labels.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not the data.json"),
        ({k: v for k, v in wikics_content().items() if k != "links"}, "'links' is missing"),
        (wikics_content() | {"features": [[1.0], [1.0, 2.0], [], []]}, "is not the data.json"),
        (wikics_content() | {"val_masks": [[True] * 4]}, r"val_masks must have shape \(2, 4\)"),
        (wikics_content() | {"test_mask": [True]}, "test_mask must have shape"),
        (wikics_content() | {"links": [[9], [], [], []]}, "edges must name nodes 0..3"),
    ],
)
def test_broken_wikics(tmp_path: Path, content: Any, message: str) -> None:
    write_wikics(tmp_path, content)
    with pytest.raises(InputError, match=message):
        unchecked("wikics", tmp_path)


# -- ogbn-arxiv ------------------------------------------------------------------------------------

ARXIV = {
    "raw/edge.csv.gz": "0,1\n2,1\n3,0\n3,3\n",
    "raw/node-label.csv.gz": "4\n5\n28\n4\n",
    "raw/node-feat.csv.gz": "0.5,-1\n-0.25,2e-2\n1,1\n3,0\n",
    "split/time/train.csv.gz": "2\n0\n",
    "split/time/valid.csv.gz": "1\n",
    "split/time/test.csv.gz": "3\n",
}


def write_arxiv(root: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        path = root / "ogbn_arxiv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))


def test_arxiv(tmp_path: Path) -> None:
    write_arxiv(tmp_path, ARXIV)
    graph = unchecked("arxiv", tmp_path)
    assert graph.edges.T.tolist() == [[1, 0], [3, 0], [0, 1], [2, 1], [1, 2], [0, 3]]
    np.testing.assert_allclose(dense(graph), [[0.5, -1], [-0.25, 0.02], [1, 1], [3, 0]])
    assert graph.labels is not None
    assert graph.labels.tolist() == [4, 5, 28, 4]
    assert [part.tolist() for part in graph.splits[0]] == [[0, 2], [1], [3]]
    assert graph.class_names[28] == "cs.IT"


def test_arxiv_without_features_says_what_to_put_where(tmp_path: Path, cache: Path) -> None:
    write_arxiv(tmp_path, {k: v for k, v in ARXIV.items() if k != "raw/node-feat.csv.gz"})
    with pytest.raises(InputError) as caught:
        unchecked("arxiv", tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert f"put node-feat.csv.gz at {tmp_path}/ogbn_arxiv/raw/node-feat.csv.gz" in message
    assert f"arxiv/raw/node-feat.csv.gz in {ABSENT}" in message
    assert "found: edge.csv.gz, node-label.csv.gz" in message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("raw/node-feat.csv.gz", "1,2\n3,4\n", "must have 4 rows; received 2"),
        (
            "raw/node-feat.csv.gz",
            "1,2\n3,4,5\n",
            "node-feat.csv.gz, line 2: 2 fields as in the first row expected, 3 found",
        ),
        (
            "raw/node-label.csv.gz",
            "a\nb\nc\nd\n",
            "node-label.csv.gz, line 1, column '0': a number expected, 'a' found",
        ),
        ("raw/edge.csv.gz", "0\n1\n", r"edge.csv.gz must hold 2 whole number\(s\) per row"),
        ("raw/edge.csv.gz", "0.5,1\n1,2\n", r"edge.csv.gz must hold 2 whole number\(s\) per row"),
    ],
)
def test_broken_arxiv(tmp_path: Path, name: str, text: str, message: str) -> None:
    write_arxiv(tmp_path, ARXIV | {name: text})
    with pytest.raises(InputError, match=message):
        unchecked("arxiv", tmp_path)


def test_arxiv_edges_on_the_real_structure(data_root: Path, tmp_path: Path) -> None:
    facts = DATASETS["arxiv"]
    for file in facts.files:
        if file.sha256 is not None:
            target = tmp_path / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(data_root / file.path)
    write_arxiv(tmp_path, {"raw/node-feat.csv.gz": "1,0\n" * 169_343})
    graph = from_facts(replace(facts, num_features=2), tmp_path)
    assert (graph.num_nodes, graph.num_edges) == (facts.num_nodes, facts.num_edges)
    assert graph.num_classes == facts.num_classes
    assert tuple(part.size for part in graph.splits[0]) == (90_941, 29_799, 48_603)


def test_a_graph_of_other_sizes_is_refused(data_root: Path) -> None:
    with pytest.raises(InputError, match="Cora: num_nodes must be 5; its files give 2,708"):
        from_facts(replace(DATASETS["cora"], num_nodes=5), data_root)
