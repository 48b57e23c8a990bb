"""Label-free numbers: closed forms, brute force, invariances."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.linalg

from ssge.errors import InputError
from ssge.evaluation import (
    effective_rank,
    geometry,
    spectrum,
    uniformity,
    wasserstein_to_gaussian,
)


def normal(n=200, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def orthogonal(n=64, d=6):
    """Centered orthogonal columns of different lengths."""
    Q, _ = np.linalg.qr(np.hstack([np.ones((n, 1)), normal(n, d)]))
    return Q[:, 1:] * np.arange(1.0, d + 1) + 7


def one_direction(n=64, d=9):
    return normal(n, 1) * np.linspace(-2, 3, d) + np.arange(d)


def test_orthogonal_columns_are_white():
    Z = orthogonal()
    np.testing.assert_allclose(spectrum(Z), np.ones(6), atol=1e-12)
    assert effective_rank(Z) == pytest.approx(6)
    assert wasserstein_to_gaussian(Z) == pytest.approx(0, abs=1e-12)


def test_one_direction_is_collapse():
    Z = one_direction()
    np.testing.assert_allclose(spectrum(Z), [9] + [0] * 8, atol=1e-12)
    assert effective_rank(Z) == pytest.approx(1)
    assert wasserstein_to_gaussian(Z) == pytest.approx(2 * 9 - 2 * 3, abs=1e-6)


def test_general_case_equals_the_matrix_formulas():
    Z = normal() @ normal(6, 6, 1)
    R = np.corrcoef(Z.T)
    eigenvalues = np.sort(np.linalg.eigvalsh(R))[::-1]
    np.testing.assert_allclose(spectrum(Z), eigenvalues, atol=1e-12)
    assert wasserstein_to_gaussian(Z) == pytest.approx(12 - 2 * np.trace(scipy.linalg.sqrtm(R)).real)
    p = eigenvalues / 6
    assert effective_rank(Z) == pytest.approx(np.exp(-(p * np.log(p)).sum()))
    assert effective_rank(spectrum(Z)) == effective_rank(Z)
    assert wasserstein_to_gaussian(spectrum(Z)) == wasserstein_to_gaussian(Z)


def test_two_correlated_columns():
    base = orthogonal(64, 2)
    base = (base - base.mean(0)) / base.std(0)
    rho = 0.6
    Z = np.stack([base[:, 0], rho * base[:, 0] + np.sqrt(1 - rho**2) * base[:, 1]], axis=1)
    np.testing.assert_allclose(spectrum(Z), [1.6, 0.4], atol=1e-12)
    assert wasserstein_to_gaussian(Z) == pytest.approx(4 - 2 * (np.sqrt(1.6) + np.sqrt(0.4)))


def test_scale_and_shift_of_columns_do_not_matter():
    Z = normal() @ normal(6, 6, 1)
    changed = Z * np.array([1e-6, 1e6, -1, 2, 3, 0.1]) + np.arange(6)
    np.testing.assert_allclose(spectrum(changed), spectrum(Z), atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_count_as_collapsed(dtype):
    Z = np.hstack([orthogonal(), np.full((64, 3), 0.1)]).astype(dtype)
    np.testing.assert_allclose(spectrum(Z), [1] * 6 + [0] * 3, atol=1e-6)
    assert effective_rank(Z) == pytest.approx(6)
    assert wasserstein_to_gaussian(Z) == pytest.approx(6, abs=1e-3)
    assert geometry(Z)["collapsed_columns"] == 3


def test_a_constant_embedding_has_rank_zero():
    Z = np.full((50, 4), 0.1, np.float32)
    assert effective_rank(Z) == 0
    assert wasserstein_to_gaussian(Z) == 8
    assert uniformity(Z) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("share", [0.02, 1.0])
def test_spectrum_of_wide_and_of_sparse_matrices_is_that_of_the_correlations(share):
    rng = np.random.default_rng(3)
    for n, d in ((40, 90), (300, 60)):
        Z = np.where(rng.random((n, d)) < share, rng.normal(size=(n, d)) + 2, 0)
        Z[0, :] = 1  # no column is constant
        expected = np.linalg.eigvalsh(np.corrcoef(Z.T))[::-1]
        np.testing.assert_allclose(spectrum(Z), np.maximum(expected, 0), atol=1e-10)
        assert spectrum(Z).sum() == pytest.approx(d)


@pytest.mark.parametrize("n", [2, 50, 1500])
def test_uniformity_equals_brute_force(n):
    Z = normal(n, 5) + 0.3
    Z[1] = 0
    rows = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)
    i, j = np.triu_indices(n, 1)
    exponents = -2 * np.square(rows[i] - rows[j]).sum(axis=1)
    expected = np.logaddexp.reduce(exponents) - np.log(len(i))
    assert uniformity(Z) == pytest.approx(expected, rel=1e-9)


def test_uniformity_of_two_opposite_points():
    assert uniformity([[1.0, 0.0], [-2.0, 0.0]]) == pytest.approx(-8.0)


def test_sampled_uniformity_is_near_the_exact_one_and_repeatable(monkeypatch):
    Z = normal(3000, 8)
    exact = uniformity(Z)
    monkeypatch.setattr(sys.modules["ssge.evaluation.geometry"], "_MOST_ROWS", 1000)
    assert uniformity(Z) == pytest.approx(exact, abs=0.02)
    assert uniformity(Z) == uniformity(Z) != exact


def test_geometry_collects_plain_floats():
    Z = normal().astype(np.float32)
    found = geometry(Z)
    assert all(type(value) is float for value in found.values())
    assert found["effective_rank"] == effective_rank(Z)
    assert found["uniformity"] == uniformity(Z)
    assert found["wasserstein"] == wasserstein_to_gaussian(Z)
    Z = Z.astype(np.float64)
    assert found["mean_norm"] == pytest.approx(np.sqrt((Z**2).sum(1)).mean())
    assert found["mean_deviation"] == pytest.approx(Z.std(0).mean())
    assert found["deviation_spread"] == pytest.approx(Z.std(0).std())
    assert found["collapsed_columns"] == 0


def test_unusable_input_is_named():
    Z = normal()
    broken = Z.copy()
    broken[2, 1] = np.nan
    for function in (spectrum, effective_rank, wasserstein_to_gaussian, uniformity, geometry):
        with pytest.raises(InputError, match="row 2, column 1 is nan"):
            function(broken)
    with pytest.raises(InputError, match="at least 2 rows"):
        uniformity(Z[:1])
    with pytest.raises(InputError, match="not be negative"):
        effective_rank([1.0, -0.5])
