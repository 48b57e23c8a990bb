"""Batches: what the steps of an epoch take, the same for every method."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from ssge.methods import Method
from ssge.ops.collective import world
from ssge.ops.moments import CollapseWarning
from ssge.ops.random import Key
from ssge.views import View


def share(method: Method, prepared: Any) -> Any:
    """Return what this process trains on: all of a prepared graph, or its rows of one that several train on at once.

    Batches of nodes are divided one by one, as they are made.
    """
    whole = getattr(method.config, "batch_nodes", None) is None
    return prepared.shard() if world() > 1 and whole and isinstance(prepared, View) else prepared


def warn_if_small(method: Method, prepared: Any) -> None:
    """Warn that batches are too small for the covariance of their columns to be near that of all nodes."""
    size, width = getattr(method.config, "batch_nodes", None), (getattr(method.config, "widths", ()) or (0,))[-1]
    if not method.of_moments or size is None or getattr(method.config, "covariance_momentum", False):
        return
    rows = min(size, prepared.num_nodes)
    if rows < min(2 * width, prepared.num_nodes):
        warnings.warn(
            f"A batch of {rows} nodes is smaller than twice the width of the embedding, {width}: the covariance of its "
            f"columns is far from that of all nodes. Choose batch_nodes of {2 * width} or more"
            + (", or a covariance_momentum such as 0.9." if hasattr(method.config, "covariance_momentum") else "."),
            CollapseWarning,
            stacklevel=2,
        )


def batches(method: Method, prepared: Any, key: Key, ahead: bool = True) -> Iterator[tuple[Any, Key]]:
    """Yield the batch and the key of each step of an epoch.

    - A prepared graph with batches of its own, such as random walks, is asked for them.
    - With ``batch_nodes`` in the configuration, each node is a seed once, in random order; a step takes the k-hop
      subgraph of its seeds, so that their representations are those in the whole graph. Memory and time of a step
      follow the size of that subgraph. With ``fanouts`` it takes a sample of it.
    - Otherwise there is one step, on the whole graph.

    Parameters
    ----------
    method
        Its encoder says from how many hops a node aggregates.
    prepared
        What ``method.prepare`` returned.
    key
        Of the epoch.
    ahead
        Whether a thread makes the next batch of nodes while a step takes the one before.
    """
    found = _batches(method, prepared, key)
    if ahead and getattr(method.config, "batch_nodes", None) is not None:
        found = _made_ahead(found)
    for step, batch in enumerate(found):
        yield batch, key.at_step(step)


def _batches(method: Method, prepared: Any, key: Key) -> Iterator[Any]:
    if not isinstance(prepared, View):
        return prepared.batches(key)  # type: ignore[no-any-return]
    hops = getattr(method.encoder, "hops", 0)
    size, fanouts = (getattr(method.config, name, None) for name in ("batch_nodes", "fanouts"))
    return prepared.node_batches(size, hops, key, fanouts)


def _made_ahead(made: Iterator[Any]) -> Iterator[Any]:
    """Yield what an iterator yields, which works in a thread while the consumer does."""
    end, context = object(), copy_context()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(context.run, lambda: next(made, end))
        while (batch := coming.result()) is not end:
            coming = thread.submit(context.run, lambda: next(made, end))
            yield batch
