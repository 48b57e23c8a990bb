"""What can go wrong for a user, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SSGEError(Exception):
    """Base of every error that a user can repair; the command line prints it as one line, exit code 2."""


class InputError(SSGEError, ValueError):
    """A value, name or file that cannot be used; the message says what is allowed and what was received."""


class TrainingError(SSGEError, ArithmeticError):
    """Training cannot go on, for example because the loss is not finite."""


class InterruptedRun(Exception):  # noqa: N818 - not an error: the user asked for it
    """Training was stopped by Ctrl-C after a checkpoint."""


_SHOWN = 30


class UnknownNameError(InputError, KeyError):
    """A name that is not in a catalog; the message shows the nearest valid one, and of many only the nearest."""

    def __init__(self, kind: str, name: str, valid: Iterable[str]) -> None:
        names = sorted(valid)
        near = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = names if len(names) <= _SHOWN else difflib.get_close_matches(name.casefold(), names, n=10, cutoff=0)
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        super().__init__(f"Unknown {kind} {name!r}.{hint} Valid: {', '.join(shown)}{more}.")

    __str__ = Exception.__str__  # KeyError would print the repr of the message
