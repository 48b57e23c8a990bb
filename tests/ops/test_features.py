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
def test_propagation_is_the_product_of_all_three_in_either_order(
    kind: str, mask: list[bool] | None, width: int
) -> None:
    edges = np.random.default_rng(1).integers(9, size=(2, 20))
    adjacency = Adjacency.of(edges, 9, dtype=torch.float64)
    x, expected = features(kind), torch.from_numpy(matrix())
    if mask is not None:
        x, expected = x.mask(torch.tensor(mask)), expected * torch.tensor(mask)
    weight = torch.randn(6, width, dtype=torch.float64, requires_grad=True)
    found, plain = x.propagate(adjacency, weight), adjacency.matrix.to_dense() @ expected @ weight
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-10)
    gradient = torch.randn_like(plain)
    for a, b in zip(*(torch.autograd.grad(z, weight, gradient) for z in (found, plain)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("mask", MASKS[:2])
def test_selected_nodes_keep_their_rows_and_the_mask(kind: str, mask: list[bool] | None) -> None:
    x = features(kind) if mask is None else features(kind).mask(torch.tensor(mask))
    nodes = torch.tensor([8, 0, 5])
    weight = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    found, expected = x.select(nodes) @ weight, (x @ weight)[nodes]
    torch.testing.assert_close(found, expected)
    gradient = torch.randn_like(expected)
    for a, b in zip(*(torch.autograd.grad(z, weight, gradient) for z in (found, expected)), strict=True):
        torch.testing.assert_close(a, b)


def test_read_only_features_are_shared_and_stay_as_they_are() -> None:
    x = matrix()
    x.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shared = Features.of(x, dtype=torch.float64)
    assert isinstance(shared.matrix, torch.Tensor)
    assert shared.matrix.data_ptr() == x.ctypes.data


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("mask", MASKS[:2])
def test_dropout_is_that_of_single_entries_forward_and_backward(kind: str, mask: list[bool] | None) -> None:
    x = features(kind) if mask is None else features(kind).mask(torch.tensor(mask))
    dropped = x.dropout(0.4, torch.Generator().manual_seed(3))
    seen = torch.cat([dropped.block(i, i + 1, torch.eye(6).double()) for i in range(9)])
    full, zero = torch.from_numpy(matrix()), torch.zeros(9, 6).double()
    assert 0 < (seen != 0).sum() < (full != 0).sum()
    torch.testing.assert_close(seen, torch.where(seen != 0, full / 0.6, zero))
    weight = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    expected = seen if mask is None else seen * torch.tensor(mask)
    product = dropped @ weight
    torch.testing.assert_close(product, expected @ weight)
    gradient = torch.randn_like(product)
    torch.testing.assert_close(torch.autograd.grad(product, weight, gradient)[0], expected.T @ gradient)
    assert isinstance(dropped.matrix, torch.Tensor) == (kind == "dense")
    again = x.dropout(0.4, torch.Generator().manual_seed(3))
    torch.testing.assert_close(again @ weight, product, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_dropout_leaves_the_features_alone_and_at_rate_zero_is_them(kind: str) -> None:
    x = features(kind)
    x.dropout(0.9, torch.Generator().manual_seed(0))
    torch.testing.assert_close(x @ torch.eye(6).double(), torch.from_numpy(matrix()))
    assert x.dropout(0, torch.Generator()) is x


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_are_divided_by_their_absolute_sums(kind: str) -> None:
    x = matrix()
    x[4] = 0
    sums = np.abs(x).sum(1, keepdims=True)
    assert (sums > 0).sum() > 1
    expected = torch.from_numpy(np.divide(x, sums, out=np.zeros_like(x), where=sums > 0))
    given = Features.of(sp.csr_array(x) if kind == "sparse" else x.copy(), dtype=torch.float64)
    kept = torch.tensor([True, False, True, True, False, True])
    weight = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    for found, whole in ((given.normalize_rows(), expected), (given.mask(kept).normalize_rows(), expected * kept)):
        product = found @ weight
        torch.testing.assert_close(product, whole @ weight)
        (gradient,) = torch.autograd.grad(product.sum(), weight)  # of sparse X it goes through the transpose
        torch.testing.assert_close(gradient, whole.sum(0)[:, None].expand(6, 4))
    torch.testing.assert_close(given @ weight, torch.from_numpy(x) @ weight)  # what was given has not changed


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("mask", MASKS)
def test_permuted_rows(kind: str, mask: list[bool] | None) -> None:
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    x = features(kind) if mask is None else features(kind).mask(torch.tensor(mask))
    weight = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    torch.testing.assert_close(x.permute(order) @ weight, (x @ weight)[order])
    gradient = torch.arange(36, dtype=torch.float64).view(9, 4)
    permuted, selected = (
        torch.autograd.grad(rows @ weight, weight, gradient)[0] for rows in (x.permute(order), x.select(order))
    )
    torch.testing.assert_close(permuted, selected)
