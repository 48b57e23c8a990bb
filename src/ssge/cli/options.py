"""The application, and the parameters that several commands share."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from cyclopts import App, ArgumentCollection, Group, Parameter

from ssge import __version__
from ssge.errors import InputError, UnknownNameError
from ssge.io.options import ReadOptions
from ssge.terminal import print_cells, print_json

T = TypeVar("T", bound=Callable[..., Any])

log = logging.getLogger(__name__)

MOST_THREADS = 8
"""Per core. More threads only wait for each other, and very many crash the process."""

TRAIN, USE, VISUALIZE, EVALUATE, INFO = (
    Group(title, sort_key=i) for i, title in enumerate(("Train", "Use", "Visualize", "Evaluate", "Info"))
)
"""Groups of commands, in the order of the overview."""


def _examples(*lines: str) -> str:
    """Return the end of a help text."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


def _refuse_fractions(_app: App, _names: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse 1.5 for a whole number, which the parser would round silently."""
    for argument in arguments:
        kinds = str(argument.hint)
        for token in argument.tokens:
            if "int" in kinds and "float" not in kinds and "str" not in kinds and "." in token.value:
                raise InputError(f"{argument.name} must be a whole number; received {token.value}.")


APP = App(
    name="ssge",
    help="Node embeddings of attributed graphs without labels.",
    help_epilogue=_examples(
        "ssge fit edges.csv --nodes nodes.csv --out run   # your own graph: learn",
        "ssge neighbors run alice -k 10                   # ... and use",
        "ssge ls                                          # what there is",
        "ssge fit --help                                  # flags of a command",
    ),
    version=__version__,
    help_format="plaintext",
    default_parameter=Parameter(negative=""),  # flags have no second form, such as --no-force or --empty-methods
    config=_refuse_fractions,
)


def command(group: Group, *lines: str, name: str | None = None) -> Callable[[T], T]:
    """Make a function a command; the lines are examples of its use."""
    return APP.command(name=name, group=group, help_epilogue=_examples(*lines) if lines else None)


Vectors: TypeAlias = Annotated[Path, Parameter(help="Folder of a run, or a file with an embedding.")]
Count: TypeAlias = Annotated[int, Parameter(name=["-k", "--k"])]
Device: TypeAlias = Annotated[str, Parameter(help="cpu, cuda, cuda:1, ..., or auto.")]
Threads: TypeAlias = Annotated[
    int | None, Parameter(help="Processor threads. Results are bit-equal only at the same number.")
]
Force: TypeAlias = Annotated[bool, Parameter(help="Replace the file if it exists.")]
Quiet: TypeAlias = Annotated[bool, Parameter(help="Show no progress and no notes.")]
Json: TypeAlias = Annotated[bool, Parameter(help="Print as JSON.")]
SkipReferences: TypeAlias = Annotated[
    bool, Parameter(help="Leave out the reference rows, such as raw and propagated features; they take time.")
]
SafeCsv: TypeAlias = Annotated[
    bool,
    Parameter(
        help="Write CSV for spreadsheets: text that would be a formula there, as =1+1, gets an apostrophe before it."
    ),
]

SETTINGS = Parameter(name="*", group=Group("Settings of the method", sort_key=2), consume_multiple=True)
"""Makes each field of a configuration class a flag."""

Reading: TypeAlias = Annotated[
    ReadOptions,
    Parameter(
        name="*",
        group=Group("Reading a graph of your own", sort_key=1),
        consume_multiple=True,
        negative=None,  # --no-header
        negative_iterable="",
    ),
]
AS_FOUND = ReadOptions()
"""No option given: the reader infers them."""


@Parameter(name="*", group=Group("Names of the nodes", sort_key=1))
@dataclass(frozen=True)
class Naming:
    """Names of nodes, beside or in the place of their ids.

    Parameters
    ----------
    show
        Show these columns of the node table, as in page_name,page_type. Nodes can be named by the first. The table is
        that of the run; a dataset has the column label.
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
        from ssge.runs.folder import RunFolder, read_vectors
        from ssge.runs.names import read_names

        embedding = read_vectors(run)
        record = RunFolder(run).read_record() if run.is_dir() and self.show is not None else None
        return embedding, read_names(embedding.node_ids, record=record, **vars(self))


BY_ID = Naming()


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
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
        from ssge.io.results import refuse_existing
        from ssge.runs.storage import refuse_file_of_run

        if self.out is None:
            return
        refuse_file_of_run(self.out)
        if self.out.suffix.casefold() not in (".csv", ".parquet"):
            raise UnknownNameError("ending of a table", self.out.suffix, (".csv", ".parquet"))
        refuse_existing([self.out], self.force)

    def write(self, batches: Iterable[Mapping[str, Any]]) -> int:
        """Write columns to the file, if there is one, and report the number of rows."""
        if self.out is None:
            return 0
        import pyarrow as pa

        from ssge.io.results import write_tables

        rows = write_tables(self.out, map(pa.table, batches), self.safe_csv)
        (log.info if self.json else print)(f"{rows:,} rows: {self.out}")
        return rows


PRINTED = Output()


def print_rows(rows: Sequence[Mapping[str, str]], json: bool, title: str | None = None) -> None:
    """Print rows of text, each by the names of its columns, as JSON or as a table."""
    if json:
        print_json(rows)
    else:
        print_cells(list(rows[0]), [list(row.values()) for row in rows], title)


def set_up(quiet: bool = False, threads: int | None = None) -> None:
    """Silence the log if ``quiet``; set the number of threads, if one is given."""
    if quiet:
        logging.getLogger().setLevel(logging.ERROR)
    if threads is not None:
        most = MOST_THREADS * (os.cpu_count() or 1)
        if not 1 <= threads <= most:
            raise InputError(f"--threads must be 1..{most}, {MOST_THREADS} per core at most; received {threads}.")
        import torch

        torch.set_num_threads(threads)
