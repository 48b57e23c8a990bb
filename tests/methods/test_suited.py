"""The settings that follow a graph's sizes where no recipe is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs import random_graph
from ssge.cli import main
from ssge.estimator import SSGE
from ssge.experiments.folder import RunFolder
from ssge.graph import GraphInfo
from ssge.methods import METHODS


@pytest.mark.parametrize(
    ("info", "width", "weight", "epochs"),
    [
        (GraphInfo(2708, 10556, 1433), 512, 0.193, 27),  # Cora
        (GraphInfo(1797, 24000, 64), 64, 3.0, 46),  # as digits: no wider than its features
        (GraphInfo(34, 156, 34), 8, 3.0, 29),  # karate: a quarter of its nodes
        (GraphInfo(18_333, 163_788, 6_805), 512, 0.061, 37),  # CoauthorCS
        (GraphInfo(1000, 200_000, 500), 256, 3.0, 100),
        (GraphInfo(10**6, 10**6, 10**5), 512, 0.03, 22),
        (GraphInfo(3, 0, 1), 2, 0.03, 20),
    ],
)
def test_settings_follow_the_graph(info: GraphInfo, width: int, weight: float, epochs: int) -> None:
    found = METHODS["ssge"].suited(info)
    assert found == {"widths": (width, width), "uniformity_weight": weight, "epochs": epochs}


def test_command_and_estimator_take_the_same_settings(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["fit", "karate", "--out", str(tmp_path / "run"), "--epochs", "1", "--quiet"])
    config = RunFolder(tmp_path / "run").read_record().config
    assert (config["widths"], config["uniformity_weight"]) == ([8, 8], 3.0)
    graph = random_graph(n=64, p=40, m=200)
    model = SSGE(epochs=1).fit(graph)
    assert model._method.config.widths == (16, 16)
    assert model._method.config.uniformity_weight == 3.0
    assert SSGE(5, epochs=1).fit(graph)._method.config.widths == (16, 5)
    assert SSGE(hidden=(7, 6), epochs=1).fit(graph)._method.config.widths == (7, 6, 16)
    assert SSGE(hidden=(), uniformity_weight=0.5, epochs=1).fit(graph)._method.config.uniformity_weight == 0.5
