"""Graphs larger than memory: block models from CSV through convert, fit and embed, each below a limit of memory.

    python benchmarks/scale.py                  10^5 and 10^6 nodes below 2 GB, 10^7 below 8 GB, and costs of parts
    python benchmarks/scale.py --only 100000    one size; the others stay in the record as they are

Every command is a process of its own, with one thread. Its peak of resident memory and its processor time are the
kernel's account, taken from outside; processor time, because the machine may have other work. That of an epoch is
taken when the history gets its next line. The tables are written in bounded memory too, and deleted afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psutil

from ssge.records import commit

if TYPE_CHECKING:
    from pages import Record

CLASSES, HOMOPHILY, DEGREE = 10, 0.8, 10
_ROWS = 1 << 16


class Size(NamedTuple):
    """Nodes, features, widths of the layers, epochs and the limit of memory."""

    nodes: int
    features: int
    width: int
    epochs: int
    memory: str


SIZES = (Size(100_000, 128, 128, 4, "2GB"), Size(1_000_000, 128, 128, 3, "2GB"), Size(10_000_000, 128, 128, 1, "8GB"))


def write_tables(folder: Path, nodes: int, features: int) -> None:
    """Write edges.csv and nodes.csv of a block model with ``DEGREE`` directed edges a node, in bounded memory."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    centers = rng.standard_normal((CLASSES, features)) / np.sqrt(features)
    options = csv.WriteOptions(quoting_style="none")
    schema = pa.schema({"source": pa.int64(), "target": pa.int64()})
    with csv.CSVWriter(folder / "edges.csv", schema, write_options=options) as writer:
        left = nodes * DEGREE // 2
        while left:
            count = min(left, 16 * _ROWS)
            source = rng.integers(nodes, size=count)
            target = rng.integers(nodes, size=count)
            inside = rng.random(count) < HOMOPHILY
            target[inside] -= (target - source)[inside] % CLASSES  # the class of a node is its number modulo CLASSES
            target %= nodes
            writer.write_table(pa.table({"source": source, "target": target}))
            left -= count
    names = [f"x{i:03d}" for i in range(features)]
    schema = pa.schema({"id": pa.int64()} | dict.fromkeys(names, pa.float32()))
    with csv.CSVWriter(folder / "nodes.csv", schema, write_options=options) as writer:
        for start in range(0, nodes, _ROWS):
            ids = np.arange(start, min(start + _ROWS, nodes))
            values = rng.standard_normal((ids.size, features), dtype=np.float32) + centers[ids % CLASSES]
            values = np.round(values, 3).astype(np.float32)
            writer.write_table(pa.table([ids, *values.T], schema=schema))


def measured(*words: str | Path, history: Path | None = None) -> dict[str, Any]:
    """Run a command of ssge, and return its seconds and its peak of resident memory in MB, seen from outside.

    With the history of a training, also the processor time of each epoch but the first, which reads and prepares.
    """
    began, ends = time.perf_counter(), list[float]()
    process = os.posix_spawn(sys.executable, [sys.executable, "-m", "ssge", *map(str, words)], os.environ)
    while True:
        ended, status, usage = os.wait4(process, 0 if history is None else os.WNOHANG)
        if ended:
            break
        time.sleep(0.05)
        if history is not None and history.exists() and len(history.read_text().splitlines()) > len(ends):
            ends.append(sum(psutil.Process(process).cpu_times()[:2]))
    if status:
        raise SystemExit(f"ssge {' '.join(map(str, words))} ended with {os.waitstatus_to_exitcode(status)}.")
    found = {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss * 1024 / 1e6,
    }
    return found if history is None else found | {"epochs_cpu_seconds": np.diff(ends).tolist()}


def measure(size: Size, folder: Path) -> dict[str, Any]:
    """Take a block model of some size through all commands."""
    # In a process of its own, because the peak of a command begins at that of the process that starts it.
    subprocess.run([sys.executable, __file__, "--tables", str(folder), str(size.nodes), str(size.features)], check=True)
    tables = {name: (folder / name).stat().st_size for name in ("edges.csv", "nodes.csv")}
    graph, run = folder / "graph", folder / "run"
    limit = ("--memory", size.memory, "--quiet")
    done: dict[str, Any] = {"convert": measured(
        "convert", folder / "edges.csv", "--nodes", folder / "nodes.csv", "--out", graph, *limit
    )}  # fmt: skip
    for name in tables:
        (folder / name).unlink()
    how = ("--widths", str(size.width), str(size.width), "--threads", "1", *limit)
    epochs = ("--epochs", str(size.epochs))
    done["fit"] = measured("fit", graph, "--out", run, *epochs, *how, history=run / ".run" / "history.jsonl")
    each = done["fit"]["epochs_cpu_seconds"] or [done["fit"]["cpu_seconds"]]
    done["epoch_cpu_seconds"] = statistics.median(each)
    if size.epochs > 1:
        done["embed"] = measured("embed", run, graph, "--out", folder / "z.npy", "--threads", "1", *limit)
    manifest = json.loads((graph / "graph.json").read_text())
    facts = {"nodes": manifest["nodes"], "edges": manifest["edges"], "table_bytes": tables}
    facts["graph_bytes"] = sum(file.stat().st_size for file in graph.iterdir())
    return size._asdict() | facts | done


def measure_arxiv(folder: Path) -> dict[str, Any]:
    """Train an epoch on the edges of ogbn-arxiv, in memory, and streamed below a quarter of what that took.

    Features are noise, 128 as in the original; the widths are the paper's, 512-512.
    """
    subprocess.run([sys.executable, __file__, "--tables", str(folder), "arxiv", "128"], check=True)
    graph = folder / "graph"
    manifest = json.loads((graph / "graph.json").read_text())
    how = ("--epochs", "1", "--widths", "512", "512", "--blocks", "learned", "--threads", "1", "--quiet")
    whole = measured("fit", graph, "--out", folder / "whole", *how)
    limit = int(whole["peak_mb"] / 4)
    streamed = measured("fit", graph, "--out", folder / "run", "--memory", f"{limit}MB", *how)
    sizes = {"nodes": manifest["nodes"], "edges": manifest["edges"], "limit_mb": limit}
    return sizes | {"whole": whole, "streamed": streamed}


def write_arxiv(folder: Path, features: int) -> None:
    """Write the edges of ogbn-arxiv with noise as features as a graph folder."""
    import pyarrow as pa
    from pyarrow import csv

    from ssge.graph import Graph
    from ssge.io.graph_writer import write_graph

    source = Path(os.environ["SSGE_DATA"]) / "ogbn_arxiv" / "raw" / "edge.csv.gz"
    content = pa.CompressedInputStream(pa.OSFile(str(source)), "gzip")
    ends = csv.read_csv(content, csv.ReadOptions(column_names=["source", "target"]))
    edges = np.stack([ends["source"].to_numpy(), ends["target"].to_numpy()])
    noise = np.random.default_rng(0).standard_normal((edges.max() + 1, features), dtype=np.float32)
    write_graph(Graph.of(edges=edges, features=noise), folder / "graph")


def costs(folder: Path, nodes: int = 1_000_000, width: int = 128) -> dict[str, float]:
    """Measure what the parts of a streamed epoch take on one core: draws, sparse and dense products, the disk."""
    import torch

    from ssge.datasets import load
    from ssge.io.graph_writer import write_graph
    from ssge.ops.disk import DiskArray, Scratch
    from ssge.ops.random import Key
    from ssge.ops.streaming import DiskEdges, StreamedAdjacency, Workspace

    torch.set_num_threads(1)
    graph = write_graph(load("sbm", nodes=nodes, degree=DEGREE, features=1).without_labels(), folder / "costs")
    indptr, indices = (DiskArray(graph.path / f"incoming.{part}.npy") for part in ("indptr", "indices"))
    side = DiskEdges(indptr, indices, None)
    clean = StreamedAdjacency(side, side, nodes, Workspace(folder, 2 << 30))
    view, matrix = clean.drop_edges(Key(0), 0.3), torch.rand(nodes, width)

    def timed(work: Any, repeats: int = 3) -> float:
        taken = []
        for _ in range(repeats):
            began = time.process_time()
            work()
            taken.append(time.process_time() - began)
        return min(taken)

    assert clean.scales and view.scales
    pass_clean, pass_view = timed(lambda: list(map(len, clean.chunks()))), timed(lambda: list(map(len, view.chunks())))
    target = Scratch(folder, nodes, width, width, torch.float32)
    write = timed(lambda: target.write(0, matrix))
    read = timed(lambda: target.read(0, nodes))
    product = timed(lambda: clean.propagate([matrix], target))
    weights = torch.rand(width, width)
    dense = timed(lambda: [part @ weights for part in matrix.split(1 << 14)])  # type: ignore[no-untyped-call]
    return {
        "edges": graph.num_edges,
        "width": width,
        "draw_seconds_per_edge": (pass_view - pass_clean) / graph.num_edges,
        "read_seconds_per_edge": pass_clean / graph.num_edges,
        "product_seconds_per_entry_and_column": (product - pass_clean - write) / (graph.num_edges + nodes) / width,
        "dense_flops": 2 * nodes * width**2 / dense,
        "write_bytes_per_second": 4 * nodes * width / write,
        "read_bytes_per_second": 4 * nodes * width / read,
    }


def block(record: Record) -> str:
    """Return the table of docs/scale.md."""
    from pages import table, where

    rows = []
    for line in sorted(record.figures["sizes"], key=lambda line: line["nodes"]):
        steps = [line.get(step) for step in ("convert", "fit", "embed")]
        cells = ["-" if step is None else f"{step['cpu_seconds']:,.0f} s, {step['peak_mb']:,.0f} MB" for step in steps]
        rows.append((
            f"{line['nodes']:,}", f"{line['edges']:,}", f"{line['features']}, {line['width']}-{line['width']}",
            line["memory"], *cells, f"{line['epoch_cpu_seconds']:,.1f} s" if line["epochs"] > 1 else "-",
        ))  # fmt: skip
    headings = ("nodes", "directed edges", "features, widths", "limit", "convert", "fit", "embed", "epoch")
    text = table(headings, rows, left=())
    linear = record.figures.get("linear")
    ratio = "" if linear is None else (
        f"\nAn epoch takes {linear:.2f} times as long per node at 10^6 nodes as at 10^5."
    )  # fmt: skip
    epochs = ", ".join(f"{line['epochs']} at {line['nodes']:,}" for line in record.figures["sizes"])
    found, arxiv = record.figures.get("arxiv"), ""
    if found is not None:
        peaks = [f"{found[mode]['peak_mb']:,.0f} MB" for mode in ("whole", "streamed")]
        nodes = f"{found['nodes']:,} nodes"
        arxiv = (
            f"\nAn epoch on the edges of ogbn-arxiv ({nodes}, widths 512-512) takes {peaks[0]} in memory "
            f"and {peaks[1]} with `--memory {found['limit_mb']}MB`: "
            f"{found['streamed']['peak_mb'] / found['whole']['peak_mb']:.3f} of it.\n"
        )
    return f"{text}{ratio}\nEpochs of fit: {epochs}. {where(record)}.\n{arxiv}"


def simulated(record: Record) -> str:
    """Return the table of 10^9 nodes in docs/scale.md, and what breaks first."""
    from simulate import check, limits, table_of

    sizes = (1e9, 1e10, 128, 128, [1, 8, 32, 128])
    costs = record.figures["costs"]
    checked = "; ".join(f"{n:,} nodes: {seen:.1f} s, derived {found:.1f} s" for n, seen, found in check(record))
    return (
        f"{table_of(costs, *sizes)}\nWhat breaks first:\n\n{limits(costs, *sizes)}\n"
        f"The same arithmetic against measured processor time of an epoch on one core: {checked}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", type=int, choices=[size.nodes for size in SIZES], help="these sizes")
    parser.add_argument("--arxiv", action="store_true", help="the edges of ogbn-arxiv too, from SSGE_DATA")
    parser.add_argument("--out", type=Path, help="write the record to this file and no page")
    parser.add_argument("--folder", type=Path, help="where to work, on a disk with 20 GB of room")
    parser.add_argument("--tables", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tables:
        folder, nodes, features = options.tables
        if nodes == "arxiv":
            write_arxiv(Path(folder), int(features))
        else:
            write_tables(Path(folder), int(nodes), int(features))
        return
    place = options.out or Path(__file__).resolve().parent.parent / "results" / "scale.json"
    figures: dict[str, Any] = {"sizes": [], "arxiv": None, "costs": None}
    if place.exists() and options.only is not None:
        figures |= json.loads(place.read_text())["figures"]
    lines = {line["nodes"]: line for line in figures["sizes"]}
    for size in SIZES:
        if options.only is None or size.nodes in options.only:
            with tempfile.TemporaryDirectory(dir=options.folder) as name:
                lines[size.nodes] = measure(size, Path(name)) | {"commit": commit()}
            print(json.dumps(lines[size.nodes]), flush=True)
    if options.arxiv:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            figures["arxiv"] = measure_arxiv(Path(name)) | {"commit": commit()}
        print(json.dumps(figures["arxiv"]), flush=True)
    # Only now, because the peak of a command begins at that of this process.
    import torch

    from pages import write

    torch.set_num_threads(1)
    if figures["costs"] is None:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            figures["costs"] = costs(Path(name))
        print(json.dumps(figures["costs"]))
    each = {nodes: line["epoch_cpu_seconds"] / nodes for nodes, line in lines.items()}
    linear = each[10**6] / each[10**5] if {10**5, 10**6} <= each.keys() else None
    write("scale", figures | {"sizes": [lines[n] for n in sorted(lines)], "linear": linear}, out=options.out)


if __name__ == "__main__":
    main()
