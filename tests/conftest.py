"""Shared fixtures: small graphs, and the real benchmark files where they are at hand."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from graphs import random_graph
from ssge.graph import Graph

torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests away from the user's cache, but build the embedded datasets only once a session."""
    os.environ.setdefault("SSGE_CACHE", str(tmp_path_factory.getbasetemp().parent / "ssge-cache"))


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """Undo what commands that run inside a test or its fixtures do to the root logger, such as --quiet."""
    before = min(logging.root.level, logging.WARNING)
    logging.root.setLevel(before)
    yield
    logging.root.setLevel(before)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Return the folder of the real benchmark files."""
    root = os.environ.get("SSGE_DATA")
    if not root:
        pytest.skip("SSGE_DATA is not set: real benchmark files are not at hand")
    return Path(root)


@pytest.fixture
def graph() -> Graph:
    return random_graph()
