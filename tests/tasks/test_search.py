"""Search: the exact one is that of ops; the approximate one reaches the recall it is asked for."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest

from ssge.errors import InputError, UnknownNameError
from ssge.ops.neighbors import Metric, Neighbors, nearest
from ssge.tasks.search import recall_of, search


def vectors(n: int = 3000, d: int = 16) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32) + 1


def test_exact_is_the_default() -> None:
    z, queries = vectors(200), np.array([3, 7])
    for found, expected in zip(search(z, queries, 5), nearest(z, queries, 5), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_recall_counts_what_was_found() -> None:
    true = Neighbors(np.array([[1, 2], [3, 4]]), np.zeros((2, 2)))
    assert recall_of(true, true) == 1
    assert recall_of(Neighbors(np.array([[2, 1], [5, 6]]), np.zeros((2, 2))), true) == 0.5


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_faiss_reaches_the_recall(
    metric: Metric, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(recall: float) -> Neighbors:
        monkeypatch.setattr("ssge.tasks.search.RECALL", recall)
        return search(z, queries, 10, metric, "faiss")

    z, queries = vectors(), np.arange(500)
    true = nearest(z, queries, 10, metric)
    with caplog.at_level(logging.INFO):
        rough, fine = found(0.3), found(0.95)
    assert "FAISS finds" in caplog.text and "of the true 10 nearest of 200 sampled nodes" in caplog.text
    assert 0.25 < recall_of(rough, true) < recall_of(fine, true) and recall_of(fine, true) > 0.9
    assert not (fine.position == queries[:, None]).any()
    np.testing.assert_allclose(found(1.0).score, true.score, atol=1e-5)


@pytest.mark.parametrize("n", [3, 30])
def test_faiss_on_few_rows_is_exact(n: int) -> None:
    z, queries = vectors(n), np.arange(n)
    found = search(z, queries, 2, backend="faiss")
    np.testing.assert_array_equal(found.position, nearest(z, queries, 2).position)


def test_equal_rows_do_not_hide_each_other() -> None:
    z = np.repeat(vectors(100), 30, axis=0)
    found = search(z, np.arange(0, 3000, 100), 5, backend="faiss")
    np.testing.assert_allclose(found.score, 1, atol=1e-5)
    assert not (found.position == np.arange(0, 3000, 100)[:, None]).any()


def test_without_faiss_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r"pip install ssge\[faiss\]"):
        search(vectors(50), np.array([0]), 3, backend="faiss")


def test_what_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Valid: exact, faiss"):
        search(vectors(50), np.array([0]), 3, backend="annoy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"k must be 1\.\.49"):
        search(vectors(50), np.array([0]), 50, backend="faiss")


def test_a_small_embedding_has_as_many_neighbors_as_other_rows() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 4))
    assert search(rows, np.arange(2)).position.shape == (2, 10)
    assert search(rows[:5], np.arange(2)).position.shape == (2, 4)
    with pytest.raises(InputError, match=r"k must be 1\.\.4 .*received 10"):
        search(rows[:5], np.arange(2), 10)
