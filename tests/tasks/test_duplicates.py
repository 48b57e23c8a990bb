from __future__ import annotations

import numpy as np
import pytest

from ssge.errors import InputError
from ssge.tasks.duplicates import duplicates


def test_planted_duplicates_come_first() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 8))
    vectors[[31, 150]] = vectors[[7, 90]] + 0.01 * rng.normal(size=(2, 8))
    found = duplicates(vectors, 2)
    assert {tuple(pair) for pair in found.pairs.T.tolist()} == {(7, 31), (90, 150)}
    assert (found.cosine > 0.999).all() and (found.next < 0.95).all()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -1)
    for a, b, near, other in zip(*found.pairs, found.cosine, found.next, strict=True):
        assert near == pytest.approx(cosine[a, b])
        cosine[a, b] = cosine[b, a] = -1
        assert other == pytest.approx(max(cosine[a].max(), cosine[b].max()))


def test_a_pair_is_near_both_ways_and_above_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssge.tasks.duplicates._NEIGHBORS", 1)
    vectors = np.array([[1.0, 0.0], [1.0, 0.01], [1.0, 0.02], [0.0, 1.0], [0.1, 1.0]])
    found = duplicates(vectors, 10)
    assert {tuple(pair) for pair in found.pairs.T.tolist()} <= {(0, 1), (1, 2), (3, 4)}
    assert (3, 4) in {tuple(pair) for pair in found.pairs.T.tolist()}
    assert duplicates(vectors, 10, least=0.9999).cosine.min() >= 0.9999
    assert duplicates(np.ones((1, 3))).pairs.shape == (2, 0)


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="k must be 1 or more"):
        duplicates(np.eye(3), 0)
    with pytest.raises(InputError, match="least must be a cosine"):
        duplicates(np.eye(3), least=2)
