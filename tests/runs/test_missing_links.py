"""Links and duplicates of a fitted estimator."""

from __future__ import annotations

import numpy as np
import pytest

import ssge
from ssge.errors import InputError
from ssge.runs.links import suggest_links
from ssge.tasks.duplicates import duplicates


def test_links_and_duplicates_are_those_of_the_commands() -> None:
    graph = ssge.load_dataset("sbm:nodes=200")
    model = ssge.SSGE((16,), epochs=5, random_state=0).fit(graph)
    found = model.links(graph, k=4, of=[3, 5])
    expected = suggest_links(graph, model.embedding_, model._run.record, 4, np.array([3, 5])).links
    assert found["source"].tolist() == [3] * 4 + [5] * 4
    np.testing.assert_array_equal(found[["source", "target"]].to_numpy().T, expected.pairs)
    np.testing.assert_allclose(found["odds"], expected.odds)
    pairs = model.duplicates(3)
    np.testing.assert_array_equal(pairs[["source", "target"]].to_numpy().T, duplicates(model.embedding_, 3).pairs)
    with pytest.raises(InputError, match=r"graph must be the ssge\.Graph that the model was fitted on"):
        model.links(ssge.load_dataset("sbm:nodes=210"))
