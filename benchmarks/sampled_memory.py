"""Memory of sampled steps against the full batch, on the structure of ogbn-arxiv with the settings of its recipe.

Each mode has a process of its own. Memory is the highest resident memory during some steps minus that just before them,
when the graph is loaded; that of the embedding, which takes all neighbors in both modes, is measured apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speed import measured_memory, setting

if TYPE_CHECKING:
    from pages import Record

BATCH, FANOUTS, STEPS = 2048, (10, 10), 4
MODES: dict[str, dict[str, Any]] = {"full": {}, "sampled": {"batch_nodes": BATCH, "fanouts": FANOUTS}}
MOST = 0.25
"""Share of the full batch's memory that sampled steps may take."""


def measure(mode: str) -> dict[str, float]:
    import torch

    from ssge.datasets import load
    from ssge.graph import Graph
    from ssge.ops.random import Key
    from ssge.runs.plan import plan
    from ssge.training.allocator import kept_memory
    from ssge.training.batches import batches
    from ssge.training.trainer import step

    graph, config = setting("arxiv")
    torch.set_num_threads(1)

    def steps(graph: Graph, count: int, changed: dict[str, Any]) -> Any:
        method = plan(graph.info, settings=config | changed).build(graph)
        prepared, optimizer = method.prepare(graph), method.optimizer()
        method.train()
        with kept_memory():
            for batch, key in islice(batches(method, prepared, Key(0)), count):
                step(method, batch, optimizer, key)
        return method, prepared

    steps(load("karate").without_labels(), 1, {"widths": (8, 8)})  # so that the libraries' own memory is there before
    kept: list[Any] = []
    training = measured_memory(lambda: kept.extend(steps(graph, STEPS if mode == "sampled" else 1, MODES[mode])))
    method, prepared = kept
    embedding = measured_memory(lambda: method.eval().encode(prepared))
    return {"training_mb": training["above_graph_mb"], "embedding_mb": embedding["above_graph_mb"]}


def block(record: Record) -> str:
    """Return the sentence of docs/distributed.md."""
    found = record.figures
    full, sampled = (f"{found[mode]['training_mb']:,.0f} MB" for mode in ("full", "sampled"))
    hops = " and ".join(map(str, found["fanouts"]))
    return (
        f"On the edges of ogbn-arxiv, with widths 512-512, steps of {found['batch_nodes']:,} nodes with fan-outs "
        f"{hops} take {sampled} above the graph, and the full batch {full}: {found['share']:.2f} of it.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="write the record to this file")
    options = parser.parse_args()
    if options.mode:
        print(json.dumps(measure(options.mode)))
        return
    figures: dict[str, Any] = {"batch_nodes": BATCH, "fanouts": FANOUTS}
    for mode in MODES:
        command = [sys.executable, __file__, "--mode", mode]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        figures[mode] = json.loads(done.stdout.splitlines()[-1])
        print(mode, figures[mode], flush=True)
    figures["share"] = figures["sampled"]["training_mb"] / figures["full"]["training_mb"]
    print(f"sampled steps take {figures['share']:.2f} of the memory of the full batch (at most {MOST})")

    from pages import write

    write("sampled_memory", figures, out=options.out)


if __name__ == "__main__":
    main()
