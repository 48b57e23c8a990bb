"""Linear probe: accuracy of a linear classifier on the frozen embedding.

Both probes are a *path* of linear classifiers, over the strength of the penalty or over the steps of training. One
function follows the path and selects the first classifier with the best validation accuracy. Test nodes are scored
once, afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from ssge.errors import InputError
from ssge.evaluation._arrays import Matrix, checked_embedding, checked_labels, checked_split, deviations
from ssge.evaluation._lbfgs import minimize
from ssge.graph import Split

_BLOCK = 4096  # test rows in memory at once
_FLOAT32 = 1e-5  # smallest tolerance that float32 can resolve

Candidates: TypeAlias = "Iterator[tuple[float, NDArray[Any]]]"


class LbfgsProbe(BaseModel):
    """Multinomial logistic regression, solved to convergence, its penalty chosen on the validation nodes.

    Minimizes, over W (k x d) and an unpenalized bias b, with n training nodes,

        (1/n) sum_i CE(W x_i + b, y_i) + |W|^2 / (2 C n),

    so ``C`` is that of scikit-learn. The embedding is centered (the bias makes that immaterial to the optimum)
    and divided by one number, the root mean square of its column deviations over all nodes; hence neither a
    shift nor a rescaling of the embedding changes the score. Columns are not standardized individually: their
    relative scale is part of the learned representation.

    Attributes
    ----------
    grid
        The values of C, by default the powers of 4 from 2^-12 to 2^8. Each solution is the start of the next
        larger C.
    patience
        Number of values of C in a row without a better validation accuracy after which the path ends; larger values
        take longest to solve. It does not end before one value was better than the smallest: with few training nodes
        the first ones may all predict the largest class.
    max_iter
        Iterations allowed for each C.
    tolerance
        Largest entry of the gradient at convergence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["lbfgs"] = "lbfgs"
    grid: tuple[PositiveFloat, ...] = Field(default=tuple(4.0**i for i in range(-6, 5)), min_length=1)
    patience: PositiveInt = 3
    max_iter: PositiveInt = 500
    tolerance: PositiveFloat = 1e-4


class AdamProbe(BaseModel):
    """The probe of the released SSGE code: one linear layer, full-batch Adam, early stopping on validation.

    Weights start Xavier-uniform, the bias at zero; the L2 ``weight_decay`` is added to the gradient, of the
    bias too, as in ``torch.optim.Adam``. The embedding is not rescaled, so its scale matters.

    Attributes
    ----------
    lr, weight_decay
        Of Adam. The released code has 1e-2 and, by dataset, 1e-4 (Cora and most), 1e-2 (CiteSeer), 0 (PubMed).
    steps
        Number of steps.
    every
        Number of steps between two scores of the validation nodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["adam"] = "adam"
    lr: PositiveFloat = 1e-2
    weight_decay: float = Field(default=1e-4, ge=0)
    steps: PositiveInt = 3000
    every: PositiveInt = 20

    @model_validator(mode="after")
    def _looks_at_least_once(self) -> AdamProbe:
        if self.every > self.steps:
            raise ValueError(f"every must be at most steps ({self.steps}); received {self.every}")
        return self


Probe: TypeAlias = Annotated[LbfgsProbe | AdamProbe, Field(discriminator="kind")]


class ProbeScore(NamedTuple):
    """Accuracy on test and validation nodes, and the setting selected on validation nodes (C or step)."""

    accuracy: float
    valid_accuracy: float
    chosen: dict[str, float]


def linear_probe(
    embedding: ArrayLike, labels: ArrayLike, split: Split, probe: LbfgsProbe | AdamProbe, seed: int = 0
) -> ProbeScore:
    """Train a linear classifier on the training rows, choose on the validation rows, score on the test rows.

    Parameters
    ----------
    embedding
        n x d matrix. `AdamProbe` computes in its precision; `LbfgsProbe` in float64, except that iterations to a
        tolerance of 1e-5 or more are in float32.
    labels
        One class index per row. The probe knows only the classes of the training rows.
    split
        Disjoint training, validation and test rows.
    probe
        Which probe, and its settings.
    seed
        Of the initial weights of `AdamProbe`; `LbfgsProbe` is deterministic.
    """
    return linear_probes(embedding, labels, [split], probe, [seed])[0]


def linear_probes(
    embedding: ArrayLike,
    labels: ArrayLike,
    splits: Sequence[Split],
    probe: LbfgsProbe | AdamProbe,
    seeds: Sequence[int],
) -> list[ProbeScore]:
    """Score several pairs of split and seed; equal up to rounding to `linear_probe` on each, but faster.

    Pairs with the same split object are trained together, with wider matrix products.
    """
    import torch
    from threadpoolctl import threadpool_limits

    if len(splits) != len(seeds) or not splits:
        raise InputError(f"splits and seeds must be equally many, at least 1; received {len(splits)} and {len(seeds)}.")
    X = checked_embedding(embedding)
    y = checked_labels(labels, X.shape[0])
    shift, scale = _shift_and_scale(X) if isinstance(probe, LbfgsProbe) else (0.0, 1.0)

    def rows(index: NDArray[np.int64]) -> Matrix:
        """Return the inputs of the classifier, in the precision of the embedding; a column of ones is the bias."""
        part = np.ones((index.size, X.shape[1] + 1), X.dtype)
        np.subtract(X[index], shift, out=part[:, :-1], casting="same_kind")
        part[:, :-1] /= scale
        return part

    groups = [[i for i, split in enumerate(splits) if id(split) == key] for key in dict.fromkeys(map(id, splits))]
    for members in groups:
        checked_split(splits[members[0]], X.shape[0])

    def score(members: list[int]) -> list[ProbeScore]:
        return _scores(rows, y, splits[members[0]], probe, [seeds[i] for i in members])

    # The products are small: one thread per split and several splits in parallel. Nested thread pools compete for the
    # cores, which costs a factor of ten.
    with threadpool_limits(limits=1), ThreadPoolExecutor(torch.get_num_threads()) as pool:
        found = list(pool.map(score, groups))
    scores = {i: one for members, ones in zip(groups, found, strict=True) for i, one in zip(members, ones, strict=True)}
    return [scores[i] for i in range(len(splits))]


def _scores(
    rows: Callable[[NDArray[np.int64]], Matrix],
    labels: NDArray[np.int64],
    split: Split,
    probe: LbfgsProbe | AdamProbe,
    seeds: Sequence[int],
) -> list[ProbeScore]:
    """Score one split with each seed."""
    # The number of classes also comes from training nodes only.
    classes, targets = np.unique(labels[split.train], return_inverse=True)
    if classes.size < 2:
        raise InputError(f"labels must have at least 2 classes in split.train; received {classes.tolist()}.")
    inputs = rows(split.train)
    if isinstance(probe, LbfgsProbe):
        path, setting = lbfgs_path(inputs, targets, probe), "C"
    else:
        start = initial_weights(classes.size, inputs, seeds)
        path, setting = adam_path(inputs, targets, start, probe), "step"
    valid_accuracy, chosen, weights = _best_on_path(
        path, rows(split.valid), classes, labels[split.valid], getattr(probe, "patience", None)
    )
    blocks = np.array_split(split.test, math.ceil(split.test.size / _BLOCK))
    right = [part.size * _accuracy(weights, rows(part), classes, labels[part]) for part in blocks]
    accuracy = np.sum(right, axis=0) / split.test.size
    found = [
        ProbeScore(float(test), float(valid), {setting: choice})
        for test, valid, choice in zip(accuracy, valid_accuracy, chosen, strict=True)
    ]
    return found if len(found) == len(seeds) else found * len(seeds)  # L-BFGS: one head serves all seeds


def _with_ones(part: Matrix) -> Matrix:
    return np.hstack([part, np.ones((part.shape[0], 1), part.dtype)])


def lbfgs_path(inputs: Matrix, targets: NDArray[np.int64], probe: LbfgsProbe) -> Candidates:
    """Yield (C, weights 1 x k x (d+1)) for increasing C; the last column is the bias.

    With X = U S V', the solution lies in the span of V, so it is sought in the coordinates Z = U S. There Z'Z is
    diagonal, hence

        q diag(Z'Z / n) + 1 / (C n),    q the mean of p (1 - p) over nodes and classes,

    approximates the Hessian, and L-BFGS starts from its inverse.
    """
    coordinates, restored = _rotated(inputs[:, :-1].astype(np.float64))
    coordinates = _with_ones(coordinates).astype(np.float32 if probe.tolerance >= _FLOAT32 else np.float64)
    transposed = np.ascontiguousarray(coordinates.T)
    n, width = coordinates.shape
    k = int(targets.max()) + 1
    squares = np.square(coordinates).mean(axis=0)
    weights: Matrix = np.zeros((1, k, width), coordinates.dtype)
    change: Matrix = np.zeros_like(weights)
    spread = (k - 1) / k**2  # at equal probabilities
    for C in sorted(probe.grid):
        penalty = np.full(width, 1 / (C * n), coordinates.dtype)
        penalty[-1] = 0

        def objective(W: Matrix, penalty: Matrix = penalty) -> tuple[float, Matrix]:
            loss, gradient = _cross_entropy(W, coordinates, transposed, targets)
            shrinkage = penalty * W
            return float(loss[0] + np.vdot(shrinkage, W) / 2), gradient + shrinkage

        before = weights
        weights = minimize(objective, before + change, spread * squares + penalty, probe.tolerance, probe.max_iter)
        # Successive powers of C change the solution by similar amounts; the first is far from zero.
        change = weights - before if before.any() else change
        spread = _spread(weights[0] @ transposed)
        whole = np.concatenate([restored(weights[0, :, :-1]), weights[0, :, -1:]], axis=-1)
        yield C, whole[None].astype(inputs.dtype)


def _rotated(X: Matrix) -> tuple[Matrix, Callable[[Matrix], Matrix]]:
    """Return U S of X = U S V', and the function W -> W V' from its coordinates to those of X.

    The smaller Gram matrix gives both. If that is X X', then V' = S^-1 U' X is never formed.
    """
    n, d = X.shape
    eigenvalues, vectors = np.linalg.eigh(X @ X.T if d > n else X.T @ X)
    kept = eigenvalues > max(n, d) * np.finfo(np.float64).eps * eigenvalues[-1]
    vectors, singular = vectors[:, kept], np.sqrt(eigenvalues[kept])
    if d > n:
        return vectors * singular, lambda W: (W / singular) @ vectors.T @ X
    return X @ vectors, lambda W: W @ vectors.T


def _spread(scores: Matrix) -> float:
    """Mean of p (1 - p) over nodes and classes, with p the softmax of k x n scores; at least 1e-6."""
    p = np.exp(scores - scores.max(axis=0))
    p /= p.sum(axis=0)
    return max(float((p * (1 - p)).mean()), 1e-6)


def initial_weights(k: int, inputs: Matrix, seeds: Sequence[int]) -> Matrix:
    """Xavier-uniform weights and zero biases, one head (k x (d+1)) per seed."""
    import torch

    d = inputs.shape[1] - 1
    weights = np.zeros((len(seeds), k, d + 1), inputs.dtype)
    for head, seed in enumerate(seeds):
        layer = torch.empty(k, d, dtype=torch.float64 if inputs.dtype == np.float64 else torch.float32)
        torch.nn.init.xavier_uniform_(layer, generator=torch.Generator().manual_seed(seed))
        weights[head, :, :d] = layer.numpy()
    return weights


def adam_path(inputs: Matrix, targets: NDArray[np.int64], start: Matrix, probe: AdamProbe) -> Candidates:
    """Yield (step, weights heads x k x (d+1)) after every `every` steps of Adam, all heads at once."""
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8  # torch's defaults, as in the released code
    transposed = np.ascontiguousarray(inputs.T)
    weights, mean, square = start, np.zeros_like(start), np.zeros_like(start)
    for step in range(1, probe.steps + 1):
        _, gradient = _cross_entropy(weights, inputs, transposed, targets)
        gradient += probe.weight_decay * weights
        mean += (1 - beta1) * (gradient - mean)
        square *= beta2
        square += (1 - beta2) * gradient**2
        root = np.sqrt(square) / math.sqrt(1 - beta2**step) + epsilon
        weights = weights - probe.lr / (1 - beta1**step) * mean / root
        if step % probe.every == 0:
            yield step, weights


def _cross_entropy(
    weights: Matrix, inputs: Matrix, transposed: Matrix, targets: NDArray[np.int64]
) -> tuple[Matrix, Matrix]:
    """Mean cross entropy of each head, and its gradient: two matrix products, classes first (faster)."""
    heads, k, width = weights.shape
    n = inputs.shape[0]
    scores = (weights.reshape(heads * k, width) @ transposed).reshape(heads, k, n)
    scores -= scores.max(axis=1, keepdims=True)
    own = np.arange(n)
    loss = -scores[:, targets, own].mean(axis=1)
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True)
    loss += np.log(total).mean(axis=(1, 2))
    scores /= total
    scores[:, targets, own] -= 1
    scores /= n
    return loss, (scores.reshape(heads * k, n) @ inputs).reshape(heads, k, width)


def _best_on_path(
    path: Candidates, inputs: Matrix, classes: NDArray[np.int64], labels: NDArray[np.int64], patience: int | None
) -> tuple[Matrix, list[float], Matrix]:
    """Return each head's best validation accuracy, the first setting that has it, and its weights."""
    waited, improved = 0, False
    setting, weights = next(path)
    best, chosen, kept = _accuracy(weights, inputs, classes, labels), [setting] * len(weights), weights.copy()
    for setting, weights in path:
        accuracy = _accuracy(weights, inputs, classes, labels)
        better = np.flatnonzero(accuracy > best)
        for head in better:
            best[head], chosen[head], kept[head] = accuracy[head], setting, weights[head]
        improved = improved or bool(better.size)
        waited = 0 if better.size else waited + 1
        if improved and patience is not None and waited >= patience:
            break
    return best, chosen, kept


def _accuracy(weights: Matrix, inputs: Matrix, classes: NDArray[np.int64], labels: NDArray[np.int64]) -> Matrix:
    """Accuracy of each head; classes unseen in training are always errors."""
    heads, k, width = weights.shape
    scores = (inputs @ weights.reshape(heads * k, width).T).reshape(-1, heads, k)
    right = classes[scores.argmax(axis=2)] == labels[:, None]
    return np.asarray(right.mean(axis=0))


def _shift_and_scale(embedding: Matrix) -> tuple[NDArray[np.float64], float]:
    """Column means, and the root mean square of the column deviations (1 if the embedding is constant)."""
    # Rounding noise of a constant embedding counts as 0, because it must not be scaled to unit size.
    scale = math.sqrt(np.square(deviations(embedding)).mean())
    return embedding.mean(axis=0, dtype=np.float64), scale if scale > 0 else 1.0
