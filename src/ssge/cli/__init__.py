"""The command line: each command is a function; heavy imports wait until a command needs them.

Results go to standard output (``--json`` for machines), everything else to standard error.
"""

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FunctionType, NoneType
from typing import Any

from cyclopts import App, ArgumentCollection, CycloptsError

from ssge import __version__
from ssge.cli import (  # noqa: F401 - each module enters its commands into the catalog
    apply,
    compare,
    convert,
    embed,
    evaluate,
    info,
    links,
    look,
    reproduce,
    train,
)
from ssge.cli.options import COMMANDS, examples, with_settings
from ssge.cli.settings import all_settings, settings_class
from ssge.errors import InputError, SSGEError
from ssge.terminal import FlagFormatter, explained, one_line_warning

TRAINING = {name: function for function, _, name, _ in COMMANDS if "settings" in function.__annotations__}
"""Commands with the settings of a method as flags."""
CHOOSING = ("method", "recipe", "warm")
"""Parts of the flags that decide the method."""


def application(config: Any = NoneType) -> App:
    """Build the command line; the fields of ``config`` become flags of the commands that train."""
    app = App(
        name="ssge",
        help="Node embeddings of attributed graphs without labels.",
        help_epilogue=examples(
            "ssge fit edges.csv --nodes nodes.csv --out run   # your own graph: learn",
            "ssge neighbors run alice -k 10                   # ... and use",
            "ssge ls                                          # what there is",
            "ssge fit --help                                  # flags of a command",
        ),
        version=__version__,
        help_format="plaintext",
        config=_refuse_fractions,
    )
    for function, group, name, lines in COMMANDS:
        if name in TRAINING:
            with_settings(function, config)
        app.command(function, name=name, group=group, help_epilogue=examples(*lines) if lines else None)
    return app


def _refuse_fractions(_app: App, _names: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse 1.5 for a whole number, which the parser would round in silence."""
    for argument in arguments:
        kinds = str(argument.hint)
        for token in argument.tokens:
            if "int" in kinds and "float" not in kinds and "str" not in kinds and "." in token.value:
                raise InputError(f"{argument.name} must be a whole number; received {token.value}.")


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
        config = settings_class(_asked_method(words)) if words and words[0] in TRAINING else NoneType
        with _processes(words):
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


def _processes(words: list[str]) -> AbstractContextManager[None]:
    """Join the other processes of a command that ``torchrun`` started; only the first of them tells about progress."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return nullcontext()
    if words[:1] != ["fit"]:
        raise InputError(f"Several processes can share ssge fit alone; received ssge {' '.join(words[:1])}.")
    if os.environ.get("RANK", "0") != "0":
        logging.getLogger().setLevel(logging.CRITICAL)
    from ssge.training.distributed import joined

    return joined()


def _speaks() -> bool:
    """Say whether it is this process that tells the user what went wrong."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return True
    from ssge.training.distributed import first_to_speak

    return first_to_speak()


def _asked_method(words: list[str]) -> str:
    """Return the name of the method that a command line asks for; ``ssge`` where the line is wrong.

    Which flags there are depends on the method, and the method on other flags. So the line is parsed twice: here with
    the flags of all methods and nothing required, to learn the method alone. Without such a flag it is parsed once.
    """
    if words[0] != "run" and not any(word.startswith("-") and part in word for word in words for part in CHOOSING):
        return "ssge"
    probe = App()
    for command in TRAINING.values():
        probe.command(_lenient(command, all_settings()))
    try:
        _, bound, *_ = probe.parse_known_args([word for word in words if word not in ("--help", "-h")])
        name = _method_of(bound.arguments)
        settings_class(name)
    except (CycloptsError, SSGEError):  # the command itself will say what is wrong
        return "ssge"
    return name


def _method_of(asked: dict[str, Any]) -> str:
    """Return the method that the arguments of a command name, or that their run or recipe has."""
    asked = asked | vars(asked.get("choice", object))
    if asked.get("warm_start"):
        from ssge.runs.folder import RunFolder

        return RunFolder(asked["warm_start"]).read_record().method
    if asked.get("recipe"):
        from ssge.runs.recipes import load_recipe

        return load_recipe(asked["recipe"]).method
    return asked.get("method") or "ssge"


def _lenient(command: FunctionType, settings: Any) -> FunctionType:
    """Return a command whose parameters are all optional: a required one is a graph, a recipe or a folder."""
    code = command.__code__
    copy = FunctionType(code, command.__globals__, command.__name__, ("",) * code.co_argcount)
    named = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    copy.__kwdefaults__ = dict.fromkeys(named, Path()) | (command.__kwdefaults__ or {})
    copy.__annotations__ = dict(command.__annotations__)
    return with_settings(copy, settings)
