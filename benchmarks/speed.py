"""How fast a step is: ours in float32 and bf16, against the usual ways, and the products that no step can do without.

The tables of docs/speed.md. For each graph one process runs ours and the floor in turn, several times over; each
reference has a process of its own, because ours changes how the allocator works, which made references slower by a
quarter. Of each the least time of a step counts, the first of a row left out, because whatever else a shared machine
does can only add to it. Memory is measured in further processes: the highest resident memory during training minus that
just before it, with the graph loaded (and, for the reference, already dense). So a measuring process imports nothing it
does not need.

Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pages import Record

FIVE = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs")
GRAPHS = (*FIVE, "arxiv")
ROUNDS = {"cora": 8, "citeseer": 8, "pubmed": 5, "computer": 5, "coauthor_cs": 5, "arxiv": 2}
EPOCHS = 4
FORMS = ("gather", "csr", "released")


def setting(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a graph without labels and the settings of its recipe; ArXiv has its structure, features are made."""
    import numpy as np

    from ssge.datasets import load
    from ssge.graph import Graph
    from ssge.runs.recipes import load_recipe

    config = load_recipe(f"ssge/{name}").config
    if name != "arxiv":
        return load(name).without_labels(), config
    path = Path(os.environ["SSGE_DATA"]) / "ogbn_arxiv" / "raw" / "edge.csv.gz"
    edges = np.loadtxt(path, delimiter=",", dtype=np.int64)
    features = np.random.default_rng(0).standard_normal((edges.max() + 1, 128), dtype=np.float32)
    return Graph.of(edges=edges.T, features=features, name="arxiv (structure)"), config


def train_ours(graph: Any, config: dict[str, Any], epochs: int, observers: Any = (), bf16: bool = False) -> list[float]:
    """Train with the package's own trainer and return the seconds of each epoch but the first."""
    import torch

    from ssge.ops.random import Key
    from ssge.training.allocator import kept_memory
    from ssge.training.checkpoint import build
    from ssge.training.trainer import train

    method = build("ssge", config | {"epochs": epochs}, graph.info, 0, torch.float32)
    method.bf16 = bf16
    prepared = method.prepare(graph)
    with kept_memory():  # as the command line does
        history = train(method, prepared, Key(0), observers=observers).history
    seconds = [line["seconds"] for line in history]
    return [after - before for before, after in pairwise(seconds)]


def time_reference(name: str, form: Any) -> dict[str, float]:
    """Take some steps of a reference in a row and return the least seconds of one, the first left out."""
    from reference import Reference

    reference, ends = Reference(*setting(name), form), []
    for _ in range(ROUNDS[name] + 1):
        reference.step()
        ends.append(time.perf_counter())
    return {"seconds": min(after - before for before, after in pairwise(ends))}


def breakdown(graph: Any, config: dict[str, Any]) -> dict[str, float]:
    """Return the share of one step that each kind of work takes, by the profiler."""
    from torch.profiler import ProfilerActivity, profile

    profiler = profile(activities=[ProfilerActivity.CPU])

    def watch(line: dict[str, float]) -> None:
        if line["epoch"] == 1:
            profiler.start()
        elif line["epoch"] == 2:
            profiler.stop()

    train_ours(graph, config, 2, [watch])
    kinds = {
        "dense products": ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm"),
        "sparse products": ("aten::_embedding_bag", "aten::_embedding_bag_forward_only"),
        "eigendecomposition": ("aten::_linalg_eigh",),
        "activation": ("aten::elu_", "aten::elu_backward"),
        "batch normalization": ("aten::native_batch_norm", "aten::native_batch_norm_backward"),
    }
    found = dict.fromkeys([*kinds, "other"], 0.0)
    for event in profiler.key_averages():
        kind = next((kind for kind, names in kinds.items() if event.key in names), "other")
        found[kind] += event.self_cpu_time_total
    total = sum(found.values())
    return {kind: value / total for kind, value in found.items()}


def measure_time(name: str) -> dict[str, Any]:
    import torch

    from reference import forms
    from ssge.methods.ssge import SSGEConfig
    from ssge.views import View
    from unavoidable import floor

    graph, config = setting(name)
    ours, floors = {False: list[float](), True: list[float]()}, {False: list[Any](), True: list[Any]()}
    for _ in range(ROUNDS[name]):
        for bf16, dtype in ((False, torch.float32), (True, torch.bfloat16)):
            ours[bf16].extend(train_ours(graph, config, EPOCHS, bf16=bf16))
            floors[bf16].append(floor(View.of(graph), SSGEConfig(**config), dtype))
    parts, parts_bf16 = (min(found, key=lambda one: one["total"]) for found in floors.values())
    step, step_bf16 = min(ours[False]), min(ours[True])
    return {
        "threads": torch.get_num_threads(),
        # On ArXiv the messages of one layer alone take gigabytes.
        "forms": [] if name == "arxiv" else list(forms(config)),
        "ours_seconds": step,
        "bf16_seconds": step_bf16,
        "floor_seconds": parts["total"],
        "floor_parts": parts,
        "bf16_floor_seconds": parts_bf16["total"],
        "bf16_floor_parts": parts_bf16,
        "bf16_faster": step / step_bf16,
        "above_floor": step / parts["total"],
        "bf16_above_floor": step_bf16 / parts_bf16["total"],
        "breakdown": breakdown(graph, config),
    }


def resident(field: str) -> float:
    """Return VmRSS or VmHWM in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"No {field} in /proc/self/status: memory is measured on Linux only.")


def measured_memory(run: Callable[[], object]) -> dict[str, float]:
    """Return how far the resident memory rose while something ran, and how high, in MiB."""
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
    run()
    return {"above_graph_mb": resident("VmHWM") - before, "peak_mb": resident("VmHWM")}


def measure_memory(name: str, variant: str) -> dict[str, float]:
    from reference import Reference
    from ssge.datasets import load

    graph, config = setting(name)
    small = load("karate").without_labels()
    if variant == "ours":
        train_ours(small, config | {"widths": (8, 8)}, 1)  # so that the libraries' own memory is there before
        return measured_memory(lambda: train_ours(graph, config, 3))
    if variant == "bf16":
        train_ours(small, config | {"widths": (8, 8)}, 1, bf16=True)
        return measured_memory(lambda: train_ours(graph, config, 3, bf16=True))
    form: Any = variant
    Reference(small, config | {"widths": (8, 8)}, form).step()
    reference = Reference(graph, config, form)
    return measured_memory(lambda: [reference.step() for _ in range(3)])


def in_process(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(name: str) -> dict[str, Any]:
    found = in_process("--time", name)
    forms = found.pop("forms")
    theirs = {form: in_process("--reference", name, "--variant", form)["seconds"] for form in forms}
    best = min(theirs, key=lambda form: theirs[form], default=None)
    found["reference_seconds"], found["best_reference"] = theirs, best
    found["faster_than_reference"] = theirs[best] / found["ours_seconds"] if best else None
    found["memory_ours"] = in_process("--memory", name, "--variant", "ours")
    found["memory_bf16"] = in_process("--memory", name, "--variant", "bf16")
    if best:
        found["memory_reference"] = in_process("--memory", name, "--variant", best)
        found["memory_ratio"] = found["memory_ours"]["above_graph_mb"] / found["memory_reference"]["above_graph_mb"]
    return found


def block(record: Record) -> str:
    """Return the tables, with the machine named."""
    from pages import table, where

    found = record.figures
    lines, bf16 = [], []
    for name, line in found.items():
        best, theirs = line["best_reference"], line["reference_seconds"]
        faster = [f"{theirs[form] / line['ours_seconds']:.1f}" if form in theirs else "-" for form in FORMS]
        faster = [f"**{text}**" if form == best else text for form, text in zip(FORMS, faster, strict=True)]
        memory = f"{line['memory_ratio']:.2f}" if best else "-"
        most = f"{theirs[best] / line['floor_seconds']:.1f}" if best else "-"
        peak = f"{line['memory_ours']['peak_mb']:,.0f}"
        lines.append((name, *faster, f"{line['above_floor']:.2f}", most, memory, peak))
        if "bf16_seconds" in line:
            ratio = f"{theirs[best] / line['bf16_seconds']:.1f}" if best else "-"
            floor, peak = f"{line['bf16_above_floor']:.2f}", f"{line['memory_bf16']['peak_mb']:,.0f}"
            bf16.append((name, f"{line['bf16_faster']:.2f}", ratio, floor, peak))
    headings = (
        "graph", *(f"times faster than `{form}`" for form in FORMS), "step / floor", "best reference / floor",
        "memory / best reference", "peak memory, MiB",
    )  # fmt: skip
    low = (
        "bf16", "times faster than float32", "times faster than the best reference", "step / bf16 floor",
        "peak memory, MiB",
    )  # fmt: skip
    kinds = list(next(iter(found.values()))["breakdown"])
    shares = [(name, *(f"{100 * line['breakdown'][kind]:.0f}" for kind in kinds)) for name, line in found.items()]
    parts = [f"{where(record)}.\n", table(headings, lines), sentence(record), table(low, bf16) if bf16 else "",
             table(("share of the step, %", *kinds), shares)]  # fmt: skip
    return "\n" + "\n".join(part for part in parts if part)


def sentence(record: Record) -> str:
    """Return the figures of the README."""
    five = [record.figures[name] for name in FIVE if name in record.figures]

    def ratios(field: str) -> list[float]:
        return [line["reference_seconds"][line["best_reference"]] / line[field] for line in five if field in line]

    whole, half = ratios("ours_seconds"), ratios("bf16_seconds")
    return (
        f"A training step of SSGE is {statistics.geometric_mean(whole):.1f} times as fast as the fastest of three "
        f"reference implementations in float32 (geometric mean of {len(whole)} graphs; at least {min(whole):.1f}) and "
        f"{statistics.geometric_mean(half):.1f} times as fast in bf16 (at least {min(half):.1f}).\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=GRAPHS, help="these graphs; writes no record but --out")
    parser.add_argument("--out", type=Path, help="write the record to this file and no page")
    parser.add_argument("--time", help=argparse.SUPPRESS)
    parser.add_argument("--reference", help=argparse.SUPPRESS)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    parser.add_argument("--variant", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.time:
        print(json.dumps(measure_time(options.time)))
        return
    if options.reference:
        print(json.dumps(time_reference(options.reference, options.variant)))
        return
    if options.memory:
        print(json.dumps(measure_memory(options.memory, options.variant)))
        return
    names, found = options.only or GRAPHS, {}
    for name in names:
        found[name] = measure(name)
        print(name, json.dumps(found[name]), flush=True)
    if options.out or not options.only:
        from pages import write

        write("speed", found, [f"ssge/{name}" for name in names], options.out)


if __name__ == "__main__":
    main()
