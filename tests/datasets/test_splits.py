from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphs import random_graph
from ssge.datasets import DATASETS, SplitKind, facts_of, random_splits, splits_of
from ssge.datasets.splits import RELEASED_CODE
from ssge.errors import InputError
from ssge.graph import Split

PUBLIC = Split(np.arange(0, 30), np.arange(30, 60), np.arange(60, 160))


def test_every_node_is_in_one_part() -> None:
    for split in random_splits(1003):
        assert tuple(part.size for part in split) == (100, 100, 803)
        assert np.array_equal(np.sort(np.concatenate(split)), np.arange(1003))


def test_split_rests_on_seed_number_and_size_alone() -> None:
    few, many = random_splits(500, count=2, seed=3), random_splits(500, count=7, seed=3)
    for a, b in zip(few, many[:2], strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    trains = [tuple(s.train) for s in (*many, *random_splits(500, count=7, seed=4))]
    assert len(set(trains)) == 14


def test_other_fractions_cut_the_same_order() -> None:
    small = random_splits(200, 1, (0.1, 0.1, 0.2))[0]
    large = random_splits(200, 1, (0.2, 0.2, 0.6))[0]
    assert tuple(part.size for part in small) == (20, 20, 40)
    assert np.array_equal(np.sort(np.concatenate(small[:2])), large.train)


def test_a_fraction_is_not_rounded_below_its_value() -> None:
    assert random_splits(100, 1, (0.29, 0.29, 0.42))[0].train.size == 29  # 100 * 0.29 is 28.999...


@pytest.mark.parametrize(
    ("num_nodes", "sizes"),
    [
        (13_752, (1375, 11001, 1376)),
        (18_333, (1833, 14666, 1834)),
        (3_327, (332, 2661, 334)),
        (19_717, (1971, 15773, 1973)),
        (169_343, (16934, 135474, 16935)),
    ],
)
def test_sizes_of_the_released_code(num_nodes: int, sizes: tuple[int, int, int]) -> None:
    split = random_splits(num_nodes, 1, RELEASED_CODE)[0]
    assert tuple(part.size for part in split) == sizes
    assert np.unique(np.concatenate(split)).size == num_nodes


def test_released_code_has_the_same_training_nodes() -> None:
    ours, theirs = random_splits(1000, 3), random_splits(1000, 3, RELEASED_CODE)
    assert all(np.array_equal(a.train, b.train) for a, b in zip(ours, theirs, strict=True))


def test_what_cannot_be_split() -> None:
    with pytest.raises(InputError, match="num_nodes = 9"):
        random_splits(9)
    with pytest.raises(InputError, match="fractions"):
        random_splits(100, fractions=(0.5, 0.5, 0.5))
    with pytest.raises(InputError, match="fractions"):
        random_splits(100, fractions=(0.5, 0.5, 0.0))
    with pytest.raises(InputError, match="count"):
        random_splits(100, count=0)
    with pytest.raises(InputError, match="seed"):
        random_splits(100, seed=-1)


@pytest.mark.parametrize(
    ("facts", "public", "kind", "sizes"),
    [
        ("cora", True, "paper", (30, 30, 100)),
        ("cora", True, "released-code", (30, 30, 100)),
        ("cora", True, "random", (20, 20, 160)),
        ("citeseer", True, "paper", (30, 30, 100)),
        ("citeseer", True, "released-code", (20, 160, 20)),
        ("computer", False, "paper", (20, 20, 160)),
        ("computer", False, "released-code", (20, 160, 20)),
        (None, True, "paper", (30, 30, 100)),
        (None, True, "released-code", (20, 160, 20)),
    ],
)
def test_splits_are_those_of_the_kind(facts: str | None, public: bool, kind: SplitKind, sizes: tuple[int, ...]) -> None:
    graph = replace(random_graph(n=200, p=5, m=400), name="cora", splits=(PUBLIC,) if public else ())
    splits, _ = splits_of(graph, kind, 10, DATASETS[facts] if facts else None)
    assert len(splits) == 10
    for split in splits:
        assert tuple(part.size for part in split) == sizes
        assert len(set(np.concatenate(split).tolist())) == sum(sizes)


def test_several_public_splits_are_each_used_once() -> None:
    other = Split(PUBLIC.valid, PUBLIC.train, PUBLIC.test)
    splits, title = splits_of(replace(random_graph(n=200, p=5, m=400), splits=(PUBLIC, other)), "paper", 10)
    assert len(splits) == 2
    assert title == "2 public"


def test_facts_of_a_source() -> None:
    for source in ("sbm", "SBM:nodes=10,classes=2"):
        found = facts_of(source)
        assert found is not None and found.name == "sbm"
    assert facts_of("./cora.csv") is None
