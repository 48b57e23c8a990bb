"""Two small graphs from installed packages: handwritten digits and the karate club."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ssge.datasets.facts import Facts
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.compact import compact


def digits(facts: Facts, _: Mapping[str, Path], *, neighbors: int = 10) -> Graph:
    """Join each of 1,797 images to its ``neighbors`` nearest ones and back; pixels scaled to [0, 1]."""
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    images = load_digits()
    n = len(images.target)
    if not 1 <= neighbors < n:
        raise InputError(f"neighbors must be between 1 and {n - 1}; received {neighbors}.")
    pixels = images.data / 16
    nearest = sp.coo_array(kneighbors_graph(pixels, neighbors, include_self=False))
    edges = np.stack([nearest.row, nearest.col])
    return Graph.of(edges=edges, features=compact(pixels), labels=images.target, name=facts.name)


def karate(facts: Facts, _: Mapping[str, Path]) -> Graph:
    """Read the 34 members; the label is the club that each joined after the quarrel."""
    import networkx as nx

    club = nx.karate_club_graph()
    labels = [facts.class_names.index(club.nodes[member]["club"]) for member in club]
    edges = np.array(list(club.edges), dtype=np.int64).T
    return Graph.of(edges=edges, features=compact(np.eye(len(club))), labels=labels, name=facts.name)
