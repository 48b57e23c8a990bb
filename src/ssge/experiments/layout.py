"""Places on a plane for the rows of an embedding: t-SNE by a library, or principal components."""

from __future__ import annotations

import importlib.util
import logging
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ssge.errors import UnknownNameError

log = logging.getLogger(__name__)

Array: TypeAlias = NDArray[np.floating[Any]]
Method: TypeAlias = Literal["auto", "tsne", "pca"]
METHODS: tuple[Method, ...] = ("auto", "tsne", "pca")
MOST_WITHOUT = 10_000
"""Rows that scikit-learn's t-SNE lays out unasked; it takes many times as long as openTSNE."""


class Layout(NamedTuple):
    """n x 2 places, the names of the two axes, and whether distances along them have a scale."""

    points: Array
    axes: tuple[str, str]
    scaled: bool

    @property
    def method(self) -> str:
        """How the places were found, in words."""
        return self.axes[0].removesuffix(" 1") + "s" * self.scaled


def lay_out(vectors: Array, seed: int = 0, method: Method = "auto") -> Layout:
    """Place rows on a plane so that similar ones are near each other.

    Two columns are taken as they are. More are centered, reduced to 50 principal components, scaled to unit norm and
    laid out by t-SNE: near points have a large cosine, while large distances mean little. Fewer than five rows, a
    single column, and rows that all coincide are placed by their first two components.

    Parameters
    ----------
    vectors
        n x d, finite.
    seed
        Of t-SNE.
    method
        ``tsne``: by openTSNE if it is installed, else by scikit-learn. ``pca``: the first two principal components.
        ``auto``: t-SNE, or components if there are more than 10,000 rows and openTSNE is not installed.
    """
    if method not in METHODS:
        raise UnknownNameError("layout", method, METHODS)
    if vectors.shape[1] == 2:
        return Layout(vectors, ("column 1", "column 2"), scaled=True)
    components, collapsed = _components(vectors.astype(np.float64))
    fast = importlib.util.find_spec("openTSNE") is not None
    if method == "auto" and len(vectors) > MOST_WITHOUT and not fast:
        log.info("The map shows principal components: t-SNE of so many nodes needs pip install 'ssge[report]'.")
        method = "pca"
    if method == "pca" or len(vectors) < 5 or vectors.shape[1] < 2 or collapsed:
        plane: Array = np.pad(components, ((0, 0), (0, 1)))[:, :2]
        return Layout(plane, ("principal component 1", "principal component 2"), scaled=True)
    length = np.linalg.norm(components, axis=1, keepdims=True)
    rows = (components / np.where(length > 0, length, 1.0)).astype(np.float32)
    perplexity = min(30.0, (len(rows) - 1) / 3)
    return Layout(_tsne(rows, perplexity, seed, fast), ("t-SNE 1", "t-SNE 2"), scaled=False)


def _components(points: Array, most: int = 50) -> tuple[Array, bool]:
    """Return the first principal components, and whether all rows coincide."""
    from sklearn.decomposition import PCA

    n, d = points.shape
    # Eigenvectors of the d x d matrix take a fraction of the time of those of n x d.
    solver = "covariance_eigh" if n > d else "full"
    with np.errstate(invalid="ignore"):  # rows that coincide have no variance to divide by
        found = PCA(min(most, n, d), svd_solver=solver).fit_transform(points)
    return found, bool(np.linalg.norm(found[:, 0]) <= 1e-9 * np.linalg.norm(points))


def _tsne(rows: NDArray[np.float32], perplexity: float, seed: int, fast: bool) -> Array:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="openmp"):  # more threads sum in another order
        if fast:
            from openTSNE import TSNE

            found = TSNE(perplexity=perplexity, initialization="pca", random_state=seed, n_jobs=1).fit(rows)
            return np.asarray(found, dtype=np.float64)
        from sklearn.manifold import TSNE as Slow  # noqa: N811

        return np.asarray(Slow(perplexity=perplexity, init="pca", random_state=seed).fit_transform(rows))
