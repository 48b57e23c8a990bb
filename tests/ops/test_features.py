"""Features: dense and sparse are one, and a mask is a mask of columns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from ssge.ops.adjacency import Adjacency
from ssge.ops.features import Features


def matrix(n: int = 9, p: int = 6) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.5)


def features(kind: str) -> Features:
    x = matrix()
    return Features.of(sp.csr_array(x) if kind == "sparse" else x, dtype=torch.float64)


MASKS = [None, [True, False, True, True, False, True], [False] * 6]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("mask", MASKS)
def test_product_is_that_of_the_masked_matrix(kind: str, mask: list[bool] | None) -> None:
    x = features(kind)
    expected = torch.from_numpy(matrix())
    if mask is not None:
        x = x.mask(torch.tensor(mask))
        expected = expected * torch.tensor(mask)
    weight = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    product = x @ weight
    torch.testing.assert_close(product, expected @ weight)
    gradient = torch.randn_like(product)
    ours = torch.autograd.grad(product, weight, gradient)[0]
    torch.testing.assert_close(ours, expected.T @ gradient)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_masking_twice_keeps_what_both_keep_and_leaves_the_first_alone(kind: str) -> None:
    x = features(kind)
    a, b = torch.tensor([1, 1, 0, 1, 0, 1]).bool(), torch.tensor([1, 0, 0, 1, 1, 1]).bool()
    weight = torch.randn(6, 4, dtype=torch.float64)
    once = x.mask(a)
    torch.testing.assert_close(once.mask(b) @ weight, torch.from_numpy(matrix()) * (a & b) @ weight)
    torch.testing.assert_close(once @ weight, torch.from_numpy(matrix()) * a @ weight)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_blocks_are_rows_of_the_product(kind: str) -> None:
    x = features(kind)
    weight = torch.randn(6, 4, dtype=torch.float64)
    parts = [x.block(i, min(i + 4, 9), weight) for i in range(0, 9, 4)]
    torch.testing.assert_close(torch.cat(parts), x @ weight)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("width", [1, 4])  # wider and narrower than half the kept columns: both orders
def test_convolution_is_the_product_of_all_three_in_either_order(
    kind: str, mask: list[bool] | None, width: int
) -> None:
    edges = np.random.default_rng(1).integers(9, size=(2, 20))
    adjacency = Adjacency.of(edges, 9, dtype=torch.float64)
    x, expected = features(kind), torch.from_numpy(matrix())
    if mask is not None:
        x, expected = x.mask(torch.tensor(mask)), expected * torch.tensor(mask)
    weight = torch.randn(6, width, dtype=torch.float64, requires_grad=True)
    found, plain = x.convolved(adjacency, weight), adjacency.matrix.forward.to_dense() @ expected @ weight
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-10)
    gradient = torch.randn_like(plain)
    for a, b in zip(*(torch.autograd.grad(z, weight, gradient) for z in (found, plain)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_read_only_features_are_shared_and_stay_as_they_are() -> None:
    x = matrix()
    x.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shared = Features.of(x, dtype=torch.float64)
    assert isinstance(shared.matrix, torch.Tensor)
    assert shared.matrix.data_ptr() == x.ctypes.data
