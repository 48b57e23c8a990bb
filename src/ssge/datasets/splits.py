"""Random splits that anyone can make again from (seed, number of the split, number of nodes)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.graph import Split


def random_splits(
    num_nodes: int, count: int = 10, fractions: tuple[float, float, float] = (0.1, 0.1, 0.8), seed: int = 0
) -> tuple[Split, ...]:
    """Make the paper's random splits: train, validation and test as 1 : 1 : 8.

    Parameters
    ----------
    num_nodes
        Number of nodes, n.
    count
        How many splits; the first ones do not depend on it.
    fractions
        Shares of the three parts, positive, of sum at most 1. Sizes are rounded down; if the shares sum to 1
        the test part takes what is left, so that every node is in one part.
    seed
        Split k depends only on (seed, k, num_nodes): other fractions cut the same order of nodes elsewhere.

    Examples
    --------
    >>> [part.size for part in random_splits(100, count=1)[0]]
    [10, 10, 80]
    """
    if len(fractions) != 3 or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
        raise InputError(f"fractions must be three positive shares of sum at most 1; received {fractions}.")
    train, valid, test = (math.floor(num_nodes * share + 1e-9) for share in fractions)
    if sum(fractions) > 1 - 1e-9:
        test = num_nodes - train - valid
    return _cut(num_nodes, count, (train, valid, test), seed)


def released_code_splits(num_nodes: int, count: int = 10, seed: int = 0) -> tuple[Split, ...]:
    """Make splits of the sizes that the authors' released code has: train 10 %, validation 80 %, test 10 %.

    The paper says 1 : 1 : 8; its code uses the 80 % part for validation and tests on the last tenth.
    Numbers from the two are not comparable. The order of the nodes is that of `random_splits` with the same
    seed.

    Examples
    --------
    >>> [part.size for part in released_code_splits(13_752, count=1)[0]]
    [1375, 11001, 1376]
    """
    train, valid = int(num_nodes * 0.1), int(num_nodes * 0.8)
    return _cut(num_nodes, count, (train, valid, num_nodes - train - valid), seed)


def _cut(num_nodes: int, count: int, sizes: tuple[int, int, int], seed: int) -> tuple[Split, ...]:
    if count < 1:
        raise InputError(f"count must be at least 1; received {count}.")
    if seed < 0:
        raise InputError(f"seed must not be negative; received {seed}.")
    if min(sizes) < 1:
        raise InputError(f"num_nodes = {num_nodes} is too small: the parts would have {sizes} nodes.")
    ends = np.cumsum(sizes)
    splits = []
    for k in range(count):
        order: NDArray[np.int64] = np.random.default_rng([seed, k, num_nodes]).permutation(num_nodes)
        parts = np.split(order[: ends[2]], ends[:2])
        splits.append(Split(*(np.sort(part) for part in parts)))
    return tuple(splits)
