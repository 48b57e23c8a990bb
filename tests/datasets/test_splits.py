from __future__ import annotations

import numpy as np
import pytest

from ssge.datasets import random_splits, released_code_splits
from ssge.errors import InputError


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
    split = released_code_splits(num_nodes, count=1)[0]
    assert tuple(part.size for part in split) == sizes
    assert np.unique(np.concatenate(split)).size == num_nodes


def test_released_code_has_the_same_training_nodes() -> None:
    ours, theirs = random_splits(1000, 3), released_code_splits(1000, 3)
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
