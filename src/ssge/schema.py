"""The encoding of the feature columns of a graph, to apply it to other graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from ssge.errors import InputError
from ssge.files import atomic


class Column(BaseModel):
    """The encoding of one column of a node table.

    Attributes
    ----------
    name
        Name of the column; ``x`` for the feature matrix of a whole-graph file.
    kind
        ``number``, ``boolean``, ``category`` (one column per level), ``vector`` (``width`` numbers per row), ``bag``
        (how often each id occurs), ``text`` (words by TF-IDF) or ``matrix`` (the features of a whole-graph file).
    width
        Numbers per row; 1 except for vectors and matrices.
    levels
        Levels of a category, in ascending order; the ids of a bag, the words of a text.
    idf
        TF-IDF weights of the words of a text.
    indicator
        Whether an additional column marks missing values.
    fill
        Imputed values, one per number (0, no level, for a category); empty if missing values are an error.
    means, deviations
        For standardization, one per number; empty if the column is not scaled.
    missing
        Share of missing values in the fitted table.
    note
        What the column looks like (for example a label), if it was used because it was named.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: Literal["number", "boolean", "category", "vector", "bag", "text", "matrix"]
    width: int = 1
    levels: tuple[str, ...] = ()
    idf: tuple[float, ...] = ()
    indicator: bool = False
    fill: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    deviations: tuple[float, ...] = ()
    missing: float = 0.0
    note: str = ""

    @property
    def encoding(self) -> str:
        """Description of the encoding."""
        sparse = {"category": "one feature per level", "bag": "how often each id occurs", "text": "TF-IDF of words"}
        if self.kind in sparse:
            how = sparse[self.kind]
        else:
            how = "standardized" if self.means else "0 or 1" if self.kind == "boolean" else "as it is"
        if not self.indicator:
            return how
        return f"{how}; missing ones: {'no level' if self.kind == 'category' else 'mean'}, marked"

    @property
    def names(self) -> list[str]:
        """Names of its feature columns."""
        if self.kind == "category":
            names = [f"{self.name}={level}" for level in self.levels]
        elif self.kind in ("bag", "text"):
            names = [f"{self.name}:{level}" for level in self.levels]
        elif self.kind in ("vector", "matrix"):
            names = [f"{self.name}[{i}]" for i in range(self.width)]
        else:
            names = [self.name]
        return [*names, f"{self.name} missing"] if self.indicator else names


class LeftOut(BaseModel):
    """A column of a node table that is not a feature, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    why: str


HEADINGS = ("column", "kind", "encoding", "features", "missing", "used")
STATED = ("the id", "the label", "ignored", "not named")
"""Reasons why a column is not a feature, other than its content."""
NAMELESS = "(no name)"
_MOST_ROWS = 30


class FeatureSchema(BaseModel):
    """The encoding of all feature columns of a graph; immutable, reads and writes JSON.

    Attributes
    ----------
    features
        ``table`` and kinds of structural features, in the order of the feature columns.
    columns
        Of the node table, then aggregated edge columns; the features of ``table``.
    edge_columns
        Edge columns and how each is aggregated per node.
    left_out
        Columns of the node table that are not features.
    missing, scale
        As given to `ssge.read_graph`.
    names
        Names of the feature columns.
    ids
        Kind of the node ids, ``integer`` or ``text``; None without ids, or for other kinds.
    weighted, weight
        Whether the edge table has weights, and in which column; None if the edges are not from a table.
    direction
        Direction of the edges, see `ssge.read_graph`; None if they come from a `Graph`, which does not store it.

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
    left_out: tuple[LeftOut, ...] = ()
    missing: Literal["error", "impute"] = "error"
    scale: Literal["none", "standard"] = "none"
    names: tuple[str, ...] = ()
    ids: Literal["integer", "text"] | None = None
    weighted: bool | None = None
    weight: str | None = None
    direction: Literal["both", "in", "out"] | None = None

    @property
    def fitted(self) -> bool:
        """Whether the schema has fitted encodings, and not only the kinds of features."""
        return bool(self.names)

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """Those of `columns` that a node table must have; none for a feature matrix."""
        columns = self.columns[: len(self.columns) - len(self.edge_columns)]
        return tuple(column for column in columns if column.kind != "matrix")

    def table(self) -> list[tuple[str, ...]]:
        """Return a table of all columns, as text under `HEADINGS`: used columns, then the others.

        Long parts are truncated, with the number of further columns.
        """
        used = [
            (c.name or NAMELESS, c.kind, c.encoding, f"{len(c.names):,}", f"{100 * c.missing:.3g} %",
             f"yes, but {c.note}" if c.note else "yes")
            for c in self.columns[:_MOST_ROWS]
        ]  # fmt: skip
        unused = sorted(self.left_out, key=lambda entry: entry.why in STATED)
        others = [(entry.name or NAMELESS, "", "", "0", "", f"no: {entry.why}") for entry in unused[:_MOST_ROWS]]
        more = [(f"and {len(part) - _MOST_ROWS:,} more", *[""] * 4, end) for part, end in
                ((self.columns, "yes"), (unused, "no")) if len(part) > _MOST_ROWS]  # fmt: skip
        return used + others + more

    def write(self, path: Path) -> None:
        """Write the schema as JSON, atomically."""
        with atomic(path) as temporary:
            temporary.write_text(self.model_dump_json(indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, path: Path) -> FeatureSchema | None:
        """Read what `write` wrote; None if there is no file, as for a built-in dataset."""
        if not path.is_file():
            return None
        try:
            return cls.model_validate_json(path.read_text("utf-8"))
        except (ValidationError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is no schema of this version: {str(error).splitlines()[0]}.") from None
