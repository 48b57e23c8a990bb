"""The plan of a run: method, settings, seed and device, resolved in one place for the command line and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import ValidationError

from ssge.errors import InputError, UnknownNameError
from ssge.graph import Graph, GraphInfo
from ssge.io.graph_folder import StoredGraph
from ssge.io.sources import explained
from ssge.methods import METHODS, BaseConfig, Method
from ssge.runs.recipes import Recipe, load_recipe, read_toml
from ssge.training.checkpoint import build
from ssge.training.device import Precision, choose_device, choose_precision

_CPU = torch.device("cpu")


class Start(NamedTuple):
    """A trained model that a run starts from, and the name of its origin for the record."""

    method: Method
    name: str


@dataclass(frozen=True)
class Plan:
    """What a run will do; `ssge.runs.fit.fit` does it.

    Attributes
    ----------
    method, config
        The method and its resolved settings.
    seed
        Of the initial weights and of every random draw.
    device, precision
        Where and in which precision to train: ``bf16``, ``float32`` or ``float64``.
    recipe
        Name of the recipe that the settings came from, if any.
    start
        The model whose weights training starts from, if any.
    """

    method: type[Method]
    config: BaseConfig
    seed: int = 0
    device: torch.device = _CPU
    precision: str = "float32"
    recipe: str | None = None
    start: Start | None = None

    def build(self, graph: Graph | StoredGraph) -> Method:
        """Build the method for a graph, with fresh weights or those of the start."""
        settings, dtype = self.config.model_dump(), torch.float64 if self.precision == "float64" else torch.float32
        method = build(self.method.name, settings, info_for(self.method, graph), self.seed, dtype, self.device)
        method.bf16 = self.precision == "bf16"
        if self.start is not None:
            with explained("The model to start from does not fit"):
                method.load_state_dict(self.start.method.state_dict())
        return method


def plan(
    info: GraphInfo,
    method: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    config_file: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    start: Start | None = None,
    seed: int = 0,
    device: str = "cpu",
    precision: Precision = "float32",
) -> Plan:
    """Resolve what a run will do on a graph of some size.

    Settings are layered, later ones win: the method's defaults for the graph (or those of the start, or the fixed ones
    where a recipe is given), the recipe, the file, ``settings``. Where widths are given, the embedding is the last
    layer alone, unless blocks are given too.

    Parameters
    ----------
    info
        Sizes of the graph.
    method
        Name of the method; default: that of the start or of the recipe, else ``ssge``.
    recipe
        A recipe, its name, or the path of a TOML file.
    config_file
        TOML file of settings, such as the ``config.toml`` of a run.
    settings
        Settings by name; those that are None count as not given.
    start
        A trained model to start from.
    seed, device, precision
        See `Plan`.
    """
    chosen = load_recipe(recipe) if isinstance(recipe, str) else recipe
    name = choose_method(method, chosen, start)
    cls = METHODS[name]
    if isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise InputError(f"seed must be 0..2^63-1; received {seed}.")
    base = start.method.config.model_dump() if start else {} if chosen else cls.default_config(info)
    layers = [
        chosen.config if chosen else {},
        read_toml(config_file) if config_file else {},
        {key: value for key, value in (settings or {}).items() if value is not None},
    ]
    if start is None and any("widths" in layer for layer in layers):
        base.pop("blocks", None)  # whoever names the widths names the columns of the embedding
    layers.insert(0, base)
    config = resolve_config(name, *layers)
    place = choose_device(device)
    return Plan(
        cls, config, int(seed), place, choose_precision(precision, place), chosen.name if chosen else None, start
    )


def choose_method(method: str | None, recipe: Recipe | None, start: Start | None = None) -> str:
    """Return the name of the method, which recipe and start must agree on."""
    fixed = start.method.name if start else recipe.method if recipe else None
    source = start.name if start else recipe.name if recipe else ""
    if fixed is None:
        return METHODS.canonical(method or "ssge")
    if method is not None and METHODS.canonical(method) != fixed:
        raise InputError(f"method must be {fixed}, that of {source}; received {method}.")
    cls = METHODS[fixed]
    if start is not None and not cls.inductive:
        raise InputError(
            f"{cls.title} has vectors only for the nodes of the graph it was trained on: it cannot start from "
            "another run; train from scratch."
        )
    if start is not None and cls.supervised:
        raise InputError(f"{cls.title} cannot start from another run, which has seen labels that may be tested here.")
    return fixed


def resolve_config(method: str, *layers: Mapping[str, Any]) -> BaseConfig:
    """Lay settings over a method's fixed defaults, later layers over earlier ones; unknown keys are named."""
    cls = METHODS[method].Config
    merged: dict[str, Any] = {}
    for layer in layers:
        for key in layer:
            if key not in cls.model_fields:
                raise UnknownNameError(f"setting of {METHODS.canonical(method)}", key, cls.model_fields)
        merged |= layer
    try:
        return cls(**merged)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where}: {first['msg']}; received {first['input']!r}.") from None


def info_for(method: type[Method], graph: Graph | StoredGraph) -> GraphInfo:
    """Return the sizes that a method is built from; only a supervised method gets the number of classes."""
    if not method.supervised:
        return graph.info
    if graph.labels is None or isinstance(graph, StoredGraph):
        raise InputError(f"{graph.name} has no labels, and {method.title} learns from some.")
    return graph.info._replace(num_classes=graph.num_classes)
