"""InfoNCE against loops in float64, closed forms, gradcheck, invariances, and tiles that do not matter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from ssge.errors import InputError
from ssge.objectives import infonce as module
from ssge.objectives.infonce import direct_infonce, infonce
from ssge.ops.sparse import CSR, csr_from_coo

FORMS = [(True, True), (True, False), (False, True), (False, False)]


def views(n: int = 11, d: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    u, v = torch.randn(2, n, d, dtype=torch.float64, generator=generator)
    return u.clone().requires_grad_(), v.clone().requires_grad_()


def random_pairs(n: int = 11, m: int = 25, seed: int = 0) -> CSR:
    """Return different pairs without loops, in one direction only or in both; two of them have weight 0."""
    rng = np.random.default_rng(seed)
    key = rng.choice([i * n + j for i in range(n - 1) for j in range(n) if i != j], size=m, replace=False)
    rows = csr_from_coo(torch.from_numpy(np.sort(key) // n), torch.from_numpy(np.sort(key) % n), n, torch.float64)
    weights = torch.from_numpy(rng.uniform(0, 1, size=m))
    weights[:2] = 0
    return rows._replace(values=weights)


def weights_of(pairs: CSR) -> dict[tuple[int, int], float]:
    indptr, indices, values = (part.detach().tolist() for part in pairs)
    return {
        (i, indices[entry]): values[entry] for i in range(len(indptr) - 1) for entry in range(indptr[i], indptr[i + 1])
    }


def loops(u: Tensor, v: Tensor, tau: float, intra: bool, symmetric: bool, pairs: tuple[CSR, CSR] | None) -> float:
    """Return the loss by the formula, one pair of nodes after the other."""
    x, y = (z.detach().numpy() / np.linalg.norm(z.detach().numpy(), axis=1, keepdims=True) for z in (u, v))
    first, second = ({}, {}) if pairs is None else (weights_of(side) for side in pairs)

    def of(a: np.ndarray, b: np.ndarray, own: dict, other: dict) -> list[float]:
        found = []
        for i in range(len(a)):
            positive, negative = np.exp(a[i] @ b[i] / tau), 0.0
            for j in range(len(a)):
                if (i, j) in own:
                    positive += own[i, j] * np.exp(a[i] @ a[j] / tau)
                elif intra and j != i:
                    negative += np.exp(a[i] @ a[j] / tau)
                if j != i and (i, j) not in other:
                    negative += np.exp(a[i] @ b[j] / tau)
            found.append(-np.log(positive / (positive + negative)))
        return found

    both = of(x, y, first, second) + (of(y, x, second, first) if symmetric else [])
    return float(np.mean(both))


@pytest.mark.parametrize("with_pairs", [False, True])
@pytest.mark.parametrize(("intra", "symmetric"), FORMS)
@pytest.mark.parametrize("tile", [1, 3, 5, 1024])
def test_value_is_that_of_loops(intra: bool, symmetric: bool, with_pairs: bool, tile: int) -> None:
    u, v = views()
    pairs = (random_pairs(), random_pairs(seed=1)) if with_pairs else None
    expected = loops(u, v, 0.4, intra, symmetric, pairs)
    assert infonce(u, v, 0.4, intra, symmetric, pairs, tile).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("with_pairs", [False, True])
@pytest.mark.parametrize(("intra", "symmetric"), FORMS)
def test_gradcheck(intra: bool, symmetric: bool, with_pairs: bool) -> None:
    u, v = views(6, 3)
    pairs = (random_pairs(6, 9), random_pairs(6, 9, seed=1)) if with_pairs else None
    assert torch.autograd.gradcheck(lambda a, b: infonce(a, b, 0.5, intra, symmetric, pairs, 4), (u, v))


def test_gradient_of_the_weights() -> None:
    u, v = views(6, 3)
    first, second = random_pairs(6, 9), random_pairs(6, 9, seed=1)

    def loss(a: Tensor, b: Tensor) -> Tensor:
        return infonce(u.detach(), v.detach(), 0.5, pairs=(first._replace(values=a), second._replace(values=b)))

    assert torch.autograd.gradcheck(loss, (first.values.requires_grad_(), second.values.requires_grad_()))


@pytest.mark.parametrize("intra", [True, False])
def test_gradient_is_that_of_cross_entropy_over_all_similarities(intra: bool) -> None:
    """Two views stacked: the class of a row is its other view, and it is not compared with itself."""
    u, v = views(30, 5)
    z = functional.normalize(torch.cat([u, v]))
    scores = z @ z.t() / 0.3
    hidden = torch.eye(60, dtype=torch.bool)
    if not intra:
        hidden = torch.block_diag(torch.ones(30, 30), torch.ones(30, 30)).bool()
    reference = functional.cross_entropy(scores.masked_fill(hidden, -torch.inf), (torch.arange(60) + 30) % 60)
    expected = torch.autograd.grad(reference, (u, v))
    loss = infonce(u, v, 0.3, intra, tile=7)
    torch.testing.assert_close(loss, reference)
    torch.testing.assert_close(torch.autograd.grad(loss, (u, v)), expected, rtol=0, atol=1e-12)


def test_tiles_do_not_matter_in_float32() -> None:
    u, v = (x.detach().float().requires_grad_() for x in views(200, 16))
    whole = infonce(u, v, 0.2, tile=400)
    expected = torch.autograd.grad(whole, (u, v))
    for tile in (13, 64, 199):
        loss = infonce(u, v, 0.2, tile=tile)
        torch.testing.assert_close(loss, whole, rtol=1e-6, atol=0)
        torch.testing.assert_close(torch.autograd.grad(loss, (u, v)), expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("tau", [0.05, 0.4, 1.0])
def test_closed_form_of_orthogonal_rows(tau: float) -> None:
    z = torch.eye(8, dtype=torch.float64)
    own = np.exp(1 / tau)
    assert infonce(z, 3 * z, tau).item() == pytest.approx(np.log((own + 14) / own))
    assert infonce(z, 3 * z, tau, intra=False).item() == pytest.approx(np.log((own + 7) / own))
    same = torch.ones(8, 3, dtype=torch.float64)
    assert infonce(same, same, tau).item() == pytest.approx(np.log(15))
    assert infonce(same, same, tau, intra=False).item() == pytest.approx(np.log(8))


def test_all_other_nodes_as_pairs_leave_no_negatives() -> None:
    u, v = views(5, 3)
    row, column = (1 - torch.eye(5)).nonzero().t()
    everyone = csr_from_coo(row, column, 5, torch.float64)
    assert infonce(u, v, 0.5, pairs=(everyone, everyone)).item() == pytest.approx(0, abs=1e-15)
    nobody = everyone._replace(values=torch.zeros(20, dtype=torch.float64))
    assert infonce(u, v, 0.5, pairs=(nobody, nobody)).item() == pytest.approx(0, abs=1e-15)


def test_invariances() -> None:
    u, v = (x.detach() for x in views(30, 5))
    loss = infonce(u, v, 0.4)
    scale = torch.logspace(-6, 6, 30, dtype=torch.float64).unsqueeze(1)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    turn = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    for a, b in ((scale * u, v / scale), (u[order], v[order]), (u @ turn, v @ turn), (v, u)):
        torch.testing.assert_close(infonce(a, b, 0.4), loss)
    assert infonce(v, u, 0.4, symmetric=False).item() != pytest.approx(infonce(u, v, 0.4, symmetric=False).item())


@pytest.mark.parametrize("intra", [True, False])
def test_descent_brings_the_views_of_a_node_together_and_nodes_apart(intra: bool) -> None:
    u, v = views(12, 6)
    before = functional.cosine_similarity(u, v).mean().item()
    optimizer = torch.optim.SGD([u, v], lr=5.0)
    losses = []
    for _ in range(60):
        loss = infonce(u, v, 0.5, intra)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.5
    assert functional.cosine_similarity(u, v).mean().item() > max(before, 0.9)


def test_a_constant_view_gets_no_gradient_and_does_not_change_that_of_the_other() -> None:
    u, v = views()
    for intra, symmetric in FORMS:
        expected = torch.autograd.grad(infonce(u, v, 0.4, intra, symmetric), u)
        found = torch.autograd.grad(infonce(u, v.detach(), 0.4, intra, symmetric, tile=4), u)
        torch.testing.assert_close(found, expected)


def test_rows_of_zeros_have_a_bounded_gradient() -> None:
    u, v = (x.detach().float() for x in views())
    u[3], v[3], v[7] = 0, 0, 0
    u.requires_grad_()
    v.requires_grad_()
    loss = infonce(u, v, 0.1)
    loss.backward()
    assert torch.isfinite(loss)
    for slope in (u.grad, v.grad):
        assert slope is not None and torch.isfinite(slope).all() and slope.abs().max() < 10


def test_one_node_has_nothing_to_be_told_from() -> None:
    u, v = views(1)
    loss = infonce(u, v, 0.4)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-15)
    assert u.grad is not None and u.grad.abs().max() < 1e-12


@pytest.mark.parametrize("tau", [1 / 500, 0.01, 1 / 61, 1 / 60])
def test_low_temperatures_in_float32(tau: float) -> None:
    u, v = (x.detach().float().requires_grad_() for x in views())
    z = functional.normalize(torch.cat([u.double(), v.double()]))
    scores = (z @ z.t() / tau).fill_diagonal_(-torch.inf)
    expected = functional.cross_entropy(scores, (torch.arange(22) + 11) % 22)
    loss = infonce(u, v, tau)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    found, slope = torch.autograd.grad(loss, u)[0], torch.autograd.grad(expected, u)[0]
    torch.testing.assert_close(found, slope, rtol=1e-4, atol=1e-4 * slope.abs().max().item())


def test_neighbors_that_dominate_leave_the_small_negatives_exact() -> None:
    """Excluded pairs are left out of the sums, not subtracted from them: nothing cancels in float32."""
    u = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    pair = csr_from_coo(torch.tensor([0, 1]), torch.tensor([1, 0]), 4, torch.float32)
    pair = pair._replace(values=torch.zeros(2))
    found = infonce(u, -u, 0.05, symmetric=False, pairs=(pair, pair))
    expected = loops(u.double(), -u.double(), 0.05, True, False, (pair, pair))
    assert found.item() == pytest.approx(expected, rel=1e-6)


def test_direct_is_infonce_of_the_first_columns() -> None:
    u, v = views(9, 6)
    loss = direct_infonce(u, v, 4)
    assert loss.item() == pytest.approx(loops(u[:, :4], v[:, :4], 0.1, False, True, None))
    loss.backward()
    assert u.grad is not None and (u.grad[:, 4:] == 0).all() and (u.grad[:, :4] != 0).any()
    for width in (0, 7):
        with pytest.raises(InputError, match="width must be from 1 to 6"):
            direct_infonce(u, v, width)


def test_memory_is_that_of_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """No product is larger than a tile, forward or backward."""
    sizes = []
    product = module._product

    def watched(a: Tensor, b: Tensor, room: Tensor) -> Tensor:
        sizes.append(room.numel())
        return product(a, b, room)

    monkeypatch.setattr(module, "_product", watched)
    u, v = views(100, 3)
    infonce(u, v, 0.4, tile=20).backward()
    assert max(sizes) == 400
    assert len(sizes) == 2 * 55  # the upper triangle of 10 x 10 tiles, in both passes


@pytest.mark.parametrize("tau", [0, -1.0, 1e-3, float("nan")])
def test_temperature_out_of_range(tau: float) -> None:
    with pytest.raises(InputError, match="temperature must be at least 1/600"):
        infonce(*views(), tau)
