"""GAE and VGAE: what the contract of every method does not say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.datasets import load
from ssge.graph import Graph, GraphInfo
from ssge.methods import Method
from ssge.objectives.reconstruction import dense_reconstruction, gaussian_kl
from ssge.ops.random import Key
from ssge.ops.sampling import Pairs
from ssge.runs.recipes import load_recipe
from ssge.training.checkpoint import build
from ssge.training.trainer import train

GRAPH = random_graph(n=50, p=8, m=150)
both = pytest.mark.parametrize("name", ["gae", "vgae"])


def built(name: str, seed: int = 0, graph: Graph = GRAPH, **settings: object) -> Method:
    return build(name, {"widths": (10, 6), "epochs": 5} | settings, graph.info, seed, torch.float64)


def test_dense_gae_is_the_formula_and_draws_nothing() -> None:
    method = built("gae", dense=True)
    view = method.prepare(GRAPH)
    first, other = (method(view, Key(seed)).total for seed in (0, 1))
    assert first.item() == other.item()
    torch.testing.assert_close(first, dense_reconstruction(method.encoder(view), Pairs.of(view.adjacency)))


@both
def test_a_larger_sample_is_nearer_to_all_pairs(name: str) -> None:
    view = built(name).prepare(GRAPH)

    def losses(**settings: object) -> np.ndarray:
        """Return the loss of 30 seeds; the noise of VGAE has a key of its own, so a seed means the same code."""
        method = built(name, **settings)
        return np.array([method(view, Key(seed)).total.item() for seed in range(30)])

    exact = losses(dense=True)
    few, many = (np.abs(losses(non_edges=k) - exact).mean() for k in (0.05, 5.0))
    assert 0 < many < 0.3 * few  # ten times as near, by the root of a hundred times as many
    np.testing.assert_array_equal(losses(non_edges=50.0), exact)  # more than there are: all of them are taken


@both
def test_a_complete_graph_can_be_trained_on(name: str) -> None:
    edges = np.stack(np.nonzero(~np.eye(6, dtype=bool)))
    complete = Graph.of(edges=edges, features=np.random.default_rng(0).normal(size=(6, 8)), dtype=np.float64)
    method = built(name, graph=complete, epochs=60)
    losses = [line["reconstruction"] for line in train(method, method.prepare(complete), Key(0)).history]
    assert np.mean(losses[-20:]) < np.mean(losses[:20]) < 1


def test_terms_of_vgae_add_up() -> None:
    method = built("vgae", divergence_weight=3.0)
    view = method.prepare(GRAPH)
    losses = method(view, Key(0))
    mu, log_sigma = method.encoder(view).chunk(2, 1)
    torch.testing.assert_close(losses.terms["divergence"], gaussian_kl(mu, log_sigma).detach())
    expected = losses.terms["reconstruction"] + 3 / GRAPH.num_nodes * losses.terms["divergence"]
    torch.testing.assert_close(losses.total.detach(), expected)


def test_embedding_of_vgae_is_mu() -> None:
    method = built("vgae")
    mu = method.encoder(method.prepare(GRAPH))[:, :6]
    torch.testing.assert_close(method.embed(GRAPH), mu.detach())


def test_heads_of_vgae_begin_as_layers_of_their_own() -> None:
    weight = built("vgae", widths=(400, 300)).encoder.layers[-1].weight.detach()  # type: ignore[union-attr,index]
    assert weight.shape == (400, 600)
    bound = (6 / (400 + 300)) ** 0.5
    for head in weight.chunk(2, 1):
        assert 0.99 * bound < head.abs().max() < bound * (1 + 1e-6)
    assert not torch.equal(*weight.chunk(2, 1))


def test_log_sigma_is_cut_off() -> None:
    method = built("vgae", widths=(6,))
    with torch.no_grad():
        method.encoder.layers[-1].weight.mul_(1e4)  # type: ignore[union-attr,index,operator]
    losses = method(method.prepare(GRAPH), Key(0))
    losses.total.backward()
    assert torch.isfinite(losses.total)
    assert all(torch.isfinite(p.grad).all() for p in method.parameters() if p.grad is not None)


@both
def test_published_sizes(name: str) -> None:
    """1433-32-16: 1433 * 32 + 32 * 16 weights, with a second head 32 * 16 more; the hidden bias is ours."""
    method = build(name, {"widths": (32, 16)}, GraphInfo(1, 1, 1433))
    heads = 2 if name == "vgae" else 1
    assert sum(p.numel() for p in method.parameters()) == 1433 * 32 + heads * 32 * 16 + 32


@both
@pytest.mark.parametrize("dense", [False, True])
def test_communities_are_found(name: str, dense: bool) -> None:
    """Trained codes of a planted partition lie nearer to their own block than those of another."""
    graph = load("sbm", nodes=300, degree=10, features=16)
    labels = graph.labels
    assert labels is not None
    method = build(name, {"widths": (32, 8), "epochs": 80, "dense": dense}, graph.info)
    embedding = train(method, method.prepare(graph.without_labels()), Key(0)).embedding
    assert embedding is not None
    z = embedding.numpy()
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    same = labels[:, None] == labels[None, :]
    similarity = z @ z.T
    assert similarity[same].mean() > similarity[~same].mean() + 0.3


# Typed from Table 3 of the SSGE paper, in the order of its columns; ArXiv has none.
PAPER = {
    "gae": ((71.5, 0.4), (65.8, 0.4), (72.1, 0.5), (77.87, 0.53), (85.27, 0.19), (90.01, 0.71), None),
    "vgae": ((73.0, 0.3), (68.3, 0.4), (75.8, 0.2), (77.87, 0.53), (86.37, 0.21), (92.11, 0.09), None),
}
DATASETS = ("cora", "citeseer", "pubmed", "wikics", "computer", "coauthor_cs", "arxiv")
CLUSTERING = {"cora": (52.48, 43.99), "citeseer": (34.46, 32.65), "pubmed": (27.16, 26.32)}  # Table 4, VGAE alone


@both
def test_published_figures_are_the_paper_s(name: str) -> None:
    for dataset, figures in zip(DATASETS, PAPER[name], strict=True):
        published = load_recipe(f"{name}/{dataset}").published
        expected = {} if figures is None else dict(zip(("accuracy", "accuracy_deviation"), figures, strict=True))
        if name == "vgae" and dataset in CLUSTERING:
            expected |= dict(zip(("nmi", "ari"), CLUSTERING[dataset], strict=True))
        assert published == expected, dataset
