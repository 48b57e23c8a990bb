"""The label-free verdict on a collapsed, an untrained, a structureless and a good fit, and where it is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssge.datasets import load
from ssge.evaluation import geometry
from ssge.evaluation.edges import edge_figures
from ssge.graph import Graph
from ssge.runs.fit import Run, fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan
from ssge.runs.verdict import diagnose, verdict

SBM = "sbm:nodes=800,classes=4,features=40,feature_signal=3,homophily="
BLOCKS = ("features", "propagated", "learned")
SMALL: dict[str, Any] = {"widths": (32, 32), "epochs": 30, "blocks": BLOCKS}


def fitted(graph: Graph, method: str = "ssge", **settings: Any) -> Run:
    return fit(graph, plan(graph.info, method, settings=settings))


def said(run: Run) -> str:
    return verdict(run.record.diagnostics).split(":")[0]


@pytest.mark.parametrize("blocks", [("learned",), BLOCKS])
def test_a_good_an_untrained_and_a_structureless_fit(blocks: tuple[str, ...]) -> None:
    good = load(f"{SBM}0.85")
    assert said(fitted(good, **SMALL | {"blocks": blocks})) == "Good"
    assert said(fitted(good, **SMALL | {"epochs": 0, "blocks": blocks})) == "Undertrained"
    assert said(fitted(load(f"{SBM}0.25"), **SMALL | {"blocks": blocks})) == "Structureless"  # 1/4: edges at random


def test_a_collapsed_fit() -> None:
    graph = load(f"{SBM}0.85")
    run = fitted(graph, **SMALL | {"blocks": ("learned",)})
    with torch.no_grad():
        for layer in run.method.encoder.layers:  # type: ignore[operator, union-attr]
            layer.weight[:, 1:] = 0
    figures = geometry(run.method.embed(graph).numpy()) | diagnose(run.method, None, graph, run.method.prepare(graph))
    assert verdict(figures).startswith("Collapsed: the rows vary along 1.0 directions")


@pytest.mark.parametrize(("mean", "expected"), [(2000, "One direction"), (0, "Good")])
def test_a_column_of_large_values_is_told_of(mean: int, expected: str) -> None:
    graph = load(f"{SBM}0.85")
    noise = np.random.default_rng(0).standard_normal((graph.num_nodes, 1), dtype=np.float32)
    features = np.hstack([np.asarray(graph.features), mean + noise]).astype(np.float32)
    assert said(fitted(replace(graph, features=features), **SMALL)) == expected


def test_an_encoder_behind_its_features_is_told_so() -> None:
    figures = {"effective_rank": 20.0, "held_out_edges": 0.7, "alignment_features": 0.1, "alignment_propagated": 0.2}
    text = verdict(figures | {"alignment_learned": 0.1, "alignment_untrained": 0.5})
    assert text.startswith("No better than propagation: propagated features")
    assert verdict(figures | {"alignment_learned": 0.19, "alignment_untrained": 0.5}).startswith("Good")
    assert verdict(figures | {"alignment_learned": 0.19, "alignment_untrained": 0.999}).startswith("Undertrained")
    weak = {
        "alignment_features": 0.001,
        "alignment_propagated": 0.002,
        "alignment_learned": 0.0,
        "alignment_untrained": 0.0,
    }
    assert verdict({"effective_rank": 20.0, "held_out_edges": 0.7} | weak).startswith("Good")


@pytest.mark.parametrize("method", ["ssgc", "node2vec", "gae"])
def test_other_methods_have_what_they_allow(method: str) -> None:
    graph = load(f"{SBM}0.85")
    figures = fitted(graph, method).record.diagnostics
    assert ("held_out_edges" in figures) == (method != "node2vec")
    assert ("alignment_propagated" in figures) == (method != "node2vec")
    assert ("alignment_learned" in figures) == (method == "gae")
    assert len(verdict(figures).rstrip(".").split(". ")) == 2


def test_held_out_edges_are_not_seen() -> None:
    """Edges at random, features of noise: an embedding that had seen an edge would join its ends."""
    graph = load("sbm:nodes=800,classes=4,features=40,feature_signal=0,homophily=0.25")
    run = fitted(graph, **SMALL | {"blocks": ("learned",)})
    seen = diagnose(run.method, None, graph, run.method.prepare(graph))["held_out_edges"]
    assert seen == pytest.approx(0.5, abs=0.03)
    rows = run.embedding.vectors - run.embedding.vectors.mean(axis=0)
    assert edge_figures(rows, graph.edges)["edge_auc"] > 0.6


def test_card_and_record_carry_it(tmp_path: Path) -> None:
    graph = load(f"{SBM}0.85")
    folder = RunFolder(tmp_path / "run")
    fit(graph, plan(graph.info, settings=SMALL), folder)
    text = verdict(folder.read_record().diagnostics)
    assert text.startswith("Good") and text in (folder.path / "README.md").read_text("utf-8")
