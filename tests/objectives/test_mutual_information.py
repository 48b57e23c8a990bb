"""Estimators of mutual information against loops and torch's losses in float64, closed forms, gradcheck, descent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs import dense, random_graph
from ssge.errors import InputError
from ssge.objectives.mutual_information import (
    cross_entropy,
    cross_view,
    edge_information,
    group_discrimination,
    local_global,
    paired_information,
    sample_others,
    summary,
)
from ssge.ops.adjacency import Adjacency
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.ops.sparse import csr_from_coo, transpose

N, D = 9, 4


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def labeled(positive: Tensor, negative: Tensor) -> Tensor:
    """Return torch's binary cross-entropy over all scores."""
    scores = torch.cat([positive, negative])
    return functional.binary_cross_entropy_with_logits(scores, (torch.arange(len(scores)) < len(positive)).double())


def test_cross_entropy_is_that_of_labels_and_safe_far_out() -> None:
    p, q = random(N), random(N, seed=1)
    torch.testing.assert_close(cross_entropy(p, q), labeled(p, q))
    assert cross_entropy(torch.zeros(3), torch.zeros(5)).item() == pytest.approx(np.log(2))
    far = cross_entropy(torch.tensor([-1e4]), torch.tensor([1e4]))
    assert far.item() == pytest.approx(1e4)


def test_local_global_is_a_bilinear_discriminator() -> None:
    h, c, weight = random(N, D), random(N, D, seed=1), random(D, D, seed=2)
    bilinear = nn.Bilinear(D, D, 1).double()
    bilinear.weight.data[0], bilinear.bias.data[0] = weight.detach(), 0.3
    s = 1 / (1 + torch.exp(-h.sum(0) / N))
    repeated = s.expand(N, D).contiguous()
    expected = labeled(bilinear(h, repeated).squeeze(1), bilinear(c, repeated).squeeze(1))
    torch.testing.assert_close(local_global(h, c, summary(h), weight, torch.tensor(0.3)), expected)


def test_group_discrimination_is_local_global_with_ones() -> None:
    h, c, weight, bias = random(N, D), random(N, D, seed=1), random(5, D, seed=2), random(5, seed=3)
    torch.testing.assert_close(
        group_discrimination(h, c, torch.eye(D).double()),
        local_global(h, c, torch.ones(D).double(), torch.eye(D).double()),
    )
    head = [functional.linear(x, weight, bias).sum(1) for x in (h, c)]
    torch.testing.assert_close(group_discrimination(h, c, weight, bias), labeled(*head))


def test_cross_view_pairs_each_view_with_the_summary_of_the_other() -> None:
    h1, h2, c1, c2 = (random(N, D, seed=seed) for seed in range(4))
    weight = random(D, D, seed=4)
    s1, s2 = (1 / (1 + np.exp(-h.detach().numpy().mean(0))) for h in (h1, h2))
    w = weight.detach().numpy()
    loss = 0.0
    for i in range(N):
        for h, c, s in ((h1, c1, s2), (h2, c2, s1)):
            loss += np.log1p(np.exp(-h[i].detach().numpy() @ w @ s)) + np.log1p(np.exp(c[i].detach().numpy() @ w @ s))
    assert cross_view(h1, h2, c1, c2, weight).item() == pytest.approx(loss / (4 * N))
    swapped = cross_view(h2, h1, c2, c1, weight)
    torch.testing.assert_close(swapped, cross_view(h1, h2, c1, c2, weight))


@pytest.mark.parametrize("bounded", [True, False])
def test_paired_information_agrees_with_loops(bounded: bool) -> None:
    a, b = random(N, D), random(N, D, seed=1)
    negatives = sample_others(N, 3, torch.Generator().manual_seed(0))
    x, y = a.detach().numpy(), b.detach().numpy()

    def d(i: int, j: int) -> float:
        score = float(x[i] @ y[j])
        return 1 / (1 + np.exp(-score)) if bounded else score

    expected = np.mean([np.log1p(np.exp(-d(i, i))) for i in range(N)])
    expected += np.mean([np.log1p(np.exp(d(i, j))) for i in range(N) for j in negatives[i].tolist()])
    assert paired_information(a, b, negatives, bounded).item() == pytest.approx(expected)
    assert torch.autograd.gradcheck(lambda s, t: paired_information(s, t, negatives, bounded), (a, b))


def test_mapping_first_is_the_bilinear_score_of_the_features() -> None:
    h, x, weight = random(N, D), random(N, 6, seed=1), random(D, 6, seed=2)
    negatives = sample_others(N, 2, torch.Generator().manual_seed(0))
    positive = torch.einsum("nd,dp,np->n", h, weight, x).sigmoid()
    negative = torch.einsum("nd,dp,nkp->nk", h, weight, x[negatives]).sigmoid()
    expected = functional.softplus(-positive).mean() + functional.softplus(negative).mean()
    torch.testing.assert_close(paired_information(h, x @ weight.t(), negatives), expected)


def test_edge_information_is_the_released_weighted_cross_entropy() -> None:
    graph = random_graph(n=20, m=40)
    h = random(20, D)
    edges = Pairs.of(Adjacency.of(graph.edges, 20, dtype=torch.float64))
    target = dense(graph) + np.eye(20)
    i, j = np.nonzero(target == 0)
    rest = csr_from_coo(torch.from_numpy(i), torch.from_numpy(j), 20, torch.float64)
    probability = 1 / (1 + np.exp(-(h @ h.t()).detach().numpy()))
    half = target.sum() / 2
    first, second = (400 - half) / half, 400 / (400 - half)
    entropy = -first * target * np.log(probability) - (1 - target) * np.log(1 - probability)
    found = edge_information(h, edges, Pairs(rest, *transpose(rest, 20)))
    assert found.item() == pytest.approx(entropy.mean() * second)
    drawn = sample_non_edges(edges, 50, torch.Generator().manual_seed(0))
    assert torch.autograd.gradcheck(lambda z: edge_information(z, edges, drawn), (h,))


def test_gradcheck() -> None:
    h1, h2, c1, c2 = (random(N, D, seed=seed) for seed in range(4))
    weight, bias = random(D, D, seed=4), random(1, seed=5)
    assert torch.autograd.gradcheck(lambda h, c, w, b: local_global(h, c, summary(h), w, b), (h1, c1, weight, bias))
    assert torch.autograd.gradcheck(cross_view, (h1, h2, c1, c2, weight, bias))
    assert torch.autograd.gradcheck(group_discrimination, (h1, c1, weight, random(D, seed=6)))


def test_descent_tells_the_graph_from_its_corruption() -> None:
    h, c = random(N, D).detach() + 1, random(N, D, seed=1).detach()
    weight = torch.zeros(D, D, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    losses = []
    for _ in range(100):
        loss = local_global(h, c, summary(h), weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] == pytest.approx(np.log(2)) and losses[-1] < 0.5
    assert (h @ weight @ summary(h)).mean() > (c @ weight @ summary(h)).mean()


def test_order_of_the_nodes_does_not_matter() -> None:
    h, c, weight = random(N, D), random(N, D, seed=1), random(D, D, seed=2)
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        local_global(h[order], c, summary(h[order]), weight), local_global(h, c, summary(h), weight)
    )


def test_others_are_others_and_all_alike() -> None:
    drawn = sample_others(5, 4000, torch.Generator().manual_seed(0))
    for i in range(5):
        counts = torch.bincount(drawn[i], minlength=5)
        assert counts[i] == 0
        assert (counts[torch.arange(5) != i] - 1000).abs().max() < 150  # 5 standard deviations
    assert sample_others(2, 1, torch.Generator().manual_seed(0)).tolist() == [[1], [0]]
    with pytest.raises(InputError, match="from 2 nodes on"):
        sample_others(1, 1, torch.Generator())
