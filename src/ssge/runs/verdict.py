"""The quality of a fit without labels: a few figures, and two sentences that say what they mean.

- ``held_out_edges``: half of the edges are held out, the model embeds the rest, and AUC says how often the ends of a
  held-out edge are more alike (cosine) than two nodes drawn at random. At 0.5, edges do not join similar nodes.
- ``alignment_features``, ``_propagated``, ``_learned``: how well features, the best way to propagate them and the
  trained encoder tell which nodes are alike in features and neighbors that they were not made of
  (`ssge.ops.held_out`).
- ``alignment_untrained``: of the encoder's output with that of the same encoder before training. Near 1, training has
  changed little. Only encoders of views have this and the former.

The cost is that of a few embeddings, whatever the number of epochs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ssge.evaluation.edges import edge_figures
from ssge.graph import Graph
from ssge.methods import Method
from ssge.ops.adjacency import Adjacency
from ssge.ops.features import Features
from ssge.ops.held_out import Kernel, held_out_scores
from ssge.ops.propagation import FILTERS, all_filtered
from ssge.ops.random import Key
from ssge.views import View

COLLAPSED = 2.0
"""Effective rank below which all rows lie near one line."""
ONE_WAY = -1e-3
"""Uniformity above which all rows point almost the same way: their mean cosine is above 0.9997."""
WEAK = 0.005
"""Alignment of training-free rows below which features are too weak to judge by."""
STRUCTURELESS = 0.55
"""AUC of held-out edges below which edges do not join similar nodes."""
UNCHANGED = 0.99
"""Alignment of a trained encoder with its own beginning, above which training has changed little."""
BEHIND = 0.7
"""Alignment of a trained encoder over that of training-free rows, below which it is behind them."""


def diagnose(method: Method, fresh: Method | None, graph: Graph, prepared: Any) -> dict[str, float]:
    """Return the figures of a fitted method on its graph, as far as the method allows them.

    Parameters
    ----------
    method
        Trained; labels play no part, so a supervised one is left out by the caller.
    fresh
        The same method before training; None if there was none.
    graph, prepared
        Without labels, and as the method has prepared it.
    """
    found: dict[str, float] = {}
    if method.inductive and graph.num_edges > 1:
        found["held_out_edges"] = _held_out_edges(method, graph)
    if not isinstance(prepared, View):
        return found
    return found | _alignments(method, fresh, prepared)


@torch.no_grad()
def _alignments(method: Method, fresh: Method | None, view: View) -> dict[str, float]:
    """Return the scores of features and encoder by held-out data, and whether training has changed the encoder."""
    encoder: Any = method.encoder
    learned = method.trained and hasattr(encoder, "embed")

    def make(features: Features, adjacency: Adjacency, given: torch.Tensor) -> Iterator[torch.Tensor]:
        yield from all_filtered(adjacency, given)
        if learned:
            yield encoder.embed(view._replace(features=features, adjacency=adjacency))

    scores = held_out_scores(view.features, view.adjacency, make).tolist()
    features, *propagated = scores[: len(FILTERS)]
    found = {"alignment_features": features, "alignment_propagated": max(propagated)}
    if learned:
        found["alignment_learned"] = scores[-1]
    if learned and fresh is not None:
        before: Any = fresh.encoder
        found["alignment_untrained"] = Kernel(encoder.embed(view)).alignment(Kernel(before.embed(view)))
    return found


def verdict(figures: Mapping[str, float]) -> str:
    """Return two sentences: what the figures mean, and what to do.

    Examples
    --------
    >>> verdict({"effective_rank": 1.1})[:9]
    'Collapsed'
    """
    rank = figures.get("effective_rank", np.inf)
    edges = figures.get("held_out_edges")
    features, propagated, learned = (
        figures.get(f"alignment_{name}", 0.0) for name in ("features", "propagated", "learned")
    )
    free = max(features, propagated)
    if rank < COLLAPSED:
        return (
            f"Collapsed: the rows vary along {rank:.1f} directions only, so nodes can hardly be distinguished. Try a "
            "smaller learning rate or a larger uniformity weight (ssge), and look for features that are all alike."
        )
    if figures.get("uniformity", -1.0) > ONE_WAY:
        return (
            "One direction: all rows point almost the same way, so their cosines can hardly tell nodes apart. A column "
            "of large values, such as a year, may cause this: scale numbers with --scale standard."
        )
    if figures.get("alignment_untrained", 0.0) > UNCHANGED:
        return (
            "Undertrained: the encoder is almost the same as before training (alignment "
            f"{figures['alignment_untrained']:.3f}). Train for more epochs, or compare with ssge fit --method ssgc."
        )
    if edges is not None and edges < STRUCTURELESS:
        return (
            f"Structureless: nodes that an edge joins are hardly more alike than any two (AUC {edges:.2f} on edges "
            "that were held out). The features carry what there is; expect little from clusters and neighbors."
        )
    if free > WEAK and "alignment_learned" in figures and learned < BEHIND * free:
        better = "plain features" if features > propagated else "propagated features"
        return (
            f"No better than propagation: {better} predict held-out features better than the encoder (alignment "
            f"{free:.3f}, {learned:.3f}). Method ssge uses both by default; method ssgc propagation alone."
        )
    parts = [f"an effective rank of {rank:.0f}"] if np.isfinite(rank) else []
    parts += [] if edges is None else [f"AUC {edges:.2f} on edges that were held out"]
    parts += [f"alignment {learned:.3f} with held-out features, {free:.3f} without training"] if learned else []
    return f"Good: {', '.join(parts) or 'no sign of a problem'}. No labels were used."


@torch.no_grad()
def _held_out_edges(method: Method, graph: Graph) -> float:
    """Return the AUC of held-out edges against pairs drawn at random."""
    source, target = (torch.from_numpy(ends) for ends in graph.edges)
    pair = (torch.minimum(source, target) << 32) | torch.maximum(source, target)  # both directions go together
    kept = Key(0).fold_in("half of the edges").keep(pair, 0.5).numpy()
    if kept.all() or not kept.any():
        return 0.5
    weights = None if graph.weights is None else graph.weights[kept]
    rows = method.embed(replace(graph, edges=graph.edges[:, kept], weights=weights)).double()
    return edge_figures((rows - rows.mean(0)).cpu().numpy(), graph.edges[:, ~kept]).get("edge_auc", 0.5)
