"""Likely missing edges: pairs of nodes scored by several kinds of evidence, calibrated on edges that were held out.

A pair has these parts, each computed without the held-out edges:

- ``embedding``: cosine of the two vectors, as `ssge neighbors` shows it;
- ``features``: cosine of the propagated features A^2 X, columns centered;
- ``adamic_adar``: sum over common neighbors v of 1 / log(degree of v), as log(1 + x);
- ``low_degree``, ``high_degree``: log(1 + degree) of the two nodes.

The score is that of a logistic regression on the parts. It is learned on a tenth of the edges and as many random pairs
without an edge, and judged on another tenth; the model embeds the graph without either. Since both kinds of pairs are
as many, its odds are a ratio: odds of 50 mean that pairs like this one are 50 times as frequent among edges as among
random pairs. The number of missing edges is unknown, so this is not the probability of an edge. Directions and
weights of edges play no part in the score.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.features import renew_structure
from ssge.ops.neighbors import comparable, nearest

log = logging.getLogger(__name__)

Pairs: TypeAlias = "NDArray[np.int64]"
"""2 x m positions of nodes, the lower one first."""

FEWEST = 10
"""Edges that each of the two held-out sets must have."""
HITS = 50

_PAIRS = 1 << 15  # compared at once
_FILLED = 0.25  # share of nonzero entries above which a dense matrix takes less time and memory


class Sample(NamedTuple):
    """Pairs of nodes, and whether each is an edge."""

    pairs: Pairs
    linked: NDArray[np.bool_]


class Held(NamedTuple):
    """A graph without some of its edges, and these, with as many random pairs, to calibrate on and to test on."""

    graph: Graph
    calibration: Sample
    test: Sample


class LinkScore(NamedTuple):
    """How well one score separates held-out edges from random pairs.

    Attributes
    ----------
    name
        Of the way of scoring.
    auc
        Chance that an edge is scored above another pair; ties count half.
    hits
        Share of the edges that are scored above the k-th best of the other pairs.
    """

    name: str
    auc: float
    hits: float


class Links(NamedTuple):
    """Pairs without an edge, the likeliest first, with their odds and parts."""

    pairs: Pairs
    odds: NDArray[np.float64]
    parts: dict[str, NDArray[np.float64]]

    @property
    def score(self) -> NDArray[np.float64]:
        """The odds as a share, between 0 and 1."""
        return np.asarray(self.odds / (1 + self.odds))


def hold_out(graph: Graph, share: float = 0.1, seed: int = 0) -> Held:
    """Hold out a share of the edges for calibration and another one for the test.

    Features that were computed from edges are computed again from those that are left.

    Parameters
    ----------
    graph
        An edge in both directions counts once, and is held out in both.
    share
        Of the edges, in each of the two sets.
    seed
        Decides which edges, and which other pairs.
    """
    if not 0 < share < 0.5:
        raise InputError(f"share must be above 0 and below 0.5; received {share}.")
    n, key = graph.num_nodes, _keys(graph.edges, graph.num_nodes)
    every = np.unique(key)
    count = round(share * every.size)
    if count < FEWEST:
        raise InputError(
            f"{graph.name} must have {round(FEWEST / share):,} undirected edges or more, to hold some of them out; "
            f"received {every.size:,}."
        )
    if n * (n - 1) // 2 - every.size < 4 * count:
        raise InputError(f"{graph.name} links almost all pairs of its nodes: there is nothing to suggest.")
    rng = np.random.default_rng(seed)
    held = rng.choice(every, 2 * count, replace=False)
    others = _non_edges(every, n, 2 * count, rng)
    kept = ~np.isin(key, held)
    weights = None if graph.weights is None else graph.weights[kept]
    left = renew_structure(replace(graph, edges=graph.edges[:, kept], weights=weights))

    def sample(part: slice) -> Sample:
        pairs = _pairs(np.concatenate([held[part], others[part]]), n)
        return Sample(pairs, np.arange(2 * count) < count)

    return Held(left, sample(slice(count)), sample(slice(count, None)))


def propagated(graph: Graph, hops: int = 2) -> Any:
    """Return A^hops X, with A the symmetrically normalized adjacency with self-loops.

    `ssge.ops.propagation` would make sparse features dense; here they stay sparse until a quarter is filled.
    """
    n, weights = graph.num_nodes, graph.weights
    given = np.ones(graph.num_edges) if weights is None else weights
    adjacency = sp.csr_array((given, (graph.edges[1], graph.edges[0])), shape=(n, n)) + sp.eye_array(n, format="csr")
    incoming, outgoing = adjacency.sum(axis=1) ** -0.5, adjacency.sum(axis=0) ** -0.5
    scaled = (sp.diags_array(incoming) @ adjacency @ sp.diags_array(outgoing)).astype(graph.features.dtype)
    features = graph.features
    for _ in range(hops):
        features = scaled @ features
        if sp.issparse(features) and features.nnz > _FILLED * math.prod(features.shape):
            features = features.toarray()
    return features


class Evidence:
    """The evidence for an edge between two nodes: embedding, features and neighborhoods.

    Parameters
    ----------
    graph
        Nodes, edges and features.
    vectors
        Their embedding.
    features
        Whether the features count; False for a graph whose features are placeholders.
    """

    def __init__(self, graph: Graph, vectors: NDArray[np.floating[Any]], features: bool = True) -> None:
        n = graph.num_nodes
        one = np.ones(graph.num_edges)
        edges = sp.csr_array((one, (graph.edges[0], graph.edges[1])), shape=(n, n))
        self.adjacency = (edges.maximum(edges.T)).tocsr()
        self.degree = np.asarray(self.adjacency.sum(axis=1))
        rarity = 1 / np.log(np.maximum(self.degree, 2))
        self.rarity = (self.adjacency @ sp.diags_array(rarity)).tocsr()
        self.vectors = vectors
        self._rows = comparable(vectors, "cosine")
        self._features = _centered_cosine(propagated(graph)) if features else None

    def parts(self, pairs: Pairs) -> dict[str, NDArray[np.float64]]:
        """Return the parts of some pairs, by name."""
        blocks = [self._parts(pairs[:, at : at + _PAIRS]) for at in range(0, max(1, pairs.shape[1]), _PAIRS)]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def _parts(self, pairs: Pairs) -> dict[str, NDArray[np.float64]]:
        i, j = pairs
        degrees = np.log1p(np.sort(self.degree[pairs], axis=0))
        found = {"embedding": _row_products(self._rows[i], self._rows[j])}
        if self._features is not None:
            found["features"] = self._features(pairs)
        return found | {
            "adamic_adar": np.log1p(_row_products(self.rarity[i], self.adjacency[j])),
            "low_degree": degrees[0],
            "high_degree": degrees[1],
        }

    def common_neighbors(self, pairs: Pairs) -> NDArray[np.float64]:
        """Return how many neighbors the two nodes of each pair share."""
        return _row_products(self.adjacency[pairs[0]], self.adjacency[pairs[1]])

    def linked(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return whether the two nodes of each pair have an edge, or are one."""
        found = np.asarray(self.adjacency[pairs[0], pairs[1]] > 0, dtype=bool).ravel()
        known: NDArray[np.bool_] = found | (pairs[0] == pairs[1])
        return known


class LinkModel:
    """A logistic regression on standardized parts, which separates edges from other pairs.

    Attributes
    ----------
    weights
        Of each part, per standard deviation of it: how much it counts.
    """

    def __init__(self, parts: Mapping[str, NDArray[np.float64]], linked: NDArray[np.bool_]) -> None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        self._classifier = make_pipeline(StandardScaler(), LogisticRegression())
        self._classifier.fit(np.stack(list(parts.values()), axis=1), linked)
        self.weights: dict[str, float] = dict(zip(parts, self._classifier[-1].coef_[0].tolist(), strict=True))

    def odds(self, parts: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return how many times as frequent pairs like each one are among edges as among random pairs."""
        matrix = np.stack([parts[name] for name in self.weights], axis=1)
        return np.asarray(np.exp(self._classifier.decision_function(matrix)))


def calibrate(
    graph: Graph,
    embed: Callable[[Graph], NDArray[np.floating[Any]]],
    share: float = 0.1,
    seed: int = 0,
    features: bool = True,
) -> tuple[LinkModel, list[LinkScore], int]:
    """Fit the score of a pair on held-out edges, and evaluate it on others, beside simpler scores.

    Parameters
    ----------
    graph
        The graph.
    embed
        Returns vectors for the nodes of a graph. It is given the graph without the held-out edges.
    share, seed, features
        See `hold_out` and `Evidence`.

    Returns
    -------
    The model; how well it and the simpler scores separate the test edges from other pairs; the k of their hits.
    """
    held = hold_out(graph, share, seed)
    evidence = Evidence(held.graph, embed(held.graph), features)
    known, linked = evidence.parts(held.calibration.pairs), held.calibration.linked
    model = LinkModel(known, linked)
    without = LinkModel({name: part for name, part in known.items() if name != "embedding"}, linked)
    parts = evidence.parts(held.test.pairs)
    ways = {
        "links": model.odds(parts),
        "links without the embedding": without.odds(parts),
        "embedding": parts["embedding"],
    }
    if "features" in parts:
        ways["propagated features"] = parts["features"]
    ways |= {"Adamic-Adar": parts["adamic_adar"], "common neighbors": evidence.common_neighbors(held.test.pairs)}
    k = min(HITS, held.test.linked.sum() // FEWEST)
    return model, [_evaluated(name, score, held.test.linked, k) for name, score in ways.items()], int(k)


def likely_links(
    evidence: Evidence, model: LinkModel, k: int, nodes: NDArray[np.int64] | None = None, candidates: int = 20
) -> Links:
    """Return the k likeliest pairs without an edge, overall or for each of some nodes.

    Parameters
    ----------
    evidence, model
        Of the whole graph, and from `calibrate`.
    k
        Pairs per node, or overall.
    nodes
        Positions. For each of them all other nodes are compared; it comes first in its pairs.
    candidates
        Without ``nodes``: for each node, so many of the nearest in the embedding, and of those with the highest
        Adamic-Adar, are compared. O(n^2 d) time, like all neighbors of all nodes.
    """
    if k < 1:
        raise InputError(f"k must be 1 or more; received {k}.")
    if nodes is None:
        return _best(evidence, model, _candidates(evidence, candidates), k)
    n = evidence.degree.size
    others = np.arange(n)
    each = [_best(evidence, model, np.stack([np.full(n, node), others]), k) for node in nodes]
    pairs, odds = np.concatenate([one.pairs for one in each], axis=1), np.concatenate([one.odds for one in each])
    return Links(pairs, odds, {name: np.concatenate([one.parts[name] for one in each]) for name in each[0].parts})


def _best(evidence: Evidence, model: LinkModel, pairs: Pairs, k: int) -> Links:
    pairs = pairs[:, ~evidence.linked(pairs)]
    parts = evidence.parts(pairs)
    odds = model.odds(parts) if pairs.size else np.empty(0)
    best = np.lexsort((pairs[1], pairs[0], -odds))[:k]
    return Links(pairs[:, best], odds[best], {name: values[best] for name, values in parts.items()})


def _candidates(evidence: Evidence, count: int) -> Pairs:
    n = evidence.degree.size
    near = nearest(evidence.vectors, np.arange(n), min(count, n - 1)).position
    found = [_keys(np.stack([np.repeat(np.arange(n), near.shape[1]), near.ravel()]), n)]
    step = max(1, (1 << 22) // max(1, int(evidence.degree.max(initial=0)) ** 2))
    for start in range(0, n, step):
        rows = evidence.rarity[start : start + step] @ evidence.adjacency
        for row in range(rows.shape[0]):
            span = slice(rows.indptr[row], rows.indptr[row + 1])
            best = np.argsort(-rows.data[span], kind="stable")[: count + 1 + int(evidence.degree[start + row])]
            other = rows.indices[span][best]
            found.append(_keys(np.stack([np.full(other.size, start + row), other]), n))
    return _pairs(np.unique(np.concatenate(found)), n)


def _evaluated(name: str, score: NDArray[np.float64], linked: NDArray[np.bool_], k: int) -> LinkScore:
    from sklearn.metrics import roc_auc_score

    bound = np.sort(score[~linked])[-k]
    return LinkScore(name, float(roc_auc_score(linked, score)), float((score[linked] > bound).mean()))


def _keys(pairs: Pairs, n: int) -> NDArray[np.int64]:
    """Return one number for each pair, whatever its direction."""
    return np.asarray(pairs.min(axis=0).astype(np.int64) * n + pairs.max(axis=0))


def _pairs(keys: NDArray[np.int64], n: int) -> Pairs:
    return np.stack(np.divmod(keys, n))


def _non_edges(edges: NDArray[np.int64], n: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return different random pairs of different nodes that have no edge."""
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        drawn = rng.integers(0, n, size=(2, 2 * count))
        key = _keys(drawn[:, drawn[0] != drawn[1]], n)
        key = np.concatenate([found, key[~np.isin(key, edges)]])
        found = key[np.sort(np.unique(key, return_index=True)[1])]
    return found[:count]


def _row_products(a: Any, b: Any) -> NDArray[np.float64]:
    """Return the inner products of the rows of two sparse or two dense matrices."""
    if sp.issparse(a):
        return np.asarray(a.multiply(b).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", a, b, dtype=np.float64))


def _centered_cosine(rows: Any) -> Callable[[Pairs], NDArray[np.float64]]:
    """Return a function for cosines of rows minus the mean row.

    A sparse matrix stays sparse, since (x - m)(y - m) = xy - xm - ym + mm.
    """
    mean = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
    shift = np.asarray(rows @ mean, dtype=np.float64).ravel() - mean @ mean / 2
    squares = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
    norm = np.sqrt(np.maximum(np.asarray(squares, dtype=np.float64).ravel() - 2 * shift, np.finfo(np.float32).tiny))

    def cosine(pairs: Pairs) -> NDArray[np.float64]:
        product = _row_products(rows[pairs[0]], rows[pairs[1]]) - shift[pairs].sum(axis=0)
        return np.asarray(np.clip(product / norm[pairs].prod(axis=0), -1, 1))

    return cosine
