"""Commands that learn and apply: fit, embed."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from ssge.cli.options import SETTINGS, Switch, be_quiet, examples, given, use_threads


def register(app: App, config: Any) -> None:
    """Add the commands; ``config`` is the class whose fields become flags."""
    flags = Annotated[config, SETTINGS]

    @app.command(
        help_epilogue=examples(
            "ssge fit imports --out run",
            "ssge fit cora --recipe ssge/cora --seed 1 --out run",
            "ssge fit sbm:nodes=20000 --out run --epochs 50 --widths 128 64",
            "ssge fit cora --recipe ssge/cora --seed 1 --out run --resume",
        )
    )
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
        resume: Switch = False,
        force: Switch = False,
        quiet: Switch = False,
        json: Switch = False,
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
        be_quiet(quiet)
        use_threads(threads)
        from ssge.datasets import load
        from ssge.experiments import run as runs
        from ssge.experiments.recipes import load_recipe

        chosen = load_recipe(recipe) if recipe else None
        method = chosen.method if chosen else method
        resolved = runs.resolve_config(
            method, chosen.config if chosen else {}, runs.config_file(config_file), given(settings)
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

    @app.command(help_epilogue=examples("ssge embed run cora --out cora.parquet"))
    def embed(
        run: Path,
        graph: str,
        /,
        *,
        out: Path,
        force: Switch = False,
        device: str = "cpu",
        threads: int | None = None,
        quiet: Switch = False,
        json: Switch = False,
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
        be_quiet(quiet)
        use_threads(threads)
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
