"""Maps of an embedding: where the nodes lie (t-SNE or principal components), and what colors them."""

from __future__ import annotations

import importlib.util
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError, UnknownNameError
from ssge.evaluation._arrays import unit_rows
from ssge.runs.names import as_text

log = logging.getLogger(__name__)

Array: TypeAlias = NDArray[np.floating[Any]]
Method: TypeAlias = Literal["auto", "tsne", "pca"]
MOST_WITHOUT = 10_000
"""Most rows for which ``auto`` is scikit-learn's t-SNE, which takes many times as long as openTSNE."""
FEW = 12
"""Up to so many different numbers are classes."""
MOST_CLASSES = 100
"""Largest number of classes; the smallest ones are merged into one."""
OTHER = "other"


def drawing_order(n: int, points: int, seed: int) -> NDArray[np.int64]:
    """Return the rows to draw, in random order so that no class hides another; a sample if there are too many."""
    if points < 1:
        raise InputError(f"points must be 1 or more; received {points}.")
    return np.random.default_rng(seed).permutation(n)[:points]


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
    if method not in get_args(Method):
        raise UnknownNameError("layout", method, get_args(Method))
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
    rows = unit_rows(components).astype(np.float32)
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


class Coloring(NamedTuple):
    """How a column colors the nodes.

    Attributes
    ----------
    name
        Of the column.
    classes, codes
        The classes, those of most nodes first, and the class of each node, -1 for none. No classes: numbers.
    numbers
        The number of each node, NaN for none; None for classes.
    """

    name: str
    classes: list[str]
    codes: NDArray[np.int64]
    numbers: NDArray[np.float64] | None = None

    @property
    def counts(self) -> Sequence[int]:
        """Number of nodes of each class."""
        found: list[int] = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes)).tolist()
        return found


def color_by(name: str, values: Sequence[Any]) -> Coloring:
    """Decide how a column colors the nodes: more than twelve different numbers are a scale, all else is classes."""
    known = [value for value in values if as_text(value)]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in known) and len(set(known)) > FEW:
        numbers = np.array([float(v) if as_text(v) else np.nan for v in values])
        return Coloring(name, [], np.full(len(values), -1), np.where(np.isfinite(numbers), numbers, np.nan))
    texts = [as_text(value) for value in values]
    counts = Counter(text for text in texts if text)
    classes = sorted(counts, key=lambda text: (-counts[text], text))
    if len(classes) > MOST_CLASSES:
        classes = [text for text in classes[: MOST_CLASSES - 1] if text != OTHER] + [OTHER]
    code = {text: i for i, text in enumerate(classes)}
    codes = [code.get(text, code.get(OTHER, -1)) if text else -1 for text in texts]
    return Coloring(name, classes, np.array(codes, dtype=np.int64))


def tells_apart(column: Coloring) -> bool:
    """Return whether a column is worth coloring by: some classes with several nodes each, or different numbers."""
    if column.numbers is not None:
        return bool(np.isfinite(column.numbers).any())
    return 1 < len(column.classes) <= min(MOST_CLASSES - 1, len(column.codes) / 2)


def agreement(column: Coloring, position: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return the share of neighbors that have the class of their node, and that of nodes drawn at random.

    Parameters
    ----------
    column
        Classes; None is returned for numbers.
    position
        n x k neighbors of all nodes.
    """
    known = column.codes >= 0
    if not column.classes or not known.any():
        return None
    own, theirs = column.codes[known][:, None], column.codes[position[known]]
    counted = theirs >= 0
    if not counted.any():
        return None
    share = np.bincount(column.codes[known]) / known.sum()
    return float((own == theirs)[counted].mean()), float(np.square(share).sum())
