"""Leading right singular vectors, against NumPy's decomposition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from ssge.ops import reduction
from ssge.ops.features import Features
from ssge.ops.reduction import right_singular_vectors

RNG = np.random.default_rng(0)
LEFT, RIGHT = (np.linalg.qr(RNG.normal(size=(size, 60)))[0] for size in (200, 90))
X = (LEFT * 0.8 ** np.arange(60)) @ RIGHT.T


@pytest.mark.parametrize("sparse", [False, True])
def test_they_are_those_of_the_largest_singular_values(sparse: bool) -> None:
    found = right_singular_vectors(Features.of(sp.csr_array(X) if sparse else X, dtype=torch.float64), 8).numpy()
    np.testing.assert_allclose(np.abs(found.T @ RIGHT[:, :8]), np.eye(8), atol=1e-6)
    assert ((found**3).sum(axis=0) >= 0).all()


def test_few_rows_leave_columns_of_zeros() -> None:
    found = right_singular_vectors(Features.of(X[:3], dtype=torch.float64), 8)
    np.testing.assert_allclose(X[:3] @ found.numpy() @ found.numpy().T, X[:3], atol=1e-9)
    assert not found[:, 3:].any()


def test_of_many_rows_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "_ROWS", 150)
    found = right_singular_vectors(Features.of(X, dtype=torch.float64), 8).numpy()
    lost = np.square(X - X @ found @ found.T).sum() - np.square(X - X @ RIGHT[:, :8] @ RIGHT[:, :8].T).sum()
    assert 0 < lost < 0.01 * np.square(X).sum()
