"""Structural features from the edges: degree, clustering, return probabilities, Laplacian coordinates.

With A the weighted adjacency, made symmetric (an edge with two weights counts with the larger, as in `Graph.of`),
d its row sums, and S = D^(-1/2) A D^(-1/2):

- ``degree``: log(1 + d_i) of the graph as given; two columns, in and out, for a directed graph;
- ``clustering``: 2 t_i / (k_i (k_i - 1)), with t_i the triangles and k_i the neighbors of node i, ignoring weights;
- ``return``: the probability (P^s)_ii that a walk with P = D^(-1) A is back after s = 2..8 steps;
- ``laplacian``: eigenvectors of I - S to its smallest eigenvalues above zero.

The first three mean the same in every graph, so a model trained on one graph can read them in another. Laplacian
coordinates belong to one graph: in another their order, their signs and their meaning differ.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, UnknownNameError
from ssge.graph import Direction
from ssge.ops.neighbors import check_count

log = logging.getLogger(__name__)

KINDS: tuple[str, ...] = ("degree", "clustering", "return", "laplacian")
STEPS = range(2, 9)
COORDINATES = 16

_ENTRIES = 1 << 21  # numbers in a block of intermediate results
_EXACT_PRODUCTS = 1 << 31  # nodes times edges up to which return probabilities are exact, at most about ten seconds
_PROBES = 256
_DENSE_NODES = 400  # up to here a dense eigendecomposition is as fast, and finds all multiple eigenvalues

_Columns: TypeAlias = "tuple[NDArray[np.floating[Any]], list[str]]"


def structural_features(
    edges: NDArray[np.int64],
    weights: NDArray[np.floating[Any]] | None,
    num_nodes: int,
    kinds: Sequence[str] = KINDS,
    direction: Direction | None = None,
) -> tuple[NDArray[np.float32], list[str]]:
    """Return an n x q matrix of structural features, and the names of its columns.

    Isolated nodes have zeros everywhere. Every kind except an estimated ``return`` is equivariant to the order of the
    nodes; Laplacian coordinates only for simple eigenvalues.

    Parameters
    ----------
    edges
        2 x m positions (source, target), without loops and duplicates, as in `Graph.edges`.
    weights
        One positive weight per edge, or None for all ones.
    num_nodes
        n.
    kinds
        Names from `KINDS`, in the order of the columns.
    direction
        How the edges were read, see `Graph.of`: with ``both`` a node has one degree; with ``in`` and ``out`` it has
        two, named as before ``out`` turned the edges round. Default: one if the edges are symmetric, else two.

    Examples
    --------
    >>> triangle = np.array([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    >>> matrix, names = structural_features(triangle, None, 3, ["clustering", "return"])
    >>> dict(zip(names[:3], matrix[0, :3].tolist(), strict=True))
    {'clustering': 1.0, 'return_2': 0.5, 'return_3': 0.25}
    """
    given, symmetric = _adjacency(edges, weights, num_nodes)
    makers: dict[str, Callable[[sp.csr_array], _Columns]] = {
        "degree": partial(_degree, given, direction),
        "clustering": _clustering,
        "return": _return,
        "laplacian": _laplacian,
    }
    if unknown := [kind for kind in kinds if kind not in makers]:
        raise UnknownNameError("kind of structural features", unknown[0], KINDS)
    if not kinds:
        raise InputError(f"kinds must name at least one of {', '.join(KINDS)}; received none.")
    made = [makers[kind](symmetric) for kind in kinds]
    matrix = np.concatenate([columns for columns, _ in made], axis=1, dtype=np.float32, casting="same_kind")
    return matrix, [name for _, names in made for name in names]


def spectral_embedding(
    edges: NDArray[np.int64], weights: NDArray[np.floating[Any]] | None, num_nodes: int, k: int
) -> NDArray[np.float64]:
    """Return the eigenvectors to the k smallest eigenvalues of the regularized normalized Laplacian, n x k.

    This is the Laplacian of A + t/n, with t the mean degree: every pair of nodes gets a weak edge. Without it, the k
    smallest eigenvectors of a graph with k components or more encode only components, and those of a large component
    concentrate on a few peripheral nodes. The mean degree is the choice of Qin and Rohe (Regularized spectral
    clustering under the degree-corrected stochastic blockmodel, 2013), not tuned on any graph.

    A and the signs of the columns are as in `structural_features`. The constant is never added explicitly; cost
    O(m k + n k^2) for each of ARPACK's restarts.
    """
    _, A = _adjacency(edges, weights, num_nodes)
    degree = A.sum(axis=1)
    regular = degree.mean()
    if regular == 0:
        raise InputError("A spectral embedding needs at least one edge; received none.")
    check_count(k, num_nodes)
    scale = 1 / np.sqrt(degree + regular)
    S = sp.csr_array(sp.diags_array(scale) @ A @ sp.diags_array(scale))
    return _signed(_leading(S, sp.csr_array(scale[:, None]), k, regular / num_nodes))


def _adjacency(
    edges: NDArray[np.int64], weights: NDArray[np.floating[Any]] | None, num_nodes: int
) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the adjacency as given (row = target, column = source) and made symmetric."""
    values = np.ones(edges.shape[1]) if weights is None else weights.astype(np.float64)
    given = sp.csr_array((values, (edges[1], edges[0])), shape=(num_nodes, num_nodes))
    return given, given.maximum(given.T.tocsr()).tocsr()


def _degree(given: sp.csr_array, direction: Direction | None, symmetric: sp.csr_array) -> _Columns:
    if direction == "both" or (direction is None and (given != symmetric).nnz == 0):
        return np.log1p(given.sum(axis=1))[:, None], ["degree"]
    arriving, leaving = given.sum(axis=1), given.sum(axis=0)
    if direction == "out":
        arriving, leaving = leaving, arriving
    return np.log1p(np.stack([arriving, leaving], axis=1)), ["in_degree", "out_degree"]


def _clustering(adjacency: sp.csr_array) -> _Columns:
    neighbors = np.diff(adjacency.indptr).astype(np.int64)
    share = 2 * _triangles(adjacency, neighbors) / np.maximum(neighbors * (neighbors - 1), 1)
    return share[:, None], ["clustering"]


def _triangles(adjacency: sp.csr_array, neighbors: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count the triangles of each node: O(m^(3/2)) time for any degree distribution, bounded memory.

    Edges point to the end with more neighbors, so that no node has more than sqrt(2 m) of them going out, and each
    triangle is found once: as an edge u -> v whose ends both point to a third node.
    """
    order = np.argsort(neighbors, kind="stable")
    ahead = sp.triu(adjacency[order][:, order], format="csr")
    ahead.data[:] = 1
    source, target = ahead.nonzero()
    found = np.zeros(neighbors.size)
    step = max(1, _ENTRIES // max(1, np.diff(ahead.indptr).max(initial=0)))
    for start in range(0, source.size, step):
        u, v = source[start : start + step], target[start : start + step]
        third = ahead[u].multiply(ahead[v])
        for ends in (u, v):
            found[order] += np.bincount(ends, third.sum(axis=1), neighbors.size)
        found[order] += third.sum(axis=0)
    return found


def _normalized(adjacency: sp.csr_array) -> tuple[sp.csr_array, NDArray[np.float64]]:
    """Return S and the degrees; isolated nodes have rows of zeros."""
    degree = adjacency.sum(axis=1)
    root = np.where(degree > 0, np.sqrt(degree), np.inf)
    scale = sp.diags_array(1 / root)
    return sp.csr_array(scale @ adjacency @ scale), degree


def _return(adjacency: sp.csr_array) -> _Columns:
    """Return the diagonals of P^2 .. P^8, which are those of S^2 .. S^8.

    S is symmetric, so (S^(a+b))_ii is the inner product of row i of S^a and row i of S^b, and four products with S
    are enough. It is the sum of (S^a g)_i (S^b g)_i over the unit vectors g, a block of them at a time: O(n m). Above
    2^31 nodes times edges it is the mean over 256 vectors of random signs (fixed seed) instead: unbiased, with a
    deviation of at most sqrt(2/256) = 9 % of the value for even steps; O(256 m). Two steps are always exact. Memory is
    O(n) plus one block in both cases.
    """
    S, _ = _normalized(adjacency)
    n = S.shape[0]
    half = max(STEPS) // 2
    exact = n * S.nnz <= _EXACT_PRODUCTS
    count = n if exact else _PROBES
    width = max(1, _ENTRIES // n)
    rng = np.random.default_rng(0)
    matrix = np.zeros((n, len(STEPS)))
    if not exact:
        log.info("Return probabilities of %s nodes are estimated with %d random vectors.", f"{n:,}", _PROBES)
    for start in range(0, count, width):
        size = min(width, count - start)
        powers = [np.eye(n, size, -start) if exact else rng.choice([-1.0, 1.0], size=(n, size)) / np.sqrt(count)]
        for _ in range(half):
            powers.append(S @ powers[-1])
        for column, step in enumerate(STEPS):
            matrix[:, column] += (powers[step // 2] * powers[step - step // 2]).sum(axis=1)
    matrix[:, STEPS.index(2)] = S.multiply(S).sum(axis=1)
    return matrix, [f"return_{step}" for step in STEPS]


def _laplacian(adjacency: sp.csr_array) -> _Columns:
    """Return the eigenvectors of I - S to its 16 smallest eigenvalues above zero (fewer if it has fewer).

    Zero is an eigenvalue once for each connected component, with the eigenvector sqrt(d) inside it. These eigenvectors
    are known, encode only the component, and are deflated, so the number of components does not matter.
    A column is scaled to a root mean square of 1 over the nodes that have an edge, and its sign makes the sum of
    its cubes positive. Where that sum is zero, as on a path, the sign is arbitrary; where eigenvalues coincide, the
    basis of their space is.
    """
    connected = np.flatnonzero(np.diff(adjacency.indptr))
    S, degree = _normalized(adjacency[connected][:, connected])
    n, count = connected.size, 0
    if n:
        count, component = sp.csgraph.connected_components(S, directed=False)
    k = min(COORDINATES, n - count)
    matrix = np.zeros((adjacency.shape[0], k))
    if k:
        share = np.sqrt(degree / np.bincount(component, weights=degree)[component])
        trivial = sp.csr_array((share, (np.arange(n), component)), shape=(n, count))
        # Trivial eigenvectors get the eigenvalue 1 - 3 = -2, below all others.
        vectors = _signed(_leading(S, trivial, k, -3)) * np.sqrt(n)
        matrix = matrix[:, : vectors.shape[1]]
        matrix[connected] = vectors
    return matrix, [f"laplacian_{i + 1}" for i in range(matrix.shape[1])]


def _signed(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Choose the sign of each column so that its sum of cubes is nonnegative."""
    return np.asarray(vectors * np.where((vectors**3).sum(axis=0) < 0, -1, 1))


def _leading(S: sp.csr_array, moved: sp.csr_array, k: int, factor: float) -> NDArray[np.float64]:
    """Return the eigenvectors to the k largest eigenvalues of S + factor M M', largest first, for a thin M."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = S.shape[0]
    if n <= _DENSE_NODES:
        dense = S.toarray() + factor * (moved @ moved.T).toarray()
        return np.asarray(np.linalg.eigh(dense)[1][:, : -k - 1 : -1])
    across = moved.T.tocsr()
    operator = LinearOperator(S.shape, matvec=lambda x: S @ x + factor * (moved @ (across @ x)), dtype=np.float64)
    start = np.random.default_rng(0).normal(size=n)
    try:
        values, vectors = eigsh(operator, k, which="LA", v0=start, ncv=min(n, max(4 * k, 20)), tol=1e-6, maxiter=500)
    except ArpackNoConvergence as stopped:
        values, vectors = stopped.eigenvalues, stopped.eigenvectors
        log.warning("Only %d of %d Laplacian coordinates were found to full precision; kept these.", values.size, k)
    return np.asarray(vectors[:, np.argsort(-values, kind="stable")])
