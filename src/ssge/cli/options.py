"""What the commands share: their catalog, parameters that several of them take, the flags of a method's settings."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

from cyclopts import Group, Parameter

from ssge.io.options import ReadOptions

T = TypeVar("T")

log = logging.getLogger(__name__)

MOST_THREADS = 8
"""Per core: more of them only wait for each other, and very many end the process."""

TRAIN, USE, LOOK, JUDGE, SHOW = (
    Group(title, sort_key=i) for i, title in enumerate(("Learn", "Use", "Look", "Judge", "Show what there is"))
)
"""Groups of commands, in the order of the overview."""


class Command(NamedTuple):
    """A function that is a command, the group it is listed in, its name, and examples for the end of its help."""

    function: Any
    group: Group
    name: str
    examples: tuple[str, ...]


COMMANDS: list[Command] = []


def command(group: Group, *lines: str, name: str | None = None) -> Callable[[T], T]:
    """Make a function a command; the lines are examples of its use."""

    def enter(function: T) -> T:
        COMMANDS.append(Command(function, group, name or function.__name__, lines))  # type: ignore[attr-defined]
        return function

    return enter


def examples(*lines: str) -> str:
    """Return the end of a help text."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


Switch: TypeAlias = Annotated[bool, Parameter(negative="")]
Vectors: TypeAlias = Annotated[Path, Parameter(help="Folder of a run, or a file with an embedding.")]
Count: TypeAlias = Annotated[int, Parameter(name=["-k", "--k"])]
Device: TypeAlias = Annotated[str, Parameter(help="cpu, cuda, cuda:1, ..., or auto.")]
Threads: TypeAlias = Annotated[
    int | None, Parameter(help="Processor threads. Results are bit-equal only at the same number.")
]
Force: TypeAlias = Annotated[bool, Parameter(negative="", help="Replace the file if it exists.")]
Quiet: TypeAlias = Annotated[bool, Parameter(negative="", help="Show no progress and no notes.")]
Json: TypeAlias = Annotated[bool, Parameter(negative="", help="Print as JSON.")]
SkipReferences: TypeAlias = Annotated[
    bool,
    Parameter(negative="", help="Leave out the reference rows, such as raw and propagated features; they take time."),
]
SafeCsv: TypeAlias = Annotated[
    bool,
    Parameter(
        negative="",
        help="Write CSV for spreadsheets: text that would be a formula there, as =1+1, gets an apostrophe before it.",
    ),
]

SETTINGS = Parameter(name="*", group=Group("Settings of the method", sort_key=2), consume_multiple=True, negative="")
"""Makes each field of a configuration class a flag."""

Reading: TypeAlias = Annotated[
    ReadOptions,
    Parameter(
        name="*", group=Group("Reading a graph of your own", sort_key=1), consume_multiple=True, negative_iterable=""
    ),
]
AS_FOUND = ReadOptions()
"""Nothing given: the reader finds out."""


@dataclass(frozen=True)
class _Naming:
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

    def open(self, run: Path) -> tuple[Any, Any]:
        """Return the embedding of a run or file, and the names of its nodes."""
        from ssge.runs.names import open_named

        return open_named(run, self.show, self.nodes, self.id)


Naming: TypeAlias = Annotated[_Naming, Parameter(name="*", group=Group("Names of the nodes", sort_key=1))]
BY_ID = _Naming()


@dataclass(frozen=True)
class _Output:
    """Where a result goes.

    Parameters
    ----------
    out
        Write the whole result to a .csv or .parquet file.
    """

    out: Path | None = None
    force: Force = False
    safe_csv: SafeCsv = False
    json: Json = False

    def check(self) -> None:
        """Refuse a file that cannot be written, before anything is computed for it."""
        from ssge.io.results import check_target

        check_target(self.out, self.force)

    def write(self, batches: Iterable[Mapping[str, Any]]) -> int:
        """Write columns to the file, if there is one; tell it beside the result where that is for a machine."""
        if self.out is None:
            return 0
        from ssge.io.results import write_results

        rows = write_results(self.out, batches, self.safe_csv)
        (log.info if self.json else print)(f"{rows:,} rows: {self.out}")
        return rows


Output: TypeAlias = Annotated[_Output, Parameter(name="*")]
PRINTED = _Output()


def given(settings: Any) -> dict[str, Any]:
    """Return only the settings that were given as flags."""
    return {} if settings is None else {name: value for name, value in vars(settings).items() if value is not None}


def with_settings(command: T, config: Any) -> T:
    """Make the fields of a configuration class flags of a command, through its parameter ``settings``."""
    command.__annotations__["settings"] = Annotated[config | None, SETTINGS]
    return command


def set_up(quiet: bool = False, threads: int | None = None) -> None:
    """Leave out progress and notes if so asked; set the number of threads, if one is given."""
    if quiet:
        logging.getLogger().setLevel(logging.ERROR)
    if threads is not None:
        from ssge.errors import InputError

        most = MOST_THREADS * (os.cpu_count() or 1)
        if not 1 <= threads <= most:
            raise InputError(f"--threads must be 1..{most}, {MOST_THREADS} per core at most; received {threads}.")
        import torch

        torch.set_num_threads(threads)
