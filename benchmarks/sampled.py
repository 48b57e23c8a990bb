"""Sampled steps against the full batch on PubMed and Computer: accuracy of both, as many steps of the optimizer each.

Both have the settings of a recipe. The sampled one takes batches of 4,096 nodes with fan-outs 10 and 10, and
as many epochs as give the number of steps that the full batch has. Accuracy is that of a converged probe on the splits
of the paper. Finished trainings are kept in runs/sampled, so that an interrupted measurement continues.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from pages import ROOT, Record, table, where, write
from ssge.datasets import load
from ssge.datasets.splits import splits_of
from ssge.evaluation import LbfgsProbe, linear_probes, mean_std
from ssge.graph import Graph
from ssge.records import code_digest
from ssge.runs.fit import fit
from ssge.runs.plan import plan
from ssge.runs.recipes import load_recipe

RECIPES = {"pubmed": "ssge/pubmed-fast", "computer": "ssge/computer"}
DATASETS = tuple(RECIPES)
BATCH, FANOUTS = 4096, (10, 10)
MOST = 0.7
"""Points of accuracy by which the means may differ."""


def settings(graph: Graph, epochs: int) -> dict[str, dict[str, Any]]:
    """Return what differs from the recipe: nothing, or sampled steps, as many in all."""
    steps = math.ceil(graph.num_nodes / BATCH)
    return {"full": {}, "sampled": {"batch_nodes": BATCH, "fanouts": FANOUTS, "epochs": round(epochs / steps)}}


def accuracy(graph: Graph, recipe: str, seed: int, changed: dict[str, Any]) -> dict[str, float]:
    """Train, and return the mean accuracy over the splits, in per cent, with the seconds of the training."""
    run = fit(graph, plan(graph.info, recipe=recipe, settings=changed, seed=seed))
    assert graph.labels is not None
    splits, _ = splits_of(graph, "paper")
    scores = linear_probes(run.embedding.vectors, graph.labels, splits, LbfgsProbe(), range(len(splits)))
    return {"accuracy": 100 * mean_std([score.accuracy for score in scores]).mean, "seconds": run.record.seconds}


def block(record: Record) -> str:
    """Return the table of docs/distributed.md."""
    found, rows = record.figures, []
    for dataset, modes in found["datasets"].items():
        cells = [f"{modes[mode]['accuracy']:.2f} ± {modes[mode]['deviation']:.2f}" for mode in ("full", "sampled")]
        rows.append((f"`{RECIPES[dataset]}`", *cells, f"{modes['difference']:+.2f}"))
    text = table(("recipe", "full batch", "sampled", "difference"), rows)
    hops = " and ".join(map(str, found["fanouts"]))
    return (
        f"{text}\nAccuracy % over {found['seeds']} seeds, as many steps of the optimizer in both modes. Sampled: "
        f"batches of {found['batch_nodes']:,} nodes, fan-outs {hops}. {where(record)}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the record to this file")
    options = parser.parse_args()
    figures: dict[str, Any] = {"batch_nodes": BATCH, "fanouts": FANOUTS, "seeds": options.seeds, "datasets": {}}
    for dataset in options.datasets:
        graph, recipe = load(dataset), RECIPES[dataset]
        lines: dict[str, Any] = {}
        for mode, changed in settings(graph, load_recipe(recipe).config["epochs"]).items():
            found = []
            for seed in range(options.seeds):
                kept = ROOT / "runs" / "sampled" / code_digest("ssge")[:12] / f"{dataset}-{mode}-{seed}.json"
                if not kept.exists():
                    one = accuracy(graph, recipe, seed, changed)
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_text(json.dumps(one))
                found.append(json.loads(kept.read_text()))
                print(f"{dataset}, {mode}, seed {seed}: {found[-1]}", flush=True)
            mean, deviation = mean_std([one["accuracy"] for one in found])
            seconds = mean_std([one["seconds"] for one in found]).mean
            lines[mode] = {"accuracy": mean, "deviation": deviation, "seconds": seconds}
        difference = lines["sampled"]["accuracy"] - lines["full"]["accuracy"]
        print(f"{dataset}: sampled minus full {difference:+.2f} points (at most {MOST} apart)")
        figures["datasets"][dataset] = lines | {"difference": difference}
    if options.out or tuple(options.datasets) == DATASETS:
        write("sampled", figures, [RECIPES[dataset] for dataset in options.datasets], options.out)


if __name__ == "__main__":
    main()
