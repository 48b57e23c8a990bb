from __future__ import annotations

import numpy as np
import pytest

from ssge.errors import InputError
from ssge.ops.neighbors import nearest


def test_agrees_with_brute_force_in_chunks() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 5)) + 3
    centred = vectors - vectors.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    found = nearest(vectors, np.arange(50), 4, chunk=7)
    for i in range(50):
        similar = [(-(unit[i] @ unit[j]), j) for j in range(50) if j != i]
        assert [j for _, j in sorted(similar)[:4]] == found.position[i].tolist()
        np.testing.assert_allclose(found.cosine[i], [-s for s, _ in sorted(similar)[:4]])


def test_k_must_leave_the_node_itself_out() -> None:
    with pytest.raises(InputError, match=r"k must be 1\.\.2"):
        nearest(np.eye(3), np.array([0]), 3)
