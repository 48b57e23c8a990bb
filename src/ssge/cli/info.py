"""Commands that show what there is: ls, version, completion, demo."""

import importlib.util
import logging
from pathlib import Path
from typing import Any, Literal

from ssge.cli.apply import neighbors
from ssge.cli.options import INFO, Json, Quiet, Threads, command, print_rows, set_up
from ssge.errors import InputError
from ssge.terminal import print_cells, print_json, print_table
from ssge.training.allocator import kept_memory

log = logging.getLogger(__name__)

WELL_KNOWN = (
    "sklearn.cluster._kmeans",
    "networkx.algorithms.shortest_paths.weighted",
    "scipy.sparse._csr",
    "matplotlib.colors",
    "torch_geometric.nn.conv.gcn_conv",
)
KINDS = {
    "methods": "ways to learn embeddings, for --method",
    "datasets": "graphs that have a name, with their sizes",
    "recipes": "settings of a method on a dataset, for --recipe and ssge run",
    "protocols": "ways to score an embedding, for --protocol",
}


@command(INFO, "ssge ls recipes", "ssge ls datasets --json")
def ls(kind: Literal["methods", "datasets", "recipes", "protocols"] | None = None, /, *, json: Json = False) -> None:
    """List methods, datasets, recipes or protocols.

    Parameters
    ----------
    kind
        What to list; without it, what can be listed.
    """
    print_rows(catalog(kind), json)


def catalog(kind: str | None) -> list[dict[str, str]]:
    """Return what there is of a kind, as rows of a table; without a kind, the kinds."""
    if kind == "methods":
        from ssge.methods import METHODS

        facts = ("name", "title", "family", "inputs", "batches", "reference")
        methods = (METHODS[name] for name in METHODS)
        return [{fact: _batches(m) if fact == "batches" else getattr(m, fact) for fact in facts} for m in methods]
    if kind == "datasets":
        from ssge.datasets import DATASETS

        sizes = ("nodes", "edges", "features", "classes")
        return [
            {"name": name}
            | {size: "" if (n := getattr(DATASETS[name], f"num_{size}")) is None else f"{n:,}" for size in sizes}
            | {"split": DATASETS[name].split, "description": DATASETS[name].description}
            for name in DATASETS
        ]
    if kind == "protocols":
        from ssge.experiments.protocols import PROTOCOLS

        return [{"name": name, "description": PROTOCOLS[name].description} for name in PROTOCOLS]
    if kind == "recipes":
        from ssge.runs.recipes import load_recipe, recipes

        return [
            {fact: getattr(recipe, fact) for fact in ("name", "method", "dataset", "protocol")}
            | {"published": ", ".join(f"{figure} {value:g}" for figure, value in recipe.published.items())}
            for recipe in map(load_recipe, recipes())
        ]
    return [{"command": f"ssge ls {kind}", "lists": words} for kind, words in KINDS.items()]


def _batches(method: Any) -> str:
    ways = {"walk_length": "walks", "fanouts": "full, nodes, sampled", "batch_nodes": "full, nodes"}
    return next((way for setting, way in ways.items() if setting in method.Config.model_fields), "full")


@command(INFO)
def version(*, json: Json = False) -> None:
    """Show the versions and the machine, as they are kept with every run."""
    from ssge.records import machine

    found = machine()
    if json:
        print_json(found)
    else:
        print_cells(("", ""), list(found.items()))


@command(
    INFO,
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

    try:
        print(application(all_settings()).generate_completion(shell=shell))
    except ShellDetectionError:
        raise InputError(
            "SHELL must be bash, zsh or fish; the one that runs this command was not recognized."
        ) from None


@command(INFO, "ssge demo --out demo")
def demo(
    *,
    out: Path = Path("demo"),
    seeds: int = 3,
    threads: Threads = None,
    force: bool = False,
    quiet: Quiet = False,
) -> None:
    """Embed the import graph of installed Python packages; print scores and neighbors, draw pictures.

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
    from ssge.datasets import load
    from ssge.experiments import figures
    from ssge.experiments.compare import compare
    from ssge.experiments.layout import Coloring
    from ssge.experiments.protocols import PROTOCOLS
    from ssge.experiments.references import raw_features, untrained_encoder
    from ssge.runs.folder import RunFolder
    from ssge.runs.plan import plan
    from ssge.runs.recipes import load_recipe

    if seeds < 1:  # reading the graph takes time
        raise InputError(f"seeds must be 1 or more; received {seeds}.")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is not a folder.")
    recipe, graph = load_recipe("ssge/imports"), load("imports")
    log.info("%r: nodes are modules, edges are imports, features are words of the source", graph)
    with kept_memory():
        summary = compare(recipe, graph, PROTOCOLS[recipe.protocol], seeds, out / "runs", force=force, quiet=quiet)
    print_table(summary.rows(), f"{graph!r}, {seeds} encoder seeds")

    folder = RunFolder(out / "runs" / "seed-0")
    ids, after = folder.read_embedding()
    print()
    if known := [module for module in WELL_KNOWN if module in ids]:
        neighbors(folder.path, *known, k=5)
    print()
    if importlib.util.find_spec("matplotlib") is None:
        print("pictures: none, they need matplotlib (pip install 'ssge[plots]')")
        return
    before = untrained_encoder(graph, plan(graph.info, recipe=recipe.name))
    spectra = {"raw features": raw_features(graph), "untrained encoder": before, "SSGE": after}
    assert graph.labels is not None
    classes = Coloring("", list(graph.class_names), graph.labels)
    for path in (
        figures.embedding_map(out / "map.png", after, classes, f"SSGE embedding of {graph.name}"),
        figures.loss_curves(out / "losses.png", folder.read_history(), "Training without labels"),
        figures.correlations(out / "correlation.png", {"Before training": before, "After": after}),
        figures.spectrum(out / "spectrum.png", spectra, "How many directions the embedding uses"),
    ):
        print(f"picture: {path}")
