"""What the bias in the released encoder's last layer does to clustering: prints a table, writes results/bias.json.

Needs the runs that `make results` left in runs/; trains the same recipes with ``output_bias`` beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.datasets import load
from ssge.evaluation import cluster, mean_and_deviation
from ssge.experiments.recipes import load_recipe
from ssge.experiments.folder import RunFolder
from ssge.experiments.run import fit, resolve_config
from ssge.graph import Graph

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "results" / "bias.json"
DATASETS = ("cora", "citeseer", "pubmed")
OFFSETS = (1.0, 10.0)
SEEDS = range(3)


def scores(vectors: NDArray[np.floating[Any]], graph: Graph) -> tuple[float, float]:
    assert graph.labels is not None
    score = cluster(vectors, graph.labels, seeds=range(3))
    return score.nmi, score.ari


def size(vectors: NDArray[np.floating[Any]]) -> float:
    """Return the root mean square norm of the centred rows."""
    return float(np.sqrt(np.square(vectors - vectors.mean(axis=0)).sum(axis=1).mean()))


def measure(dataset: str) -> dict[str, list[Any]]:
    graph = load(dataset)
    recipe = load_recipe(f"ssge/{dataset}")
    config = resolve_config(recipe.method, recipe.config, {"output_bias": True})
    found: dict[str, list[Any]] = {"no bias": [], "bias": [], "size of the bias": []}
    for seed in SEEDS:
        vectors = RunFolder(ROOT / "runs" / "ssge" / dataset / f"seed-{seed}").read_embedding().vectors
        found["no bias"].append(scores(vectors, graph))
        direction = np.random.default_rng(seed).normal(size=vectors.shape[1])
        direction *= size(vectors) / np.linalg.norm(direction)
        for offset in OFFSETS:
            found.setdefault(f"offset {offset:g}", []).append(scores(vectors + offset * direction, graph))
        run = fit(graph, recipe.method, config, seed=seed, quiet=True)
        bias = run.method.encoder.affine[-1].bias.detach().numpy() * run.record.scale  # type: ignore[union-attr]
        found["bias"].append(scores(run.embedding.vectors, graph))
        found["size of the bias"].append(float(np.linalg.norm(bias)) / size(run.embedding.vectors))
    return found


def table(found: dict[str, dict[str, list[Any]]]) -> str:
    lines = ["| | " + " | ".join(f"{d} NMI % / ARI %" for d in found) + " |", "| --- |" + " ---: |" * len(found)]
    for name in found[DATASETS[0]]:
        cells = []
        for values in found.values():
            if name == "size of the bias":
                cells.append(f"{mean_and_deviation(values[name]).mean:.2f}")
            else:
                nmi, ari = (mean_and_deviation([100 * v[i] for v in values[name]]) for i in (0, 1))
                cells.append(f"{nmi.mean:.1f} ± {nmi.deviation:.1f} / {ari.mean:.1f} ± {ari.deviation:.1f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    measured = {dataset: measure(dataset) for dataset in DATASETS}
    RECORD.write_text(json.dumps(measured, indent=1) + "\n")
    print(table(measured))
