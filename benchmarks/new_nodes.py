"""How good are the vectors of nodes that training never saw: writes results/new_nodes.json and docs/own-graph.md.

Cora, recipe ``ssge/cora``. A fifth of the nodes, drawn by the seed, is taken out together with its edges; the model
learns from the rest and is saved. Then the whole graph is there, and the saved model embeds it, the nodes held out by
themselves as ``ssge embed --only new`` does. Compared with a model of the same seed that learned from all nodes.

Both are judged by the logistic regression that chooses its penalty on validation nodes, on the public split: accuracy
over all test nodes, and over those test nodes that were held out.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssge.datasets import load
from ssge.evaluation import LbfgsProbe, linear_probe, mean_std
from ssge.experiments.folder import RunFolder
from ssge.experiments.recipes import load_recipe
from ssge.experiments.run import fit, resolve_config
from ssge.files import atomic
from ssge.graph import Graph, Split
from ssge.records import machine

ROOT = Path(__file__).resolve().parent.parent
RECORD, DOCUMENT = ROOT / "results" / "new_nodes.json", ROOT / "docs" / "own-graph.md"
BEGIN, END = "<!-- new nodes: begin -->\n", "<!-- new nodes: end -->"
RECIPE = load_recipe("ssge/cora")
SHARE = 0.2
SEEDS = range(3)
ALLOWED = 1.5

Vectors = NDArray[np.floating[Any]]


def part_of(graph: Graph, kept: NDArray[np.bool_]) -> Graph:
    """Return some nodes of a graph and the edges among them."""
    ids = graph.node_ids
    edges = ids[graph.edges[:, kept[graph.edges].all(axis=0)]]
    return Graph.of(edges=edges, features=graph.features[kept], node_ids=ids[kept], name=graph.name)


def embedded(learned_from: Graph, graph: Graph, held: NDArray[np.int64], seed: int) -> Vectors:
    """Train on one graph, save, and embed the other; the nodes held out are embedded by themselves."""
    config = resolve_config(RECIPE.method, RECIPE.config)
    with tempfile.TemporaryDirectory() as folder:
        fit(learned_from, RECIPE.method, config, out=Path(folder), seed=seed, quiet=True)
        model = RunFolder(Path(folder)).read_model()
    vectors = model.embed(graph).numpy()
    alone = model.embed(graph, nodes=held).numpy()
    assert np.allclose(alone, vectors[held], atol=1e-4), "a node's vector depends on its neighborhood only"
    vectors[held] = alone
    return vectors


def accuracies(vectors: Vectors, graph: Graph, held: NDArray[np.int64]) -> tuple[float, float]:
    """Return the accuracy in percent over all test nodes, and over those held out."""
    assert graph.labels is not None
    split = graph.splits[0]
    unseen = Split(split.train, split.valid, np.intersect1d(split.test, held))
    found = [linear_probe(vectors, graph.labels, one, LbfgsProbe()).accuracy for one in (split, unseen)]
    return 100 * found[0], 100 * found[1]


def measure() -> dict[str, dict[str, list[float]]]:
    """Return the two accuracies of both ways of training, one value per seed."""
    graph = load(RECIPE.dataset)
    clean = graph.without_labels()
    found: dict[str, dict[str, list[float]]] = {}
    for seed in SEEDS:
        n = graph.num_nodes
        held = np.sort(np.random.default_rng(seed).choice(n, round(SHARE * n), replace=False))
        rest = part_of(clean, ~np.isin(np.arange(n), held))
        for name, source in (("all nodes", clean), ("four fifths of the nodes", rest)):
            whole, unseen = accuracies(embedded(source, clean, held, seed), graph, held)
            row = found.setdefault(name, {"test": [], "held out": []})
            row["test"].append(whole)
            row["held out"].append(unseen)
    return found


def section(record: dict[str, Any]) -> str:
    """Return protocol and table in Markdown."""
    seeds, where = f"seeds {record['seeds'][0]}-{record['seeds'][-1]}", record["machine"]
    place = f"{record['threads']} thread of {where['cores']} cores of {where['processor']}, torch {where['torch']}"
    lines = [
        f"Recipe `{record['recipe']}`, {seeds} of the encoder and of the nodes held out; public split,",
        f"logistic regression, penalty chosen on validation nodes; mean ± deviation over seeds; {place}.",
        "",
        "| learned from | accuracy %, all test nodes | accuracy %, test nodes held out |",
        "| --- | ---: | ---: |",
    ]
    for name, row in record["accuracy"].items():
        cells = [f"{one.mean:.1f} ± {one.std:.1f}" for one in map(mean_std, row.values())]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def renewed(document: str, record: dict[str, Any]) -> str:
    """Return a document with the section of a record in its place."""
    head, _, rest = document.partition(BEGIN)
    return head + BEGIN + section(record) + END + rest.partition(END)[2]


if __name__ == "__main__":
    measured = measure()
    lost = float(np.mean(measured["all nodes"]["test"]) - np.mean(measured["four fifths of the nodes"]["test"]))
    record = {
        "dataset": RECIPE.dataset,
        "recipe": RECIPE.name,
        "share held out": SHARE,
        "seeds": list(SEEDS),
        "probe": "lbfgs, public split",
        "accuracy": measured,
        "points lost": lost,
        "threads": torch.get_num_threads(),
        "machine": machine(),
    }
    with atomic(RECORD) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n")
    DOCUMENT.write_text(renewed(DOCUMENT.read_text("utf-8"), record), "utf-8")
    print(section(record))
    assert lost <= ALLOWED, f"{lost:.2f} points lost, {ALLOWED} allowed"
