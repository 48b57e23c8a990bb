"""What the commands share: switches, examples in their help, the flags of a method's settings."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from cyclopts import Group, Parameter

from ssge.io.options import ReadOptions

T = TypeVar("T")

MOST_THREADS = 8
"""Per core: more of them only wait for each other, and very many end the process."""

TRAIN, USE, LOOK, JUDGE, SHOW = (
    Group(title, sort_key=i) for i, title in enumerate(("Learn", "Use", "Look", "Judge", "Show what there is"))
)
"""Groups of commands, in the order of the overview."""

Switch: TypeAlias = Annotated[bool, Parameter(negative="")]

SETTINGS = Parameter(name="*", group=Group("Settings of the method", sort_key=2), consume_multiple=True, negative="")
"""Makes each field of a configuration class a flag."""


Reading: TypeAlias = ReadOptions
AS_FOUND = Reading()
"""Nothing given: the reader finds out."""

READING = Parameter(
    name="*", group=Group("Reading a graph of your own", sort_key=1), consume_multiple=True, negative_iterable=""
)


@dataclass(frozen=True)
class Naming:
    """Names of nodes, beside or in the place of their ids.

    Parameters
    ----------
    show
        Show these columns of the node table, as in page_name,page_type. Nodes can be asked for by the first. The table
        is that of the run; a dataset has the column label.
    nodes
        Take the columns from this table: CSV, TSV or Parquet.
    id
        Column of --nodes with the ids. Default: one named id, node, node_id or name; else the first.
    """

    show: str | None = None
    nodes: Path | None = None
    id: str | None = None


BY_ID = Naming()
NAMING = Parameter(name="*", group=Group("Names of the nodes", sort_key=1))


def examples(*lines: str) -> str:
    """Return the end of a help text."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def given(settings: Any) -> dict[str, Any]:
    """Return only the settings that were given as flags."""
    return {} if settings is None else {name: value for name, value in vars(settings).items() if value is not None}


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

        most = MOST_THREADS * (os.cpu_count() or 1)
        if not 1 <= threads <= most:
            raise InputError(f"--threads must be 1..{most}, {MOST_THREADS} per core at most; received {threads}.")
        import torch

        torch.set_num_threads(threads)
