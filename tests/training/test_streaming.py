"""Graphs on disk: losses, gradients and embeddings are those of the graph in memory, whatever the sizes of parts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.errors import InputError, InterruptedRun
from ssge.graph import Graph
from ssge.io.graph_folder import StoredGraph
from ssge.io.graph_writer import write_graph
from ssge.methods import Method
from ssge.ops import streaming
from ssge.ops.adjacency import Adjacency
from ssge.ops.disk import DiskArray, Scratch
from ssge.ops.random import Key
from ssge.ops.streaming import StreamedAdjacency, Workspace
from ssge.runs.estimate import learned_alone
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan
from ssge.training.checkpoint import build
from ssge.training.streaming import streamed_embedding, streamed_view
from ssge.training.trainer import train
from ssge.views import View

GIGABYTES = 8 << 30


@dataclass(frozen=True)
class Parts(Workspace):
    """A workspace with parts of given sizes."""

    columns: int = 1
    chunk: int = 1
    edges: int = 1

    def panel(self, n: int, itemsize: int) -> int:
        return self.columns

    def rows(self, width: int, itemsize: int) -> int:
        return self.chunk

    @property
    def entries(self) -> int:
        return self.edges


def view_of(method: Method, stored: StoredGraph, columns: int, rows: int, entries: int) -> View:
    view = streamed_view(method, stored)
    adjacency: Any = view.adjacency
    adjacency.workspace = Parts(stored.scratch, GIGABYTES, columns, rows, entries)
    return view


def stored_graph(path: Path, **options: Any) -> tuple[Graph, StoredGraph]:
    """Return a graph in memory and the same on disk; node n - 1 is isolated."""
    stored = write_graph(random_graph(n=90, m=260, **options), path / "g")
    return stored.load(), stored.streamed(GIGABYTES, path)


def gradients(method: Method, view: View) -> tuple[float, dict[str, torch.Tensor]]:
    method.zero_grad()
    losses = method(view, Key(3).fold_in("train", 1))
    losses.total.backward()
    return losses.total.item(), {name: p.grad.clone() for name, p in method.named_parameters() if p.grad is not None}


PARTS = [(1, 7, 5), (3, 90, 10_000), (100, 16, 1), (100, 64, 33)]


@pytest.mark.parametrize("name", ["ssge", "cca_ssg"])
@pytest.mark.parametrize("widths", [(5,), (6, 9), (9, 4), (4, 7, 7)])
@pytest.mark.parametrize("options", [{}, {"weighted": True, "directed": True}])
def test_loss_and_gradient_are_those_of_the_full_batch(
    tmp_path: Path, name: str, widths: tuple[int, ...], options: dict[str, Any]
) -> None:
    """One to three layers, folded last layer or not, weights before or after the product with A."""
    graph, stored = stored_graph(tmp_path, **options)
    settings = {"widths": widths, "edge_drop": 0.4, "feature_mask": 0.3}
    method = build(name, settings, graph.info, dtype=torch.float64)
    total, expected = gradients(method, method.prepare(graph))
    for parts in PARTS:
        found, gradient = gradients(method, view_of(method, stored, *parts))
        assert found == pytest.approx(total, rel=1e-12), parts
        assert gradient.keys() == expected.keys()
        for key, value in expected.items():
            assert torch.allclose(gradient[key], value, rtol=1e-10, atol=1e-10 * float(value.abs().max())), (parts, key)


def test_in_single_precision_too(tmp_path: Path) -> None:
    graph, stored = stored_graph(tmp_path, dtype=np.float32)
    method = build("ssge", {"widths": (16, 16)}, graph.info)
    total, expected = gradients(method, method.prepare(graph))
    found, gradient = gradients(method, view_of(method, stored, 3, 32, 100))
    assert found == pytest.approx(total, rel=1e-6)
    for key, value in expected.items():
        # Sums are taken in another order, and how far they round apart depends on the processor.
        assert float((gradient[key] - value).abs().max()) < 1e-4 * float(value.abs().max())


def test_a_gradient_without_the_way_back_through_the_edges_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above must be able to fail: forward edges in the place of backward ones give another gradient."""
    graph, stored = stored_graph(tmp_path, directed=True)
    method = build("ssge", {"widths": (6, 9)}, graph.info, dtype=torch.float64)
    _, expected = gradients(method, method.prepare(graph))
    right = StreamedAdjacency.propagate
    monkeypatch.setattr(
        StreamedAdjacency, "propagate", lambda self, panels, target, _=False: right(self, panels, target)
    )
    _, gradient = gradients(method, view_of(method, stored, 100, 64, 1000))
    assert any(not torch.allclose(gradient[key], value, rtol=1e-3) for key, value in expected.items())


@pytest.mark.parametrize("normalization", ["out-in", "in"])
@pytest.mark.parametrize("transpose", [False, True])
def test_products_are_those_in_memory(tmp_path: Path, normalization: Any, transpose: bool) -> None:
    graph, stored = stored_graph(tmp_path, weighted=True, directed=True)
    method = build("ssge", {"widths": (4,), "normalization": normalization}, graph.info, dtype=torch.float64)
    clean = Adjacency.of(graph.edges, graph.num_nodes, graph.weights, normalization, dtype=torch.float64)
    matrix = torch.randn(graph.num_nodes, 5, dtype=torch.float64)
    key = Key(1)
    inside = clean.drop_edges(key, 0.5).matrix.to_dense()
    expected = (inside.t() if transpose else inside) @ matrix
    for parts in PARTS:
        adjacency = view_of(method, stored, *parts).adjacency.drop_edges(key, 0.5)
        assert isinstance(adjacency, StreamedAdjacency)
        source, target = adjacency.scratch(5), adjacency.scratch(5)
        source.write(0, matrix)
        adjacency.propagate(source.panels(), target, transpose)
        assert torch.allclose(target.read(0, graph.num_nodes), expected, rtol=1e-12)


def test_products_have_no_more_rows_than_are_worked_on_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few edges there are: a wide panel would make of all rows at once what the limit does not hold."""
    _, stored = stored_graph(tmp_path)
    method = build("ssge", {"widths": (6, 9)}, stored.info, dtype=torch.float64)
    bag, heights = streaming.bag, list[int]()
    monkeypatch.setattr(streaming, "bag", lambda *given: heights.append(len(product := bag(*given))) or product)
    gradients(method, view_of(method, stored, 100, 7, 10_000))
    assert max(heights) == 7 and sum(heights) % 90 == 0


def test_rows_without_edges_may_fill_a_chunk(tmp_path: Path) -> None:
    edges = np.array([[0, 1], [1, 0]])
    stored = write_graph(Graph.of(edges=edges, features=np.random.default_rng(0).normal(size=(40, 3))), tmp_path / "g")
    graph, method = stored.load(), build("ssge", {"widths": (2, 2)}, stored.info, dtype=torch.float64)
    view = view_of(method, stored.streamed(GIGABYTES, tmp_path), 1, 4, 1)
    assert np.allclose(streamed_embedding(method, view), method.encode(method.prepare(graph)).detach(), rtol=1e-12)


def test_a_training_and_its_embedding_are_those_in_memory(tmp_path: Path) -> None:
    graph, stored = stored_graph(tmp_path, dtype=np.float32)
    settings = {"widths": (12, 12), "epochs": 8}
    first, second = (build("ssge", settings, graph.info) for _ in range(2))
    inside = train(first, first.prepare(graph), Key(0))
    streamed = train(second, view_of(second, stored, 5, 32, 64), Key(0))
    assert isinstance(streamed.embedding, np.memmap)
    assert isinstance(inside.embedding, torch.Tensor)
    assert np.allclose(streamed.embedding, inside.embedding.numpy(), atol=1e-5)
    assert float(second.scale) == pytest.approx(float(first.scale), rel=1e-5)
    for one, other in zip(inside.history, streamed.history, strict=True):
        assert other["total"] == pytest.approx(one["total"], rel=1e-5)


def test_an_interrupted_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    _, stored = stored_graph(tmp_path, dtype=np.float32)
    planned = plan(stored.info, settings={"widths": (6, 6), "epochs": 5, "blocks": ("learned",)})
    whole = fit(stored, planned, RunFolder(tmp_path / "whole"))
    with pytest.raises(InterruptedRun):
        fit(stored, planned, RunFolder(tmp_path / "run"), observers=[lambda line: line["epoch"] == 2])
    resumed = fit(stored, planned, RunFolder(tmp_path / "run"), resume=True)
    assert np.array_equal(resumed.embedding.vectors, whole.embedding.vectors)
    assert len(resumed.history) == 5
    read = RunFolder(tmp_path / "run").read_embedding()
    assert np.array_equal(read.vectors, whole.embedding.vectors)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("grace", {}),
        ("g_bt", {}),
        ("ssge", {"encoder": "mlp"}),
        ("ssge", {"objective": "w-mse"}),
        ("ssge", {"blocks": ("propagated", "learned")}),
        ("cca_ssg", {"encoder": "mlp"}),
    ],
)
def test_what_cannot_be_streamed_is_told(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    graph, stored = stored_graph(tmp_path)
    with pytest.raises(InputError, match="cannot be streamed"):
        streamed_view(build(name, settings, graph.info), stored)


def test_other_blocks_are_refused_and_those_of_the_default_left_out(tmp_path: Path) -> None:
    _, stored = stored_graph(tmp_path)
    settings: dict[str, Any] = {"epochs": 1, "blocks": ("propagated", "learned")}
    with pytest.raises(InputError, match="blocks must be learned for a graph on disk; received propagated, learned"):
        learned_alone(plan(stored.info, settings=settings))
    assert learned_alone(plan(stored.info)).config.model_dump()["blocks"] == ("learned",)


def test_too_little_memory_is_told(tmp_path: Path) -> None:
    graph, stored = stored_graph(tmp_path)
    method = build("ssge", {"widths": (2, 2)}, graph.info)
    with pytest.raises(InputError, match=r"memory must be .* or more, of which the libraries take"):
        streamed_view(method, stored.streamed(1 << 20, tmp_path))
    with pytest.raises(InputError, match="memory must leave"):
        Workspace(tmp_path, 1000).panel(10**6, 4)


def test_an_edge_beyond_the_nodes_is_refused(tmp_path: Path) -> None:
    """Kernels would read beyond the matrix."""
    graph, stored = stored_graph(tmp_path, dtype=np.float32)
    path = stored.path / "incoming.indices.npy"
    path.write_bytes(path.read_bytes()[:-4] + np.int32(10_000).tobytes())
    method = build("ssge", {"widths": (2, 2)}, graph.info)
    with pytest.raises(InputError, match="damaged"):
        method(streamed_view(method, stored), Key(0))


def test_a_matrix_on_disk_is_read_by_rows_and_by_panels(tmp_path: Path) -> None:
    matrix, scratch = torch.randn(11, 7), Scratch(tmp_path, 11, 7, 3, torch.float32)
    for start in range(0, 11, 4):
        scratch.write(start, matrix[start : start + 4])
    assert torch.equal(scratch.read(2, 9), matrix[2:9])
    assert torch.equal(torch.cat(list(scratch.panels()), 1), matrix)
    assert not list(tmp_path.iterdir())  # the file has no name
    np.save(tmp_path / "a.npy", matrix.numpy())
    assert np.array_equal(DiskArray(tmp_path / "a.npy").read(3, 5), matrix[3:5].numpy())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's account has other units elsewhere")
def test_a_process_stays_below_its_limit(tmp_path: Path) -> None:
    """Seen from outside: in memory the same training takes more than twice what it takes streamed."""
    n = 60_000
    rng = np.random.default_rng(0)
    edges = rng.integers(n, size=(2, 3 * n))
    write_graph(Graph.of(edges=edges, features=rng.normal(size=(n, 64)), dtype=np.float32), tmp_path / "g")

    # A process of its own between this one and the command, because a child's peak begins at that of its parent.
    watch = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )

    def peak(*words: str) -> int:
        fit = ["fit", str(tmp_path / "g"), "--epochs", "1", "--widths", "256", "256", "--blocks", "learned", "--quiet"]
        command = [sys.executable, "-c", watch, sys.executable, "-m", "ssge", *fit, *words]
        return 1024 * int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    limit = 620 * 10**6
    assert peak("--memory", str(limit), "--out", str(tmp_path / "streamed")) < limit
    assert peak("--out", str(tmp_path / "whole")) > 1.5 * limit
