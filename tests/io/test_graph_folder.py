"""The graph folder: what is written is read back, and nothing of anybody's is overwritten."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphs import dense, random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.graph_folder import MANIFEST, StoredGraph, is_graph_folder
from ssge.io.graph_writer import ArrayFile, graph_folder, write_graph
from ssge.io.reading import read_graph


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_graph_comes_back_as_it_was(tmp_path: Path, weighted: bool, directed: bool, sparse: bool) -> None:
    graph = random_graph(weighted=weighted, directed=directed, sparse=sparse, dtype=np.float32)
    stored = write_graph(graph, tmp_path / "g")
    again = stored.load()
    features = graph.features.toarray() if sparse else graph.features
    assert np.array_equal(again.edges, graph.edges)
    assert np.array_equal(dense(again), dense(graph))
    assert np.array_equal(again.features, features)
    assert np.array_equal(again.labels, graph.labels)
    assert np.array_equal(again.node_ids, graph.node_ids)
    assert stored.symmetric is not directed
    assert stored.info == graph.info
    assert stored.isolated == int((np.bincount(graph.edges[1], minlength=graph.num_nodes) == 0).sum())


@pytest.mark.parametrize("directed", [False, True])
def test_out_neighbors_are_the_transpose(tmp_path: Path, directed: bool) -> None:
    graph = random_graph(weighted=True, directed=directed, dtype=np.float32)
    stored, n = write_graph(graph, tmp_path / "g"), graph.num_nodes
    for side, expected in ((stored.incoming, dense(graph)), (stored.outgoing, dense(graph).T)):
        matrix = np.zeros((n, n))
        matrix[np.repeat(np.arange(n), np.diff(side.indptr)), side.indices] = side.weights
        assert np.array_equal(matrix, expected)


def test_ids_may_be_any_text(tmp_path: Path) -> None:
    ids = ["", "ä", "7", "a b\n", "日本"]
    graph = Graph.of(edges=[("ä", "7"), ("", "日本")], features=np.eye(5), node_ids=ids)
    assert write_graph(graph, tmp_path / "g").load().node_ids.tolist() == ids


def test_the_folder_is_read_by_its_path(tmp_path: Path) -> None:
    graph = random_graph(dtype=np.float32)
    write_graph(graph, tmp_path / "g")
    assert np.array_equal(read_graph(tmp_path / "g").edges, graph.edges)
    with pytest.raises(InputError, match="direction: only for tables"):
        read_graph(tmp_path / "g", direction="in")


def test_a_graph_without_edges(tmp_path: Path) -> None:
    graph = Graph.of(edges=np.empty((2, 0), dtype=int), features=np.eye(3))
    assert write_graph(graph, tmp_path / "g").load().num_edges == 0


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    graph, path = random_graph(), tmp_path / "g"
    path.mkdir()
    (path / "notes.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(InputError, match=r"notes\.txt"):
            write_graph(graph, path, force)
    (path / "notes.txt").unlink()
    write_graph(graph, path)
    with pytest.raises(InputError, match="--force"):
        write_graph(graph, path)
    (path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        write_graph(graph, path, force=True)
    assert (path / "notes.txt").read_text() == "mine"
    (path / "notes.txt").unlink()
    write_graph(random_graph(seed=1), path, force=True)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["g"]


def test_a_failure_leaves_the_old_graph_whole(tmp_path: Path) -> None:
    path = tmp_path / "g"
    before = write_graph(random_graph(), path).digest
    with pytest.raises(RuntimeError, match="stop"), graph_folder(path, force=True):
        raise RuntimeError("stop")
    assert StoredGraph.open(path).digest == before
    assert [file.name for file in tmp_path.iterdir()] == ["g"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    dead, mine = tmp_path / f".g-{ended.stdout.strip()}-abc", tmp_path / ".g-notes-abc"
    dead.mkdir()
    mine.mkdir()
    write_graph(random_graph(), tmp_path / "g")
    assert not dead.exists()
    assert mine.exists()


def test_damaged_folders_are_named(tmp_path: Path) -> None:
    path = tmp_path / "g"
    write_graph(random_graph(), path)
    indices = path / "incoming.indices.npy"
    content = indices.read_bytes()
    indices.write_bytes(content[:-4])
    with pytest.raises(InputError, match=r"incoming\.indices\.npy is not as it was written"):
        StoredGraph.open(path)
    indices.write_bytes(content[:-4] + np.int32(1000).tobytes())
    with pytest.raises(InputError, match="names nodes beyond 59"):
        StoredGraph.open(path).load()
    (path / MANIFEST).write_text(json.dumps({"format": "ssge graph folder", "version": 1}))
    with pytest.raises(InputError, match=r"graph\.json is damaged"):
        StoredGraph.open(path)
    (path / MANIFEST).write_text("{}")
    assert not is_graph_folder(path)


def test_a_row_pointer_may_pass_two_to_the_31(tmp_path: Path) -> None:
    """A sparse file stands for 2^31 + 5 entries, of which the last row has two."""
    n, m = 3, 2**31 + 5
    write_graph(Graph.of(edges=[[0, 1], [1, 2]], features=np.eye(n)), tmp_path / "g")
    path, facts = tmp_path / "g", json.loads((tmp_path / "g" / MANIFEST).read_text())
    np.save(path / "incoming.indptr.npy", np.array([0, 1, m - 2, m]))
    file = ArrayFile(path / "incoming.indices.npy", np.int32)
    file.rows = m
    file.close()
    with (path / "incoming.indices.npy").open("r+b") as stream:
        stream.truncate(128 + 4 * m)
        stream.seek(128 + 4 * (m - 2))
        stream.write(np.array([1, 2], dtype=np.int32).tobytes())
    facts["edges"] = m
    for name in ("incoming.indptr.npy", "incoming.indices.npy"):
        facts["files"][name]["bytes"] = (path / name).stat().st_size
    (path / MANIFEST).write_text(json.dumps(facts))
    indptr, indices, _ = StoredGraph.open(path).incoming
    assert indptr[2] > 2**31
    assert indices[indptr[2] : indptr[3]].tolist() == [1, 2]
