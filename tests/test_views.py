"""Views: rates, randomness from the key alone, and parts of a view that an encoder cannot tell from the whole."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphs import dense, random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.ops.random import Key
from ssge.training.checkpoint import build
from ssge.views import Compose, DropEdges, MaskFeatures, ShuffleNodes, View

KEY = Key(0).fold_in("train", 1)


def view() -> View:
    return View.of(random_graph(n=300, p=200, m=3000), dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_clean_view_holds_features_weights_and_direction_of_the_graph(dtype: torch.dtype, sparse: bool) -> None:
    graph = random_graph(weighted=True, directed=True, sparse=sparse)
    clean = View.of(graph, "in", dtype=dtype)
    features = graph.features.toarray() if sparse else graph.features
    found = clean.features @ torch.eye(12, dtype=dtype)
    assert found.dtype == dtype
    torch.testing.assert_close(found, torch.from_numpy(features).to(dtype))
    matrix = dense(graph) + np.eye(60)
    matrix /= np.sqrt(np.outer(matrix.sum(1), matrix.sum(1)))
    torch.testing.assert_close(clean.adjacency.matrix.to_dense(), torch.from_numpy(matrix).to(dtype))


def test_rates_are_met() -> None:
    clean = view()
    n, edges = clean.num_nodes, clean.adjacency.num_entries - clean.num_nodes
    dropped = DropEdges(0.3)(clean, KEY).adjacency.kept
    masked = MaskFeatures(0.25)(clean, KEY).features.kept
    assert dropped is not None and masked is not None
    for kept, count, rate in ((int(dropped.sum()) - n, edges, 0.3), (int(masked.sum()), 200, 0.25)):
        assert abs(kept - count * (1 - rate)) < 4 * (count * rate * (1 - rate)) ** 0.5


def test_self_loops_stay() -> None:
    matrix = DropEdges(1.0)(view(), KEY).adjacency.matrix.to_dense()
    torch.testing.assert_close(matrix, torch.eye(300, dtype=torch.float64))


def test_the_key_decides_and_the_global_state_plays_no_part() -> None:
    augment = Compose(DropEdges(0.4), MaskFeatures(0.4))
    clean, state = view(), torch.get_rng_state()
    first, second, other = (augment(clean, key) for key in (KEY, KEY, KEY.fold_in(1)))
    for part in ("adjacency", "features"):
        kept, again, others = (getattr(v, part).kept for v in (first, second, other))
        assert torch.equal(kept, again) and not torch.equal(kept, others)
    assert torch.equal(torch.get_rng_state(), state)
    assert clean.adjacency.kept is None and clean.features.kept is None


def test_steps_of_an_epoch_share_the_dropped_edges_but_not_the_masked_columns() -> None:
    augment, clean = Compose(DropEdges(0.4), MaskFeatures(0.4)), view()
    first, second = (augment(clean, KEY.at_step(step)) for step in (0, 1))
    assert torch.equal(first.adjacency.kept, second.adjacency.kept)  # type: ignore[arg-type]
    assert not torch.equal(first.features.kept, second.features.kept)  # type: ignore[arg-type]


def test_rate_zero_is_the_clean_view() -> None:
    clean = view()
    assert Compose(DropEdges(0), MaskFeatures(0))(clean, KEY) is clean


def test_edges_and_columns_can_have_rates_of_their_own() -> None:
    clean = view()
    rates = torch.linspace(0, 1, clean.adjacency.num_entries), torch.linspace(0, 1, 200)
    augment = Compose(DropEdges(rates[0]), MaskFeatures(rates[1]))
    kept = torch.stack([augment(clean, KEY.fold_in(i)).features.kept for i in range(200)])  # type: ignore[misc]
    deviation = (rates[1] * (1 - rates[1]) / 200).sqrt()
    assert ((kept.double().mean(0) - (1 - rates[1])).abs() <= 4.5 * deviation).all()
    assert kept[:, 0].all() and not kept[:, -1].any()
    edges = augment(clean, KEY).adjacency.kept
    same = clean.adjacency.drop_edges(KEY.fold_in("edges"), rates[0]).kept
    assert torch.equal(edges, same)  # type: ignore[arg-type]


def test_k_hop_subgraph_holds_features_labels_and_seeds_of_its_nodes() -> None:
    clean = View.of(random_graph(m=90, directed=True), dtype=torch.float64)._replace(labels=torch.arange(60))
    seeds = torch.tensor([50, 3, 17])
    part = clean.k_hop_subgraph(seeds, 1)
    nodes = clean.adjacency.in_neighbors(seeds, 1)
    assert len(seeds) < part.num_nodes == len(nodes) < 60
    assert torch.equal(part.labels, nodes)  # type: ignore[arg-type]
    assert torch.equal(part.at_seeds(nodes), seeds)
    assert torch.equal(part.features.matrix, clean.features.matrix[nodes])  # type: ignore[index, arg-type]
    assert torch.equal(clean.at_seeds(nodes), nodes)  # without seeds all nodes are meant


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rate_must_be_a_probability(rate: float) -> None:
    with pytest.raises(InputError, match="edge_drop must be a probability"):
        DropEdges(rate)
    with pytest.raises(InputError, match="feature_mask must be a probability"):
        MaskFeatures(rate)
    with pytest.raises(InputError, match="edge_drop must be a probability"):
        DropEdges(torch.tensor([0.5, rate]))


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
    assert method.prepare(graph).k_hop_subgraph(torch.from_numpy(nodes), 2).num_nodes < n
    some = method.embed(graph, nodes=nodes)
    assert torch.allclose(some, method.embed(graph)[nodes], rtol=1e-12, atol=1e-14)


def test_shuffled_nodes_have_the_rows_of_others_and_keep_their_edges() -> None:
    clean = view()
    shuffled = ShuffleNodes()(clean, KEY)
    order = KEY.fold_in("shuffle").permutation(300)
    assert torch.equal(order.sort().values, torch.arange(300)) and (order != torch.arange(300)).sum() > 290
    assert isinstance(clean.features.matrix, torch.Tensor) and isinstance(shuffled.features.matrix, torch.Tensor)
    assert torch.equal(shuffled.features.matrix, clean.features.matrix[order])
    assert shuffled.adjacency is clean.adjacency
