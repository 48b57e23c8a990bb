"""Blocks side by side: their weights, their scaling, and that a graph of strangers keeps its features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.datasets import load
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods.ssge import SSGE
from ssge.ops.propagation import mean_of_hops
from ssge.runs.fit import fit
from ssge.runs.plan import plan
from ssge.views import View

SMALL = {"widths": (16, 16), "epochs": 5, "blocks": ("features", "hops", "learned")}


def fitted(graph: Graph, **settings: object) -> tuple[SSGE, np.ndarray]:
    run = fit(graph, plan(graph.info, settings=SMALL | settings, precision="float64"))
    assert isinstance(run.method, SSGE)
    return run.method, run.embedding.vectors


@pytest.mark.parametrize("sparse", [False, True])
def test_the_blocks_are_features_hops_and_output(sparse: bool) -> None:
    graph = random_graph(n=80, p=12, m=300, sparse=sparse, weighted=True, directed=True)
    method, found = fitted(graph)
    view = View.of(graph, dtype=torch.float64)
    X = torch.from_numpy(graph.features.toarray() if sparse else graph.features)
    with torch.no_grad():
        blocks = [X, mean_of_hops(view.adjacency, X, 8, 1 / 9), method.encoder(view)]
    assert method.blocks is not None
    for index, unit in enumerate(method.blocks.unit):
        if unit:
            blocks[index] = blocks[index] / blocks[index].norm(dim=1, keepdim=True).clamp_min(1e-30)
    sizes = torch.stack([block.square().sum(1).mean().sqrt() for block in blocks])
    rho = method.blocks.alignments / torch.tensor([1.2, 1.0, 1.0], dtype=torch.float64)
    weights = (rho / rho[:2].max()).clamp_max(1) ** 5
    torch.testing.assert_close(method.blocks.scales * sizes, weights)
    expected = torch.cat([s * b for s, b in zip(method.blocks.scales, blocks, strict=True)], 1)
    np.testing.assert_allclose(found, expected / expected.square().mean().sqrt(), atol=1e-9)


def weights(graph: Graph) -> dict[str, float]:
    method, _ = fitted(graph, epochs=30, widths=(32, 32))
    assert method.blocks is not None
    return dict(zip(method.blocks.names, method.blocks.alignments.tolist(), strict=True))


def test_features_weigh_most_among_strangers_and_least_among_the_alike() -> None:
    sizes = "sbm:nodes=800,classes=4,degree=12,features=40,feature_signal=3"
    alike, strangers = (weights(load(f"{sizes},homophily={h}")) for h in (0.9, 0.25))
    assert alike["hops"] > 2 * alike["features"]
    assert strangers["features"] > strangers["hops"] and strangers["features"] > 2 * strangers["learned"]


def test_without_evidence_all_weigh_alike() -> None:
    method, found = fitted(random_graph(n=80, p=1, m=300))
    assert method.blocks is not None and not method.blocks.alignments.any()
    sizes = [np.square(part).sum() for part in np.split(found, [1, 2], axis=1)]
    np.testing.assert_allclose(sizes, sizes[0])


@pytest.mark.parametrize("blocks", [("hops",), ("learned", "learned")])
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
