"""Counter-based draws: rates, independence, known answers, and nothing but key and item decides."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from graphs import random_graph
from ssge.ops import random as module
from ssge.ops.random import Key, _thresholds
from ssge.training.checkpoint import build
from ssge.training.trainer import train

COUNT = 1 << 17
ITEMS = torch.arange(COUNT)
PAIRS = torch.cartesian_prod(torch.arange(362), torch.arange(362)).T  # all (i, j): near and structured, as edges are
MASK = (1 << 64) - 1


def edge_ids(source: Tensor, target: Tensor) -> Tensor:
    return (source << 32) | target


def correlation(first: Tensor, second: Tensor) -> float:
    """Return the correlation of two masks, in standard deviations of that of independent ones."""
    return float(torch.corrcoef(torch.stack([first.double(), second.double()]))[0, 1]) * len(first) ** 0.5


def split_mix(item: int, value: int) -> int:
    """Return the finalizer of SplitMix64 in unbounded integers, as an unsigned number."""
    x = (item ^ value) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("items", [ITEMS, edge_ids(*PAIRS)], ids=["columns", "edges"])
def test_rates_are_met(rate: float, items: Tensor) -> None:
    kept = int(Key(0).fold_in("rates").keep(items, rate).sum())
    deviation = (len(items) * rate * (1 - rate)) ** 0.5
    assert abs(kept - len(items) * (1 - rate)) < 4 * deviation


def test_rates_zero_and_one_are_exact() -> None:
    assert Key(0).keep(ITEMS, 0).all()
    assert not Key(0).keep(ITEMS, 1).any()


def test_one_rate_per_item_is_that_rate_for_the_item() -> None:
    """Bit for bit, for rates near the ends of their range, in both halves, and of either precision."""
    key, items = Key(0).fold_in("rates"), ITEMS[:1000]
    numbers = [0, 2**-64, 3e-17, 0.1, 0.3, 0.5 - 2**-54, 0.5, 0.5 + 2**-53, 0.7, 1 - 2**-53, 1]
    for rate in numbers:
        assert torch.equal(key.keep(items, torch.full((1000,), rate, dtype=torch.float64)), key.keep(items, rate))
        assert _thresholds(torch.tensor([rate % 1], dtype=torch.float64)).item() == round(rate % 1 * 2**64) - 2**63
    single = torch.full((1000,), 0.3)
    assert torch.equal(key.keep(items, single), key.keep(items, float(single[0])))


def test_rates_per_item_are_met_and_chunks_play_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    key, rates = Key(1).fold_in("rates"), torch.linspace(0, 1, COUNT, dtype=torch.float64)
    kept = key.keep(ITEMS, rates)
    for part, rate in zip(kept.view(16, -1), rates.view(16, -1), strict=True):
        deviation = float((rate * (1 - rate)).sum().sqrt())
        assert abs(float(part.sum() - (1 - rate).sum())) < 4 * deviation
    monkeypatch.setattr(module, "_ITEMS", 999)
    assert torch.equal(key.keep(ITEMS[:5000], rates[:5000]), kept[:5000])


@pytest.mark.parametrize(
    "other",
    [
        Key(1).fold_in("edges", 1, 0),
        Key(0).fold_in("edges", 2, 0),
        Key(0).fold_in("edges", 1, 1),
        Key(0).fold_in("columns", 1, 0),
        Key(0).fold_in("edges", 1, 0).at_step(1),
    ],
    ids=["seed", "epoch", "view", "purpose", "step"],
)
@pytest.mark.parametrize("items", [ITEMS, edge_ids(*PAIRS)], ids=["columns", "edges"])
def test_draws_of_other_keys_are_independent(other: Key, items: Tensor) -> None:
    assert abs(correlation(Key(0).fold_in("edges", 1, 0).keep(items, 0.4), other.keep(items, 0.4))) < 4


def test_draws_of_other_items_are_independent() -> None:
    key, (source, target) = Key(3).fold_in("edges"), PAIRS[:, PAIRS[0] < PAIRS[1]]
    there, back = (key.keep(edge_ids(*ends), 0.4) for ends in ((source, target), (target, source)))
    assert abs(correlation(there, back)) < 4
    kept = key.keep(edge_ids(*PAIRS), 0.4).view(362, 362)
    assert abs(correlation(kept[:, 1:].flatten(), kept[:, :-1].flatten())) < 4
    assert abs(correlation(kept[1:].flatten(), kept[:-1].flatten())) < 4


@pytest.mark.parametrize("size", [1, 7, 999])
def test_chunks_and_order_play_no_part(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    key, items = Key(2).fold_in("edges", 5), ITEMS[:1000]
    expected = key.keep(items, 0.4)
    monkeypatch.setattr(module, "_ITEMS", size)
    assert torch.equal(key.keep(items, 0.4), expected)
    order = torch.randperm(1000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(key.keep(items[order], 0.4), expected[order])


def test_bits_are_those_of_split_mix() -> None:
    for key in (Key(0), Key(7).fold_in("edges", 3)):
        items = [0, 1, 2, (5 << 32) | 9, 2**62 + 1]
        found = [bits & MASK for bits in key.bits(torch.tensor(items)).tolist()]
        assert found == [split_mix(item, key.value) for item in items]


def test_known_answers() -> None:
    """Draws never change silently: records of earlier runs rest on them."""
    assert Key(0).value == 8668861027912758289
    assert Key(42).fold_in("train", 1, 0).value == 9195656381869630466
    assert Key(42).fold_in("train", 1, 0).at_step(2).value == 6318664476018685107
    bits = Key(0).fold_in("edges").bits(torch.tensor([0, 1, 1 << 32]))
    assert bits.tolist() == [6781446706166743594, -9210684502569041200, 2411525912495350594]
    assert Key(0).fold_in("order", 1).permutation(8).tolist() == [2, 7, 1, 6, 5, 4, 3, 0]


def test_no_two_paths_share_their_bits() -> None:
    names = ["train", "weights", "edges", "columns", "order"]
    paths = [path for length in range(4) for path in product([0, 1, 2, *names], repeat=length)]
    values = {Key(seed).fold_in(*path).at_step(step).value for seed in (0, 1) for path in paths for step in (0, 1)}
    assert len(values) == 4 * len(paths)


def test_path_is_built_in_any_number_of_steps() -> None:
    assert Key(0).fold_in("a", 1, "b").value == Key(0).fold_in("a").fold_in(1).fold_in("b").value


def test_permutation_is_one_and_every_place_is_as_likely() -> None:
    keys = [Key(0).fold_in("order", epoch) for epoch in range(2000)]
    found = torch.stack([key.permutation(10) for key in keys])
    assert torch.equal(found.sort(1).values, torch.arange(10).expand(2000, 10))
    counts = torch.stack([(found == item).sum(0) for item in range(10)])
    # Chi-square of each item over the places, all together: its mean is the degrees of freedom.
    freedom = 9 * 9
    assert abs(float((counts - 200).square().sum()) / 200 - freedom) < 4 * (2 * freedom) ** 0.5


def test_no_draw_of_training_comes_from_the_stream_of_the_initial_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the key of the weights nor one below it, and its generator starts otherwise than any of training."""
    used: list[tuple[Key, str]] = []
    for name in ("bits", "generator"):
        honest = getattr(Key, name)

        def spied(self: Key, *arguments: object, name: str = name, honest: object = honest) -> object:
            used.append((self, name))
            return honest(self, *arguments)  # type: ignore[operator]

        monkeypatch.setattr(Key, name, spied)
    graph = random_graph()
    settings: dict[str, dict[str, object]] = {"ssge": {"widths": (4,)}, "vgae": {}, "node2vec": {}}
    for name, config in settings.items():
        used.clear()
        method = build(name, {"epochs": 2} | config, graph.info, seed=5)
        ((weights, kind),) = used
        assert kind == "generator"
        used.clear()
        train(method, method.prepare(graph.without_labels()), Key(5))
        assert used
        for key, _ in used:
            assert key.value != weights.value
            assert key.path[: len(weights.path)] != weights.path
