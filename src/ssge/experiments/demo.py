"""The demo: a graph that everyone has, embedded, scored, looked at."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ssge.datasets import load
from ssge.errors import InputError
from ssge.experiments import figures, references
from ssge.experiments.compare import compare
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.tables import Row
from ssge.graph import Graph
from ssge.io.embeddings import Embedding
from ssge.ops.neighbors import nearest
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan
from ssge.runs.recipes import load_recipe

log = logging.getLogger(__name__)

WELL_KNOWN = (
    "sklearn.cluster._kmeans",
    "networkx.algorithms.shortest_paths.weighted",
    "scipy.sparse._csr",
    "matplotlib.colors",
    "torch_geometric.nn.conv.gcn_conv",
)


def demonstrate(
    out: Path,
    seeds: int,
    *,
    force: bool,
    quiet: bool,
    show: Callable[[Sequence[Row], str], None],
    say: Callable[[str], None],
) -> None:
    """Embed the import graph, print the table and neighbors, and draw pictures into ``out`` if matplotlib is there."""
    if seeds < 1:  # reading the graph takes its time
        raise InputError(f"seeds must be 1 or more; received {seeds}.")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is not a folder.")
    graph = load("imports")
    recipe = load_recipe("ssge/imports")
    protocol = PROTOCOLS[recipe.protocol]
    log.info("%r: modules, who imports whom, the words they use", graph)
    summary = compare(recipe, graph, protocol, seeds, out / "runs", force=force, quiet=quiet)
    show(summary.rows(), f"{graph!r}, {seeds} encoder seeds")

    folder = RunFolder(out / "runs" / "seed-0")
    embedding = folder.read_embedding()
    say("")
    for line in neighbors_of(embedding, WELL_KNOWN):
        say(line)

    say("")
    if importlib.util.find_spec("matplotlib") is None:
        say("pictures: none, they need matplotlib (pip install 'ssge[plots]')")
        return
    before = references.untrained_encoder(graph, plan(graph.info, recipe="ssge/imports"))
    for path in draw(out, graph, folder, before):
        say(f"picture: {path}")


def neighbors_of(embedding: Embedding, names: Sequence[str], k: int = 5) -> list[str]:
    """Return a line for each named node that is there: the node and its nearest."""
    position = {name: i for i, name in enumerate(embedding.node_ids)}
    known = [name for name in names if name in position]
    if not known:
        return []
    found = nearest(embedding.vectors, np.array([position[name] for name in known]), k)
    lines = []
    for name, index, cosine in zip(known, *found, strict=True):
        lines.append(f"nearest to {name}:")
        lines += [f"  {similar:.2f}  {embedding.node_ids[i]}" for i, similar in zip(index, cosine, strict=True)]
    return lines


def draw(out: Path, graph: Graph, folder: RunFolder, before: np.ndarray) -> list[Path]:
    """Draw the four pictures of a run: map, losses, correlation before and after, spectrum."""
    after = folder.read_embedding().vectors
    labels = graph.labels
    return [
        figures.embedding_map(
            out / "map.png", after, labels, graph.class_names, title=f"SSGE embedding of {graph.name}"
        ),
        figures.loss_curves(out / "losses.png", folder.read_history(), title="Training without labels"),
        figures.correlations(out / "correlation.png", {"Before training": before, "After": after}),
        figures.spectrum(
            out / "spectrum.png",
            {"raw features": references.raw_features(graph), "untrained encoder": before, "SSGE": after},
            title="How many directions the embedding uses",
        ),
    ]
