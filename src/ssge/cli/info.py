"""Commands that show what there is: ls, version, demo, completion."""

from pathlib import Path
from typing import Literal

from ssge.cli.options import SHOW, Json, Quiet, Switch, Threads, command, set_up
from ssge.terminal import print_cells, print_json, print_table

KINDS: list[tuple[str, ...]] = [
    ("ssge ls methods", "ways to learn embeddings, for --method"),
    ("ssge ls datasets", "graphs that have a name, with their sizes"),
    ("ssge ls recipes", "settings of a method on a dataset, for --recipe and ssge run"),
    ("ssge ls protocols", "ways to score an embedding, for --protocol"),
]


@command(SHOW, "ssge ls recipes", "ssge ls datasets --json")
def ls(kind: Literal["methods", "datasets", "recipes", "protocols"] | None = None, /, *, json: Json = False) -> None:
    """List methods, datasets, recipes or protocols.

    Parameters
    ----------
    kind
        What to list; without it, what can be listed.
    """
    headings: tuple[str, ...] = ("command", "lists")
    lines = KINDS
    if kind is not None:
        from ssge.experiments.catalog import catalog

        headings, lines = catalog(kind)
    if json:
        print_json([dict(zip(headings, line, strict=True)) for line in lines])
    else:
        print_cells(headings, lines)


@command(SHOW)
def version(*, json: Json = False) -> None:
    """Show the versions and the machine, as they are kept with every run."""
    from ssge.records import machine

    found = machine()
    if json:
        print_json(found)
    else:
        print_cells(("", ""), list(found.items()))


@command(SHOW, "ssge demo --out demo")
def demo(
    *,
    out: Path = Path("demo"),
    seeds: int = 3,
    threads: Threads = None,
    force: Switch = False,
    quiet: Quiet = False,
) -> None:
    """Embed the import graph of installed Python packages; print table and neighbors, draw pictures.

    Parameters
    ----------
    out
        Folder for runs and pictures.
    seeds
        Encoder seeds 0, 1, ...
    force
        Run everything again.
    """
    set_up(quiet, threads)
    from ssge.experiments.demo import demonstrate
    from ssge.training.allocator import kept_memory

    with kept_memory():
        demonstrate(out, seeds, force=force, quiet=quiet, show=print_table, say=print)


@command(
    SHOW,
    "ssge completion bash > ~/.local/share/bash-completion/completions/ssge",
    "ssge completion zsh > ~/.zfunc/_ssge   # with ~/.zfunc in fpath",
    "ssge completion fish > ~/.config/fish/completions/ssge.fish",
)
def completion(shell: Literal["bash", "zsh", "fish"] | None = None, /) -> None:
    """Print a script that completes commands and flags in your shell.

    Parameters
    ----------
    shell
        bash, zsh or fish; default: the shell that runs this command.
    """
    from cyclopts.completion.detect import ShellDetectionError

    from ssge.cli import application
    from ssge.cli.settings import all_settings
    from ssge.errors import InputError

    try:
        print(application(all_settings()).generate_completion(shell=shell))
    except ShellDetectionError:
        raise InputError(
            "SHELL must be bash, zsh or fish; the one that runs this command was not recognized."
        ) from None
