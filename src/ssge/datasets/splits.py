"""Splits: the public ones of a graph, or random ones that (seed, number of the split, number of nodes) determine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ssge.datasets.facts import Facts
from ssge.errors import InputError
from ssge.graph import Graph, Split

SplitKind: TypeAlias = Literal["paper", "random", "released-code"]
RELEASED_CODE = (0.1, 0.8, 0.1)
"""Shares of the parts in the authors' released code. The paper says 1 : 1 : 8; its code validates on the 80 % and tests
on the last tenth, so numbers from the two are not comparable."""


def splits_of(
    graph: Graph, kind: SplitKind, repeats: int = 1, facts: Facts | None = None
) -> tuple[Sequence[Split], str]:
    """Return the splits on which a graph is scored, and their title.

    Parameters
    ----------
    graph
        Holds labels and public splits.
    kind
        ``paper``: the public splits if there are any, else ten random ones of 1:1:8. ``random``: those ten in any
        case. ``released-code``: the public ones if the facts say that the released code takes them, else ten random
        ones of train 10 %, validation 80 %, test 10 %.
    repeats
        How often a single public split is listed.
    facts
        Of the dataset; None: the released code does not take the public split.
    """
    public = graph.splits
    if kind == "released-code":
        if public and facts is not None and facts.public_in_released_code:
            return (public if len(public) > 1 else public * repeats), "public"
        return _usable(random_splits(graph.num_nodes, 200, RELEASED_CODE), graph), "10 random, 10 % / 80 % / 10 %"
    if public and kind == "paper":
        return (public, f"{len(public)} public") if len(public) > 1 else (public * repeats, "public")
    return _usable(random_splits(graph.num_nodes, 200), graph), "10 random, 10 % / 10 % / 80 %"


def split_of(graph: Graph, kind: SplitKind, seed: int, facts: Facts | None = None) -> Split:
    """Return the split on which a supervised method is trained: split ``seed`` modulo the number of splits."""
    if graph.labels is None:
        raise InputError(f"{graph.name} has no labels, and a supervised method needs some.")
    splits, _ = splits_of(graph, kind, facts=facts)
    return splits[seed % len(splits)]


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
    sizes = train, valid, test
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


def _usable(splits: Sequence[Split], graph: Graph) -> Sequence[Split]:
    """Return the first ten splits with at least two classes to train on; only tiny graphs have others."""
    assert graph.labels is not None
    found = [split for split in splits if np.unique(graph.labels[split.train]).size > 1][:10]
    if len(found) < 10:
        raise InputError(f"{graph.name} has too few nodes or classes for random splits of 1:1:8.")
    return found
