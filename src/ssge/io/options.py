"""The options of reading, shared by `ssge.read_graph`, the flags of the command line, and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ssge.errors import InputError, UnknownNameError, shown

if TYPE_CHECKING:
    from ssge.schema import FeatureSchema

AGGREGATIONS = ("mean", "sum", "max", "min")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a graph; None stands for the default, which the reader finds in the data where it can.

    A column is given by its name, or by its position from 0; digits as text are a position where no column has that
    name. The help text of each flag is the line below its name.

    Parameters
    ----------
    nodes
        Node table, one row per node: CSV, TSV, Parquet; also .gz, .zst. For a matrix, rows are in its node order.
    source
        Column of the edge table with the sources. Default: source, src, from, u or head; else the first column.
    target
        Column with the targets. Default: target, dst, to, v or tail; else the second column.
    weight
        Column of the edge table with weights, finite and not negative. Default: one named weight, if it exists.
    id
        Column of the node table with the ids. Default: one named id, node, node_id or name; else the first.
    columns
        Make features of these columns only. Default: all but those that look like labels, ids, dates, text or an index.
    ignore
        Make no features of these columns.
    label
        Column with classes, never a feature; supervised methods and ssge evaluate use it. Default: y, label, labels.
    features
        table (columns or feature matrix), degree, clustering, return, laplacian; structural: all but table.
    edge_columns
        Edge columns to aggregate per node: distance (mean) or distance=max; mean, sum, max, min. 0 without edges.
    direction
        both makes the graph symmetric; in sends messages along the edges, out against them. Default: both.
    delimiter
        Delimiter of text tables. Default: found in the first rows.
    header
        Whether text tables have a row of names. Default: found in the first rows.
    missing
        impute fills in means, or no level of a category, and adds a column that marks the rows. Default: error.
    scale
        standard gives columns of numbers mean 0 and standard deviation 1. Default: none.
    unknown
        For ends of edges not in the node table: add the node, with missing values, or drop the edge. Default: error.
    limit
        Most bytes that a file may unpack to. Default: 16 GiB.
    bag
        Columns of ids or words, as lists or between blanks and commas: one feature for each, how often it occurs.
    text
        Columns of text: one feature per word (4,096 at most, those in two rows or more), by TF-IDF.
    """

    nodes: Path | None = None
    source: str | int | None = None
    target: str | int | None = None
    weight: str | int | None = None
    id: str | int | None = None
    columns: Sequence[str | int] | None = None
    ignore: Sequence[str | int] | None = None
    label: str | int | None = None
    features: Sequence[str] | None = None
    edge_columns: Sequence[str] | None = None
    direction: Literal["both", "in", "out"] | None = None
    delimiter: str | None = None
    header: bool | None = None
    missing: Literal["error", "impute"] | None = None
    scale: Literal["none", "standard"] | None = None
    unknown: Literal["error", "add", "drop"] | None = None
    limit: int | None = None
    bag: Sequence[str | int] | None = None
    text: Sequence[str | int] | None = None

    def __post_init__(self) -> None:
        for option, kind in get_type_hints(ReadOptions).items():
            allowed = get_args(get_args(kind)[0]) if get_origin(get_args(kind)[0]) is Literal else ()
            if allowed and (value := getattr(self, option)) is not None and value not in allowed:
                raise InputError(f"{option} must be {' or '.join(map(repr, allowed))}; received {value!r}.")
        for option in ("columns", "ignore", "bag", "text"):
            if isinstance(value := getattr(self, option), str):
                raise InputError(f"{option} must be a list of columns; received {value!r}.")
        if self.limit is not None and (type(self.limit) is not int or self.limit <= 0):
            raise InputError(f"limit must be a number of bytes; received {self.limit!r}.")

    def given(self) -> dict[str, Any]:
        """Return the options that are not None, as `ssge.read_graph` takes them and JSON stores them."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {key: list(value) if isinstance(value, tuple | list) else value for key, value in found.items()}
        return {key: str(v) if isinstance(v, Path) else v for key, v in plain.items() if v is not None}

    def schema(self, like: Any = None) -> FeatureSchema:
        """Return which features to make: those of ``like``, or a schema without columns that reading completes."""
        from ssge.schema import FeatureSchema

        wanted = FeatureSchema(
            features=_kinds(self.features),
            edge_columns=_aggregations(self.edge_columns),
            missing=self.missing or "error",
            scale=self.scale or "none",
        )
        if like is None:
            return wanted
        kept = like if isinstance(like, FeatureSchema) else getattr(like, "schema", getattr(like, "schema_", None))
        if not isinstance(kept, FeatureSchema):
            raise InputError(f"like must be a FeatureSchema or hold one; {type(like).__name__} does not.")
        for option in ("features", "missing", "scale", "edge_columns"):
            value = getattr(self, option)
            if value is not None and getattr(wanted, option) != getattr(kept, option):
                raise InputError(f"{option} is {shown(getattr(kept, option))} in like; received {value!r}.")
        for option in ("columns", "bag", "text"):
            if getattr(self, option) is not None:
                raise InputError(f"{option} are those of like; leave {option} out.")
        return kept


def _kinds(features: Sequence[str] | None) -> tuple[str, ...]:
    """Return the kinds of features, each once, with ``structural`` written out."""
    from ssge.ops.structural import KINDS

    if features is None:
        return ("table",)
    kinds: list[str] = []
    for kind in (features,) if isinstance(features, str) else features:
        if kind not in ("table", "structural", *KINDS):
            raise UnknownNameError("kind of features", str(kind), ("table", "structural", *KINDS))
        kinds += KINDS if kind == "structural" else (kind,)
    if not kinds:
        raise InputError("features must name at least one kind; received none.")
    return tuple(dict.fromkeys(kinds))


def _aggregations(edge_columns: Any) -> tuple[tuple[str, Any], ...]:
    """Return pairs of an edge column and its aggregation; ``"distance=max"`` is one, a name alone means its mean."""
    if isinstance(edge_columns, str):
        edge_columns = [edge_columns]
    entries = edge_columns.items() if isinstance(edge_columns, Mapping) else edge_columns or ()
    result = []
    for entry in entries:
        if isinstance(entry, str):
            name, _, how = entry.rpartition("=") if "=" in entry else (entry, "", "mean")
        else:
            name, how = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (entry, "mean")
        if not isinstance(name, str):
            raise InputError(f"edge_columns must be names of columns; received {name!r}.")
        if how not in AGGREGATIONS:
            raise UnknownNameError("aggregation in edge_columns", str(how), AGGREGATIONS)
        result.append((name, how))
    return tuple(result)
