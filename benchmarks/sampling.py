"""Milliseconds of one neighborhood: 1,024 seeds, fan-outs 10 and 10, on a block model of 200,000 nodes.

Of many draws the median counts, once by the clock and once by the time of the processor, which others on the machine
leave alone. One thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

from pages import Record, where, write
from ssge.datasets import load
from ssge.ops.neighbor_sampling import NeighborSampler
from ssge.ops.random import Key
from ssge.views import View

NODES, DEGREE, SEEDS, FANOUTS = 200_000, 20, 1024, (10, 10)
MOST = 20
"""Milliseconds that a draw may take."""


def block(record: Record) -> str:
    """Return the sentence of docs/distributed.md."""
    found = record.figures
    hops = " and ".join(map(str, found["fanouts"]))
    return (
        f"A neighborhood of {found['seeds']:,} nodes with fan-outs {hops}, in a graph of {found['nodes']:,} nodes and "
        f"{found['edges']:,} directed edges, takes {found['milliseconds']:.1f} ms to draw ({where(record)}).\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--out", type=Path, help="write the record to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    view = View.of(load("sbm", nodes=NODES, degree=DEGREE, features=4).without_labels())
    sampler, clock, processor = NeighborSampler(view.adjacency, FANOUTS), [], []
    for draw in range(options.draws):
        seeds = Key(draw).permutation(NODES)[:SEEDS]
        began = time.perf_counter(), time.process_time()
        part = sampler.sample(seeds, Key(0).at_step(draw))
        clock.append(1e3 * (time.perf_counter() - began[0]))
        processor.append(1e3 * (time.process_time() - began[1]))
    figures = {
        "nodes": NODES, "edges": view.adjacency.num_entries - NODES, "seeds": SEEDS, "fanouts": FANOUTS,
        "draws": options.draws, "milliseconds": statistics.median(clock), "least_milliseconds": min(clock),
        "processor_milliseconds": statistics.median(processor), "sampled_nodes": part.nodes.numel(),
    }  # fmt: skip
    print(figures, f"(at most {MOST} ms)")
    write("sampling", figures, out=options.out)


if __name__ == "__main__":
    main()
