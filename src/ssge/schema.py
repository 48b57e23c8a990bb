"""How the feature columns of a graph were made, so that another graph gets the same ones."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ssge.errors import InputError
from ssge.files import atomic


class Column(BaseModel):
    """How one column of a node table becomes features.

    Attributes
    ----------
    name
        Of the column; ``x`` for the feature matrix of a whole-graph file.
    kind
        ``number``, ``boolean``, ``category`` (one column per level), ``vector`` (``width`` numbers per row) or
        ``matrix`` (the features of a whole-graph file).
    width
        Numbers per row; 1 but for vectors and matrices.
    levels
        Of a category, in ascending order.
    indicator
        Whether a further column marks missing values.
    fill
        Values that replace missing ones, one per number (0, no level, for a category); empty if they are an error.
    means, deviations
        Subtracted, and divided by, one per number; empty if the column is not scaled.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: Literal["number", "boolean", "category", "vector", "matrix"]
    width: int = 1
    levels: tuple[str, ...] = ()
    indicator: bool = False
    fill: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        """Of the feature columns made of it."""
        if self.kind == "category":
            names = [f"{self.name}={level}" for level in self.levels]
        elif self.kind in ("vector", "matrix"):
            names = [f"{self.name}[{i}]" for i in range(self.width)]
        else:
            names = [self.name]
        return [*names, f"{self.name} missing"] if self.indicator else names


class FeatureSchema(BaseModel):
    """How all feature columns of a graph were made; frozen, JSON both ways.

    Attributes
    ----------
    features
        ``table`` and kinds of structural features, in the order of the feature columns.
    columns
        Of the node table, then aggregated edge columns; the features of ``table``.
    edge_columns
        Edge columns and how each is aggregated per node.
    missing, scale
        As given to `ssge.read_graph`.
    names
        Of the feature columns.
    ids
        What the ids of nodes were, ``integer`` or ``text``; None if they had none, or are of another kind.
    weighted, weight
        Whether a column of the edge table held weights, and which; None if the edges came from no table.
    direction
        How edges were read, see `ssge.read_graph`; None if they came from a `Graph`, which does not say.

    Examples
    --------
    >>> schema = FeatureSchema(features=("table",), columns=(Column(name="age", kind="number"),), names=("age",))
    >>> FeatureSchema.model_validate_json(schema.model_dump_json()) == schema
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    features: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    edge_columns: tuple[tuple[str, Literal["mean", "sum", "max", "min"]], ...] = ()
    missing: Literal["error", "impute"] = "error"
    scale: Literal["none", "standard"] = "none"
    names: tuple[str, ...] = ()
    ids: Literal["integer", "text"] | None = None
    weighted: bool | None = None
    weight: str | None = None
    direction: Literal["both", "in", "out"] | None = None

    @property
    def fitted(self) -> bool:
        """Whether the schema says how columns are encoded, and not only which features to make."""
        return bool(self.names)

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """Those of `columns` that a node table must have; none for a feature matrix."""
        columns = self.columns[: len(self.columns) - len(self.edge_columns)]
        return tuple(column for column in columns if column.kind != "matrix")

    def write(self, path: Path) -> None:
        """Write the schema as JSON, atomically."""
        with atomic(path) as temporary:
            temporary.write_text(self.model_dump_json(indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, path: Path) -> FeatureSchema | None:
        """Read what `write` wrote; None if there is no such file, as for a dataset."""
        if not path.is_file():
            return None
        try:
            return cls.model_validate_json(path.read_text("utf-8"))
        except (ValidationError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is no schema of this version: {str(error).splitlines()[0]}.") from None
