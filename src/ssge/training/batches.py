"""Mini-batches: the input of the steps of an epoch, the same for every method."""

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
    """Return the part of a prepared graph for this process: all of it, or in distributed training some rows.

    Mini-batches are divided when they are created.
    """
    whole = getattr(method.config, "batch_nodes", None) is None
    return prepared.shard() if world() > 1 and whole and isinstance(prepared, View) else prepared


def warn_if_small(method: Method, prepared: Any) -> None:
    """Warn if mini-batches are too small to estimate the covariance of all nodes."""
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

    - A prepared graph with its own ``batches``, such as random walks, provides them.
    - With ``batch_nodes`` in the configuration, each node is a seed once, in random order; a step uses the k-hop
      subgraph of its seeds, so that their representations are those in the whole graph. Memory and time of a step
      depend on the size of that subgraph. With ``fanouts`` it uses a sample of it.
    - Otherwise there is one full-batch step.

    Parameters
    ----------
    method
        Its encoder determines the number of hops.
    prepared
        What ``method.prepare`` returned.
    key
        Of the epoch.
    ahead
        Whether a thread prepares the next mini-batch during a step.
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
    """Yield the items of an iterator that runs ahead in a thread."""
    end, context = object(), copy_context()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(context.run, lambda: next(made, end))
        while (batch := coming.result()) is not end:
            coming = thread.submit(context.run, lambda: next(made, end))
            yield batch
