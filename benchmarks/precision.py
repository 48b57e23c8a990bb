"""Training with products in bfloat16 beside float32: accuracy, NMI and time; docs/speed.md.

The paper's recipe on each graph with five encoder seeds, the same seeds in both precisions, which therefore draw the
same weights and views. The figures of float32 are those of the records of the recipes (``make results``), so these must
be of the same code. Each finished run is kept in runs/precision.json: what was stopped goes on from there. ``--only``
takes some graphs; the record holds all that is there.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pages import Record
    from ssge.records import RunRecord, Scores

GRAPHS = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs")
SEEDS = 5
PROTOCOL = "paper"
KEPT = Path(__file__).resolve().parent.parent / "runs" / "precision.json"


def in_float32(name: str) -> dict[str, RunRecord]:
    """Return the runs of the paper's recipe by seed; none if its record is missing or of other code."""
    import pages
    from ssge.experiments.compare import Summary

    path = pages.RESULTS / "recipes" / "ssge" / f"{name}.json"
    if not path.exists() or pages.stale(path):
        return {}
    return {str(one.seed): one for one in Summary.read(path).records if one.recipe is not None}


def figures(scores: Scores, seconds: float) -> dict[str, float]:
    return {
        "accuracy": 100 * statistics.fmean(scores.accuracies),
        "nmi": 100 * statistics.fmean(scores.nmi),
        "seconds": seconds,
    }


def run(name: str, seed: int) -> dict[str, float]:
    """Train in bf16 and score once."""
    from ssge.datasets import facts_of, load
    from ssge.experiments.protocols import PROTOCOLS, evaluate
    from ssge.runs.fit import fit
    from ssge.runs.plan import plan
    from ssge.training.allocator import kept_memory

    graph = load(name)
    planned = plan(graph.info, recipe=f"ssge/{name}", seed=seed, precision="bf16")
    with kept_memory():
        done = fit(graph, planned, dataset=name)
    scores = evaluate(done.embedding.vectors, graph, PROTOCOLS[PROTOCOL], done.record.scale, facts=facts_of(name))
    return figures(scores, done.record.seconds)


def measure(graphs: tuple[str, ...], seeds: int) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Run what is missing and return all figures: graph, seed, precision."""
    from ssge.records import code_digest

    code = code_digest("ssge")
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    done: dict[str, dict[str, dict[str, float]]] = kept.get(code, {})
    KEPT.parent.mkdir(exist_ok=True)
    for seed in map(str, range(seeds)):
        for name in graphs:
            if seed not in done.get(name, {}):
                done.setdefault(name, {})[seed] = run(name, int(seed))
                KEPT.write_text(json.dumps({code: done}, indent=1) + "\n")
                print(name, seed, json.dumps(done[name][seed]), flush=True)
    found = {}
    for name in GRAPHS:
        full = in_float32(name) if name in done else {}
        found[name] = {
            seed: {"float32": figures(full[seed].scores[PROTOCOL], full[seed].seconds), "bf16": one}
            for seed, one in done.get(name, {}).items()
            if seed in full
        }
    return {name: pairs for name, pairs in found.items() if pairs}


def block(record: Record) -> str:
    """Return the table: both precisions, and their difference with its standard error over pairs of equal seeds."""
    from pages import spread, table, where

    lines = []
    for name, seeds in record.figures.items():
        cells = [name, str(len(seeds))]
        for figure in ("accuracy", "nmi"):
            low, high = ([pair[precision][figure] for pair in seeds.values()] for precision in ("bf16", "float32"))
            cells += [spread(high, 2), spread(low, 2), _difference(low, high)]
        ratios = [pair["float32"]["seconds"] / pair["bf16"]["seconds"] for pair in seeds.values()]
        lines.append([*cells, f"{statistics.median(ratios):.2f}"])
    headings = (
        "graph", "seeds", "accuracy %, float32", "bf16", "difference ± its standard error", "NMI %, float32", "bf16",
        "difference ± its standard error", "time, float32 / bf16",
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
    found = measure(tuple(options.only or GRAPHS), options.seeds)

    from pages import write

    write("precision", found, [f"ssge/{name}" for name in found])


if __name__ == "__main__":
    main()
