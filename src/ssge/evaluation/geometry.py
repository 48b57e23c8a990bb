"""Geometry: label-free metrics of an embedding, in float64."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import SPARSE, Matrix, blocks, checked_embedding, deviations, unit_rows

_MOST_ROWS = 4096  # for comparisons of all pairs
_BLOCK = 256  # rows with all their distances in memory at once


def spectrum(embedding: ArrayLike) -> NDArray[np.float64]:
    """Eigenvalues, in descending order, of the d x d correlation matrix R of the columns.

    They sum to the number of columns that vary: a constant column has zeros in R, on the diagonal too. Constant means a
    standard deviation within the rounding of the embedding's precision. With m = min(n, d), the cost is O(n d m + m^3):
    the n x n Gram matrix of the standardized columns has the same eigenvalues other than zero.
    """
    array = checked_embedding(embedding)
    return _spectrum(array, deviations(array))


def _spectrum(array: Matrix, deviation: NDArray[np.float64]) -> NDArray[np.float64]:
    import torch

    n, d = array.shape
    mean, scale = array.mean(axis=0, dtype=np.float64), np.where(deviation > 0, deviation, np.inf)
    if n >= d and np.count_nonzero(array) < SPARSE * array.size:  # as in word counts
        columns = sp.csr_array(array.astype(np.float64))
        gram = ((columns.T @ columns).toarray() / n - np.outer(mean, mean)) / np.outer(scale, scale)
    elif n >= d:
        gram = np.zeros((d, d))
        for rows in blocks(array):
            centered = (rows - mean) / scale
            gram += centered.T @ centered / n
    else:
        columns = (array - mean) / scale
        gram = columns @ columns.T / n
    eigenvalues = np.zeros(d)
    # Torch's LAPACK takes half the time of NumPy's for thousands of columns.
    eigenvalues[: min(n, d)] = torch.linalg.eigvalsh(torch.from_numpy(gram)).numpy()[::-1]
    return np.maximum(eigenvalues, 0)


def effective_rank(embedding: ArrayLike) -> float:
    """Exponential of the entropy of the normalized eigenvalues: between 1 (one direction) and d (white).

    Takes an embedding or the output of `spectrum`; 0 if every column is constant.
    """
    eigenvalues = _eigenvalues(embedding)
    share = eigenvalues[eigenvalues > 0]
    if share.size == 0:
        return 0.0
    share = share / share.sum()
    return math.exp(-float(share @ np.log(share)))


def wasserstein_to_gaussian(embedding: ArrayLike) -> float:
    """Squared 2-Wasserstein distance 2d - 2 tr(R^(1/2)) of the standardized columns from N(0, I).

    R is their correlation matrix. Between 0 (uncorrelated) and 2d - 2 sqrt(d) (one direction); a constant
    column counts fully, as 2. Takes an embedding or the output of `spectrum`.
    """
    eigenvalues = _eigenvalues(embedding)
    return max(0.0, 2 * eigenvalues.size - 2 * float(np.sqrt(eigenvalues).sum()))


def uniformity(z: ArrayLike) -> float:
    """Logarithm of the mean over pairs of distinct rows of exp(-2 |x - y|^2), rows divided by their norms.

    0 if all rows have the same direction, lower the more evenly they spread over the sphere. More than 4096 rows are
    subsampled to 4096 without replacement, which keeps the mean inside the logarithm unbiased; O(n^2 d).
    """
    from scipy.special import logsumexp

    rows = checked_embedding(z, "z")
    if rows.shape[0] > _MOST_ROWS:
        rows = rows[np.random.default_rng(0).choice(rows.shape[0], _MOST_ROWS, replace=False)]
    rows = unit_rows(rows.astype(np.float64))
    n = rows.shape[0]
    if n < 2:
        raise InputError("z must have at least 2 rows; received 1.")
    norm = np.square(rows).sum(axis=1)  # 1, or 0 for a row of zeros
    logarithms = []
    for start in range(0, n, _BLOCK):
        block = rows[start : start + _BLOCK]
        squared = norm[start : start + _BLOCK, None] + norm[start:] - 2 * (block @ rows[start:].T)
        np.maximum(squared, 0, out=squared)
        squared[np.tril_indices(block.shape[0])] = np.inf  # each pair once, no row with itself
        logarithms.append(logsumexp(-2.0 * squared))
    return float(logsumexp(logarithms) - math.log(n * (n - 1) / 2))


def geometry(embedding: ArrayLike) -> dict[str, float]:
    """Compute the label-free metrics of an embedding.

    Returns
    -------
    dict
        ``effective_rank``, ``uniformity``, ``wasserstein`` (see `wasserstein_to_gaussian`), ``mean_norm`` of
        the rows, ``mean_deviation`` and ``deviation_spread`` (mean and standard deviation of the columns'
        standard deviations) and ``collapsed_columns`` (how many are constant).
    """
    array = checked_embedding(embedding)
    deviation = deviations(array)
    eigenvalues = _spectrum(array, deviation)
    return {
        "effective_rank": effective_rank(eigenvalues),
        "uniformity": uniformity(array),
        "wasserstein": wasserstein_to_gaussian(eigenvalues),
        "mean_norm": float(np.sqrt(np.einsum("ij,ij->i", array, array, dtype=np.float64)).mean()),
        "mean_deviation": float(deviation.mean()),
        "deviation_spread": float(deviation.std()),
        "collapsed_columns": float((deviation == 0).sum()),
    }


def _eigenvalues(embedding: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(embedding)
    if array.ndim != 1:
        return spectrum(array)
    eigenvalues: NDArray[np.float64] = checked_embedding(array[None], "eigenvalues")[0].astype(np.float64)
    if eigenvalues.min() < 0:
        raise InputError(f"eigenvalues must not be negative; received {eigenvalues.min()}.")
    return eigenvalues
