"""Graphs without files: handwritten digits, the karate club, and the attributed stochastic block model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssge.datasets.facts import Facts
from ssge.errors import InputError
from ssge.graph import Graph

_ROWS = 1 << 16


def digits(facts: Facts, _: Mapping[str, Path], *, neighbors: int = 10) -> Graph:
    """Join each of 1,797 images to its ``neighbors`` nearest ones and back; pixels scaled to [0, 1]."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    images = load_digits()
    n = len(images.target)
    if not 1 <= neighbors < n:
        raise InputError(f"neighbors must be between 1 and {n - 1}; received {neighbors}.")
    pixels = images.data / 16
    nearest = kneighbors_graph(pixels, neighbors, include_self=False)
    return Graph.of(adjacency=nearest, features=pixels, labels=images.target, name=facts.name)


def karate(facts: Facts, _: Mapping[str, Path]) -> Graph:
    """Read the 34 members; the label is the club that each joined after the quarrel."""
    import networkx as nx

    club = nx.karate_club_graph()
    labels = [facts.class_names.index(club.nodes[member]["club"]) for member in club]
    edges = np.array(list(club.edges), dtype=np.int64).T
    return Graph.of(edges=edges, features=np.eye(len(club)), labels=labels, name=facts.name)


def sbm(
    facts: Facts,
    _: Mapping[str, Path],
    *,
    nodes: int = 10_000,
    classes: int = 10,
    degree: float = 10.0,
    features: int = 128,
    homophily: float = 0.8,
    feature_signal: float = 1.0,
    seed: int = 0,
) -> Graph:
    """Draw a graph with blocks of equal size (to one node), nodes in random order.

    Of the n * degree / 2 undirected edges exactly the share ``homophily`` joins nodes of one block, each pair
    being as likely as any other; the rest joins nodes of two blocks. A node of block c has the features
    ``feature_signal * center[c] + noise``, with centers drawn from N(0, I/p), so of length about one, and
    noise from N(0, I). Time and memory are linear in nodes and edges.
    """
    limits: tuple[tuple[str, float, float, float], ...] = (
        ("nodes", nodes, 2, 1e9),
        ("classes", classes, 1, nodes),
        ("degree", degree, 0, nodes - 1),
        ("features", features, 1, 1e6),
        ("homophily", homophily, 0, 1),
        ("feature_signal", feature_signal, 0, 1e6),
        ("seed", seed, 0, 2**63),
    )
    for name, value, low, high in limits:
        if not low <= value <= high:
            raise InputError(f"{name} must be between {low:,} and {high:,}; received {value:,}.")
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(nodes) % classes)
    edges = _edges(labels, classes, degree, homophily, rng)
    matrix = rng.standard_normal((nodes, features), dtype=np.float32)
    centers = (feature_signal * rng.standard_normal((classes, features)) / np.sqrt(features)).astype(np.float32)
    for start in range(0, nodes, _ROWS):  # in pieces, so that no second matrix of this size is made
        piece = slice(start, start + _ROWS)
        matrix[piece] += centers[labels[piece]]
    return Graph.of(edges=edges, features=matrix, labels=labels, name=facts.name)


def _edges(
    labels: NDArray[np.int64], classes: int, degree: float, homophily: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    n = labels.size
    by_block = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels, minlength=classes)
    starts = np.cumsum(sizes) - sizes
    total = round(n * degree / 2)
    inside = round(total * homophily)
    pairs_inside = int((sizes * (sizes - 1) // 2).sum())

    def distinct(count: int, within: bool) -> NDArray[np.int64]:
        """Draw until there are ``count`` different undirected pairs, each held as one number."""
        pairs = pairs_inside if within else n * (n - 1) // 2 - pairs_inside
        if count > pairs / 2:  # beyond a half, most draws would be repetitions
            wanted = f"{count:,} edges {'within' if within else 'between'} blocks wanted"
            raise InputError(f"degree must be lower: {wanted}, allowed is half of {pairs:,} pairs.")
        keys = np.empty(0, dtype=np.int64)
        while keys.size < count:
            source = rng.integers(n, size=count - keys.size)
            size, start = sizes[labels[source]], starts[labels[source]]
            # Count on from the end of the own block, around, so that every node of another block is as likely.
            step = rng.integers(size) if within else size + rng.integers(n - size)
            target = by_block[(start + step) % n]
            drawn = np.minimum(source, target) * n + np.maximum(source, target)
            # Sorted by hand: np.unique hashes integers, which takes fifty times as long here.
            keys = np.sort(np.concatenate([keys, drawn[source != target]]))
            keys = keys[np.append(True, keys[1:] != keys[:-1])] if keys.size else keys
        return keys

    key = np.concatenate([distinct(inside, within=True), distinct(total - inside, within=False)])
    return np.stack([key // n, key % n])
