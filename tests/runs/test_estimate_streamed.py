"""Estimates of streamed trainings, and what a graph that does not fit is told to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphs import random_graph
from ssge.errors import InputError
from ssge.io.graph_writer import write_graph
from ssge.runs.estimate import check_loading, check_memory, estimate
from ssge.runs.plan import plan


def test_disk_and_passes_follow_from_the_sizes(tmp_path: Path) -> None:
    graph = random_graph(n=500, p=12, m=900, dtype=np.float32)
    stored = write_graph(graph, tmp_path / "g").streamed(8 << 30, tmp_path)
    found = estimate(stored, plan(graph.info, settings={"widths": (8, 16), "epochs": 10, "blocks": ("learned",)}))
    assert found.parameters == 12 * 8 + 8 + 8 * 16
    assert found.panel == 12
    assert found.passes == 2 + 2 * (2 + 1)  # degrees; A X and A H of each view; back through A once
    assert found.disk == 500 * 4 * (2 * (12 + 8) + 4 * 12)
    assert found.seconds > 0
    assert "8 passes over the edges" in found.describe(10)


def test_a_graph_that_does_not_fit_is_told_how_to_stream(tmp_path: Path) -> None:
    graph = random_graph(dtype=np.float32)
    with pytest.raises(InputError, match=r"ssge convert .* --out graph, then ssge fit graph --memory 1GB"):
        check_memory(graph, plan(graph.info), available=10)
    with pytest.raises(InputError) as told:
        check_memory(graph, plan(graph.info, "grace"), available=10)
    assert "convert" not in str(told.value)  # GRACE compares nodes one by one
    stored = write_graph(graph, tmp_path / "g")
    with pytest.raises(InputError, match=rf"stream it: ssge fit {tmp_path / 'g'} --memory"):
        check_loading(stored, available=10)
    check_loading(stored, available=10**9)
