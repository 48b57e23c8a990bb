"""The paper's efficiency comparison: its configurations have the paper's numbers of parameters, and one is measured."""

from __future__ import annotations

import pytest

from ssge.datasets import DATASETS
from ssge.experiments import efficiency
from ssge.experiments.efficiency import GRAPHS, PUBLISHED, Measured, measure, settings
from ssge.graph import GraphInfo
from ssge.training.checkpoint import build

METHODS = ("dgi", "mvgrl", "grace", "homogcl", "ssge")


def parameters(method: str, dataset: str) -> int:
    features = DATASETS[dataset].num_features
    assert features is not None
    return build(method, settings(method, dataset), GraphInfo(1, 1, features)).num_parameters


@pytest.mark.parametrize("dataset", GRAPHS)
@pytest.mark.parametrize("method", METHODS)
def test_parameters_are_as_many_as_in_the_paper(method: str, dataset: str) -> None:
    assert round(parameters(method, dataset) / 1000) == PUBLISHED[method, dataset].thousands


def test_the_table_is_whole() -> None:
    assert list(PUBLISHED) == [(method, dataset) for method in METHODS for dataset in GRAPHS]


def test_counts_by_hand() -> None:
    p = DATASETS["cora"].num_features
    assert p == 1433
    assert parameters("ssge", "cora") == p * 256 + 256 + 256 * 256 + 256
    assert parameters("homogcl", "cora") == p * 512 + 512 + 512 * 256 + 256
    assert parameters("grace", "cora") == p * 256 + 256 + 3 * (256 * 256 + 256)
    assert parameters("mvgrl", "cora") == 2 * (p * 512 + 512 + 1) + 512 * 512 + 1
    assert parameters("dgi", "cora") == p * 512 + 512 + 2 * (512 * 512 + 512) + 2


def test_a_measurement_extrapolates_from_its_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficiency, "settings", lambda method, dataset: {"widths": (8,), "epochs": 1000})
    found = measure("mvgrl", "karate", 0.0)
    assert (found.epochs, found.measured_epochs) == (1000, 1)  # one epoch at least
    assert measure("mvgrl", "karate", 0.01).measured_epochs > 1
    assert found.parameters == 2 * (34 * 8 + 8 + 1) + 8 * 8 + 1
    assert found.epoch_seconds > 0 and found.peak_mb > 50
    assert Measured(1, 100, 2, 0.5, 0.25, 0.0).seconds == 25.5
