"""Views: rates, independence, and randomness from the generator alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphs import random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.training.checkpoint import build
from ssge.views import Compose, DropEdges, MaskFeatures, View


def view() -> View:
    return View.of(random_graph(n=300, p=200, m=3000), dtype=torch.float64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rates_are_met() -> None:
    clean = view()
    edges = clean.adjacency.num_entries - clean.num_nodes
    dropped = DropEdges(0.3)(clean, generator()).adjacency.kept
    assert dropped is not None
    assert (dropped.sum().item() - clean.num_nodes) / edges == pytest.approx(0.7, abs=0.03)
    masked = MaskFeatures(0.25)(clean, generator()).features.kept
    assert masked is not None
    assert masked.double().mean().item() == pytest.approx(0.75, abs=0.1)


def test_directions_are_dropped_independently() -> None:
    clean = view()
    dense = DropEdges(0.5)(clean, generator()).adjacency.matrix.forward.to_dense() > 0
    assert not torch.equal(dense, dense.T)


def test_self_loops_stay() -> None:
    dense = DropEdges(1.0)(view(), generator()).adjacency.matrix.forward.to_dense()
    torch.testing.assert_close(dense, torch.eye(300, dtype=torch.float64))


def test_same_generator_state_gives_the_same_view_and_global_state_plays_no_part() -> None:
    augment = Compose(DropEdges(0.4), MaskFeatures(0.4))
    clean = view()
    torch.manual_seed(1)
    first = augment(clean, generator(5))
    torch.manual_seed(2)
    second, other = augment(clean, generator(5)), augment(clean, generator(6))
    assert torch.equal(first.adjacency.kept, second.adjacency.kept)  # type: ignore[arg-type]
    assert torch.equal(first.features.kept, second.features.kept)  # type: ignore[arg-type]
    assert not torch.equal(first.adjacency.kept, other.adjacency.kept)  # type: ignore[arg-type]
    assert clean.adjacency.kept is None


def test_rate_zero_is_the_clean_view() -> None:
    clean = view()
    assert Compose(DropEdges(0), MaskFeatures(0))(clean, generator()) is clean


@pytest.mark.parametrize(("size", "parts"), [(60, 1), (30, 2), (25, 3), (1, 60), (1000, 1)])
def test_the_focus_is_on_each_node_once_in_even_parts(size: int, parts: int) -> None:
    graph = random_graph(n=60)
    clean = View.of(graph, dtype=torch.float64)
    found = [part.focus for part in clean.focused(size, generator())]
    assert len(found) == parts
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert all(torch.equal(nodes, nodes.sort().values) for nodes in found)
    assert torch.equal(torch.cat(found).sort().values, torch.arange(60))
    other = [part.focus for part in clean.focused(size, generator(1))]
    assert parts in (1, 60) or not all(map(torch.equal, found, other))


def test_nodes_in_focus_alone_keep_their_features_and_the_edges_among_them() -> None:
    clean = View.of(random_graph(n=60), dtype=torch.float64)
    assert clean.alone() is clean
    (half, _) = clean.focused(30, generator())
    nodes, identity = half.focus, torch.eye(60, dtype=torch.float64)
    assert nodes is not None
    weight = torch.randn(half.features.shape[1], 3, generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(half.alone().features @ weight, (clean.features @ weight)[nodes])
    among = (clean.adjacency @ identity)[nodes][:, nodes]
    torch.testing.assert_close(half.alone().adjacency @ identity[:30, :30], among)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rate_must_be_a_probability(rate: float) -> None:
    with pytest.raises(InputError, match="edge_drop must be a probability"):
        DropEdges(rate)
    with pytest.raises(InputError, match="feature_mask must be a probability"):
        MaskFeatures(rate)


@pytest.mark.parametrize("encoder", ["gcn", "mlp"])
@pytest.mark.parametrize("normalization", ["out-in", "in"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_embedding_some_nodes_equals_embedding_all(
    encoder: str, normalization: str, sparse: bool, weighted: bool
) -> None:
    rng = np.random.default_rng(0)
    n = 60
    edges = rng.integers(0, n, (2, 90))  # sparse enough for neighborhoods that are not everything
    features = rng.normal(size=(n, 7)) * (rng.random((n, 7)) < 0.4)
    graph = Graph.of(
        edges=edges, features=sp.csr_array(features) if sparse else features,
        weights=rng.random(90) + 0.1 if weighted else None, direction="in", dtype=np.float64,
    )  # fmt: skip
    config = {"widths": (6, 5), "encoder": encoder, "normalization": normalization}
    method = build("ssge", config, graph.info, dtype=torch.float64)
    nodes = np.array([50, 3, 17])
    view = method.prepare(graph)
    assert view.around(torch.from_numpy(nodes), 2)[0].num_nodes < n
    some = method.embed(graph, nodes=nodes)
    assert torch.allclose(some, method.embed(graph)[nodes], rtol=1e-12, atol=1e-14)
