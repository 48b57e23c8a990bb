"""Predict the classes of unlabeled nodes from those of labeled ones."""

from __future__ import annotations

import logging
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import Matrix, checked_embedding
from ssge.evaluation.scores import MeanStd, mean_std

log = logging.getLogger(__name__)

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""The values of C that are tried; C is that of scikit-learn, the inverse of the strength of the penalty."""


class Classification(NamedTuple):
    """Scores of the classifier by cross-validation, and its predictions for the other nodes.

    ``accuracy`` and ``macro_f1`` are mean and deviation over the folds; ``majority`` is the accuracy of always
    naming the most frequent class. ``rows`` are the nodes without a label, ``predicted`` their classes and
    ``probability`` one row of class probabilities for each, in the order of ``classes``.
    """

    accuracy: MeanStd
    macro_f1: MeanStd
    majority: float
    folds: int
    C: float
    classes: NDArray[Any]
    rows: NDArray[np.int64]
    predicted: NDArray[Any]
    probability: NDArray[np.float64]


def classify(
    vectors: ArrayLike, labeled: NDArray[np.int64], labels: ArrayLike, folds: int = 5, seed: int = 0
) -> Classification:
    """Learn a logistic regression from the labeled nodes and apply it to all others.

    Columns are standardized by the training nodes. C is chosen by stratified cross-validation on accuracy, the
    strongest penalty of equals. The scores come from nested cross-validation: in each fold C is chosen again from the
    training part, and the held-out nodes are scored once.

    Parameters
    ----------
    vectors
        n x d embedding.
    labeled
        Positions of the labeled nodes.
    labels
        Their classes, one each: text or integers.
    folds
        Of the cross-validation; fewer if a class has fewer members, but 2 at least. A class with a single member
        cannot be learned and held out at once, so it counts as an error in its fold.
    seed
        Of the division into folds.

    Notes
    -----
    Embeddings are learned without labels. The held-out nodes took part in training, but their classes did not: the
    scores hold for nodes of this graph (the transductive setting). They do not hold for nodes that join later,
    and are too high for embeddings that were tuned on these labels.
    """
    X = checked_embedding(vectors)
    y = _checked(labeled, np.asarray(labels), X.shape[0])
    if not 0 <= seed < 2**32:
        raise InputError(f"seed must be 0..2^32-1; received {seed}.")
    if not y.size:
        raise InputError("labels must have two classes with at least 2 nodes each; received no labels.")
    if folds < 2:
        raise InputError(f"folds must be 2 or more; received {folds}.")
    classes, index, count = np.unique(y, return_inverse=True, return_counts=True)
    if (count > 1).sum() < 2:
        raise InputError(
            f"labels must have two classes with at least 2 nodes each; received {classes.size} classes, "
            f"the largest with {count.max()} nodes."
        )
    if count.min() == 1:
        names = ", ".join(str(name) for name in classes[count == 1][:5])
        log.warning("Classes with a single labeled node are predicted but cannot be scored: %s.", names)
    used = _folds(count, folds)
    if used < folds:
        log.info("%d folds instead of %d: a class has only %d labeled nodes.", used, folds, count.min())
    known = X[labeled]
    accuracies, f1 = _held_out(known, index, used, seed)
    model, C = _fitted(known, index, used, seed)
    rows = np.setdiff1d(np.arange(X.shape[0]), labeled)
    probability = model.predict_proba(X[rows]) if rows.size else np.empty((0, classes.size))
    return Classification(
        mean_std(accuracies), mean_std(f1), float(count.max() / count.sum()), used, C,
        classes, rows, classes[probability.argmax(axis=1)], probability,
    )  # fmt: skip


def _checked(labeled: NDArray[np.int64], labels: NDArray[Any], n: int) -> NDArray[Any]:
    if labels.shape != labeled.shape or labels.ndim != 1:
        raise InputError(f"labels must have one class for each of {labeled.size} nodes; received {labels.shape}.")
    if labeled.size and (labeled.min() < 0 or labeled.max() >= n):
        raise InputError(f"labeled must hold rows 0..{n - 1}; received {labeled.min()}..{labeled.max()}.")
    rows, count = np.unique(labeled, return_counts=True)
    if (count > 1).any():
        raise InputError(f"labeled must name each node once; row {rows[count > 1][0]} occurs twice.")
    return labels.astype(str) if labels.dtype == object else labels


def _folds(count: NDArray[np.int64], folds: int) -> int:
    return int(np.clip(count.min(), 2, folds))


def _held_out(X: Matrix, y: NDArray[np.int64], folds: int, seed: int) -> tuple[list[float], list[float]]:
    """Return accuracy and macro F1 per fold; `cross_validate` cannot, since inner folds follow the training part."""
    from sklearn.metrics import accuracy_score, f1_score

    accuracies, f1 = [], []
    for train, test in _divided(y, folds, seed):
        inner = _folds(np.unique(y[train], return_counts=True)[1], 3)
        found = _fitted(X[train], y[train], inner, seed)[0].predict(X[test])
        accuracies.append(float(accuracy_score(y[test], found)))
        f1.append(float(f1_score(y[test], found, average="macro")))
    return accuracies, f1


def _fitted(X: Matrix, y: NDArray[np.int64], folds: int, seed: int) -> tuple[Any, float]:
    """Return the classifier with the C of best accuracy over the folds, and that C; 1 with too few nodes to compare.

    `GridSearchCV` takes the first of equals, so the strongest penalty: C rises along the grid.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if np.sort(np.unique(y, return_counts=True)[1])[-2] < 2:
        return model.fit(X, y), 1.0
    search = GridSearchCV(model, {"logisticregression__C": PENALTIES}, cv=_divided(y, folds, seed)).fit(X, y)
    return search.best_estimator_, float(search.best_params_["logisticregression__C"])


def _divided(y: NDArray[np.int64], folds: int, seed: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    from sklearn.model_selection import StratifiedKFold

    with warnings.catch_warnings():  # the log has named single members
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y))
