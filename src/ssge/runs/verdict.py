"""What a fit is worth, judged without labels: a few figures, and two sentences that say what they mean.

- ``held_out_edges``: half of the edges are taken out, the model embeds the rest, and AUC says how often the ends of an
  edge that was taken out are more alike (cosine) than two nodes drawn at random. 0.5 means that edges join strangers.
- ``alignment_features``, ``_hops``, ``_learned``, ``_untrained``: how well features, their mean over 8 hops, the
  trained encoder and the same encoder before training tell which nodes have similar features that they were not made
  of (`ssge.ops.held_out`). Only encoders of views have the last two.

The cost is that of a few embeddings, whatever the number of epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ssge.graph import Graph
from ssge.methods import Method
from ssge.ops.held_out import Maker, held_out_alignments
from ssge.ops.propagation import mean_of_hops
from ssge.ops.random import Key
from ssge.views import View

_PAIRS = 20_000
_HOPS = 8
COLLAPSED = 2.0
"""Effective rank below which all rows lie near one line."""
WEAK = 0.005
"""Alignment of training-free rows below which features are too weak to judge by."""
STRANGERS = 0.55
"""AUC of held-out edges below which edges do not join similar nodes."""
GAINED = 1.05
"""Alignment of a trained encoder over that of an untrained one, below which training has added nothing."""
BEHIND = 0.8
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
    blocks = getattr(method, "blocks", None)
    known = {} if blocks is None else dict(zip(blocks.names, blocks.alignments.tolist(), strict=True))
    makers: dict[str, Maker] = {
        "features": lambda _, given: given,
        "hops": lambda _, given: mean_of_hops(prepared.adjacency, given, _HOPS, 1 / (_HOPS + 1)),
    }
    if method.trained and hasattr(method.encoder, "embed"):
        makers["learned"] = _maker(method, prepared)
        if fresh is not None:
            makers["untrained"] = _maker(fresh, prepared)
    wanted = [name for name in makers if name not in known]
    figures = held_out_alignments(prepared.features, [makers[name] for name in wanted]) if wanted else []
    known |= {name: max(pair) for name, pair in zip(wanted, figures, strict=True)}
    return found | {f"alignment_{name}": known[name] for name in makers}


def verdict(figures: Mapping[str, float]) -> str:
    """Return two sentences: what the figures mean, and what to do.

    Examples
    --------
    >>> verdict({"effective_rank": 1.1})[:9]
    'Collapsed'
    """
    rank = figures.get("effective_rank", np.inf)
    edges = figures.get("held_out_edges")
    features, hops, learned, untrained = (
        figures.get(f"alignment_{name}", 0.0) for name in ("features", "hops", "learned", "untrained")
    )
    free = max(features, hops)
    told = free > WEAK
    if rank < COLLAPSED:
        return (
            f"Collapsed: the rows vary along {rank:.1f} directions only, so nodes can hardly be told apart. Try a "
            "larger uniformity weight or a smaller learning rate, and look for features that are all alike."
        )
    if told and "alignment_untrained" in figures and learned < GAINED * untrained and learned < free:
        return (
            f"Undertrained: the encoder says no more about held-out features than before training (alignment "
            f"{learned:.3f}, {untrained:.3f} before). Train for more epochs, or compare with ssge fit --method ssgc."
        )
    if edges is not None and edges < STRANGERS:
        return (
            f"Structureless: nodes that an edge joins are hardly more alike than any two (AUC {edges:.2f} on edges "
            "that were held out). The features carry what there is; expect little from clusters and neighbors."
        )
    if told and "alignment_learned" in figures and learned < BEHIND * free:
        better = "plain features" if features > hops else "features averaged over hops"
        return (
            f"No better than propagation: {better} say more about held-out features than the encoder (alignment "
            f"{free:.3f}, {learned:.3f}). The blocks beside it hold them; ssge fit --method ssgc gives them alone."
        )
    parts = [f"an effective rank of {rank:.0f}"] if np.isfinite(rank) else []
    parts += [] if edges is None else [f"AUC {edges:.2f} on edges that were held out"]
    parts += [f"alignment {learned:.3f} with held-out features, {free:.3f} without training"] if learned else []
    return f"Good: {', '.join(parts) or 'nothing speaks against it'}. None of this has seen a label."


def _maker(method: Method, view: View) -> Maker:
    encoder: Any = method.encoder
    return lambda masked, _: encoder.embed(view._replace(features=masked))


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
    rows = torch.nn.functional.normalize(rows - rows.mean(0), dim=1)
    rng = np.random.default_rng(0)
    held = graph.edges[:, ~kept]
    held = held[:, rng.permutation(held.shape[1])[:_PAIRS]]
    drawn = rng.integers(graph.num_nodes, size=held.shape)
    drawn = drawn[:, drawn[0] != drawn[1]]
    joined, others = ((rows[ends[0]] * rows[ends[1]]).sum(1).numpy() for ends in (held, drawn))
    return _auc(joined, others)


def _auc(above: np.ndarray, below: np.ndarray) -> float:
    """Return the probability that a value of the first kind is larger than one of the second; ties count half."""
    ordered = np.sort(below)
    ranks = np.searchsorted(ordered, above, "left") + np.searchsorted(ordered, above, "right")
    return float(ranks.mean() / (2 * max(below.size, 1)))
