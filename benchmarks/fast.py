"""Fast recipes beside those of the paper: accuracy and training time over the same seeds, one after the other.

Writes results/fast.json and the tables in README.md and docs/speed.md. With ``--tables`` nothing is run: the tables are
made from the committed records.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

from ssge.datasets import facts_of, load
from ssge.evaluation import mean_std
from ssge.experiments.compare import score
from ssge.experiments.folder import RunFolder
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.recipes import load_recipe
from ssge.experiments.run import fit, resolve_config

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "results" / "fast.json"
RUNS = ROOT / "runs" / "fast"
PAGES = (ROOT / "README.md", ROOT / "docs" / "speed.md")
BEGIN, END = "<!-- fast: begin -->\n", "<!-- fast: end -->\n"
DATASETS = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs")
KINDS = ("paper", "fast")
SCHEDULE = ("epochs", "lr", "uniformity_weight", "batch_nodes")


def measure(dataset: str, seeds: int) -> dict[str, Any]:
    """Train and score both recipes with each seed; they alternate, so that both meet the same machine.

    The runs are kept: those of the paper's recipe are what ``ssge run ssge/<dataset> --out`` would make.
    """
    graph, protocol = load(dataset), PROTOCOLS["paper"]
    found: dict[str, Any] = {"protocol": protocol.name}
    for kind, name in zip(KINDS, (f"ssge/{dataset}", f"ssge/{dataset}-fast"), strict=True):
        found[kind] = {"recipe": name, "accuracy": [], "nmi": [], "seconds": []}
    for seed, kind in product(range(seeds), KINDS):
        recipe, folder = load_recipe(found[kind]["recipe"]), RunFolder(RUNS / kind / dataset / f"seed-{seed}")
        config = resolve_config("ssge", recipe.config)
        if not folder.record.exists() or resolve_config("ssge", folder.read_record().config) != config:
            fit(graph, "ssge", config, out=folder.path, seed=seed, quiet=True, recipe=recipe.name, force=True)
        record = score(folder, graph, protocol, facts=facts_of(recipe.dataset))
        scores = record.scores[protocol.name]
        found[kind]["accuracy"].append(100 * mean_std(scores.accuracies).mean)
        found[kind]["nmi"].append(100 * mean_std(scores.nmi).mean)
        found[kind]["seconds"].append(record.seconds)
        found[kind] |= {key: getattr(config, key) for key in SCHEDULE}
        found |= {"threads": record.threads, "machine": record.machine}
        print(dataset, kind, seed, *(f"{found[kind][k][-1]:.2f}" for k in ("accuracy", "nmi", "seconds")), flush=True)
    return found


def table(found: dict[str, Any]) -> str:
    """Return the figures in Markdown."""
    lines = [
        "| graph | epochs, learning rate, λ (, batch) | fast | accuracy % | fast | difference ± its standard error "
        "| NMI % | fast | time, fast / paper |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for dataset, both in found.items():
        schedules = [", ".join(f"{both[k][what]:g}" for what in SCHEDULE if both[k].get(what)) for k in KINDS]
        accuracy = [mean_std(both[k]["accuracy"]) for k in KINDS]
        nmi = [f"{mean_std(both[k]['nmi']).mean:.1f}" for k in KINDS]
        error = sum(a.std**2 / len(both[k]["accuracy"]) for a, k in zip(accuracy, KINDS, strict=True)) ** 0.5
        time = sum(both["fast"]["seconds"]) / sum(both["paper"]["seconds"])
        cells = [
            dataset, *schedules, *(f"{a.mean:.2f} ± {a.std:.2f}" for a in accuracy),
            f"{accuracy[1].mean - accuracy[0].mean:+.2f} ± {error:.2f}", *nmi, f"{time:.2f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    first = next(iter(found.values()))
    note = (
        f"Protocol `{first['protocol']}`, encoder seeds 0-{len(first['fast']['accuracy']) - 1}, "
        f"{first['threads']} threads, {first['machine']['cores']} cores of {first['machine']['processor']}, "
        f"torch {first['machine']['torch']}."
    )
    return "\n".join([*lines, "", note]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--tables", action="store_true", help="make the tables from the committed record, run nothing")
    options = parser.parse_args()
    measured: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if not options.tables:
        for chosen in options.datasets:
            measured[chosen] = measure(chosen, options.seeds)
            measured = {name: measured[name] for name in DATASETS if name in measured}
            RECORD.write_text(json.dumps(measured, indent=1) + "\n")
    for page in PAGES:
        head, rest = page.read_text().split(BEGIN)
        page.write_text(head + BEGIN + table(measured) + END + rest.split(END)[1])
