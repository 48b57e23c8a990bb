"""What the command line prints: tables, and errors and warnings in one line."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from cyclopts import CycloptsError

from ssge.errors import MOST_TEXT, InterruptedRun, SSGEError, cut, one_line, printable, shown

log = logging.getLogger(__name__)


def explained(error: Exception) -> tuple[str, int]:
    """Return the line to print for an error and the exit code; re-raise what is our own mistake."""
    if isinstance(error, SSGEError):
        return str(error), 2
    if isinstance(error, CycloptsError):
        return _explained_flag(error), 2
    if isinstance(error, InterruptedRun):
        return str(error), 130
    if isinstance(error, BrokenPipeError):  # the reader of our output went away, as in `ssge ls datasets | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "output closed.", 141
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        return printable(f"{error.strerror or one_line(error)}{where}"), 2
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error)):
        what = one_line(error) if str(error) else "the system has no more to give"
        return f"not enough memory: {what}.", 2
    raise error


def _explained_flag(error: CycloptsError) -> str:
    """Return what is wrong with the command line; of a setting out of bounds name flag, bound and value."""
    from pydantic import ValidationError

    cause = error.__cause__
    if isinstance(cause, ValidationError):
        first = cause.errors()[0]
        flag = "--" + str(first["loc"][-1] if first["loc"] else "").replace("_", "-")
        return printable(f"{flag}: {first['msg']}; received {shown(first['input'])}.")
    return cut(printable(" ".join(str(error).split())), MOST_TEXT)


def one_line_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Stand in for ``warnings.showwarning``: no file, no source line."""
    log.warning("warning: %s", cut(printable(str(message)), MOST_TEXT))


class OneLine(logging.Formatter):
    """A log that a terminal only shows: what files and names hold cannot move its cursor or change its colors."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message on one line."""
        return cut(printable(record.getMessage()), MOST_TEXT)


def print_table(lines: Sequence[Any], title: str) -> None:
    """Print rows of results under their headings."""
    from ssge.experiments.tables import HEADINGS, cells

    print_cells(HEADINGS, [cells(line) for line in lines], title)


def print_cells(headings: Sequence[str], lines: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table of text; columns of numbers are aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, show_header=any(headings))
    numeric = [all(_is_number(line[i]) for line in lines) for i in range(len(headings))]
    for heading, right in zip(headings, numeric, strict=True):
        table.add_column(printable(heading), justify="right" if right else "left", overflow="fold")
    for line in lines:
        table.add_row(*(cut(printable(cell), MOST_TEXT) for cell in line))
    # A pipe has no width: lines must not be folded there. An id is no markup, whatever brackets and colons it has.
    width = None if sys.stdout.isatty() else 200
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def _is_number(text: str) -> bool:
    return text in ("", "-") or text[0].isdigit()
