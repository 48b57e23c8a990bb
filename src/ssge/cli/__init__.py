"""The command line: each subcommand is a function; whatever is heavy is imported when a command needs it.

Results go to standard output (``--json`` for machines), everything else to standard error.
"""

import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from cyclopts import App

from ssge import __version__
from ssge.cli import estimate, judge, learn, look, use
from ssge.cli.options import examples
from ssge.terminal import explained, one_line_warning


def application(config: Any) -> App:
    """Build the command line; ``config`` is the class whose fields become flags of fit, estimate and run."""
    app = App(
        name="ssge",
        help="Node embeddings of attributed graphs without labels.",
        help_epilogue=examples("ssge fit imports --out run", "ssge run ssge/cora --seeds 5", "ssge fit --help"),
        version=__version__,
        help_format="plaintext",
    )
    learn.register(app, config)
    estimate.register(app, config)
    judge.register(app, config)
    use.register(app)
    look.register(app)
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
        application(_config_class(words))(words, exit_on_error=False, print_error=False)
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
    """Return the configuration whose fields are flags: the chosen method's, read ahead of the parsing proper.

    Only fit, estimate and run have such flags, and only they pay for the import of the methods.
    """
    if not words or words[0] not in ("fit", "run", "estimate"):
        return type(None)
    from ssge.methods import METHODS

    name = "ssge"
    for word, following in zip(words, [*words[1:], ""], strict=True):
        key, _, value = word.partition("=")
        value = value or following
        if key == "--method":
            name = value
        if (key == "--recipe" or (word == "run" and not following.startswith("-"))) and "/" in value:
            name = value.split("/")[0]
    cls = METHODS[name if name in METHODS else "ssge"].Config  # an unknown name is reported by the command itself
    return cls | None
