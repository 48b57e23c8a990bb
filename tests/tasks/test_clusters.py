from __future__ import annotations

import numpy as np
import pytest

from ssge.errors import InputError
from ssge.evaluation import kmeans
from ssge.tasks.clusters import clusters


def planted() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [20, 50, 30]))
    return 5 * np.eye(3, 8)[y] + 0.3 * rng.normal(size=(100, 8)), y


def test_planted_clusters_come_in_order_of_size() -> None:
    z, y = planted()
    found = clusters(z, 3)
    assert found.size.tolist() == [50, 30, 20]
    np.testing.assert_array_equal(found.cluster, np.array([2, 0, 1])[y])


def test_distances_and_central_members() -> None:
    z, y = planted()
    found = clusters(z, 3)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    for c, label in enumerate([1, 2, 0]):
        rows = np.flatnonzero(y == label)
        distance = np.linalg.norm(unit[rows] - unit[rows].mean(axis=0), axis=1)
        np.testing.assert_allclose(found.distance[rows], distance, atol=1e-6)
        np.testing.assert_array_equal(found.central[c], rows[np.argsort(distance)][:5])


def test_the_partition_is_that_of_the_evaluation() -> None:
    z = np.random.default_rng(1).normal(size=(80, 6))
    ours, theirs = clusters(z, 7, seed=3).cluster, kmeans(z, 7, 3).cluster
    assert len(set(zip(ours.tolist(), theirs.tolist(), strict=True))) == 7


def test_members_of_small_clusters() -> None:
    found = clusters(np.eye(4), 4)
    assert found.size.tolist() == [1, 1, 1, 1] and sorted(int(rows[0]) for rows in found.central) == [0, 1, 2, 3]
    with pytest.raises(InputError, match=r"clusters must be 1\.\.4"):
        clusters(np.eye(4), 5)


def test_a_seed_out_of_bounds_is_refused() -> None:
    with pytest.raises(InputError, match=r"seed must be 0\.\.2\^32-1; received -1"):
        clusters(np.eye(4), 2, seed=-1)
