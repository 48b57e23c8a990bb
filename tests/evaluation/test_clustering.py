"""K-means scores on planted clusters and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ssge.errors import InputError
from ssge.evaluation import cluster, clustering, kmeans


def planted(spread, n=200, d=8, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return 5 * np.eye(k, d)[y] + spread * rng.normal(size=(n, d)), y


def test_planted_clusters_are_found():
    X, y = planted(0.1)
    score = cluster(X, y, seeds=range(3))
    assert score.nmi == pytest.approx(1.0)
    assert score.ari == pytest.approx(1.0)
    assert (score.nmi_std, score.ari_std) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_scores_are_scikit_learn_s_metrics_of_the_clusters_of_each_seed():
    X, y = planted(4.0)
    score = cluster(X, y, seeds=[3, 4, 5])
    found = [kmeans(X, 4, seed).cluster for seed in (3, 4, 5)]
    nmi = [normalized_mutual_info_score(y, f, average_method="arithmetic") for f in found]
    ari = [adjusted_rand_score(y, f) for f in found]
    assert 0.05 < score.nmi < 0.95
    assert score.nmi_per_seed == pytest.approx(nmi)
    assert score.ari_per_seed == pytest.approx(ari)
    assert score.nmi == pytest.approx(np.mean(nmi))
    assert score.ari == pytest.approx(np.mean(ari))
    assert score.nmi_std == pytest.approx(np.std(nmi, ddof=1))
    assert score.ari_std == pytest.approx(np.std(ari, ddof=1))


def test_the_length_of_a_row_does_not_matter():
    X, _ = planted(4.0)
    factors = 2.0 ** np.random.default_rng(1).integers(-40, 40, size=(len(X), 1))
    for dtype in (np.float32, np.float64):
        Z = X.astype(dtype)
        assert np.array_equal(kmeans(Z, 4, 0).cluster, kmeans(Z * factors.astype(dtype), 4, 0).cluster)


def test_very_small_float32_rows_keep_their_direction():
    X, y = planted(0.1)
    assert cluster((X * 1e-30).astype(np.float32), y, seeds=[0]).nmi == pytest.approx(1.0)


def test_a_matrix_of_almost_only_zeros_is_clustered_as_it_would_be_dense(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = (rng.random((300, 400)) < 0.005 + 0.4 * (np.arange(400) // 20 == y[:, None])).astype(float)
    assert 0 < np.count_nonzero(X) < clustering.SPARSE * X.size
    taken, real = [], clustering.best_partitions
    monkeypatch.setattr(
        clustering, "best_partitions", lambda rows, *rest: taken.append(sp.issparse(rows)) or real(rows, *rest)
    )
    sparse = clustering.kmeans(X, 4, 0)
    monkeypatch.setattr(clustering, "SPARSE", 0)
    dense = clustering.kmeans(X, 4, 0)
    assert taken == [True, False]
    assert adjusted_rand_score(sparse.cluster, dense.cluster) == pytest.approx(1.0)
    assert np.allclose(sparse.distance, dense.distance)


def test_rows_of_zeros_are_a_place_of_their_own():
    X, y = planted(0.1, k=2)
    X[y == 1] = 0
    assert cluster(X, y, seeds=[0]).nmi == pytest.approx(1.0)


def test_number_of_clusters_and_seeds():
    X, y = planted(4.0)
    assert set(kmeans(X, 6, 0).cluster) == set(range(6))
    assert np.array_equal(kmeans(X, 6, 0).cluster, kmeans(X, 6, 0).cluster)
    merged = y // 2
    assert len(cluster(X, merged).nmi_per_seed) == 10


def test_unusable_input_is_named():
    X, y = planted(1.0)
    broken = X.copy()
    broken[0, 0] = np.inf
    for message, arguments in {
        "row 0, column 0 is inf": (broken, y),
        "one class for each row": (X, y[1:]),
        "at least 2 classes": (X, np.zeros_like(y)),
        "seeds must hold": (X, y, []),
    }.items():
        with pytest.raises(InputError, match=message):
            cluster(*arguments)
    for k in (201, 0):
        with pytest.raises(InputError, match=f"number of clusters must be 1..200 .*received {k}"):
            kmeans(X, k)
