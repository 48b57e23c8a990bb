"""Settings of all methods as flags, without importing a method, and so without torch.

``settings.json`` is made of the configuration classes by ``python -m ssge.cli.settings``; a test compares the two.
"""

from __future__ import annotations

import json
from dataclasses import field, make_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ssge.registry import plain

FILE = Path(__file__).with_name("settings.json")
TYPES = {"int": int, "float": float, "bool": bool}


@cache
def settings() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the settings of each method: type, whether several, choices, default and help of each."""
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(FILE.read_text("utf-8"))
    return found


def settings_class(method: str) -> Any:
    """Return a class with a field for each setting of a method, None where it is not given.

    A method that the file does not know yet is imported.
    """
    known = {plain(name): found for name, found in settings().items()}
    if plain(method) in known:
        return _class({name: _flag(facts) for name, facts in known[plain(method)].items()})
    from ssge.methods import METHODS

    return _class({name: _flag(facts) for name, facts in described(METHODS[method]).items()})


def all_settings() -> Any:
    """Return a class with the settings of all methods, as words."""
    kinds: dict[str, Any] = {}
    for found in settings().values():
        for name, facts in found.items():
            kinds[name] = bool if facts["type"] == "bool" else list[str] if facts["several"] else str
    return _class({name: kind | None for name, kind in kinds.items()})


def _class(annotations: dict[str, Any]) -> Any:
    fields = [(name, kind, field(default=None)) for name, kind in annotations.items()]
    return make_dataclass("Settings", fields, namespace={"__module__": __name__})  # else it passes for a builtin


def _flag(facts: dict[str, Any]) -> Any:
    kind: Any = Literal[tuple(facts["choices"])] if facts["choices"] else TYPES[facts["type"]]
    kind = tuple[kind, ...] if facts["several"] else kind
    default = facts["default"]
    if isinstance(default, list):
        default = " ".join(map(str, default))
    shown = "" if default is None or default is False else f" [default: {default}]"
    return Annotated[kind | None, Parameter(help=facts["help"] + shown)]


def described(method: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of a method, from its class."""
    from types import NoneType
    from typing import get_args, get_origin

    from ssge.graph import GraphInfo

    followed = method.default_config(GraphInfo(1000, 5000, 100))
    found = {}
    for name, facts in method.Config.model_fields.items():
        kind = facts.annotation
        if NoneType in get_args(kind):
            kind = next(part for part in get_args(kind) if part is not NoneType)
        several = get_origin(kind) is tuple
        kind = get_args(kind)[0] if several else kind
        choices = list(get_args(kind)) if get_origin(kind) is Literal else []
        if not choices and get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        default = "follows the graph" if name in followed else facts.default
        found[name] = {
            "type": "str" if choices else kind.__name__,
            "several": several,
            "choices": choices,
            "default": list(default) if isinstance(default, tuple) else default,
            "help": facts.description or "",
        }
    return found


def text_of_all() -> str:
    """Return the settings of all methods as JSON, one per line."""
    from ssge.methods import METHODS

    parts = []
    for name in METHODS:
        lines = [f"  {json.dumps(key)}: {json.dumps(facts)}" for key, facts in described(METHODS[name]).items()]
        parts.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text_of_all(), "utf-8")
