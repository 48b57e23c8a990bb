"""The command line: each subcommand is a function; whatever is heavy is imported when a command needs it.

Results go to standard output (``--json`` for machines), everything else to standard error.
"""

import json as jsonlib
import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Group, Parameter

from ssge import __version__
from ssge.terminal import explained, one_line_warning, print_cells, print_table

log = logging.getLogger("ssge")

_SETTINGS = Group("Settings of the method", sort_key=2)
_EXAMPLES = {
    "": ("ssge fit imports --out run", "ssge run ssge/cora --seeds 5", "ssge fit --help"),
    "fit": (
        "ssge fit imports --out run",
        "ssge fit cora --recipe ssge/cora --seed 1 --out run",
        "ssge fit sbm:nodes=20000 --out run --epochs 50 --widths 128 64",
        "ssge fit cora --recipe ssge/cora --seed 1 --out run --resume",
    ),
    "embed": ("ssge embed run cora --out cora.parquet",),
    "evaluate": ("ssge evaluate run", "ssge evaluate run --protocol released-code --json"),
    "run": ("ssge run ssge/cora --seeds 5", "ssge run ssge/cora --seeds 5 --uniformity-weight 0 --out runs/ablation"),
    "ls": ("ssge ls recipes", "ssge ls datasets --json"),
    "demo": ("ssge demo --out demo",),
}


def _examples(command: str) -> str:
    return "\n".join(["Examples:", *(f"  {line}" for line in _EXAMPLES[command])])


def _app(config: Any) -> App:
    """Build the command line; ``config`` is the configuration class whose fields become flags of fit and run."""
    app = App(
        name="ssge",
        help="Node embeddings of attributed graphs without labels.",
        help_epilogue=_examples(""),
        version=__version__,
        help_format="plaintext",
    )
    flags = Annotated[config, Parameter(name="*", group=_SETTINGS, consume_multiple=True, negative="")]

    @app.command(help_epilogue=_examples("fit"))
    def fit(
        graph: str,
        /,
        *,
        out: Path,
        method: str = "ssge",
        recipe: str | None = None,
        config_file: Annotated[Path | None, Parameter(name="--config")] = None,
        seed: int = 0,
        device: str = "cpu",
        dtype: Literal["float32", "float64"] = "float32",
        threads: int | None = None,
        checkpoint_every: int = 10,
        resume: Annotated[bool, Parameter(negative="")] = False,
        force: Annotated[bool, Parameter(negative="")] = False,
        quiet: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
        settings: flags = None,
    ) -> None:
        """Learn embeddings of a graph and keep the run in a folder.

        The folder gets record.json, history.jsonl, config.toml, model.safetensors and embedding.parquet (id, e000...).
        Settings come from the defaults, then the recipe, then the file, then the flags.

        Parameters
        ----------
        graph
            Name of a dataset (ssge ls datasets), with options as in sbm:nodes=1000,classes=5.
        out
            Folder of the run; it must not hold another one.
        method
            Name of the method (ssge ls methods).
        recipe
            Take the settings of a recipe (ssge ls recipes).
        config_file
            Take settings from a TOML file, such as the config.toml of another run.
        seed
            Decides the initial weights and every random choice of the views.
        device
            cpu, cuda, cuda:1, ..., or auto.
        dtype
            Precision of the training.
        threads
            Threads of the processor; results are bit-equal only at the same number.
        checkpoint_every
            Save the state after so many epochs; 0 only on Ctrl-C.
        resume
            Go on with an interrupted run in the same folder.
        force
            Replace the run in the folder.
        quiet
            No progress, no notes.
        json
            Print the record as JSON.
        """
        _quiet(quiet)
        _threads(threads)
        from ssge.datasets import load
        from ssge.experiments import run as runs
        from ssge.experiments.recipes import load_recipe

        chosen = load_recipe(recipe) if recipe else None
        method = chosen.method if chosen else method
        resolved = runs.resolve_config(
            method, chosen.config if chosen else {}, runs.config_file(config_file), _given(settings)
        )
        done = runs.fit(
            load(graph), method, resolved, out=out, seed=seed, device=device, dtype=dtype,
            checkpoint_every=checkpoint_every, resume=resume, force=force, quiet=quiet,
            recipe=chosen.name if chosen else None, dataset=graph,
        )  # fmt: skip
        if json:
            print(done.record.model_dump_json(indent=2))
            return
        n, d = done.embedding.vectors.shape
        final = ", ".join(f"{k} {v:.4g}" for k, v in done.record.final.items() if k not in ("epoch", "seconds"))
        print(f"{n:,} nodes x {d} columns in {done.record.seconds:.1f} s ({final})")
        print(f"embedding: {out / 'embedding.parquet'}")

    @app.command(help_epilogue=_examples("embed"))
    def embed(
        run: Path,
        graph: str,
        /,
        *,
        out: Path,
        force: Annotated[bool, Parameter(negative="")] = False,
        device: str = "cpu",
        threads: int | None = None,
        quiet: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
    ) -> None:
        """Embed a graph with the model of a finished run.

        Parameters
        ----------
        run
            Folder of the run.
        graph
            Name of a dataset with the same features.
        out
            Parquet file to write (id, e000...).
        force
            Replace the file if it exists.
        device
            cpu, cuda, cuda:1, ..., or auto.
        threads
            Threads of the processor.
        quiet
            No notes.
        json
            Print as JSON.
        """
        _quiet(quiet)
        _threads(threads)
        from ssge.datasets import load
        from ssge.errors import InputError
        from ssge.experiments.run import RunFolder
        from ssge.io.embeddings import write_embedding
        from ssge.training.device import choose_device

        if out.exists() and not force:
            raise InputError(f"{out} exists; choose another file, or --force to replace it.")
        folder = RunFolder(run)
        folder.read_record()
        model = folder.read_model(str(choose_device(device)))
        data = load(graph)
        vectors = model.embed(data).cpu().numpy()
        write_embedding(out, data.node_ids, vectors)
        if json:
            print(jsonlib.dumps({"nodes": vectors.shape[0], "columns": vectors.shape[1], "file": str(out)}))
        else:
            print(f"{vectors.shape[0]:,} nodes x {vectors.shape[1]} columns: {out}")

    @app.command(help_epilogue=_examples("evaluate"))
    def evaluate(
        run: Path,
        /,
        *,
        protocol: str = "paper",
        threads: int | None = None,
        force: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
    ) -> None:
        """Score the embedding of a finished run: linear probe, clustering, geometry.

        The scores are kept in the run's record.json.

        Parameters
        ----------
        run
            Folder of the run.
        protocol
            paper, paper-lbfgs (penalty chosen on validation nodes), or released-code (its splits too).
        threads
            Threads of the processor.
        force
            Score again what is scored already.
        json
            Print the scores as JSON.
        """
        _threads(threads)
        from ssge.datasets import load
        from ssge.experiments.compare import score
        from ssge.experiments.protocols import PROTOCOLS
        from ssge.experiments.run import RunFolder
        from ssge.experiments.tables import row

        chosen = PROTOCOLS[protocol]
        folder = RunFolder(run)
        record = folder.read_record()
        record = score(folder, load(record.dataset), chosen, force)
        scores = record.scores[chosen.name]
        if json:
            print(scores.model_dump_json(indent=2))
        else:
            print_table([row(f"{record.method} on {record.dataset}", [scores])], f"{chosen.name}: {chosen.description}")

    @app.command(help_epilogue=_examples("run"))
    def run(
        recipe: str,
        /,
        *,
        seeds: int = 5,
        protocol: str | None = None,
        out: Path | None = None,
        threads: int | None = None,
        device: str = "cpu",
        force: Annotated[bool, Parameter(negative="")] = False,
        quiet: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
        settings: flags = None,
    ) -> None:
        """Fit and score a recipe over several encoder seeds; print one table with the reference rows.

        Finished seeds are kept and not run again.

        Parameters
        ----------
        recipe
            Name of a recipe (ssge ls recipes) or a TOML file.
        seeds
            Encoder seeds 0, 1, ...
        protocol
            How to score; default: the recipe's.
        out
            Folder for the runs; default: runs/RECIPE.
        threads
            Threads of the processor.
        device
            cpu, cuda, cuda:1, ..., or auto.
        force
            Run and score everything again.
        quiet
            No progress, no notes.
        json
            Print the summary as JSON.
        """
        _quiet(quiet)
        _threads(threads)
        from ssge.datasets import load
        from ssge.experiments.compare import compare
        from ssge.experiments.protocols import PROTOCOLS
        from ssge.experiments.recipes import load_recipe
        from ssge.experiments.run import resolve_config

        chosen = load_recipe(recipe)
        judged = PROTOCOLS[protocol or chosen.protocol]
        resolved = resolve_config(chosen.method, chosen.config, _given(settings))
        summary = compare(
            chosen, load(chosen.dataset), judged, seeds, out or Path("runs") / chosen.name,
            config=resolved, device=device, force=force, quiet=quiet,
        )  # fmt: skip
        if json:
            print(summary.model_dump_json(indent=2))
            return
        splits = summary.records[0].scores[judged.name].splits
        title = (
            f"{chosen.name}, protocol {judged.name} ({splits} split{'s' if splits[0].isdigit() else ''}), {seeds} seeds"
        )
        print_table(summary.rows(), title)
        if chosen.published:
            print("published: " + ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in chosen.published.items()))

    @app.command(help_epilogue=_examples("ls"))
    def ls(
        kind: Literal["methods", "datasets", "recipes", "protocols"],
        /,
        *,
        json: Annotated[bool, Parameter(negative="")] = False,
    ) -> None:
        """List what there is.

        Parameters
        ----------
        kind
            What to list.
        json
            Print as JSON.
        """
        from ssge.experiments.catalogue import catalogue

        headings, lines = catalogue(kind)
        if json:
            print(jsonlib.dumps([dict(zip(headings, line, strict=True)) for line in lines], indent=2))
        else:
            print_cells(headings, lines)

    @app.command
    def version(*, json: Annotated[bool, Parameter(negative="")] = False) -> None:
        """Show the versions and the machine, as they are kept with every run.

        Parameters
        ----------
        json
            Print as JSON.
        """
        from ssge.records import machine

        found = machine()
        if json:
            print(jsonlib.dumps(found, indent=2))
        else:
            print_cells(("", ""), list(found.items()))

    @app.command(help_epilogue=_examples("demo"))
    def demo(
        *,
        out: Path = Path("demo"),
        seeds: int = 3,
        threads: int | None = None,
        force: Annotated[bool, Parameter(negative="")] = False,
        quiet: Annotated[bool, Parameter(negative="")] = False,
    ) -> None:
        """Embed the import graph of installed Python packages; print table and neighbours, draw pictures.

        Parameters
        ----------
        out
            Folder for runs and pictures.
        seeds
            Encoder seeds 0, 1, ...
        threads
            Threads of the processor.
        force
            Run everything again.
        quiet
            No progress, no notes.
        """
        _quiet(quiet)
        _threads(threads)
        from ssge.experiments.demo import demonstrate

        demonstrate(out, seeds, force=force, quiet=quiet, show=print_table, say=print)

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
        _app(_config_class(words))(words, exit_on_error=False, print_error=False)
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

    Only fit and run have such flags, and only they pay for the import of the methods.
    """
    if not words or words[0] not in ("fit", "run"):
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


def _given(settings: Any) -> dict[str, Any]:
    """Return only the settings that were given as flags."""
    return {} if settings is None else {name: getattr(settings, name) for name in settings.model_fields_set}


def _quiet(quiet: bool) -> None:
    if quiet:
        logging.getLogger().setLevel(logging.ERROR)


def _threads(threads: int | None) -> None:
    if threads is not None:
        from ssge.errors import InputError

        if threads < 1:
            raise InputError(f"threads must be 1 or more; received {threads}.")
        import torch

        torch.set_num_threads(threads)


if __name__ == "__main__":
    main()
