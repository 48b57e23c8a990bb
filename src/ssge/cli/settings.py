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
TYPES: dict[str, Any] = {"integer": int, "number": float, "boolean": bool}


@cache
def settings() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the settings of each method, each in the words of JSON Schema."""
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(FILE.read_text("utf-8"))
    return found


def settings_class(method: str) -> Any:
    """Return a class with a field for each setting of a method, None where it is not given.

    A method that the file does not know yet is imported.
    """
    found = next((found for name, found in settings().items() if plain(name) == plain(method)), None)
    if found is None:
        from ssge.methods import METHODS

        found = described(METHODS[method])
    return _class(found)


def all_settings() -> Any:
    """Return a class with the settings of all methods."""
    return _class({name: facts for found in settings().values() for name, facts in found.items()})


def _class(found: dict[str, dict[str, Any]]) -> Any:
    fields = []
    for name, facts in found.items():
        default = " ".join(map(str, facts["default"])) if isinstance(facts["default"], list) else facts["default"]
        shown = "" if default is None or default is False else f" [default: {default}]"
        how = Parameter(help=facts["description"] + shown)
        fields.append((name, Annotated[_type(facts) | None, how], field(default=None)))
    return make_dataclass("Settings", fields, namespace={"__module__": __name__})  # else it passes for a builtin


def _type(facts: dict[str, Any]) -> Any:
    """Return the type of a setting."""
    facts = facts.get("anyOf", [facts])[0]  # the other one is null
    if facts["type"] == "array":
        entry: Any = _type(facts.get("items") or facts["prefixItems"][0])
        return tuple[entry, ...]
    return Literal[tuple(facts["enum"])] if "enum" in facts else TYPES[facts["type"]]


def described(method: Any) -> dict[str, dict[str, Any]]:
    """Return the settings of a method, from its class."""
    from ssge.graph import GraphInfo

    found: dict[str, dict[str, Any]] = method.Config.model_json_schema()["properties"]
    for name in method.default_config(GraphInfo(1000, 5000, 100)):
        found[name]["default"] = "follows the graph"
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
