"""Commands that learn and apply: fit, embed."""

import json as jsonlib
import logging
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from ssge.cli.options import AS_FOUND, READING, SETTINGS, Reading, Switch, be_quiet, examples, given, use_threads

log = logging.getLogger("ssge")


def register(app: App, config: Any) -> None:
    """Add the commands; ``config`` is the class whose fields become flags."""
    flags = Annotated[config, SETTINGS]

    @app.command(
        help_epilogue=examples(
            "ssge fit imports --out run",
            "ssge fit edges.csv --nodes nodes.parquet --out run",
            "ssge fit edges.csv --features structural --out run",
            "ssge fit cora --recipe ssge/cora --seed 1 --out run",
            "ssge fit sbm:nodes=20000 --out run --epochs 50 --widths 128 64",
            "ssge fit cora --recipe ssge/cora --seed 1 --out run --resume",
            "ssge fit grown.csv --nodes nodes.csv --warm-start run --out run2",
        )
    )
    def fit(
        graph: str,
        /,
        *,
        out: Path,
        method: str | None = None,
        recipe: str | None = None,
        warm_start: Path | None = None,
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
        reading: Annotated[Reading, READING] = AS_FOUND,
        settings: flags = None,
    ) -> None:
        """Learn embeddings of a graph and keep the run in a folder.

        The folder gets embedding.parquet (id, e000...), model.safetensors, config.toml, history.jsonl, record.json,
        README.md and, for a graph of your own, features.json: all that is needed to embed other graphs.
        Settings come from the defaults for a graph of its size, then the recipe, then the file, then the flags.

        Parameters
        ----------
        graph
            Name of a dataset (ssge ls datasets), with options as in sbm:nodes=1000,classes=5; or a file: edge table
            (CSV, TSV, Parquet; also .gz, .zst), .npz, .mtx, .graphml, .gml, PyG .pt, folder of an OGB dataset.
        out
            Folder of the run; it must not hold another one.
        method
            Name of the method (ssge ls methods); default: that of the run to start from or of the recipe, else ssge.
        recipe
            Take the settings of a recipe (ssge ls recipes).
        warm_start
            Begin with the weights, settings and feature columns of another run, as for a graph that has grown; a
            label column is taken over if all nodes have one.
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
        from ssge.errors import InputError
        from ssge.experiments import run as runs
        from ssge.experiments.folder import RunFolder
        from ssge.experiments.recipes import load_recipe
        from ssge.experiments.sources import open_graph, suited_to
        from ssge.methods import METHODS

        if warm_start and out.resolve() == warm_start.resolve():
            raise InputError(f"--out must be another folder than --warm-start; received {out} for both.")
        chosen = load_recipe(recipe) if recipe else None
        before = RunFolder(warm_start).read_record() if warm_start else None
        schema = RunFolder(warm_start).read_schema() if warm_start else None
        settled = before.method if before else chosen.method if chosen else None
        if method is not None and settled not in (None, METHODS.canonical(method)):
            raise InputError(f"--method must be {settled}, that of {warm_start or recipe}; received {method}.")
        method = settled or method or "ssge"
        if before:
            METHODS[method].require_inductive("it cannot start from another run; leave --warm-start out")
        options = _options(graph, reading, before, schema)
        options = _with_label(options, before.reading.get("label")) if before else suited_to(method, graph, options)
        data = open_graph(graph, options, schema)
        resolved = runs.resolve_config(
            method,
            before.config if before else chosen.config if chosen else runs.suited(method, data),
            chosen.config if before and chosen else {},
            runs.config_file(config_file),
            given(settings),
        )
        done = runs.fit(
            data, method, resolved, out=out, seed=seed, device=device, dtype=dtype,
            checkpoint_every=checkpoint_every, resume=resume, force=force, quiet=quiet,
            recipe=chosen.name if chosen else None, start=warm_start, **_origin(graph, options),
        )  # fmt: skip
        if warm_start:
            _tell_drift(RunFolder(warm_start).read_embedding(), done.embedding)
        if json:
            print(done.record.model_dump_json(indent=2))
            return
        n, d = done.embedding.vectors.shape
        final = ", ".join(f"{k} {v:.4g}" for k, v in done.record.final.items() if k not in ("epoch", "seconds"))
        print(f"{n:,} nodes x {d} columns in {done.record.seconds:.1f} s ({final})")
        print(f"embedding: {out / 'embedding.parquet'}")

    @app.command(
        help_epilogue=examples(
            "ssge embed run cora --out cora.parquet",
            "ssge embed run new_edges.csv --nodes new_nodes.csv --out new.parquet",
            "ssge embed run grown.csv --nodes grown_nodes.csv --only new --out new.csv",
        )
    )
    def embed(
        run: Path,
        graph: str,
        /,
        *,
        out: Path,
        only: Literal["new"] | None = None,
        force: Switch = False,
        device: str = "cpu",
        threads: int | None = None,
        quiet: Switch = False,
        json: Switch = False,
        reading: Annotated[Reading, READING] = AS_FOUND,
    ) -> None:
        """Embed a graph with the model of a finished run: new nodes, or a new graph with the same columns.

        The graph is read as the run's own was, features made in the same way; the flags change how it is read.

        Parameters
        ----------
        run
            Folder of the run.
        graph
            Name of a dataset, or file, with the same features.
        out
            File to write: .parquet or .csv (id, e000...), .npy (ids beside it), or word2vec text (.txt, .vec, .emb).
        only
            new: embed only the nodes that the run has not seen. The tables must hold these and their neighborhood,
            one step more than the encoder has layers, since the degrees of the outermost nodes count; and all edges
            that structural or aggregated features of these nodes come from. Whatever else they hold plays no part.
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
        import numpy as np

        from ssge.errors import InputError
        from ssge.experiments.folder import RunFolder
        from ssge.experiments.sources import is_dataset, open_graph
        from ssge.io.embeddings import Embedding, check_embedding_target, write_embedding
        from ssge.training.device import choose_device

        check_embedding_target(out, force)
        folder = RunFolder(run)
        record, known = folder.read_record(), folder.read_embedding()
        model = folder.read_model(str(choose_device(device)))
        schema = folder.read_schema()
        if not is_dataset(graph) and Path(graph).resolve() != Path(record.dataset):
            model.require_inductive(f"they are in {folder.embedding}; train on {graph} to embed that")
        data = open_graph(graph, _options(graph, reading, record, schema), schema)
        nodes = None
        if only:
            nodes = np.flatnonzero(known.find(data.node_ids) < 0)
            if not nodes.size:
                raise InputError(f"--only new: the run in {run} has seen all {data.num_nodes:,} nodes of {graph}.")
            log.info("%s nodes are new, %s were known.", f"{nodes.size:,}", f"{data.num_nodes - nodes.size:,}")
        vectors = model.embed(data, nodes=nodes).cpu().numpy()
        found = Embedding(data.node_ids if nodes is None else data.node_ids[nodes], vectors)
        write_embedding(out, *found)
        if not only:
            _tell_drift(known, found)
        if json:
            print(jsonlib.dumps({"nodes": vectors.shape[0], "columns": vectors.shape[1], "file": str(out)}))
        else:
            print(f"{vectors.shape[0]:,} nodes x {vectors.shape[1]} columns: {out}")


def _options(graph: str, reading: Reading, before: Any, schema: Any) -> dict[str, Any]:
    """Return how to read a graph: as that of an earlier run was read, but for what is given now.

    The earlier node table is another one, and its label may not be in this one.
    """
    from ssge.experiments.sources import is_dataset, made_like

    given_now = reading.given()
    if before is None or is_dataset(graph):
        return given_now
    inherited = made_like(schema, before.reading)
    return {key: value for key, value in inherited.items() if key not in ("nodes", "label")} | given_now


def _with_label(options: dict[str, Any], label: str | None) -> dict[str, Any]:
    """Add the label of an earlier run to the options, where the node table has it for each node."""
    from ssge.io.labels import has_labels

    if label is None or "label" in options:
        return options
    text = {key: options[key] for key in ("delimiter", "header", "limit") if key in options}
    if "nodes" in options and has_labels(options["nodes"], label, **text):
        return options | {"label": label}
    log.info("The label %r is left out: the node table does not have it for each node.", label)
    return options


def _origin(graph: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return where the graph came from as the record keeps it, with whole paths: it may be read from elsewhere."""
    from ssge.experiments.sources import is_dataset

    if is_dataset(graph):
        return {"dataset": graph}
    nodes = {"nodes": str(Path(options["nodes"]).resolve())} if "nodes" in options else {}
    return {"dataset": str(Path(graph).resolve()), "reading": options | nodes}


def _tell_drift(before: Any, after: Any) -> None:
    """Log how far the nodes that both embeddings hold have moved."""
    from ssge.tasks.drift import drift

    moved = drift(before, after)
    if moved.nodes:
        log.info(
            "%s nodes are new; the %s known before have cosine %.3f to their old vectors on average, "
            "%.3f at the lowest twentieth.",
            f"{moved.new:,}", f"{moved.nodes:,}", moved.mean, moved.low,
        )  # fmt: skip
