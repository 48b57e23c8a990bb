"""Comparisons: the order of training and scoring, and reference rows that are clusterings alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from graphs import dense, random_graph
from ssge.experiments import compare as module
from ssge.experiments.compare import Summary, compare
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.references import (
    CLUSTERINGS,
    UNTRAINED,
    spectral_clustering,
)
from ssge.experiments.tables import HEADINGS, cells
from ssge.runs.plan import resolve_config
from ssge.runs.recipes import Recipe

GRAPH = random_graph(n=120, p=6, m=400)
RECIPE = Recipe(name="gae/random", method="gae", dataset="random", config={"epochs": 2, "widths": [4]})
QUICK = PROTOCOLS["quick"].model_copy(update={"cluster_seeds": 1})


def compared(out: Path, seeds: int = 2) -> Summary:
    return compare(RECIPE, GRAPH, QUICK, seeds, out, quiet=True)


def test_all_seeds_are_trained_before_anything_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peak memory is the process's: what scoring takes must not count as training's."""
    calls: list[str] = []
    for name in ("fit", "_judged"):
        real = getattr(module, name)

        def watched(*args: Any, _name: str = name, _real: Any = real, **options: Any) -> Any:
            calls.append(_name)
            return _real(*args, **options)

        monkeypatch.setattr(module, name, watched)
    compared(tmp_path)
    assert calls == ["fit"] * 2 + ["_judged"] * (len(UNTRAINED) + 2 + 2)
    calls.clear()
    compared(tmp_path)
    assert calls == []


def test_a_clustering_has_no_accuracy(tmp_path: Path) -> None:
    summary = compared(tmp_path, seeds=1)
    lines = {line.name: dict(zip(HEADINGS, cells(line), strict=True)) for line in summary.rows()}
    assert list(lines) == [*UNTRAINED, "untrained encoder", "GAE"]
    for name, line in lines.items():
        assert (line["accuracy %"] == "-") == (name in CLUSTERINGS), name
        assert 0 <= float(line["NMI %"]) <= 100
    again = Summary.read(tmp_path / "summary.json")
    assert again.rows() == summary.rows()


def test_spectral_clustering_uses_edges_alone_and_one_column_a_class() -> None:
    found = spectral_clustering(GRAPH)
    assert found.shape == (120, GRAPH.num_classes)
    other = random_graph(n=120, p=3, m=400)
    np.testing.assert_array_equal(other.edges, GRAPH.edges)
    assert np.array_equal(spectral_clustering(other), found)


@pytest.mark.parametrize("sparse", [False, True])
def test_training_free_rows_keep_all_columns_and_their_scale(sparse: bool) -> None:
    features = np.where(np.random.default_rng(0).random((120, 600)) < 0.02, 1.0, 0.0)
    graph = replace(GRAPH, features=sp.csr_array(features) if sparse else features)
    adjacency = dense(graph) + np.eye(120)
    adjacency /= np.sqrt(np.outer(adjacency.sum(axis=1), adjacency.sum(axis=0)))
    hops = [np.linalg.matrix_power(adjacency, k) @ features for k in range(9)]
    expected = {
        "raw features": features,
        "propagated features": hops[2],
        "mean of 8 hops": np.mean(hops, axis=0),
        "SSGC, 8 hops": 0.05 * features + 0.95 * np.mean(hops[1:], axis=0),
    }
    for name, rows in expected.items():
        found = UNTRAINED[name](graph)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, rows, atol=1e-12)


def test_what_is_not_trained_has_no_untrained_row(tmp_path: Path) -> None:
    recipe = Recipe(name="sgc/random", method="sgc", dataset="random", config={})
    lines = compare(recipe, GRAPH, QUICK, 1, tmp_path, quiet=True).rows()
    assert [line.name for line in lines] == [*UNTRAINED, "SGC"]
    assert lines[1].accuracy == lines[-1].accuracy  # the same rows but for their scale, to which the probe is blind


def test_settings_that_a_recipe_omits_are_those_of_fit(tmp_path: Path) -> None:
    """As `ssge fit --recipe` has them, not chosen for the size of the graph."""
    recipe = Recipe(name="own", method="ssge", dataset="random", config={"epochs": 1})
    run = compare(recipe, GRAPH, QUICK, 1, tmp_path, referenced=False, quiet=True).records[-1]
    assert run.config == resolve_config("ssge", recipe.config).model_dump(mode="json") and run.recipe == "own"
