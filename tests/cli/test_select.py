"""Settings chosen without labels: the largest held-out score of nine wins, and a resumed run keeps it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import code_of

import ssge
from ssge.datasets import load
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.ops.held_out import held_out_scores
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan
from ssge.runs.select import select

SBM = "sbm:nodes=300,classes=3,degree=8,features=24,feature_signal=2,homophily=0.7"
WORDS = ("--widths", "16", "16", "--epochs", "6", "--uniformity-weight", "0.5")
SETTINGS: dict[str, Any] = {"widths": (16, 16), "epochs": 6, "uniformity_weight": 0.5}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load(SBM)


def held_out(graph: Graph, **settings: Any) -> float:
    """Return the held-out score of a fit, by another way than `select`."""
    run = fit(graph.without_labels(), plan(graph.info, settings=SETTINGS | settings))
    view = run.method.prepare(graph.without_labels())
    scores = held_out_scores(
        view.features, view.adjacency,
        lambda features, adjacency, _: [run.method.encode(view._replace(features=features, adjacency=adjacency))],
    )  # fmt: skip
    return float(scores[0])


def test_the_setting_with_the_largest_held_out_score_is_taken(graph: Graph) -> None:
    found = {
        (epochs, weight): held_out(graph, epochs=epochs, uniformity_weight=weight)
        for epochs, weight in product((3, 6, 12), (0.5 / 3, 0.5, 1.5))
    }
    chosen = select(graph, plan(graph.info, settings=SETTINGS)).config.model_dump()
    assert (chosen["epochs"], chosen["uniformity_weight"]) == max(found, key=found.__getitem__)
    assert len(set(found.values())) == 9


def test_labels_play_no_part_and_all_else_stays(graph: Graph) -> None:
    assert graph.labels is not None
    planned = plan(graph.info, settings=SETTINGS, seed=3)
    others = replace(graph, labels=graph.labels[::-1].copy())
    first, second = (select(one, planned) for one in (graph, others))
    assert first == second
    assert replace(first, config=planned.config) == planned


def test_python_and_the_command_line_choose_alike(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("fit", SBM, *WORDS, "--select", "--out", tmp_path / "run") == 0
    assert "Selected epochs" in capsys.readouterr().err
    model = ssge.SSGE(**SETTINGS, select=True, random_state=0).fit(graph)
    folder = RunFolder(tmp_path / "run")
    np.testing.assert_array_equal(model.embedding_, folder.read_embedding().vectors)
    again = ssge.SSGE.load(tmp_path / "run")
    assert again.epochs == folder.read_record().config["epochs"]
    np.testing.assert_array_equal(again.fit(graph).embedding_, model.embedding_)


def test_a_resumed_run_keeps_what_was_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.claim():
        folder.begin(plan(load(SBM).info, settings=SETTINGS | {"epochs": 4}).config.model_dump(mode="json"))
    assert code_of("fit", SBM, *WORDS, "--select", "--resume", "--out", folder.path) == 0
    assert "Selected" not in capsys.readouterr().err
    assert folder.read_record().config["epochs"] == 4


@pytest.mark.parametrize("method", ["bgrl", "sgc"])
def test_other_methods_are_refused(
    graph: Graph, method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=f"select chooses settings of ssge; received the method {method}"):
        ssge.GraphEmbedder(method, select=True).fit(graph)
    assert code_of("fit", SBM, "--method", method, "--select", "--out", tmp_path / "run") == 2
    assert capsys.readouterr().err.endswith(f"ssge: select chooses settings of ssge; received the method {method}.\n")
    assert not (tmp_path / "run").exists()
