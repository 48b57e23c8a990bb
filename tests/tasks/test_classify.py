"""Classification of the rest: planted classes, chance on noise, few members, and what is refused."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

from ssge.errors import InputError
from ssge.tasks.classify import PENALTIES, classify


def planted(n: int = 300, spread: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return 3 * np.eye(3, 6)[y] + spread * rng.normal(size=(n, 6)), np.array(["ant", "bee", "cat"])[y]


def test_planted_classes_are_predicted() -> None:
    z, y = planted()
    labeled = np.random.default_rng(1).permutation(300)[:90]
    found = classify(z, labeled, y[labeled])
    assert found.folds == 5 and found.C in PENALTIES and found.classes.tolist() == ["ant", "bee", "cat"]
    assert sorted([*labeled, *found.rows]) == list(range(300))
    right = (found.predicted == y[found.rows]).mean()
    assert right > 0.85 and abs(right - found.accuracy.mean) < 0.1
    np.testing.assert_allclose(found.probability.sum(axis=1), 1)
    assert found.majority == np.unique(y[labeled], return_counts=True)[1].max() / 90
    assert found.accuracy.mean > found.majority + 0.3 and found.macro_f1.mean > 0.8


def test_the_strongest_penalty_of_equals_is_chosen() -> None:
    z, y = planted(spread=0.01)
    found = classify(z, np.arange(100), y[:100])
    assert found.accuracy.mean == 1
    assert PENALTIES.index(found.C) == 1  # the strongest predicts the largest class; all others are correct everywhere


def test_noise_scores_no_better_than_the_majority() -> None:
    rng = np.random.default_rng(2)
    y = rng.permutation(np.repeat([0, 1], [140, 60]))
    found = classify(rng.normal(size=(200, 20)), np.arange(200), y)
    assert found.majority == 0.7 and found.accuracy.mean < 0.75 and found.macro_f1.mean < 0.6
    assert found.rows.size == 0 and found.probability.shape == (0, 2)


def test_the_scale_and_offset_of_a_column_do_not_matter() -> None:
    z, y = planted(spread=2.0)
    labeled = np.arange(100)
    a = classify(z, labeled, y[labeled])
    b = classify(z * 2.0 ** np.arange(-3, 3) + 5, labeled, y[labeled])
    np.testing.assert_allclose(a.probability, b.probability, atol=1e-4)
    assert a.accuracy == b.accuracy and classify(z, labeled, y[labeled], seed=1).accuracy != a.accuracy


def test_fewer_folds_for_small_classes(caplog: pytest.LogCaptureFixture) -> None:
    z, y = planted()
    rows = np.concatenate([np.flatnonzero(y == name)[:count] for name, count in (("ant", 9), ("bee", 9), ("cat", 3))])
    with caplog.at_level(logging.INFO):
        assert classify(z, rows, y[rows]).folds == 3
    assert "3 folds instead of 5: a class has only 3 labeled nodes" in caplog.text


def test_a_single_member_is_predicted_but_not_scored(caplog: pytest.LogCaptureFixture) -> None:
    z, y = planted()
    rows = np.concatenate([np.flatnonzero(y == name)[:count] for name, count in (("ant", 9), ("bee", 2), ("cat", 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = classify(z, rows, y[rows])
    assert "cannot be scored: cat" in caplog.text
    assert found.folds == 2 and found.probability.shape == (288, 3) and found.accuracy.mean <= 11 / 12


@pytest.mark.parametrize(
    ("message", "labeled", "labels"),
    [
        ("two classes with at least 2 nodes each; received 2 classes, the largest with 3 nodes", [0, 1, 2, 3], "aaab"),
        ("labels must have one class for each of 3 nodes", [0, 1, 2], "ab"),
        (r"rows 0\.\.9; received 0\.\.10", [0, 10], "ab"),
        ("row 1 occurs twice", [1, 1, 2, 3], "abab"),
    ],
)
def test_what_is_refused(message: str, labeled: list[int], labels: str) -> None:
    with pytest.raises(InputError, match=message):
        classify(np.random.default_rng(0).normal(size=(10, 2)), np.array(labeled), list(labels))


def test_folds_must_be_two() -> None:
    z, y = planted()
    with pytest.raises(InputError, match="folds must be 2 or more"):
        classify(z, np.arange(50), y[:50], folds=1)
