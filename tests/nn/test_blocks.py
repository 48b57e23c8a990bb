"""Blocks side by side: filter, weight and scaling, and that a graph of strangers keeps its features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.datasets import load
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods.ssge import SSGE
from ssge.nn.blocks import ALL, Blocks, choice
from ssge.ops.held_out import noise
from ssge.ops.propagation import all_filtered
from ssge.runs.fit import fit
from ssge.runs.plan import plan
from ssge.views import View

SMALL = {"widths": (16, 16), "epochs": 5, "blocks": ALL}
SBM = "sbm:nodes=800,classes=4,degree=12,features=40"


def fitted(graph: Graph, **settings: object) -> tuple[SSGE, np.ndarray]:
    run = fit(graph, plan(graph.info, settings=SMALL | settings, precision="float64"))
    assert isinstance(run.method, SSGE)
    return run.method, run.embedding.vectors


def blocks_of(graph: Graph) -> Blocks:
    method, _ = fitted(graph, epochs=30, widths=(32, 32))
    assert method.blocks is not None
    return method.blocks


def spread(block: torch.Tensor) -> torch.Tensor:
    """Return the root mean squared distance of rows from their mean."""
    return (block - block.mean(0)).square().sum(1).mean().sqrt()


def columns(block: torch.Tensor) -> torch.Tensor:
    """Return the directions of rows over their spread, then the lengths."""
    length = block.square().sum(1, keepdim=True).sqrt()
    direction = torch.where(length > 0, block / length, 0)
    return torch.cat([direction / spread(direction), 0.8 * torch.log(1 + length / length.square().mean().sqrt())], 1)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_blocks_are_features_the_mixture_of_filters_and_the_output(sparse: bool) -> None:
    graph = random_graph(n=80, p=12, m=300, sparse=sparse, weighted=True, directed=True)
    method, found = fitted(graph)
    view = View.of(graph, dtype=torch.float64)
    X = torch.from_numpy(graph.features.toarray() if sparse else graph.features)
    assert method.blocks is not None
    own, *free, learned = method.blocks.scores.tolist()
    favored = np.array(free) * [1, 1, 1, 1.1]
    mixture = (favored / favored.max()) ** 40
    with torch.no_grad():
        _, *filters = (rows / spread(rows) for rows in all_filtered(view.adjacency, X))
        F = sum(m * rows for m, rows in zip(mixture, filters, strict=True) if m >= 0.01)
        blocks = [X, F, method.encoder(view)]
    top = max(own + noise(80), *free)
    weights = (np.array([own + noise(80), max(free), max(learned - noise(80), 0)]) / top) ** 5
    weights = np.clip(weights, [0.15, 1e-3, 1e-3], 1)
    expected = torch.cat([w * columns(block) for block, w in zip(blocks, weights, strict=True)], 1)
    np.testing.assert_allclose(found, expected / expected.square().mean().sqrt(), atol=1e-9)


@pytest.mark.parametrize("names", [("learned", "propagated"), ("learned", "features")])
def test_blocks_can_be_left_out(names: tuple[str, ...]) -> None:
    graph = random_graph(n=80, p=12, m=300)
    whole, some = (fitted(graph, blocks=blocks)[1] for blocks in (ALL, names))
    kept = np.repeat([name in names for name in ALL], [13, 13, 17])
    quotient = some / whole[:, kept]
    np.testing.assert_allclose(quotient, quotient[0, 0])  # all but the scale of the whole


@pytest.mark.parametrize("names", [("features", "propagated", "learned"), ("learned", "features")])
def test_given_weights_are_lengths_relative_to_what_was_learned(names: tuple[str, ...]) -> None:
    graph = random_graph(n=80, p=12, m=300)
    given = dict(zip(names, (0.5, 2.0, 1.0), strict=False))
    method, _ = fitted(graph, blocks=names, block_weights=tuple(given.values()))
    with torch.no_grad():
        view = View.of(graph, dtype=torch.float64)
        found, learned = method.encode(view), method.encoder(view)
    kept = [name for name in ALL if name in names]
    parts = found.split([16 if name == "learned" else 12 for name in kept], 1)
    for name, part in zip(kept, parts, strict=True):
        torch.testing.assert_close(spread(part), given[name] * spread(learned))
    torch.testing.assert_close(parts[kept.index("learned")], given["learned"] * learned)


@pytest.mark.parametrize("hops", [0, 1, 2, 8])
def test_given_hops_are_a_power_of_the_adjacency(hops: int) -> None:
    graph = random_graph(n=80, p=12, m=300)
    method, _ = fitted(graph, blocks=("propagated", "learned"), block_weights=(1.0, 1.0), block_hops=hops)
    assert method.blocks is not None and method.blocks.hops == hops
    view = View.of(graph, dtype=torch.float64)
    with torch.no_grad():
        found = method.encode(view)[:, :12]
    dense = view.adjacency.matrix.to_dense()
    expected = torch.linalg.matrix_power(dense, hops) @ method.blocks.reduction(view)
    quotient = found / expected
    torch.testing.assert_close(quotient, quotient.mean().expand_as(quotient))


def test_a_long_row_keeps_its_direction_and_an_empty_one_is_zero() -> None:
    graph = random_graph(n=80, p=12, m=300)
    features = np.array(graph.features)
    features[0], features[1] = 0, 1e4 * features[1]
    found = fitted(Graph.of(edges=graph.edges, features=features, dtype=np.float64))[1][:, :13]
    assert not found[0].any()
    lengths = np.linalg.norm(found[:, :-1], axis=1)
    np.testing.assert_allclose(lengths[1:], lengths[1])
    order = np.argsort(np.linalg.norm(features, axis=1))
    assert (np.diff(found[order, -1]) > 0).all()


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.0, 0.0, 0.0), (1.0, -1.0, 1.0)])
def test_weights_that_do_not_fit_the_blocks_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="block_weights"):
        fitted(random_graph(n=80, p=12, m=300), block_weights=weights)


@pytest.mark.parametrize(
    ("signal", "homophily", "hops", "weights"),
    [(3, 0.25, None, (1, 0.9)), (3, 0.9, None, (0.9, 1)), (1, 0.8, 4, (0.9, 1)), (0, 0.25, None, (1, 0.9))],
    ids=["strangers", "alike", "noisy features of the alike", "noise"],
)
def test_features_go_as_far_as_they_are_worth(
    signal: float, homophily: float, hops: int | None, weights: tuple[float, float]
) -> None:
    graph = load(f"{SBM},feature_signal={signal},homophily={homophily}")
    blocks = blocks_of(graph)
    mixture, found = choice(blocks.scores.tolist(), graph.num_nodes)
    best = max(found[:2])
    assert all(
        weight == best if wanted == 1 else weight < wanted for weight, wanted in zip(found, weights, strict=False)
    )
    assert hops is None or (blocks.hops >= hops and not mixture[0])  # two hops are too few


def test_filters_share_only_if_they_are_nearly_as_good() -> None:
    mixture, weights = choice([0.1, 0.5, 0.49, 0.3, 0.38, 0.2], 1000)
    assert mixture == [1.0, pytest.approx(0.98**40), 0.0, 0.0]
    assert weights == [0.15, 1.0, pytest.approx((0.2 - noise(1000)) ** 5 / 0.5**5)]
    assert choice([0.0] * 6, 1000) == ([0.0, 0.0, 0.0, 1.0], [1.0] * 3)


def test_an_encoder_that_has_washed_the_features_out_weighs_little() -> None:
    strangers, alike = (blocks_of(load(f"{SBM},feature_signal=3,homophily={h}")) for h in (0.25, 0.9))
    assert strangers.scores[-1] < 0.5 * strangers.scores[:-1].max()
    assert alike.scores[-1] > 0.7 * alike.scores[:-1].max()


def test_without_evidence_all_weigh_alike() -> None:
    method, found = fitted(random_graph(n=80, p=1, m=300))
    assert method.blocks is not None and not method.blocks.scores.any()
    assert method.blocks.hops == 8
    directions = (found[:, :1], found[:, 2:3], found[:, 4:20])
    spreads = [np.square(part - part.mean(axis=0)).sum() for part in directions]
    np.testing.assert_allclose(spreads, spreads[0])


@pytest.mark.parametrize("blocks", [("propagated",), ("learned", "learned")])
def test_what_is_learned_is_among_them_once(blocks: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="blocks: each block must be named once, and learned must be among them"):
        plan(random_graph().info, settings={"blocks": blocks})


def test_the_paper_s_embedding_has_no_blocks() -> None:
    graph = random_graph(n=80, p=12, m=300)
    method, found = fitted(graph, blocks=("learned",))
    assert method.blocks is None and found.shape == (80, 16)
    assert not any("blocks" in name for name in method.state_dict())
    beside, _ = fitted(graph)
    for name, tensor in method.state_dict().items():
        if name != "scale":
            assert torch.equal(beside.state_dict()[name], tensor), name  # the training is the same


def test_rows_that_are_all_alike_are_scaled_by_their_length() -> None:
    ring = np.stack([np.arange(12), (np.arange(12) + 1) % 12])
    _, found = fitted(Graph.of(edges=ring, features=np.ones((12, 1)), dtype=np.float64), epochs=0)
    assert np.abs(found).max() > 0.1 and np.ptp(found, axis=0).max() < 1e-12
