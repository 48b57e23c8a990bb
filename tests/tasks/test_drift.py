"""Nodes of two embeddings are matched by one rule, whatever kind their ids have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssge.foreign import ids_of
from ssge.io.embeddings import Embedding, find_ids
from ssge.tasks.drift import drift

KINDS = {"integers": np.array([12, 7, 30]), "text": ids_of(["12", "7", "30"]), "unicode": np.array(["12", "7", "30"])}


@pytest.mark.parametrize("given", KINDS)
@pytest.mark.parametrize("known", KINDS)
def test_ids_of_different_kinds_are_the_same_nodes(known: str, given: str) -> None:
    z = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    order = np.array([2, 0, 1])
    before = Embedding(KINDS[known], z)
    assert find_ids(before.node_ids, KINDS[given][order]).tolist() == order.tolist()
    moved = drift(before, Embedding(KINDS[given][order], 5 * z[order]))
    assert moved.tolist() == pytest.approx([1, 1, 1])
    opposite = drift(before, Embedding(KINDS[given][:2], -z[:2]))
    assert opposite.tolist() == pytest.approx([-1, -1])


def test_nothing_in_common() -> None:
    assert not drift((np.array([1, 2]), np.eye(2)), (ids_of(["a", "01", "+2"]), np.ones((3, 2)))).size


@pytest.mark.parametrize(
    ("known", "asked", "rows"),
    [
        (np.array([5, 3, 2**60 + 1]), np.array([2**60, 2**60 + 1, 3, 9, -1]), [-1, 2, 1, -1, -1]),
        (np.empty(0, dtype=np.int64), np.array([1]), [-1]),
        (np.array([5, 3]), [3, "5", "03", 4], [1, 0, -1, -1]),
        (ids_of([1, "1", (0, 2)]), ["1", 1, "(0, 2)", (0, 2)], [1, 0, 2, 2]),
        (np.array([5, 3], dtype=np.uint8), np.array([3, 5]), [1, 0]),
    ],
    ids=str,
)
def test_the_same_id_comes_before_the_same_text(known: Any, asked: Any, rows: list[int]) -> None:
    assert find_ids(known, asked).tolist() == rows
