"""Loading of datasets by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssge.datasets import benchmarks, builtin, imports
from ssge.datasets.facts import DATASETS, Facts
from ssge.datasets.store import obtain
from ssge.errors import InputError, UnknownNameError
from ssge.graph import Graph
from ssge.io.features import compact

_LOADERS: dict[str, Callable[..., Graph]] = {
    "planetoid": benchmarks.planetoid,
    "npz": benchmarks.gnn_benchmark,
    "wikics": benchmarks.wikics,
    "ogb": benchmarks.ogb,
    "imports": imports.read,
    "digits": builtin.digits,
    "karate": builtin.karate,
    "sbm": builtin.sbm,
}


def load(name: str, root: str | Path | None = None, **options: Any) -> Graph:
    """Load a dataset by name, as a checked graph with labels and, where it has any, public splits.

    Parameters
    ----------
    name
        A name in `DATASETS`; case, dash and underscore do not matter. Options may follow a colon, as a
        command line would give them: ``"sbm:nodes=1000,classes=5"``.
    root
        Folder of raw files; default the environment variable ``SSGE_DATA``, then the cache folder. What is in
        neither is downloaded into the cache folder.
    **options
        Options of the dataset; they win over those in ``name``.

    Examples
    --------
    >>> load("karate")
    Graph('karate': 34 nodes, 156 directed edges, 34 features, 2 classes)
    """
    name, _, inline = name.partition(":")
    return from_facts(DATASETS[name.strip()], root, **{**_parsed(inline), **options})


def from_facts(facts: Facts, root: str | Path | None = None, **options: Any) -> Graph:
    """Load the dataset that ``facts`` describe; `load` is this for the datasets of the catalog."""
    loader = _LOADERS[facts.format]
    parameters = inspect.signature(loader).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    checked = {key: _checked(key, value, defaults, facts) for key, value in options.items()}
    graph = loader(facts, obtain(facts, root), **checked)
    for size in ("num_nodes", "num_edges", "num_features", "num_classes") if facts.files else ():
        expected, found = getattr(facts, size), getattr(graph, size)
        if expected not in (None, found):  # the only check of files without a known checksum
            raise InputError(f"{facts.title}: {size} must be {expected:,}; its files give {found:,}.")
    return replace(graph, features=compact(graph.features), class_names=graph.class_names or facts.class_names)


def _parsed(text: str) -> dict[str, float]:
    """Read ``key=number,key=number``."""
    options: dict[str, float] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, _, value = (part.strip() for part in item.partition("="))
        try:
            options[key] = int(value) if value.lstrip("+-").isdecimal() else float(value)
        except ValueError:
            raise InputError(f"Options of a dataset are name:key=number,key=number; received {item!r}.") from None
    return options


def _checked(key: str, value: Any, defaults: dict[str, Any], facts: Facts) -> Any:
    if not defaults:
        raise InputError(f"{facts.title} has no options; received {key!r}.")
    if key not in defaults:
        raise UnknownNameError(f"option of {facts.title}:", key, defaults)
    wanted = type(defaults[key])
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or (wanted is int and value != int(value)):
        raise InputError(f"{key} must be {'a whole number' if wanted is int else 'a number'}; received {value!r}.")
    return wanted(value)
