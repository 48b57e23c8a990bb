"""Shared fixtures: small graphs, and the real benchmark files where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from ssge.graph import Graph

torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests away from the user's cache, but build the embedded datasets only once a session."""
    os.environ.setdefault("SSGE_CACHE", str(tmp_path_factory.getbasetemp().parent / "ssge-cache"))


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Return the folder of the real benchmark files."""
    root = os.environ.get("SSGE_DATA")
    if not root:
        pytest.skip("SSGE_DATA is not set: real benchmark files are not at hand")
    return Path(root)


def random_graph(n: int = 60, p: int = 12, m: int = 150, seed: int = 0, weighted: bool = False) -> Graph:
    """Return a small random graph with labels; node n-1 is isolated."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 1, size=(2, m))
    return Graph.of(
        edges=edges,
        features=rng.normal(size=(n, p)),
        weights=rng.uniform(0.5, 2, size=m) if weighted else None,
        labels=rng.integers(0, 3, size=n),
        dtype=np.float64,
        name="random",
    )


@pytest.fixture
def graph() -> Graph:
    return random_graph()
