"""How good are the vectors of nodes that training never saw: the table in docs/own-graph.md.

Cora, recipe ``ssge/cora``. A fifth of the nodes, drawn by the seed, is taken out together with its edges; the model
learns from the rest and is saved. Then the whole graph is there, and the saved model embeds it, the nodes held out by
themselves as ``ssge embed --only new`` does. Compared with a model of the same seed that learned from all nodes.

Both are judged by the logistic regression that chooses its penalty on validation nodes, on the public split: accuracy
over all test nodes, and over those test nodes that were held out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pages import Record, asked, spread, where, write
from pages import table as markdown
from ssge.datasets import load
from ssge.evaluation import LbfgsProbe, linear_probe
from ssge.graph import Graph, Split
from ssge.runs.fit import fit
from ssge.runs.plan import plan

RECIPE, DATASET = "ssge/cora", "cora"
SHARE = 0.2
SEEDS = range(3)
ALLOWED = 1.5
WHOLE, PART = "all nodes", "four fifths of the nodes"

Vectors = NDArray[np.floating[Any]]


def part_of(graph: Graph, kept: NDArray[np.bool_]) -> Graph:
    """Return some nodes of a graph and the edges among them."""
    ids = graph.node_ids
    edges = ids[graph.edges[:, kept[graph.edges].all(axis=0)]]
    return Graph.of(edges=edges, features=graph.features[kept], node_ids=ids[kept], name=graph.name)


def embedded(learned_from: Graph, graph: Graph, held: NDArray[np.int64], seed: int) -> Vectors:
    """Train on one graph and embed the other; the nodes held out are embedded by themselves."""
    model = fit(learned_from, plan(learned_from.info, recipe=RECIPE, seed=seed)).method
    vectors: Vectors = model.embed(graph).numpy()
    alone = model.embed(graph, nodes=held).numpy()
    assert np.allclose(alone, vectors[held], atol=1e-4), "the vector of a node depends on its neighborhood only"
    vectors[held] = alone
    return vectors


def accuracies(vectors: Vectors, graph: Graph, held: NDArray[np.int64]) -> tuple[float, float]:
    """Return the accuracy in percent over all test nodes, and over those held out."""
    assert graph.labels is not None
    split = graph.splits[0]
    unseen = Split(split.train, split.valid, np.intersect1d(split.test, held))
    found = [linear_probe(vectors, graph.labels, one, LbfgsProbe()).accuracy for one in (split, unseen)]
    return 100 * found[0], 100 * found[1]


def measure(seeds: Iterable[int]) -> dict[str, dict[str, list[float]]]:
    """Return the two accuracies of both ways of training, one value per seed."""
    graph = load(DATASET)
    clean = graph.without_labels()
    found: dict[str, dict[str, list[float]]] = {}
    for seed in seeds:
        n = graph.num_nodes
        held = np.sort(np.random.default_rng(seed).choice(n, round(SHARE * n), replace=False))
        rest = part_of(clean, ~np.isin(np.arange(n), held))
        for name, source in ((WHOLE, clean), (PART, rest)):
            whole, unseen = accuracies(embedded(source, clean, held, seed), graph, held)
            row = found.setdefault(name, {"test": [], "held out": []})
            row["test"].append(whole)
            row["held out"].append(unseen)
            print(seed, name, whole, unseen, flush=True)
    return found


def block(record: Record) -> str:
    """Return protocol and table."""
    seeds = len(record.figures[WHOLE]["test"])
    head = (
        f"Recipe `{RECIPE}`, seeds 0-{seeds - 1} of the encoder and of the nodes held out; public split,\n"
        "logistic regression, penalty chosen on validation nodes; mean ± deviation over seeds; "
        f"{where(record)}.\n\n"
    )
    rows = [(name, *map(spread, row.values())) for name, row in record.figures.items()]
    return head + markdown(("learned from", "accuracy %, all test nodes", "accuracy %, test nodes held out"), rows)


if __name__ == "__main__":
    only = asked(__doc__, map(str, SEEDS))
    measured = measure(map(int, only or SEEDS))
    if not only:
        write("unseen_nodes", measured, [RECIPE])
        lost = np.mean(measured[WHOLE]["test"]) - np.mean(measured[PART]["test"])
        assert lost <= ALLOWED, f"{lost:.2f} points lost, {ALLOWED} allowed"
