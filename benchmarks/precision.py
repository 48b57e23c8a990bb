"""Training with products in bfloat16 beside float32: accuracy, NMI and processor time; docs/speed.md.

The paper's recipe on each graph with five encoder seeds, the same seeds in both precisions, which therefore draw the
same weights and views. Seeds go round the graphs, and each finished pair is kept in runs/precision.json: a run that was
stopped goes on from there. ``--only`` takes some graphs; the record holds all that is there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pages import Record

GRAPHS = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs")
PRECISIONS = ("float32", "bf16")
SEEDS = 5
PROTOCOL = "quick"
KEPT = Path(__file__).resolve().parent.parent / "runs" / "precision.json"


def run(name: str, seed: int, precision: str) -> dict[str, float]:
    """Train and score once."""
    from ssge.datasets import facts_of, load
    from ssge.experiments.protocols import PROTOCOLS, evaluate
    from ssge.runs.fit import fit
    from ssge.runs.plan import plan
    from ssge.training.allocator import kept_memory

    graph = load(name)
    planned = plan(graph.info, recipe=f"ssge/{name}", seed=seed, precision=precision)  # type: ignore[arg-type]
    began = time.process_time()
    with kept_memory():
        done = fit(graph, planned, dataset=name)
    seconds = time.process_time() - began
    scores = evaluate(done.embedding.vectors, graph, PROTOCOLS[PROTOCOL], done.record.scale, facts=facts_of(name))
    return {
        "accuracy": 100 * statistics.fmean(scores.accuracies),
        "nmi": 100 * statistics.fmean(scores.nmi),
        "processor_seconds": seconds,
        "loss": done.record.final["total"],
    }


def measure(graphs: tuple[str, ...], seeds: int) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Run what is missing and return all figures: graph, seed, precision."""
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    KEPT.parent.mkdir(exist_ok=True)
    for seed in map(str, range(seeds)):
        for name in graphs:
            if seed in found.get(name, {}):
                continue
            pair = {precision: run(name, int(seed), precision) for precision in PRECISIONS}
            found.setdefault(name, {})[seed] = pair
            KEPT.write_text(json.dumps(found, indent=1) + "\n")
            print(name, seed, json.dumps(pair), flush=True)
    return {name: found[name] for name in GRAPHS if name in found}


def block(record: Record) -> str:
    """Return the table: both precisions, and their difference with its standard error over pairs of equal seeds."""
    from pages import spread, table, where

    lines = []
    for name, seeds in record.figures.items():
        cells = [name, str(len(seeds))]
        for figure in ("accuracy", "nmi"):
            low, high = ([pair[precision][figure] for pair in seeds.values()] for precision in ("bf16", "float32"))
            cells += [spread(high, 2), spread(low, 2), _difference(low, high)]
        ratios = [pair["float32"]["processor_seconds"] / pair["bf16"]["processor_seconds"] for pair in seeds.values()]
        lines.append([*cells, f"{statistics.median(ratios):.2f}"])
    headings = (
        "graph", "seeds", "accuracy %, float32", "bf16", "difference ± its standard error", "NMI %, float32", "bf16",
        "difference ± its standard error", "processor time, float32 / bf16",
    )  # fmt: skip
    return table(headings, lines) + f"\nProtocol `{PROTOCOL}`, {where(record)}.\n"


def _difference(low: list[float], high: list[float]) -> str:
    each = [a - b for a, b in zip(low, high, strict=True)]
    error = f" ± {statistics.stdev(each) / len(each) ** 0.5:.2f}" if len(each) > 1 else ""
    return f"{statistics.fmean(each):+.2f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=GRAPHS, help="run these graphs")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    measure(tuple(options.only or GRAPHS), options.seeds)
    found = measure((), 0)

    from pages import write

    write("precision", found, [f"ssge/{name}" for name in found])


if __name__ == "__main__":
    main()
