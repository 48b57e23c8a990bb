"""The moving average: its formula, what it leaves alone, and that it is kept but not trained."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from ssge.nn.momentum import MovingAverage


def network(seed: int = 0) -> nn.Module:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).double()
    generator = torch.Generator().manual_seed(seed)
    for tensor in (*net.parameters(), *net.buffers()):
        if tensor.is_floating_point():
            tensor.data.uniform_(0.5, 1.5, generator=generator)
        else:
            tensor.fill_(seed)
    return net


def test_parameters_move_by_the_formula_and_stay_there_at_momentum_one() -> None:
    online, target = network(1), MovingAverage(network(2))
    before = copy.deepcopy(target.state_dict())
    target.update(online, 1.0)
    for name, tensor in target.state_dict().items():
        assert torch.equal(tensor, before[name])
    target.update(online, 0.9)
    for name, parameter in online.named_parameters():
        expected = 0.9 * before[f"network.{name}"] + 0.1 * parameter
        torch.testing.assert_close(target.state_dict()[f"network.{name}"], expected)
    target.update(online, 0.0)
    for own, other in zip(target.network.parameters(), online.parameters(), strict=True):
        torch.testing.assert_close(own, other, check_stride=False)


def test_a_momentum_for_each_parameter() -> None:
    online, target = network(1), MovingAverage(network(2))
    before = [p.clone() for p in target.network.parameters()]
    rates = [1.0, 0.5, 0.25, 0.0]
    target.update(online, rates)
    for own, old, other, rate in zip(target.network.parameters(), before, online.parameters(), rates, strict=True):
        torch.testing.assert_close(own.data, rate * old + (1 - rate) * other.data)
    with pytest.raises(ValueError, match="shorter"):
        target.update(online, [0.5])


def test_the_target_keeps_its_own_buffers() -> None:
    online, own = network(1), network(2)
    target = MovingAverage(copy.deepcopy(own))
    target.update(online, 0.9)
    for name, buffer in target.network.named_buffers():
        torch.testing.assert_close(buffer, own.get_buffer(name))
    assert any((a != b).any() for a, b in zip(online.buffers(), own.buffers(), strict=True))


def test_it_is_in_the_state_but_gets_no_gradient_and_gives_none() -> None:
    target = MovingAverage(network())
    assert not any(p.requires_grad for p in target.parameters())
    assert "network.0.weight" in target.state_dict()
    x = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)
    assert not target(x).requires_grad
