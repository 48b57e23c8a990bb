"""Missing links of a run: its model is trained again without some edges, to learn which pairs are likely edges."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.graph import Graph
from ssge.records import RunRecord
from ssge.runs.fit import fit
from ssge.runs.plan import plan
from ssge.tasks.links import Evidence, Links, LinkScore, calibrate, likely_links

log = logging.getLogger(__name__)


class Suggestions(NamedTuple):
    """Likely missing links, and how far they can be trusted.

    Attributes
    ----------
    links
        Pairs without an edge, with scores and parts.
    scores
        On held-out edges: of the score that ranks the links, and of simpler ones.
    hits_at
        The k of their hits.
    weights
        How much each part counts in the score, per standard deviation.
    """

    links: Links
    scores: list[LinkScore]
    hits_at: int
    weights: dict[str, float]


def suggest_links(
    graph: Graph,
    vectors: NDArray[np.floating[Any]],
    record: RunRecord | None,
    k: int = 20,
    nodes: NDArray[np.int64] | None = None,
    share: float = 0.1,
    seed: int = 0,
) -> Suggestions:
    """Suggest pairs of nodes that are likely to have an edge that the graph lacks.

    Parameters
    ----------
    graph
        The graph, with all edges that are known.
    vectors
        Its embedding.
    record
        Of the run that made the embedding: it is trained again, with the same settings, without the held-out edges.
        Without a record the vectors serve as they are, although they may have seen these edges, and the features of
        the graph do not count.
    k, nodes
        See `ssge.tasks.links.likely_links`.
    share, seed
        See `ssge.tasks.links.hold_out`.
    """

    def embed(left: Graph) -> NDArray[np.floating[Any]]:
        if record is None:
            log.warning("The vectors may have seen the held-out edges, so the figures may be too high.")
            return vectors
        log.info("Training again without the held-out edges; the run took %.1f s.", record.seconds)
        precision: Any = record.precision
        again = plan(left.info, record.method, settings=record.config, seed=record.seed, precision=precision)
        return fit(left, again).embedding.vectors

    model, scores, hits_at = calibrate(graph, embed, share, seed, features=record is not None)
    evidence = Evidence(graph, vectors, features=record is not None)
    return Suggestions(likely_links(evidence, model, k, nodes), scores, hits_at, model.weights)
