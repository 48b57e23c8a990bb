"""What the command line prints: tables, and errors and warnings in one line."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError

from ssge.errors import MOST_TEXT, InterruptedRun, SSGEError, cut, one_line, printable, shown
from ssge.io.options import ReadOptions

WIDTHS = ("--dim", "--dims", "--dimension", "--dimensions", "--embedding-dim", "--hidden", "--n-components", "--size")
"""What the width of an embedding is called elsewhere."""

log = logging.getLogger(__name__)


def explained(error: Exception) -> tuple[str, int]:
    """Return the line to print for an error and the exit code; re-raise what is our own mistake."""
    if isinstance(error, SSGEError):
        return as_flags(str(error)), 2
    if isinstance(error, CycloptsError):
        return _explained_flag(error), 2
    if isinstance(error, InterruptedRun):
        return str(error), 130
    if isinstance(error, BrokenPipeError):  # the reader of our output went away, as in `ssge ls datasets | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "output closed.", 141
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        return cut(printable(f"{error.strerror or one_line(error)}{where}")), 2
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error)):
        what = one_line(error) if str(error) else "the system has no more to give"
        return f"not enough memory: {what}.", 2
    raise error


def _explained_flag(error: CycloptsError) -> str:
    """Return what is wrong with the command line, with a hint where it is a usual mistake."""
    if isinstance(error, UnknownOptionError) and error.token.keyword in WIDTHS:
        hint = "Did you mean --widths, as in --widths 128 64? The embedding is last."
        return f"Unknown option: {error.token.keyword}. {hint}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        word = error.unused_tokens[0]
        hint = f" A table of nodes is given as --nodes {shlex.quote(word)}." if "." in word else ""
        return f"Unexpected argument: {shown(word)}.{hint}"
    return cut(printable(" ".join(str(error).split())), MOST_TEXT)


def as_flags(text: str) -> str:
    """Return a message about arguments in Python as one about flags.

    Examples
    --------
    >>> as_flags("give missing='impute', or leave it out with ignore=['page name'].")
    "give --missing impute, or leave it out with --ignore 'page name'."
    """
    text = _ARGUMENT.sub(
        lambda found: f"{_flag(found)} {_words(found[2])}{f' or {found[3]}' if found[3] else ''}", text
    )
    text = re.sub(r"\b(in|of|that) like\b", r"\1 the run", text)
    text = re.sub(r"^memory(?= must | is | streams )", "--memory", text)
    return re.sub(rf"^({_OPTIONS})(?= is | are |: Input )", _flag, text)


_OPTIONS = "|".join(field.name for field in fields(ReadOptions))
_ARGUMENT = re.compile(rf"\b({_OPTIONS})=(\[[^]]*\]|'[^']*'|\.\.\.|[\d,]+)(?: or '(\w+)')?")


def _flag(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')}"


def _words(value: str) -> str:
    """Return a value as one types it: without brackets, quoted where the shell needs it."""
    entries = value.strip("[]").split(", ") if value.startswith("[") else [value]
    return " ".join(entry if entry == "..." else shlex.quote(entry.strip("'")) for entry in entries)


class FlagFormatter(logging.Formatter):
    """Formats notes and warnings with flags in place of Python arguments."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message."""
        return as_flags(super().format(record))


def one_line_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Stand in for ``warnings.showwarning``: no file, no source line."""
    log.warning("warning: %s", cut(printable(str(message)), MOST_TEXT))


def print_json(value: Any) -> None:
    """Print a result for a machine."""
    print(json.dumps(value, indent=2))


def print_table(lines: Sequence[Any], title: str) -> None:
    """Print rows of results under their headings."""
    from ssge.experiments.tables import HEADINGS, cells

    print_cells(HEADINGS, [cells(line) for line in lines], title)


def print_cells(headings: Sequence[str], lines: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table of text; columns of numbers are aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, show_header=any(headings))
    numeric = [all(line[i] in ("", "-") or line[i][0].isdigit() for line in lines) for i in range(len(headings))]
    for heading, right in zip(headings, numeric, strict=True):
        table.add_column(printable(heading), justify="right" if right else "left", overflow="fold")
    for line in lines:
        table.add_row(*(cut(printable(cell), MOST_TEXT) for cell in line))
    # A pipe has no width: lines must not be folded there. An id is no markup, whatever brackets and colons it has.
    width = None if sys.stdout.isatty() else 200
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)
