"""DGI, GGD, GMI, MVGRL and MERIT: the loss of a step against dense matrices, and what each has of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs import dense, random_graph
from ssge.methods.ggd import GGD
from ssge.methods.gmi import GMI
from ssge.methods.merit import MERIT
from ssge.methods.mvgrl import MVGRL
from ssge.nn.encoders import GCN
from ssge.objectives.mutual_information import sample_others
from ssge.ops.random import Key
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.ops.sparse import row_indices
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import train

GRAPH = random_graph(n=80, p=12, m=300)  # its last node has no edge
KEY = Key(0).fold_in("train", 1)
ORDER = KEY.fold_in("shuffle").permutation(80)


def built(name: str, **config: Any) -> Any:
    """Return a method in float64; biases and slopes are moved from where they begin, else nobody would miss them."""
    settings = {"epochs": 3, "widths": (10, 6), "normalize_features": False, "predictor_width": 8} | config
    known = build(name, {"epochs": 3}, GRAPH.info).config.model_dump()
    method = build(name, {key: value for key, value in settings.items() if key in known}, GRAPH.info, 0, torch.float64)
    generator = torch.Generator().manual_seed(1)
    for parameter in method.parameters():
        if parameter.ndim == 1:
            parameter.data += 0.2 * torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
    return method


def step(method: Any) -> Tensor:
    method.train()
    ((batch, key),) = batches(method, method.prepare(GRAPH.without_labels()), KEY)
    total: Tensor = method(batch, key).total
    return total


def features() -> Tensor:
    return torch.from_numpy(GRAPH.features)


def normalized(a: Tensor) -> Tensor:
    return a / (a.sum(1, keepdim=True) * a.sum(0)).sqrt()


def adjacency() -> Tensor:
    return normalized(torch.from_numpy(dense(GRAPH)) + torch.eye(80))


def diffusion(teleport: float, threshold: float = 0.0) -> Tensor:
    s = teleport * torch.linalg.inv(torch.eye(80) - (1 - teleport) * adjacency())
    return torch.where(s >= max(threshold, 1e-14), s, 0)


def gcn(encoder: GCN, a: Tensor, x: Tensor) -> Tensor:
    for layer, activation in zip(encoder.affine, encoder.activations, strict=True):
        assert layer.bias is not None
        x = functional.prelu(a @ x @ layer.weight + layer.bias, activation.slope)  # type: ignore[arg-type]
    return x


def bce(positive: Tensor, negative: Tensor) -> Tensor:
    labels = torch.cat([torch.ones_like(positive), torch.zeros_like(negative)])
    return functional.binary_cross_entropy_with_logits(torch.cat([positive, negative]), labels)


def test_dgi_scores_nodes_against_the_summary() -> None:
    method = built("dgi")
    h, corrupted = (gcn(method.encoder, adjacency(), x) for x in (features(), features()[ORDER]))
    s, score = h.mean(0).sigmoid(), method.discriminator
    torch.testing.assert_close(step(method), bce(*(rows @ score.weight @ s + score.bias for rows in (h, corrupted))))


def test_dgi_can_map_its_summary_by_a_linear_layer() -> None:
    method = built("dgi", linear_summary=True)
    h, corrupted = (gcn(method.encoder, adjacency(), x) for x in (features(), features()[ORDER]))
    linear = nn.Linear(6, 6).double()
    linear.weight.data, linear.bias.data = method.discriminator.weight.data.t(), method.discriminator.bias.data
    s = linear(h.mean(0).sigmoid())
    torch.testing.assert_close(step(method), bce(h @ s, corrupted @ s))


def test_ggd_sums_a_linear_map_of_masked_features() -> None:
    method = built("ggd", feature_mask=0.3)
    x = features() * KEY.fold_in("columns").keep(torch.arange(12), 0.3)
    assert 0 < (x == 0).all(0).sum() < 12
    head = nn.Linear(6, 6).double()
    head.weight.data, head.bias.data = method.head.weight.data.t(), method.head.bias.data
    scores = [head(gcn(method.encoder, adjacency(), rows)).sum(1) for rows in (x, x[ORDER])]
    torch.testing.assert_close(step(method), bce(*scores))


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_ggd_adds_what_is_some_hops_away(hops: int) -> None:
    method: GGD = built("ggd", hops=hops)
    h = gcn(method.encoder, adjacency(), features())
    expected = h + torch.linalg.matrix_power(adjacency(), hops) @ h if hops else h
    torch.testing.assert_close(method.embed(GRAPH), expected)
    torch.testing.assert_close(method.embed(GRAPH, np.array([70, 2])), expected[[70, 2]])


@pytest.mark.parametrize("name", ["dgi", "ggd"])
def test_batches_shuffle_within_their_subgraph(name: str) -> None:
    method = built(name, batch_nodes=30, feature_mask=0.0)
    seen = []
    for batch, key in batches(method, method.prepare(GRAPH), KEY):
        order = key.fold_in("shuffle").permutation(batch.num_nodes)
        a, x = batch.adjacency.matrix.to_dense(), batch.features.matrix
        h, corrupted = (gcn(method.encoder, a, rows)[batch.seeds] for rows in (x, x[order]))
        if name == "dgi":
            score = method.discriminator
            scores = [rows @ score.weight @ h.mean(0).sigmoid() + score.bias for rows in (h, corrupted)]
        else:
            scores = [(rows @ method.head.weight + method.head.bias).sum(1) for rows in (h, corrupted)]
        torch.testing.assert_close(method(batch, key).total, bce(*scores))
        seen.append(batch.adjacency.pattern.nodes[batch.seeds])
    assert torch.equal(torch.cat(seen).sort().values, torch.arange(80))


@pytest.mark.parametrize("bounded", [True, False])
def test_gmi_is_the_weighted_sum_of_three_terms(bounded: bool) -> None:
    weights = {"feature_weight": 0.3, "neighbor_weight": 0.7, "edge_weight": 1.9}
    method: GMI = built("gmi", negatives=3, non_edges=0.5, bounded=bounded, **weights)
    x, linked = features(), torch.from_numpy(dense(GRAPH))
    h = gcn(method.encoder, adjacency(), x)
    near = linked @ (x @ method.encoder.affine[0].weight) / linked.sum(1, keepdim=True).clamp_min(1)
    u = functional.prelu(near, method.activation.slope)

    def information(scores: Tensor, place: int) -> Tensor:
        others = sample_others(80, 3, KEY.fold_in("others", place).generator())
        assert (others != torch.arange(80).unsqueeze(1)).all()
        scores = scores.sigmoid() if bounded else scores
        return functional.softplus(-scores.diag()).mean() + functional.softplus(scores.gather(1, others)).mean()

    pairs = Pairs.of(method.prepare(GRAPH).view.adjacency)
    count = round(0.5 * int(linked.sum() + 80))
    rows = sample_non_edges(pairs, count, KEY.fold_in("non-edges").generator()).rows
    i, j = row_indices(rows.indptr).long(), rows.indices.long()
    assert i.numel() == count and (linked + torch.eye(80))[i, j].sum() == 0
    scores, entries = h @ h.t(), linked.sum() + 80
    edges = 2 * functional.softplus(-scores[(linked + torch.eye(80)) > 0]).mean()
    edges = edges + (6400 - entries) / (6400 - entries / 2) * functional.softplus(scores[i, j]).mean()
    terms = (information(h @ (x @ method.own.weight).t(), 0), information(u @ (h @ method.near.weight).t(), 1), edges)
    expected = sum((w * term for w, term in zip(weights.values(), terms, strict=True)), torch.zeros(()))
    torch.testing.assert_close(step(method), expected)


def mvgrl_outputs(method: MVGRL, a: Tensor, s: Tensor, x: Tensor, order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output of both views, and the loss of a step."""
    (encoder, other), score = method.encoders, method.discriminator
    h1, h2, c1, c2 = (
        gcn(*parts) for parts in ((encoder, a, x), (other, s, x), (encoder, a, x[order]), (other, s, x[order]))
    )
    assert score.bias is not None
    first, second = (bce(*(rows @ score.weight @ h.mean(0).sigmoid() + score.bias for rows in pair))
                     for h, pair in ((h1, (h2, c2)), (h2, (h1, c1))))  # fmt: skip
    return h1, h2, (first + second) / 2


@pytest.mark.parametrize("threshold", [0.0, 0.01])
def test_mvgrl_scores_nodes_against_the_summary_of_the_other_view(threshold: float) -> None:
    method: MVGRL = built("mvgrl", teleport=0.3, threshold=threshold)
    assert method.encoders[0] is not method.encoders[1]
    h1, h2, loss = mvgrl_outputs(method, adjacency(), diffusion(0.3, threshold), features(), ORDER)
    torch.testing.assert_close(step(method), loss)
    torch.testing.assert_close(method.embed(GRAPH), h1 + h2)


def test_mvgrl_normalizes_a_batch_by_the_degrees_inside_it() -> None:
    method: MVGRL = built("mvgrl", teleport=0.3, threshold=0.0, batch_nodes=30)
    s, a = diffusion(0.3), torch.from_numpy(dense(GRAPH)) + torch.eye(80)
    for batch, key in batches(method, method.prepare(GRAPH.without_labels()), KEY):
        nodes = batch.graph.adjacency.pattern.nodes
        inside = normalized(a[nodes][:, nodes]), s[nodes][:, nodes]
        order = key.fold_in("shuffle").permutation(len(nodes))
        torch.testing.assert_close(
            method(batch, key).total, mvgrl_outputs(method, *inside, features()[nodes], order)[2]
        )


@pytest.mark.parametrize("name", ["mvgrl", "merit"])
def test_diffusion_can_be_cut_to_the_largest_entries_and_scaled(name: str) -> None:
    method = built(name, teleport=0.3, threshold=0.0, diffusion_neighbors=4, column_scale="max")
    found = method.prepare(GRAPH).diffusion.adjacency.matrix.to_dense()
    truth = diffusion(0.3)
    least = truth.sort(1, descending=True).values[:, 3:4]
    kept = torch.where(truth >= least - 1e-12, truth, 0)
    torch.testing.assert_close(found, kept / kept.max(0).values)


@pytest.mark.parametrize("name", ["mvgrl", "merit"])
def test_batches_are_both_matrices_among_random_nodes(name: str) -> None:
    method = built(name, batch_nodes=30)
    whole = method.prepare(GRAPH)
    seen = []
    for batch, _ in batches(method, whole, KEY):
        nodes = batch.graph.adjacency.pattern.nodes
        for part, view in zip(batch[:2], whole[:2], strict=True):
            matrix = view.adjacency.matrix.to_dense()
            torch.testing.assert_close(part.adjacency.matrix.to_dense(), matrix[nodes][:, nodes])
            torch.testing.assert_close(part.features.matrix, features()[nodes])
        seen.append(nodes)
    assert [len(nodes) for nodes in seen] == [27, 27, 26]
    assert torch.equal(torch.cat(seen).sort().values, torch.arange(80))
    other = next(iter(batches(method, whole, Key(0).fold_in("train", 2))))[0].graph.adjacency.pattern.nodes
    assert not torch.equal(other, seen[0])


def contrast(u: Tensor, v: Tensor, temperature: float, intra: bool) -> Tensor:
    """Return the mean loss of the anchors in u."""
    u, v = functional.normalize(u), functional.normalize(v)
    across, within = (u @ v.t() / temperature).exp(), (u @ u.t() / temperature).exp()
    total = across.sum(1) + (within.sum(1) - within.diag() if intra else 0)
    return -(across.diag() / total).log().mean()


def test_merit_contrasts_views_and_networks() -> None:
    settings = {"feature_mask": 0.3, "edge_drop": 0.4, "view_weight": 0.3, "temperature": 0.7, "teleport": 0.3}
    method: MERIT = built("merit", threshold=0.0, **settings)
    for parameter in method.target.parameters():
        parameter.data *= 1.1  # else both networks are one
    first = method.rewire(method.prepare(GRAPH).graph, KEY).adjacency.matrix.to_dense()
    s = diffusion(0.3)
    s = s / s.sum(0)
    q, z = [], []
    for i, a in enumerate((first, s)):
        x = features() * KEY.fold_in(i, "columns").keep(torch.arange(12), 0.3)
        method.train()
        q.append(method.predictor(method.online.projector(gcn(method.encoder, a, x))))
        z.append(method.target.network.projector(gcn(method.target.network.encoder, a, x)))  # type: ignore[operator, arg-type, union-attr]
    views = (contrast(q[0], q[1], 0.7, True) + contrast(q[1], q[0], 0.7, True)) / 2
    networks = (contrast(q[0], z[1], 0.7, False) + contrast(q[1], z[0], 0.7, False)) / 2
    torch.testing.assert_close(step(method), 0.3 * views + 0.7 * networks)
    method.eval()
    both = gcn(method.encoder, adjacency(), features()) + gcn(method.encoder, s, features())
    torch.testing.assert_close(method.embed(GRAPH), both)


def test_merit_changes_as_many_edges_as_configured() -> None:
    method: MERIT = built("merit", edge_drop=0.4)
    clean = torch.from_numpy(dense(GRAPH)) + torch.eye(80)
    changed = method.rewire(method.prepare(GRAPH).graph, KEY).adjacency
    linked = (changed.matrix.to_dense() != 0).double()
    m = int(clean.sum()) - 80
    dropped, added = int((clean > linked).sum()), int((linked > clean).sum())
    assert abs(dropped - 0.2 * m) < 4 * (m * 0.2 * 0.8) ** 0.5
    assert 0.9 * 0.2 * m < added <= round(0.2 * m)  # a pair drawn twice counts once
    assert linked.diag().all()
    torch.testing.assert_close(changed.matrix.to_dense(), normalized(linked))


@pytest.mark.parametrize("momentum", [0.0, 0.5, 1.0])
def test_merit_s_target_follows_by_its_momentum(momentum: float) -> None:
    method: MERIT = built("merit", momentum=momentum, epochs=1)
    before = [p.clone() for p in method.target.parameters()]
    train(method, method.prepare(GRAPH.without_labels()), Key(0))
    moved = zip(before, method.target.parameters(), method.online.parameters(), strict=True)
    for old, new, online in moved:
        torch.testing.assert_close(new.data, momentum * old + (1 - momentum) * online.data)


def test_a_gradient_reaches_nothing_through_merit_s_target() -> None:
    method: MERIT = built("merit")
    step(method).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in method.target.parameters())
    assert method.online.projector.output.bias is None  # canceled by the predictor's batch normalization


@pytest.mark.parametrize("name", ["dgi", "ggd", "gmi", "mvgrl", "merit"])
def test_rows_are_normalized_by_default(name: str) -> None:
    prepared = built(name, normalize_features=True).prepare(GRAPH)
    view = getattr(prepared, "view", getattr(prepared, "graph", prepared))
    torch.testing.assert_close(view.features.matrix.abs().sum(1), torch.ones(80, dtype=torch.float64))


@pytest.mark.parametrize("name", ["mvgrl", "merit"])
def test_dense_memory_is_that_of_the_factorization_or_of_the_entries(name: str) -> None:
    method = built(name, diffusion_neighbors=64)
    info = GRAPH.info
    assert method.dense_memory(method.config, info, 4) == 2 * 4 * 80**2
    assert method.dense_memory(method.config, info._replace(num_nodes=10_000), 4) == 10_000 * 64 * 24
