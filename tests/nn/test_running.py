"""The running covariance: small batches see that of all nodes, and descend as all nodes at once do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ssge.nn.running import RunningCovariance
from ssge.objectives.gaussian import gaussian
from ssge.ops.moments import CollapseWarning, moments

N, D, BATCH = 1200, 12, 8


def views() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(D, D, dtype=torch.float64, generator=generator)
    z = torch.randn(N, D, dtype=torch.float64, generator=generator) @ mixing
    return tuple(z + 0.3 * torch.randn(N, D, dtype=torch.float64, generator=generator) for _ in range(2))  # type: ignore[return-value]


def gradient(size: int, momentum: float) -> Tensor:
    """Return the mean gradient of the weights of a linear layer over the second of two epochs of batches."""
    z1, z2 = views()
    weight = torch.eye(D, dtype=torch.float64, requires_grad=True)
    running = RunningCovariance(D, momentum).double() if momentum else None
    for epoch in range(2):
        order = torch.randperm(N, generator=torch.Generator().manual_seed(epoch))
        weight.grad = None
        for rows in order.split(size):
            loss = gaussian(z1[rows] @ weight, z2[rows] @ weight, 0.5, running=running).total
            (loss * len(rows) / N).backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    return weight.grad


@pytest.mark.filterwarnings("ignore::ssge.ops.moments.CollapseWarning")
def test_batches_smaller_than_the_width_descend_as_all_nodes_do() -> None:
    full = gradient(N, 0.0)
    own, running = (gradient(BATCH, momentum) for momentum in (0.0, 0.99))
    cosine = torch.nn.functional.cosine_similarity
    assert cosine(full.flatten(), running.flatten(), dim=0) > 0.99
    assert torch.linalg.norm(running - full) < 0.2 * torch.linalg.norm(own - full)


def test_the_covariance_is_the_mean_over_steps_in_which_older_ones_fade() -> None:
    z1, z2 = views()
    running, covariances = RunningCovariance(D, 0.5).double(), []
    for rows in torch.arange(N).split(300):
        found = running(moments(z1[rows], z2[rows]))
        covariances.append(torch.cov(z1[rows].t()))
    weights = torch.tensor([1 / 8, 1 / 4, 1 / 2, 1], dtype=torch.float64)
    expected = torch.einsum("t,tij->ij", weights / weights.sum(), torch.stack(covariances))
    torch.testing.assert_close(running.covariance[0], expected)
    assert found.n == 562  # 300 rows of weight 8 / 15
    torch.testing.assert_close(found.scatter[0] / 561, expected)
    assert int(running.steps) == 4


def test_one_step_alone_is_as_without() -> None:
    z1, z2 = views()
    plain, running = (gaussian(z1, z2, 0.5, running=r).total for r in (None, RunningCovariance(D, 0.9).double()))
    torch.testing.assert_close(plain, running)


def test_evaluation_leaves_moments_alone() -> None:
    z1, z2 = views()
    running, m = RunningCovariance(D, 0.9).double().eval(), moments(z1, z2)
    assert running(m) is m and int(running.steps) == 0


def test_without_it_a_batch_smaller_than_the_width_warns() -> None:
    z1, z2 = views()
    with pytest.warns(CollapseWarning):
        gaussian(z1[:8], z2[:8], 0.5)
