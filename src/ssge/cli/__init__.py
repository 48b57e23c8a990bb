"""The command line: each command is a function; heavy imports wait until a command needs them.

Results go to standard output (``--json`` for machines), everything else to standard error.
"""

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from types import NoneType
from typing import Annotated, Any

from cyclopts import App

from ssge.cli import apply, embed, evaluate, info, links, look, train  # noqa: F401 - each module adds its commands
from ssge.cli.options import APP, SETTINGS
from ssge.cli.settings import settings_class
from ssge.errors import InputError, SSGEError
from ssge.terminal import FlagFormatter, explained, one_line_warning

TRAINING = {"fit": train.fit, "estimate": train.estimate, "run": evaluate.run}
"""Commands with the settings of a method as flags."""


def application(config: Any = NoneType) -> App:
    """Return the command line; the fields of ``config`` become flags of the commands that train."""
    for function in TRAINING.values():
        function.__annotations__["settings"] = Annotated[config | None, SETTINGS]
    return APP


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; user errors are one line on standard error and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, force=True)
    logging.root.handlers[0].setFormatter(FlagFormatter("%(message)s"))
    for chatty in ("matplotlib", "openTSNE"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    warnings.showwarning = one_line_warning
    try:
        if any("\0" in word for word in words):
            raise InputError("A word of the command holds a NUL, which no name of a file may.")
        config = settings_class(_requested_method(words)) if words and words[0] in TRAINING else NoneType
        with _joined(words):
            application(config)(words, exit_on_error=False, print_error=False)
    except Exception as error:
        if debug:
            raise
        message, code = explained(error)
        if _speaks():
            print(f"ssge: {message}", file=sys.stderr)
        sys.exit(code)
    except KeyboardInterrupt:
        print("ssge: interrupted.", file=sys.stderr)
        sys.exit(130)


def _distributed() -> bool:
    """Return whether ``torchrun`` started several processes."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def _joined(words: list[str]) -> AbstractContextManager[None]:
    """Join the other processes of a distributed command; only the first of them logs."""
    if not _distributed():
        return nullcontext()
    if words[:1] != ["fit"]:
        raise InputError(f"Several processes can share ssge fit alone; received ssge {' '.join(words[:1])}.")
    if os.environ.get("RANK", "0") != "0":
        logging.getLogger().setLevel(logging.CRITICAL)
    from ssge.training.distributed import joined

    return joined()


def _speaks() -> bool:
    """Return whether this process reports an error; of several, the first that fails does."""
    if not _distributed():
        return True
    from ssge.training.distributed import first_to_speak

    return first_to_speak()


def _requested_method(words: list[str]) -> str:
    """Return the name of the method that a command line requests; ``ssge`` where the line is wrong.

    The method decides which flags exist, so the flags that name it are read before all others are parsed.
    """
    flags = {}
    for word, following in pairwise([*words, ""]):
        flag, _, value = word.partition("=")
        flags[flag.replace("_", "-")] = value or following
    if words[0] == "run":  # the value of --out may look like a recipe
        from ssge.runs.recipes import recipes

        others = (word for before, word in pairwise(words) if before != "--out")
        flags["--recipe"] = next((word for word in others if word.endswith(".toml") or word in recipes()), "")
    name = flags.get("--method") or "ssge"
    try:
        if run := flags.get("--warm-start"):
            from ssge.runs.folder import RunFolder

            name = RunFolder(Path(run)).read_record().method
        elif recipe := flags.get("--recipe"):
            from ssge.runs.recipes import load_recipe

            name = load_recipe(recipe).method
        settings_class(name)
    except SSGEError:  # the command itself will say what is wrong
        return "ssge"
    return name
