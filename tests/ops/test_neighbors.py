from __future__ import annotations

import numpy as np
import pytest

from ssge.errors import InputError, UnknownNameError
from ssge.ops.neighbors import nearest


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_agrees_with_brute_force_in_chunks(metric: str) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 5)) + 3
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    sign = -1 if metric == "cosine" else 1
    found = nearest(vectors, np.arange(50), 4, metric, chunk=7)  # type: ignore[arg-type]
    for i in range(50):
        scores = unit @ unit[i] if metric == "cosine" else np.linalg.norm(vectors - vectors[i], axis=1)
        best = sorted((sign * scores[j], j) for j in range(50) if j != i)[:4]
        assert [j for _, j in best] == found.position[i].tolist()
        np.testing.assert_allclose(found.score[i], [sign * s for s, _ in best])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_ties_go_to_the_lower_position(metric: str) -> None:
    corners = np.array([[1.0, 0], [-1, 0]])
    vectors = corners[[0, 1, 0, 1, 0, 0, 1, 1]]
    found = nearest(vectors, np.array([4, 1]), 4, metric)  # type: ignore[arg-type]
    assert found.position.tolist() == [[0, 2, 5, 1], [3, 6, 7, 0]]


def test_near_rows_keep_their_distance() -> None:
    vectors = np.full((3, 2), 1000, dtype=np.float32)
    vectors[1, 0] += 2**-10
    vectors[2] = -1000
    found = nearest(vectors, np.array([0]), 2, "euclidean")
    assert found.position.tolist() == [[1, 2]] and found.score[0, 0] == pytest.approx(2**-10, rel=0.1)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"k must be 1\.\.2"):
        nearest(np.eye(3), np.array([0]), 3)
    with pytest.raises(UnknownNameError, match="Did you mean 'cosine'"):
        nearest(np.eye(3), np.array([0]), 1, "cosin")  # type: ignore[arg-type]
