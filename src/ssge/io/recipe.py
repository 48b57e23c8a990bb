"""What to make features of: the options of `read_graph`, and those kept in a schema, brought together."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ssge.errors import InputError, UnknownNameError
from ssge.io.edges import aggregation
from ssge.io.sources import shown
from ssge.ops.structural import KINDS
from ssge.schema import FeatureSchema


class Recipe(NamedTuple):
    """What to make features of, after `like` has had its say."""

    features: tuple[str, ...] | None
    missing: Literal["error", "impute"]
    scale: Literal["none", "standard"]
    edge_columns: tuple[tuple[str, Any], ...]
    like: FeatureSchema | None
    weighted: bool | None = None
    weight: str | None = None

    @property
    def table(self) -> bool:
        """Whether features come from a table."""
        return self.features is None or "table" in self.features


def recipe(like: Any, features: Any, missing: Any, scale: Any, edge_columns: Any, columns: Any, ignore: Any) -> Recipe:
    """Check the options of `read_graph`; those that contradict ``like`` are refused."""
    if isinstance(features, str):
        features = (features,)
    kinds: list[str] = []
    for kind in features or ():
        if kind not in ("table", "structural", *KINDS):
            raise UnknownNameError("kind of features", str(kind), ("table", "structural", *KINDS))
        kinds += KINDS if kind == "structural" else (kind,)
    if features is not None and not kinds:
        raise InputError("features must name one kind at least; received none.")
    if missing not in (None, "error", "impute"):
        raise InputError(f"missing must be 'error' or 'impute'; received {missing!r}.")
    if scale not in (None, "none", "standard"):
        raise InputError(f"scale must be 'none' or 'standard'; received {scale!r}.")
    for option, value in (("columns", columns), ("ignore", ignore)):
        if isinstance(value, str):
            raise InputError(f"{option} must be a list of columns; received {value!r}.")
    given = Recipe(
        tuple(dict.fromkeys(kinds)) or None, missing or "error", scale or "none", aggregation(edge_columns), None
    )
    if like is None:
        return given
    schema = like if isinstance(like, FeatureSchema) else getattr(like, "schema", getattr(like, "schema_", None))
    if not isinstance(schema, FeatureSchema):
        raise InputError(f"like must be a FeatureSchema or hold one; {type(like).__name__} does not.")
    asked = {"features": features, "missing": missing, "scale": scale, "edge_columns": edge_columns}
    for option, value in asked.items():
        if value is not None and getattr(given, option) != getattr(schema, option):
            raise InputError(f"{option} is {shown(getattr(schema, option))} in like; received {value!r}.")
    if columns is not None:
        raise InputError("columns are those of like; leave columns out.")
    return Recipe(schema.features, schema.missing, schema.scale, schema.edge_columns, schema)
