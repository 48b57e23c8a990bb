"""Verdicts on the paper's claims follow the figures."""

from __future__ import annotations

from typing import Any

import pytest

import claims
from claims import Evidence, Verdict
from ssge.experiments.tables import Row


def row(accuracy: float, nmi: float = 0.0) -> Row:
    return Row("a method", 3, accuracy, 0.0, 0.0, nmi, 0.0, 0.0, 0.0, 1.0)


def evidence(methods: Any = None, costs: Any = None, **figures: Any) -> Evidence:
    return Evidence(figures, methods or {}, costs or {})


@pytest.mark.parametrize(
    ("held", "of", "word"),
    [(0, 0, "not measured"), (2, 2, "held"), (1, 2, "held in part"), (0, 2, "did not hold")],
)
def test_words(held: int, of: int, word: str) -> None:
    assert Verdict(held, of, "").word == word


def test_supervised_methods_are_no_rivals() -> None:
    found = {"cora": {"ssge": row(83, 60), "gcn": row(99, 99), "dgi": row(82, 50), "bgrl": row(80, 61)}}
    assert claims.best_of_all(evidence(found)) == (1, 1, "cora 83.0 (DGI 82.0)")
    assert claims.clusters(evidence(found)) == (0, 1, "cora 60.0 (BGRL 61.0)")
    assert claims.beside_cca_ssg(evidence(found)).word == "not measured"


@pytest.mark.parametrize(("seconds", "held"), [(1.0, 4), (3.0, 0)])
def test_costs_are_compared_pair_by_pair(seconds: float, held: int) -> None:
    costs = {f"{name}/cora": {"seconds": 2.0} for name in ("dgi", "mvgrl", "grace", "homogcl")}
    verdict = claims.cost("seconds")(evidence(costs=costs | {"ssge/cora": {"seconds": seconds}}))
    assert (verdict.held, verdict.of) == (held, 4)


@pytest.mark.parametrize(("both", "held"), [(84.0, 1), (79.0, 0)])
def test_both_terms_must_beat_either_alone(both: float, held: int) -> None:
    figures = {"cora": {"alignment": [80.0, 80.0], "uniformity": [50.0, 50.0], "both": [both, both]}}
    assert claims.both_terms(evidence(ablation=figures)).held == held


def test_columns_are_coupled_without_uniformity_alone() -> None:
    figures = {"cora": {"alignment": 0.8, "uniformity": 0.0, "both": 0.1}, "citeseer": dict.fromkeys(
        ("alignment", "uniformity", "both"), 0.1)}  # fmt: skip
    assert claims.coupled(evidence(coupling=figures))[:2] == (1, 2)


@pytest.mark.parametrize(
    ("curve", "held"),
    [({"0.1": [70.0], "1": [80.0], "10": [75.0]}, 1), ({"0.1": [70.0], "1": [75.0], "10": [80.0]}, 0)],
)
def test_a_curve_rises_and_falls_if_its_best_is_inside(curve: dict[str, list[float]], held: int) -> None:
    assert claims.rises_and_falls(evidence(**{"lambda": {"cora": curve}})).held == held


def test_width_and_augmentation() -> None:
    figures = {"cora": {"16": [70.0, 70.2], "256": [80.0, 80.2], "1024": [80.0, 80.3]}}
    assert claims.width(evidence(dimension=figures)).word == "held"
    assert claims.width(evidence(dimension={"cora": figures["cora"] | {"1024": [90.0, 90.1]}})).word == "did not hold"
    grid = {f"{a}, {b}": [80.0] for a in ("0", "0.2", "0.4") for b in ("0", "0.2", "0.4")}
    assert claims.robust(evidence(augmentation={"cora": grid | {"0, 0": [50.0]}})).word == "held"
    assert claims.robust(evidence(augmentation={"cora": grid | {"0.2, 0.4": [50.0]}})).word == "did not hold"
