"""Batches: what the steps of an epoch take, the same for every method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ssge.methods import Method
from ssge.ops.collective import world
from ssge.ops.random import Key
from ssge.views import View


def share(method: Method, prepared: Any) -> Any:
    """Return what this process trains on: all of a prepared graph, or its rows of one that several train on at once.

    Batches of nodes are divided one by one, as they are made.
    """
    whole = getattr(method.config, "batch_nodes", None) is None
    return prepared.shard() if world() > 1 and whole and isinstance(prepared, View) else prepared


def batches(method: Method, prepared: Any, key: Key) -> Iterator[tuple[Any, Key]]:
    """Yield the batch and the key of each step of an epoch.

    - A prepared graph with batches of its own, such as random walks, is asked for them.
    - With ``batch_nodes`` in the configuration, each node is a seed once, in random order; a step takes the k-hop
      subgraph of its seeds, so that their representations are those in the whole graph. Memory and time of a step
      follow the size of that subgraph.
    - Otherwise there is one step, on the whole graph.

    Parameters
    ----------
    method
        Its encoder says from how many hops a node aggregates.
    prepared
        What ``method.prepare`` returned.
    key
        Of the epoch.
    """
    for step, batch in enumerate(_batches(method, prepared, key)):
        yield batch, key.at_step(step)


def _batches(method: Method, prepared: Any, key: Key) -> Iterator[Any]:
    if not isinstance(prepared, View):
        return prepared.batches(key)  # type: ignore[no-any-return]
    hops = getattr(method.encoder, "hops", 0)
    return prepared.node_batches(getattr(method.config, "batch_nodes", None), hops, key)
