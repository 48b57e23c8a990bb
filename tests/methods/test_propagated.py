"""Training-free methods: the reduction of columns, and what they are on graphs nobody fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.errors import InputError, TrainingError
from ssge.ops.random import Key
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import Start, plan

GRAPH = random_graph(n=60, p=30, m=150, sparse=True)
OTHER = random_graph(n=50, p=30, m=200, seed=1, sparse=True)
names = pytest.mark.parametrize("name", ["sgc", "ssgc", "nafs"])


@names
def test_without_reduction_all_inner_products_are_those_of_the_propagated_features(name: str) -> None:
    few = plan(GRAPH.info, name, settings={"components": 29}, precision="float64")
    whole = plan(GRAPH.info, name, settings={"components": 30}, precision="float64")
    assert fit(GRAPH, few).embedding.vectors.shape == (60, 29)
    vectors = fit(GRAPH, whole).embedding.vectors
    raw = whole.build(GRAPH).embed(GRAPH).numpy()
    np.testing.assert_allclose(vectors, raw / np.sqrt(np.square(raw).mean()))


@names
def test_fitted_columns_stay_with_the_model(name: str, tmp_path: Path) -> None:
    planned = plan(GRAPH.info, name, settings={"components": 8}, precision="float64")
    run = fit(GRAPH, planned, RunFolder(tmp_path / "run"))
    model = RunFolder(tmp_path / "run").read_model()
    expected = run.method.embed(OTHER)
    torch.testing.assert_close(model.embed(OTHER), expected, rtol=0, atol=0)
    warm = plan(OTHER.info, name, start=Start(model, "run"), precision="float64")
    started = fit(OTHER, warm).embedding.vectors
    ratio = started / expected.numpy()
    np.testing.assert_allclose(ratio, ratio[0, 0])  # the same columns at another scale


@names
def test_there_is_nothing_to_train(name: str) -> None:
    with pytest.raises(InputError, match=r"epochs: .* less than or equal to 0; received 3"):
        plan(GRAPH.info, name, settings={"epochs": 3})
    planned = plan(GRAPH.info, name, settings={"epochs": 0})
    run = fit(GRAPH, planned)
    assert (run.history, run.record.parameters) == ([], 0)
    with pytest.raises(TrainingError, match="nothing to train"):
        run.method(run.method.prepare(GRAPH), Key(0))
