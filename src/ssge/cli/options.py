"""What the commands share: switches, examples in their help, the flags of a method's settings."""

import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from cyclopts import Group, Parameter

T = TypeVar("T")

Switch: TypeAlias = Annotated[bool, Parameter(negative="")]

SETTINGS = Parameter(name="*", group=Group("Settings of the method", sort_key=2), consume_multiple=True, negative="")
"""Makes each field of a configuration class a flag."""


@dataclass(frozen=True)
class Reading:
    """How to read a graph of one's own; as `ssge.read_graph` has it.

    Parameters
    ----------
    nodes
        Node table (CSV, TSV, Parquet; also .gz, .zst), one row per node.
    source
        Column of the edge table, by name or by position from 0; found if not given.
    target
        The other one.
    weight
        Column of the edge table with weights, not negative; default: one named weight.
    id
        Column of the node table with the ids; default: one named id, node, node_id or name, else the first.
    columns
        Make features of these columns only.
    ignore
        Make no features of these columns.
    label
        Column with classes: used to judge (ssge evaluate), and to learn by supervised methods alone.
    features
        table (columns of the node table), structural (all of the following), degree, clustering, return, laplacian.
    edge_columns
        Aggregate edge columns to nodes: distance (their mean) or distance=max; mean, sum, max, min.
    direction
        both makes the graph symmetric; in: a node hears from those that point at it; out: from those it points at.
    delimiter
        Of text tables; found if not given.
    header
        Whether text tables have a line of names; found if not given.
    missing
        error, or impute (mean of the column and a column that says where).
    scale
        none, or standard: numbers get mean 0 and deviation 1.
    unknown
        An end of an edge that is not in the node table: error, add the node, or drop the edge.
    limit
        Bytes that a file may unpack to.
    """

    nodes: Path | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    id: str | None = None
    columns: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    label: str | None = None
    features: tuple[str, ...] | None = None
    edge_columns: tuple[str, ...] | None = None
    direction: Literal["both", "in", "out"] | None = None
    delimiter: str | None = None
    header: bool | None = None
    missing: Literal["error", "impute"] | None = None
    scale: Literal["none", "standard"] | None = None
    unknown: Literal["error", "add", "drop"] | None = None
    limit: int | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given, as `ssge.read_graph` takes them and as JSON can keep them."""
        found = {key: value for key, value in asdict(self).items() if value is not None}
        for key in ("columns", "ignore", "features"):
            if key in found:
                found[key] = list(found[key])
        if "nodes" in found:
            found["nodes"] = str(found["nodes"])
        if "edge_columns" in found:
            pairs = (entry.partition("=") for entry in found["edge_columns"])
            found["edge_columns"] = [[name, how or "mean"] for name, _, how in pairs]
        return found


AS_FOUND = Reading()
"""Nothing given: the reader finds out."""

READING = Parameter(
    name="*", group=Group("Reading a graph of your own", sort_key=1), consume_multiple=True, negative_iterable=""
)


def examples(*lines: str) -> str:
    """Return the end of a help text."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def given(settings: Any) -> dict[str, Any]:
    """Return only the settings that were given as flags."""
    return {} if settings is None else {name: getattr(settings, name) for name in settings.model_fields_set}


def with_settings(command: T, config: Any) -> T:
    """Make the fields of a configuration class flags of a command, through its parameter ``settings``."""
    command.__annotations__["settings"] = Annotated[config | None, SETTINGS]
    return command


def be_quiet(quiet: bool) -> None:
    """Leave out progress and notes if so asked."""
    if quiet:
        logging.getLogger().setLevel(logging.ERROR)


def use_threads(threads: int | None) -> None:
    """Set the number of threads, if one is given."""
    if threads is not None:
        from ssge.errors import InputError

        if threads < 1:
            raise InputError(f"threads must be 1 or more; received {threads}.")
        import torch

        torch.set_num_threads(threads)
