"""The linear probes against independent references, and the rule that validation decides."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from sklearn.linear_model import LogisticRegression

from ssge.datasets import random_splits
from ssge.errors import InputError
from ssge.evaluation import AdamProbe, LbfgsProbe, Probe, linear_probe, linear_probes
from ssge.evaluation.probe import adam_path, initial_weights, lbfgs_path
from ssge.graph import Split

SHORT = AdamProbe(steps=200, every=20)
BOTH = pytest.mark.parametrize("probe", [LbfgsProbe(), SHORT], ids=["lbfgs", "adam"])


def planted(n=300, d=12, k=3, signal=0.8, seed=0, dtype=np.float64):
    """Gaussian classes that overlap, and a split of a third each."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    X = (rng.normal(size=(n, d)) + signal * rng.normal(size=(k, d))[y]).astype(dtype)
    order = rng.permutation(n)
    return X, y, Split(order[: n // 3], order[n // 3 : 2 * n // 3], order[2 * n // 3 :])


def with_ones(X):
    return np.hstack([X, np.ones((len(X), 1), X.dtype)])


def scaled(X):
    """The embedding as the L-BFGS probe sees it, written independently."""
    return (X - X.mean(0)) / np.sqrt(np.mean(X.std(0) ** 2))


@BOTH
def test_separable_classes_are_told_apart(probe):
    X, y, split = planted(signal=20.0)
    score = linear_probe(X, y, split, probe)
    assert score.accuracy == 1.0
    assert score.valid_accuracy == 1.0


@BOTH
def test_classes_need_not_be_numbered_from_zero(probe):
    X, y, split = planted(signal=20.0)
    assert linear_probe(X, 5 * y + 3, split, probe).accuracy == 1.0


@BOTH
def test_a_class_unseen_in_training_is_never_right(probe):
    X, y, split = planted(signal=20.0)
    y[split.test[:25]] = 99
    assert linear_probe(X, y, split, probe).accuracy == pytest.approx(0.75)


@BOTH
def test_a_collapsed_embedding_scores_like_a_constant(probe):
    _, y, split = planted()
    majority = np.bincount(y[split.train]).argmax()
    for dtype in (np.float32, np.float64):
        score = linear_probe(np.full((300, 4), 0.1, dtype), y, split, probe)
        assert score.accuracy == pytest.approx(np.mean(y[split.test] == majority))


def test_ties_go_to_the_smallest_c_and_the_first_step():
    X, y, split = planted(signal=20.0)
    assert linear_probe(X, y, split, LbfgsProbe(grid=(64.0, 1.0, 8.0))).chosen == {"C": 1.0}
    assert linear_probe(X, y, split, AdamProbe(steps=3000, every=1000)).chosen == {"step": 1000}


def test_validation_decides_where_test_would_choose_otherwise():
    X, y, split = planted(n=240, d=30, signal=0.35)
    y = y.copy()
    grid = (1e-3, 1e-1, 1e1, 1e3)
    probe = LbfgsProbe(grid=grid, tolerance=1e-7, max_iter=5000)
    one = {C: linear_probe(X, y, split, LbfgsProbe(grid=(C,), tolerance=1e-7, max_iter=5000)) for C in grid}
    best = max(grid, key=lambda C: one[C].valid_accuracy)
    other = min(grid, key=lambda C: one[C].valid_accuracy)
    assert one[best].valid_accuracy > one[other].valid_accuracy
    # Test labels that make another C perfect.
    Z = scaled(X)
    fitted = LogisticRegression(C=other, tol=1e-8, max_iter=20000).fit(Z[split.train], y[split.train])
    y[split.test] = fitted.predict(Z[split.test])
    assert linear_probe(X, y, split, LbfgsProbe(grid=(other,))).accuracy > 0.99
    score = linear_probe(X, y, split, probe)
    assert score.chosen == {"C": best}
    assert score.valid_accuracy == one[best].valid_accuracy
    assert score.accuracy < 0.95


@BOTH
def test_test_labels_change_nothing_but_the_accuracy(probe):
    X, y, split = planted(signal=0.3)
    splits, seeds = [split] * 5, range(5)
    before = linear_probes(X, y, splits, probe, seeds)
    shuffled = y.copy()
    shuffled[split.test] = np.random.default_rng(1).permutation(y[split.test])
    new_class = y.copy()
    new_class[split.test] = 17
    for labels in (shuffled, new_class):
        after = linear_probes(X, labels, splits, probe, seeds)
        assert [score[1:] for score in after] == [score[1:] for score in before]
        assert [score.accuracy for score in after] != [score.accuracy for score in before]


def test_adam_equals_torch_layer_and_optimizer():
    X, y, split = planted()
    train = split.train
    probe = AdamProbe(lr=3e-2, weight_decay=1e-2, steps=300, every=20)
    layer = torch.nn.Linear(X.shape[1], 3, dtype=torch.float64)
    torch.nn.init.xavier_uniform_(layer.weight, generator=torch.Generator().manual_seed(5))
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(layer.parameters(), lr=3e-2, weight_decay=1e-2)
    inputs, targets = torch.from_numpy(X), torch.from_numpy(y)
    start = initial_weights(3, with_ones(X[train]), [5])
    ours = adam_path(with_ones(X[train]), y[train], start, probe)
    best, step_of_best, test_at_best = -1.0, 0, 0.0
    for step in range(1, 301):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(layer(inputs[train]), targets[train]).backward()
        optimizer.step()
        if step % 20 == 0:
            at, weights = next(ours)
            assert at == step
            reference = torch.cat([layer.weight, layer.bias[:, None]], 1).detach().numpy()
            np.testing.assert_allclose(weights[0], reference, rtol=0, atol=1e-10)
            right = (layer(inputs).argmax(1) == targets).double()
            if right[split.valid].mean().item() > best:
                best, step_of_best = right[split.valid].mean().item(), step
                test_at_best = right[split.test].mean().item()
    score = linear_probe(X, y, split, probe, seed=5)
    assert score.chosen == {"step": step_of_best}
    assert score.valid_accuracy == pytest.approx(best)
    assert score.accuracy == pytest.approx(test_at_best)


@pytest.mark.parametrize("wide", [False, True])
def test_lbfgs_reaches_the_optimum_of_the_documented_objective(wide):
    X, y, split = planted()
    Z, t = scaled(X)[split.train], y[split.train]
    if wide:  # more columns than training nodes: solved in the span of the nodes
        Z = np.hstack([Z, np.random.default_rng(1).normal(size=(len(t), 2 * len(t)))])
    n = len(t)
    for C, weights in lbfgs_path(with_ones(Z), t, LbfgsProbe(grid=(0.01, 1.0, 30.0), tolerance=1e-9, max_iter=5000)):
        W = torch.tensor(weights[0], requires_grad=True)
        loss = torch.nn.functional.cross_entropy(torch.from_numpy(with_ones(Z)) @ W.T, torch.from_numpy(t))
        (loss + W[:, :-1].square().sum() / (2 * C * n)).backward()
        assert W.grad.abs().max() < 1e-8
        fitted = LogisticRegression(C=C, tol=1e-10, max_iter=20000).fit(Z, t)
        np.testing.assert_allclose(weights[0, :, :-1], fitted.coef_, atol=1e-4)
        np.testing.assert_allclose(
            weights[0, :, -1] - weights[0, :, -1].mean(),
            fitted.intercept_ - fitted.intercept_.mean(),
            atol=1e-4,
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lbfgs_does_not_see_scale_or_shift(dtype):
    X, y, split = planted(dtype=dtype)
    score = linear_probe(X, y, split, LbfgsProbe())
    assert linear_probe(X * dtype(2.0**-10), y, split, LbfgsProbe()) == score
    assert linear_probe(X * dtype(2.0**10), y, split, LbfgsProbe()) == score
    sharp = LbfgsProbe(tolerance=1e-7, max_iter=5000)
    score = linear_probe(X, y, split, sharp)
    for changed in (X * dtype(1e-3), X * dtype(1e3), X + dtype(3)):
        assert linear_probe(changed, y, split, sharp) == score


def test_adam_does_see_scale():
    X, y, split = planted()
    assert linear_probe(X * 1e-3, y, split, SHORT) != linear_probe(X, y, split, SHORT)


@BOTH
def test_several_at_once_equal_one_by_one(probe):
    X, y, first = planted(n=301, signal=0.5)
    second = Split(first.valid, first.test, first.train)
    splits, seeds = [first, second, first, first], [0, 1, 2, 0]
    together = linear_probes(X, y, splits, probe, seeds)
    assert together == [linear_probe(X, y, s, probe, seed) for s, seed in zip(splits, seeds, strict=True)]
    assert together[0] == together[3]


def test_adam_depends_on_the_seed_alone():
    X, y, split = planted(signal=0.3)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    once = [linear_probe(X, y, split, SHORT, seed) for seed in range(6)]
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(2)
    assert once == [linear_probe(X, y, split, SHORT, seed) for seed in range(6)]
    assert len({score.accuracy for score in once}) > 1


def test_initial_weights_are_xavier_uniform_with_zero_bias():
    weights = initial_weights(10, np.zeros((1, 201), np.float32), [0, 1])
    bound = np.sqrt(6 / (200 + 10))
    assert weights.dtype == np.float32
    assert (weights[..., -1] == 0).all()
    assert 0.98 * bound < np.abs(weights[..., :-1]).max() <= bound
    assert weights[..., :-1].std() == pytest.approx(bound / np.sqrt(3), rel=0.05)
    assert not np.array_equal(weights[0], weights[1])


@BOTH
def test_inputs_are_not_changed(probe):
    X, y, split = planted()
    copies = X.copy(), y.copy(), [part.copy() for part in split]
    linear_probe(X, y, split, probe)
    assert np.array_equal(X, copies[0])
    assert np.array_equal(y, copies[1])
    assert all(np.array_equal(a, b) for a, b in zip(split, copies[2], strict=True))


def test_unusable_input_is_named():
    X, y, split = planted()
    probe = LbfgsProbe(grid=(1.0,))
    broken = X.copy()
    broken[7, 3] = np.nan
    nothing = np.array([], dtype=np.int64)
    mask = np.ones(300, bool)
    for message, arguments in {
        "row 7, column 3 is nan": (broken, y, split),
        "embedding must be a matrix": (X[0], y, split),
        "embedding must be real": (X.astype(str), y, split),
        "labels must have one class for each row": (X, y[:-1], split),
        "labels must be integer": (X, y.astype(float), split),
        "labels must be classes 0": (X, y - 1, split),
        "at least 2 classes": (X, np.zeros_like(y), split),
        "split.train must be a list of at least one": (X, y, split._replace(train=nothing)),
        "split.valid must be a list of at least one": (X, y, split._replace(valid=nothing)),
        "split.test must be a list of at least one": (X, y, split._replace(test=nothing)),
        "split.test must hold rows 0..299": (X, y, split._replace(test=np.array([300]))),
        "split.test must hold row numbers": (X, y, split._replace(test=mask)),
        "disjoint": (X, y, split._replace(test=split.train)),
    }.items():
        with pytest.raises(InputError, match=message):
            linear_probe(*arguments, probe)
    with pytest.raises(InputError, match="received 2 and 1"):
        linear_probes(X, y, [split, split], probe, [0])


def test_configurations_are_frozen_and_closed():
    adapter = TypeAdapter(Probe)
    assert adapter.validate_python({"kind": "adam", "weight_decay": 0}) == AdamProbe(weight_decay=0)
    assert adapter.validate_json(LbfgsProbe(grid=(1, 2)).model_dump_json()) == LbfgsProbe(grid=(1.0, 2.0))
    for wrong in (
        {"kind": "adam", "rate": 1},
        {"kind": "svm"},
        {"kind": "lbfgs", "grid": []},
        {"kind": "lbfgs", "grid": [0.0]},
        {"kind": "adam", "steps": 10, "every": 20},
        {"kind": "adam", "lr": float("inf")},
    ):
        with pytest.raises(ValidationError):
            adapter.validate_python(wrong)
    with pytest.raises(ValidationError):
        AdamProbe().steps = 5  # type: ignore[misc]


def test_patience_ends_the_path_of_penalties_and_only_spares_larger_ones() -> None:
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, 120)
    embedding = np.eye(3)[labels] @ rng.normal(size=(3, 4)) + rng.normal(size=(120, 4))
    split = Split(np.arange(40), np.arange(40, 80), np.arange(80, 120))
    whole = linear_probe(embedding, labels, split, LbfgsProbe(patience=100))
    hasty = linear_probe(embedding, labels, split, LbfgsProbe(patience=1))
    assert hasty.chosen["C"] <= whole.chosen["C"]
    assert hasty.valid_accuracy <= whole.valid_accuracy


def test_values_of_c_that_all_predict_the_largest_class_do_not_end_the_search() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    vectors = 3 * np.eye(3, 6)[labels] + 0.3 * rng.normal(size=(60, 6))
    for split in random_splits(60, 20):
        if np.unique(labels[split.train]).size == 3:
            assert linear_probe(vectors, labels, split, LbfgsProbe()).valid_accuracy > 0.8


def test_more_columns_than_training_nodes_give_the_same_classifier() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 200)
    vectors = 0.4 * np.eye(3, 150)[labels] + rng.normal(size=(200, 150)) * 0.2
    split = Split(np.arange(40), np.arange(40, 120), np.arange(120, 200))
    probe = LbfgsProbe(grid=(0.25,), tolerance=1e-8)
    found = linear_probe(vectors, labels, split, probe)
    wide = (vectors - vectors.mean(axis=0)) / np.sqrt(vectors.var(axis=0).mean())
    plain = [
        *lbfgs_path(np.hstack([wide[:40], np.ones((40, 1))]), labels[:40], LbfgsProbe(grid=(0.25,), tolerance=1e-8))
    ]
    scores = np.hstack([wide, np.ones((200, 1))]) @ plain[0][1][0].T
    right = scores.argmax(axis=1) == labels
    assert found.valid_accuracy == pytest.approx(right[40:120].mean())
    assert found.accuracy == pytest.approx(right[120:].mean())
    assert 0.5 < found.accuracy < 1
