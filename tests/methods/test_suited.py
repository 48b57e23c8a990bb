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
    ("nodes", "features", "width", "weight"),
    [
        (2708, 1433, 512, 0.279),  # Cora
        (1797, 64, 64, 3.0),  # digits: as wide as its features
        (34, 34, 8, 3.0),  # karate: a quarter of its nodes
        (169_343, 128, 128, 3.0),  # ArXiv
        (18_333, 6_805, 512, 0.059),  # CoauthorCS
        (10**6, 10**5, 512, 0.03),
        (3, 1, 2, 3.0),
    ],
)
def test_width_and_weight_follow_the_graph(nodes: int, features: int, width: int, weight: float) -> None:
    settings = METHODS["ssge"].suited(GraphInfo(nodes, 10 * nodes, features))
    assert settings == {"widths": (width, width), "uniformity_weight": weight, "epochs": 40}


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
