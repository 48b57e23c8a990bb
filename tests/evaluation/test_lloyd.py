"""Starts and iterations of k-means against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans, kmeans_plusplus

from ssge.evaluation._arrays import unit_rows
from ssge.evaluation._lloyd import best_partitions, lloyd, plus_plus


def blurred(n=400, d=10, k=8, spread=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return unit_rows(rng.normal(size=(k, d))[rng.integers(0, k, n)] + spread * rng.normal(size=(n, d)))


def squared_norms(rows):
    return np.square(rows).sum(axis=1)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("seed", range(3))
def test_iterations_end_where_scikit_learn_s_do(kind, seed):
    rows = blurred(seed=seed)
    first = rows[np.random.default_rng(seed).choice(400, 8, replace=False)]
    expected = KMeans(8, init=first, n_init=1, tol=0).fit(rows)
    found = lloyd(kind(rows), squared_norms(rows), first.copy())
    assert expected.n_iter_ > 4
    assert np.array_equal(found.labels, expected.labels_)
    np.testing.assert_allclose(found.centers, expected.cluster_centers_, atol=1e-9)
    assert found.inertia == pytest.approx(expected.inertia_)


def test_starts_are_as_good_as_scikit_learn_s():
    rows = blurred(k=20)
    norms = squared_norms(rows)

    def potential(chosen):
        return np.mean([np.min(norms[:, None] + norms[c] - 2 * rows @ rows[c].T, axis=1).sum() for c in chosen])

    ours = plus_plus(rows, norms, 20, 60, np.random.default_rng(0))
    theirs = [kmeans_plusplus(rows, 20, random_state=seed)[1] for seed in range(60)]
    uniform = [np.random.default_rng(seed).choice(400, 20, replace=False) for seed in range(60)]
    assert all(np.unique(chosen).size == 20 for chosen in ours)
    assert potential(ours) == pytest.approx(potential(theirs), rel=0.02)
    assert potential(ours) < 0.95 * potential(uniform)


def test_the_best_of_several_starts_is_kept():
    rows = blurred(k=20)
    inertia = [best_partitions(rows, 20, starts, [1])[0].inertia for starts in (1, 20)]
    theirs = KMeans(20, n_init=20, random_state=0).fit(rows).inertia_
    assert inertia[1] < inertia[0]
    assert inertia[1] == pytest.approx(theirs, rel=0.02)


def test_a_seed_finds_the_same_alone_and_beside_others():
    rows = blurred()
    alone, beside = best_partitions(rows, 8, 3, [5])[0], best_partitions(rows, 8, 3, [4, 5])[1]
    assert np.array_equal(alone.labels, beside.labels)


def test_an_empty_cluster_gets_the_farthest_row():
    rows = unit_rows(np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [-1.0, 0.0]]))
    far_away = np.array([[1.0, 0.0], [50.0, 50.0], [0.0, 1.0]])  # no row is nearest to the second
    found = lloyd(rows, squared_norms(rows), far_away)
    assert np.bincount(found.labels).tolist() == [2, 1, 1]
    assert found.labels[3] == 1


def test_more_clusters_than_distinct_rows_leave_some_empty():
    rows = np.repeat(np.eye(2), 5, axis=0)
    found = best_partitions(rows, 4, 3, [0])[0]
    assert np.unique(found.labels).size == 2
    assert found.inertia == pytest.approx(0)
    assert np.isfinite(found.centers).all()
