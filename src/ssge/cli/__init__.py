"""The command line: each command is a function; heavy imports wait until a command needs them.

Results go to standard output (``--json`` for machines), everything else to standard error.
"""

import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType, NoneType
from typing import Any

from cyclopts import App, CycloptsError

from ssge import __version__
from ssge.cli import apply, evaluate, info, train
from ssge.cli.options import examples, with_settings
from ssge.terminal import explained, one_line_warning

TRAINING: dict[str, Any] = {"fit": train.fit, "estimate": train.estimate, "run": evaluate.run}
"""Commands with the settings of a method as flags."""


def application(config: Any = NoneType) -> App:
    """Build the command line; ``config`` is the class whose fields become flags of the commands that train."""
    app = App(
        name="ssge",
        help="Node embeddings of attributed graphs without labels.",
        help_epilogue=examples("ssge fit imports --out run", "ssge run ssge/cora --seeds 5", "ssge fit --help"),
        version=__version__,
        help_format="plaintext",
    )
    train.register(app, config)
    evaluate.register(app, config)
    apply.register(app)
    info.register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; user errors are one line on standard error and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(message)s", force=True)
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    warnings.showwarning = one_line_warning
    try:
        config = _config_class(words) if words and words[0] in TRAINING else NoneType
        application(config)(words, exit_on_error=False, print_error=False)
    except Exception as error:
        if debug:
            raise
        message, code = explained(error)
        print(f"ssge: {message}", file=sys.stderr)
        sys.exit(code)
    except KeyboardInterrupt:
        print("ssge: interrupted.", file=sys.stderr)
        sys.exit(130)


def _config_class(words: list[str]) -> Any:
    """Return the configuration class of the method that a command line asks for.

    Which flags there are depends on the method, and the method on other flags. So the line is parsed twice: here with
    the flags of all methods and nothing required, to learn the method alone.
    """
    from ssge.errors import SSGEError
    from ssge.methods import METHODS
    from ssge.runs.folder import RunFolder
    from ssge.runs.recipes import load_recipe

    probe = App()
    for command in TRAINING.values():
        probe.command(_lenient(command, _all_settings()))
    try:
        _, bound, *_ = probe.parse_known_args([word for word in words if word not in ("--help", "-h")])
        asked = bound.arguments
        if asked.get("warm_start"):
            name = RunFolder(asked["warm_start"]).read_record().method
        elif asked.get("recipe"):
            name = load_recipe(asked["recipe"]).method
        else:
            name = asked.get("method") or "ssge"
        return METHODS[name].Config
    except (CycloptsError, SSGEError):  # the command itself will say what is wrong
        return METHODS["ssge"].Config


def _lenient(command: FunctionType, settings: Any) -> FunctionType:
    """Return a command whose parameters are all optional: a required one is a graph, a recipe or a folder."""
    code = command.__code__
    copy = FunctionType(code, command.__globals__, command.__name__, ("",) * code.co_argcount)
    named = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    copy.__kwdefaults__ = dict.fromkeys(named, Path()) | (command.__kwdefaults__ or {})
    copy.__annotations__ = dict(command.__annotations__)
    return with_settings(copy, settings)


def _all_settings() -> Any:
    """Return a class with the settings of all methods, as words."""
    from pydantic import create_model

    from ssge.methods import METHODS

    fields: dict[str, Any] = {}
    for name in METHODS:
        for field, facts in METHODS[name].Config.model_fields.items():
            several = "tuple" in str(facts.annotation)
            kind = bool if facts.annotation is bool else list[str] if several else str
            fields[field] = (kind | None, None)
    return create_model("AllSettings", **fields)
