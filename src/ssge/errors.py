"""What can go wrong for a user, said in one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

MOST_SHOWN = 300
"""Characters of one value that a message shows."""
MOST_TEXT = 4_000
"""Characters of a whole message."""
_LONG_WORD = re.compile(rf"\S{{{MOST_SHOWN + 10},}}")


def printable(text: str) -> str:
    r"""Return text on one line that a terminal only shows: control characters and the like as escapes.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cut(text: str, most: int = MOST_SHOWN) -> str:
    """Return text without its middle, if it is too long."""
    return text if len(text) <= most else f"{text[: most - most // 3]} ... {text[-(most // 3) :]}"


def shown(value: Any, most: int = MOST_SHOWN) -> str:
    """Return the repr of a value for a message: printable, and not too long."""
    plain = value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value
    try:
        text = repr(plain)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        text = "a number of too many digits"
    return cut(printable(text), most)


def one_line(error: BaseException, most: int = MOST_SHOWN) -> str:
    """Return the message of an error of another library, on one line and not too long."""
    return cut(printable(" ".join(str(error).split()) or type(error).__name__), most)


class SSGEError(Exception):
    """Base of every error that a user can repair; the command line prints it as one line, exit code 2."""

    def __init__(self, message: str = "") -> None:
        words = _LONG_WORD.sub(lambda word: cut(word[0]), printable(message))
        super().__init__(cut(words, MOST_TEXT))


class InputError(SSGEError, ValueError):
    """A value, name or file that cannot be used; the message says what is allowed and what was received."""


class TrainingError(SSGEError, ArithmeticError):
    """Training cannot go on, for example because the loss is not finite."""


class LostProcessError(SSGEError, ConnectionError):
    """Another process of the same run has died, or no longer answers."""


class InterruptedRun(Exception):  # noqa: N818 - not an error: the user asked for it
    """Training was stopped by Ctrl-C after a checkpoint."""


_SHOWN = 30
_COMPARED = 2_000
"""Names that are compared with a wrong one; each comparison takes some microseconds."""


def nearest(name: str, names: Iterable[str], n: int = 1, cutoff: float = 0.5) -> list[str]:
    """Return the names most similar to one that is not there; of very many, only those that begin alike count."""
    known, name = list(names), name[:MOST_SHOWN]
    for length in (1, 2, 3, 4):
        if len(known) <= _COMPARED:
            break
        known = [other for other in known if other[:length].casefold() == name[:length].casefold()]
    near = [other for other in known[:_COMPARED] if len(other) <= MOST_SHOWN]
    return difflib.get_close_matches(name, near, n=n, cutoff=cutoff)


class UnknownNameError(InputError, KeyError):
    """A name that is not in a catalog; the message shows the nearest valid one, and of many only the nearest."""

    def __init__(self, kind: str, name: str, valid: Iterable[str]) -> None:
        names = sorted(valid)
        near = nearest(name.casefold(), names)
        hint = f" Did you mean {shown(near[0])}?" if near else ""
        some = names if len(names) <= _SHOWN else nearest(name.casefold(), names, n=10, cutoff=0) or names[:10]
        more = f" and {len(names) - len(some):,} more" if len(names) > len(some) else ""
        listed = cut(", ".join(map(printable, some)), 2 * MOST_SHOWN)
        super().__init__(f"Unknown {kind} {shown(name)}.{hint} Valid: {listed}{more}.")

    __str__ = Exception.__str__  # KeyError would print the repr of the message
