"""Starts and iterations of k-means against scikit-learn's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans, kmeans_plusplus

from ssge.evaluation._arrays import unit_rows
from ssge.evaluation._lloyd import Rows, assigned, best_partitions, inertia, lloyd, plus_plus


def blurred(n=400, d=10, k=8, spread=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return unit_rows(rng.normal(size=(k, d))[rng.integers(0, k, n)] + spread * rng.normal(size=(n, d)))


@pytest.mark.parametrize(("kind", "d"), list(product((np.asarray, sp.csr_array), (10, 300))))
@pytest.mark.parametrize("seed", range(3))
def test_iterations_end_where_scikit_learn_s_do(kind, d, seed):
    values = blurred(d=d, spread=1.5, seed=seed)
    first = np.random.default_rng(seed).choice(400, 8, replace=False)
    expected = KMeans(8, init=values[first], n_init=1, tol=0).fit(values)
    rows = Rows(kind(values))
    assert (rows.gram is None) == (d == 10)
    found = lloyd(rows, assigned(rows, first), 8)
    assert expected.n_iter_ > 2
    assert np.array_equal(found.labels, expected.labels_)
    assert found.inertia == pytest.approx(expected.inertia_)


def test_starts_are_as_good_as_scikit_learn_s():
    rows = blurred(k=20)

    def potential(chosen):
        return np.mean([np.square(rows[:, None] - rows[c]).sum(axis=2).min(axis=1).sum() for c in chosen])

    ours = plus_plus(Rows(rows), 20, 60, np.random.default_rng(0))
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
    values = unit_rows(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    rows = Rows(values)
    found = lloyd(rows, assigned(rows, np.array([0, 1, 2])), 3)  # two equal centers: no row is nearest to the second
    assert found.labels.tolist() == [0, 0, 2, 1]
    assert found.inertia == pytest.approx(0)


def test_more_clusters_than_distinct_rows_leave_some_empty():
    rows = np.repeat(np.eye(2), 5, axis=0)
    found = best_partitions(rows, 4, 3, [0])[0]
    assert np.unique(found.labels).size == 2
    assert found.inertia == pytest.approx(0)


def test_wide_rows_end_in_all_columns_as_well_as_scikit_learn_s():
    values = blurred(n=9000, d=300, k=8, spread=1.0).astype(np.float32)
    rows = Rows(values)
    narrow = rows.principal(64)
    assert rows.gram is None and narrow.values.shape == (9000, 64)
    found = best_partitions(values, 8, 4, [0])[0]
    assert np.array_equal(lloyd(rows, found.labels, 8).labels, found.labels)  # no row is nearer to another center
    assert found.inertia == pytest.approx(inertia(rows, found.labels, 8), rel=1e-5)
    assert found.inertia <= 1.001 * KMeans(8, n_init=4, random_state=0).fit(values).inertia_


def test_principal_columns_hold_what_the_first_singular_vectors_do():
    rng = np.random.default_rng(0)
    values = unit_rows(rng.normal(size=(9000, 300)) * 0.98 ** np.arange(300)).astype(np.float32)
    held = np.square(Rows(values).principal(64).values).sum()
    most = np.square(np.linalg.svd(values, compute_uv=False)[:64]).sum()
    assert 0.95 * most < held < 1.0001 * most
