"""Commands that train, and what they need first: fit, estimate, convert."""

import logging
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ssge.cli.options import AS_FOUND, TRAIN, Device, Json, Quiet, Reading, Threads, command, set_up
from ssge.errors import InputError
from ssge.terminal import print_json
from ssge.training.allocator import kept_memory

log = logging.getLogger("ssge")


@Parameter(name="*")
@dataclass(frozen=True)
class Choice:
    """What to train, and how.

    Parameters
    ----------
    method
        Name of the method (ssge ls methods); default: that of the run to start from or of the recipe, else ssge.
    recipe
        Take the settings of a recipe (ssge ls recipes).
    config_file
        Take settings from a TOML file, such as the config.toml of another run.
    precision
        bf16: products in bfloat16, all else in float32. auto: bf16 where the processor or GPU has it.
    memory
        Stream a graph folder (ssge convert) so that the process stays below this, as in 2GB. Same weights in more time;
        the embedding has the learned columns alone, as with --blocks learned.
    """

    method: str | None = None
    recipe: str | None = None
    config_file: Annotated[Path | None, Parameter(name="--config")] = None
    precision: Literal["auto", "bf16", "float32", "float64"] = "float32"
    memory: str | None = None


DEFAULT = Choice()


@command(
    TRAIN,
    "ssge fit imports --out run",
    "ssge fit edges.csv --nodes nodes.parquet --out run",
    "ssge fit edges.csv --features structural --out run",
    "ssge fit cora --recipe ssge/cora --seed 1 --out run",
    "ssge fit sbm:nodes=20000 --out run --epochs 50 --widths 128 64",
    "ssge fit cora --recipe ssge/cora --seed 1 --out run --resume",
    "ssge fit grown.csv --nodes nodes.csv --warm-start run --out run2",
    "ssge fit edges.csv --nodes nodes.csv --select --out run",
)
def fit(
    graph: str,
    /,
    *,
    out: Path,
    choice: Choice = DEFAULT,
    warm_start: Path | None = None,
    select: bool = False,
    seed: int = 0,
    device: Device = "cpu",
    threads: Threads = None,
    checkpoint_every: int = 10,
    resume: bool = False,
    force: bool = False,
    quiet: Quiet = False,
    json: Json = False,
    reading: Reading = AS_FOUND,
    settings: Any = None,
) -> None:
    """Learn embeddings of a graph and keep the run in a folder.

    The folder gets embedding.parquet (id, e000...), model.safetensors, config.toml, history.jsonl, record.json,
    README.md and, for a graph of your own, features.json: all that is needed to embed other graphs.
    Settings come from the defaults for the size of the graph, then the recipe, then the file, then the flags.

    Parameters
    ----------
    graph
        Name of a dataset (ssge ls datasets), with options as in sbm:nodes=1000,classes=5; or a file: edge table
        (CSV, TSV, Parquet; also .gz, .zst), .npz, .mtx, .graphml, .gml, PyG .pt, folder of an OGB dataset,
        graph folder (ssge convert).
    out
        Folder of the run; it must not hold another one.
    warm_start
        Start with the weights, settings and feature columns of another run, as for a graph that has grown. A label
        column is taken over if all nodes have a label.
    select
        Method ssge: try nine settings of epochs and uniformity weight first, and take the one that agrees best with
        held-out features and edges. Takes ten times as long; improves clusters on some graphs, not classifiers.
    seed
        Seed of the initial weights and of every random draw.
    checkpoint_every
        Epochs between checkpoints; 0 saves only on Ctrl-C.
    resume
        Continue an interrupted run in the same folder.
    force
        Replace the run in the folder.
    """
    set_up(quiet, threads)
    from ssge.experiments.sources import open_graph, open_streamed, suited_to
    from ssge.runs.fit import fit as run
    from ssge.runs.folder import RunFolder
    from ssge.runs.plan import Start
    from ssge.runs.verdict import verdict
    from ssge.training.distributed import is_main

    if warm_start and out.resolve() == warm_start.resolve():
        raise InputError(f"--out must be another folder than --warm-start; received {out} for both.")
    start = before = schema = known = None
    if warm_start:
        folder = RunFolder(warm_start)
        before, schema, known = folder.read_record(), folder.read_schema(), folder.read_embedding()
        start = Start(folder.read_model(), str(warm_start))
    memory, how = choice.memory, {"start": start, "seed": seed, "device": device}
    name = planned(choice, settings, **how).method.name  # refuses mistakes before anything is read
    options = read_options(graph, reading, before, schema)
    options = _with_label(options, before.reading.get("label")) if before else suited_to(name, graph, options)
    data = open_streamed(graph, memory, out, options, schema) if memory else open_graph(graph, options, schema)
    plan = planned(choice, settings, data.info, **how)
    with nullcontext() if memory else kept_memory():
        if select:
            plan = _selected(data, plan, RunFolder(out), resume, quiet)
        done = run(
            data, plan, RunFolder(out), checkpoint_every=checkpoint_every, resume=resume, force=force, quiet=quiet,
            **origin_of(graph, options),
        )  # fmt: skip
    if not is_main():
        return
    if known is not None:
        log_drift(known, done.embedding)
    if json:
        print(done.record.model_dump_json(indent=2))
        return
    n, d = done.embedding.vectors.shape
    final = ", ".join(f"{k} {v:.4g}" for k, v in done.record.final.items() if k not in ("epoch", "seconds"))
    print(f"{n:,} nodes x {d} columns" + (f" in {done.record.seconds:.1f} s ({final})" if final else ""))
    if done.record.splits is None:
        print(verdict(done.record.diagnostics))
    print(f"embedding: {RunFolder(out).embedding}")


@command(
    TRAIN,
    "ssge estimate cora --recipe ssge/cora",
    "ssge estimate edges.csv --nodes nodes.parquet --widths 512 512",
    "ssge estimate sbm:nodes=1000000 --epochs 50 --threads 2",
)
def estimate(
    graph: str,
    /,
    *,
    choice: Choice = DEFAULT,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    reading: Reading = AS_FOUND,
    settings: Any = None,
) -> None:
    """Estimate parameters, memory and time of a training; takes some seconds.

    Settings come as for fit. Memory and time are measured on small graphs of the same kind, on this machine as busy as
    it is now, and extrapolated to the size of the graph. With --memory the streamed training of a graph folder is
    estimated: disk, passes over the edges, time.

    Parameters
    ----------
    graph
        Name of a dataset, or file, as for fit.
    """
    set_up(quiet, threads)
    from ssge.experiments.sources import open_graph, open_streamed, suited_to
    from ssge.runs.estimate import available_memory
    from ssge.runs.estimate import estimate as estimated

    memory = choice.memory
    options = suited_to(planned(choice, settings).method.name, graph, reading.given())
    data = open_streamed(graph, memory, Path(), options) if memory else open_graph(graph, options)
    plan = planned(choice, settings, data.info)
    epochs = plan.config.epochs
    with nullcontext() if memory else kept_memory():
        found = estimated(data, plan)
    if json:
        known = {name: value for name, value in found._asdict().items() if value is not None}
        print_json({**known, "epochs": epochs, "memory_available": available_memory()})
    else:
        print(found.describe(epochs))


@command(
    TRAIN,
    "ssge convert edges.parquet --nodes nodes.parquet --out graph",
    "ssge convert edges.csv.gz --nodes nodes.csv --memory 8GB --out graph",
    "ssge fit graph --memory 2GB --out run",
)
def convert(
    graph: str,
    /,
    *,
    out: Path,
    memory: str = "2GB",
    force: bool = False,
    quiet: Quiet = False,
    json: Json = False,
    reading: Reading = AS_FOUND,
) -> None:
    """Convert a graph to a folder of memory-mapped arrays, from which graphs larger than memory are trained.

    Tables of edges and nodes may have any size. fit, embed and estimate take the folder in the place of the tables.

    Parameters
    ----------
    graph
        Table of edges (CSV, TSV, Parquet; also .gz, .zst), with --nodes. Any other graph that fit takes is read into
        memory first.
    out
        Folder to write.
    memory
        Memory to stay below while tables are converted.
    force
        Replace a graph folder.
    """
    set_up(quiet)
    from ssge.experiments.sources import is_dataset, open_graph
    from ssge.io.convert import convert as converted
    from ssge.io.graph_writer import check_target, write_graph
    from ssge.io.sizes import bytes_of, in_words

    limit = bytes_of(memory, "--memory")
    if is_dataset(graph) or not Path(graph).exists():
        check_target(out, force)
        stored = write_graph(open_graph(graph, reading.given()), out, force)
    else:
        stored = converted(Path(graph), out, reading, force, limit)
    n, m, p, _ = stored.info
    size = sum(file.stat().st_size for file in out.iterdir())
    if json:
        print_json({"nodes": n, "edges": m, "features": p, "bytes": size, "folder": str(out)})
    else:
        print(f"{n:,} nodes, {m:,} directed edges, {p:,} features in {in_words(size)}: {out}")


def planned(choice: Choice, settings: Any, info: Any = None, **more: Any) -> Any:
    """Plan the training of a graph, or of a tiny one before the graph is read; a wrong setting is named by its flag."""
    from ssge.graph import GraphInfo
    from ssge.runs.plan import plan

    chosen = vars(settings) if settings else {}
    try:
        return plan(
            info or GraphInfo(2, 0, 1), choice.method, recipe=choice.recipe, config_file=choice.config_file,
            settings=chosen, precision=choice.precision, **more,
        )  # fmt: skip
    except InputError as error:
        where, _, what = str(error).partition(":")
        name = where.split(".")[0]
        if chosen.get(name) is None:
            raise
        raise InputError(f"--{name.replace('_', '-')}:{what}") from None


def _selected(data: Any, plan: Any, folder: Any, resume: bool, quiet: bool) -> Any:
    """Choose settings for the graph; a resumed run keeps those that it began with."""
    from dataclasses import replace

    from ssge.runs.folder import CONFIG
    from ssge.runs.plan import resolve_config
    from ssge.runs.recipes import read_toml
    from ssge.runs.select import select

    if resume and folder.unfinished:
        return replace(plan, config=resolve_config(plan.method.name, read_toml(folder.work / CONFIG)))
    return select(data, plan, quiet)


def read_options(graph: str, reading: Reading, before: Any, schema: Any) -> dict[str, Any]:
    """Return how to read a graph: as that of an earlier run, except for the options given now.

    The node table and its label are not inherited.
    """
    from ssge.experiments.sources import is_dataset, made_like
    from ssge.io.graph_folder import is_graph_folder

    given_now = reading.given()
    if before is None or is_dataset(graph) or is_graph_folder(Path(graph)):
        return given_now
    inherited = made_like(schema, before.reading)
    return {key: value for key, value in inherited.items() if key not in ("nodes", "label")} | given_now


def log_drift(before: Any, after: Any) -> None:
    """Log how far the nodes that both embeddings hold have moved."""
    import numpy as np

    from ssge.tasks.drift import drift

    cosine = drift(before, after)
    if cosine.size:
        log.info(
            "%s nodes are new; the %s known before have cosine %.3f to their old vectors on average, "
            "%.3f at the lowest twentieth.",
            f"{len(after.node_ids) - cosine.size:,}", f"{cosine.size:,}", cosine.mean(), np.quantile(cosine, 0.05),
        )  # fmt: skip


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


def origin_of(graph: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return where the graph came from as the record keeps it, with whole paths: it may be read from elsewhere."""
    from ssge.experiments.sources import is_dataset
    from ssge.io.sql import is_sql, parse

    if is_dataset(graph):
        return {"dataset": graph}
    nodes = {"nodes": str(Path(options["nodes"]).resolve())} if "nodes" in options else {}
    return {"dataset": parse(graph).url if is_sql(graph) else str(Path(graph).resolve()), "reading": options | nodes}
