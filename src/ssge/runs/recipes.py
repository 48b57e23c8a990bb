"""Recipes: a method's settings on a dataset, with the published figures, one TOML file each."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ConfigDict, ValidationError

from ssge.errors import InputError, one_line
from ssge.registry import Registry

_MOST_BYTES = 1 << 20
_MOST_DOTS = 200  # the time that tomllib takes grows with the square of the parts of a key


class Recipe(BaseModel):
    """Settings and published figures (per cent) of one method on one dataset."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    method: str
    dataset: str
    protocol: str = "paper"
    note: str = ""
    config: dict[str, Any] = {}
    published: dict[str, float] = {}


@cache
def recipes() -> Registry[Path]:
    """Return the files of all recipes that come with the package, by name ``method/dataset``."""
    found: Registry[Path] = Registry("recipe")
    folder = Path(str(resources.files("ssge") / "runs" / "recipes"))
    for path in sorted(folder.glob("*/*.toml")):
        found.add(f"{path.parent.name}/{path.stem}", path)
    return found


def load_recipe(name: str) -> Recipe:
    """Load a recipe by name (``ssge/cora``) or from a TOML file."""
    own = Path(name)
    path, name = (own, own.stem) if own.suffix == ".toml" else (recipes()[name], recipes().canonical(name))
    try:
        return Recipe(name=name, **read_toml(path))
    except (ValidationError, TypeError) as error:
        raise InputError(
            f"{path} is not a recipe: "
            + (f"{error.errors()[0]['loc'][0]}: {error.errors()[0]['msg']}; " if hasattr(error, "errors") else "")
            + f"its keys are {', '.join(key for key in Recipe.model_fields if key != 'name')}; "
            "its name is that of the file."
        ) from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; an error has one line."""
    if path.is_dir() or not path.exists():
        raise InputError(f"No such file: {path}.")
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError(f"{path} has more than {_MOST_BYTES:,} bytes, which no settings need.")
        text = content.decode("utf-8")
        if any(part.count(".") > _MOST_DOTS for part in re.split("[=\n]", text)):
            raise InputError(f"{path} has keys of more than {_MOST_DOTS} parts, which no settings need.")
        return tomllib.loads(text)
    except (ValueError, OSError, RecursionError) as error:  # a number of 5,000 digits is a plain ValueError
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as TOML: {one_line(error)}.") from None


def write_toml(values: dict[str, Any]) -> str:
    """Return a mapping as TOML. TOML has no null: a None is left out, which reads as the default."""
    return tomli_w.dumps({key: value for key, value in values.items() if value is not None})
