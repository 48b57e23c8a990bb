"""Time of scoring an embedding, and its scores, beside those of older code: docs/speed.md.

Three embeddings of each graph are scored: raw features, A^2 X, and the first 512 singular vectors of A^2 X times their
singular values. Each row is scored in a process of its own, by the older code and then by this one, from the same file.
The table compares processor seconds of one thread, which depend little on other work on the machine.

    git worktree add ../before 76a5b99
    python benchmarks/scoring.py --before ../before/src

A row that the record holds already is not scored again unless ``--again`` is given: older code does not change.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pages import Record
    from ssge.graph import Graph

STAGES = {"linear_probes": "probe", "cluster": "k-means", "geometry": "geometry"}
DATASETS, PROTOCOLS, EMBEDDINGS = ("imports", "coauthor_cs"), ("quick", "paper-lbfgs"), ("512", "A^2 X", "raw")
SOURCE = Path(__file__).resolve().parent.parent / "src"


def embedded(graph: Graph, title: str, columns: int = 512) -> np.ndarray:
    """Return one of the embeddings; the singular vectors begin from fixed draws."""
    from sklearn.utils.extmath import randomized_svd

    from ssge.experiments.references import propagated_features, raw_features

    if title == "raw":
        return raw_features(graph)
    matrix = propagated_features(graph)
    if title == "A^2 X":
        return matrix
    left, singular, _ = randomized_svd(matrix, columns, n_iter=2, random_state=0)
    product: np.ndarray = (left * singular).astype(np.float32)
    return product


def timed(seconds: dict[str, float], stage: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that also adds its own time to that of its stage."""

    def run(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        found = real(*args, **options)
        seconds[stage] = seconds.get(stage, 0.0) + time.process_time() - start
        return found

    return run


def row(file: str, dataset: str, protocol: str) -> dict[str, Any]:
    """Score an embedding; runs under the older code too."""
    from ssge.datasets import DATASETS as CATALOG
    from ssge.datasets import load
    from ssge.experiments import protocols

    embedding, graph = np.load(file), load(dataset)
    stages: dict[str, float] = {}
    for name, stage in STAGES.items():
        setattr(protocols, name, timed(stages, stage, getattr(protocols, name)))
    accepted = signature(protocols.evaluate).parameters
    facts: dict[str, Any] = {"facts": CATALOG[dataset]} if "facts" in accepted else {}
    start, processor = time.perf_counter(), time.process_time()
    scores = protocols.evaluate(embedding, graph, protocols.PROTOCOLS[protocol], **facts)
    total, processor = time.perf_counter() - start, time.process_time() - processor
    return {
        "seconds": round(total, 2),
        "processor_seconds": round(processor, 2),
        "stages": {stage: round(value, 2) for stage, value in stages.items()},
        "accuracy": round(100 * float(np.mean(scores.accuracies)), 3),
        "nmi": round(100 * float(np.mean(scores.nmi)), 2),
        "nmi_std": round(100 * float(np.std(scores.nmi, ddof=1)), 2),
        "ari": round(100 * float(np.mean(scores.ari)), 2),
        "effective_rank": round(scores.geometry["effective_rank"], 2),
    }


def block(record: Record) -> str:
    """Return the table."""
    from pages import table, where

    lines = []
    for name, pair in record.figures.items():
        before, after = pair["before"], pair["after"]
        ratio = before["processor_seconds"] / after["processor_seconds"]
        cells = [name, f"{before['processor_seconds']:.1f}", f"{after['processor_seconds']:.1f}", f"{ratio:.1f}"]
        cells.append(f"{before['accuracy']:.2f} / {after['accuracy']:.2f}")
        cells.append(" / ".join(f"{one['nmi']:.1f} ± {one['nmi_std']:.1f}" for one in (before, after)))
        lines.append(cells)
    headings = (
        "graph, embedding, protocol", "processor seconds before", "now", "times faster", "accuracy % before / now",
        "NMI % before / now",
    )  # fmt: skip
    return table(headings, lines) + f"\n1 thread, {where(record).split(', ', 1)[1]}.\n"


def main() -> None:
    from pages import RESULTS, write
    from ssge.datasets import load

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the src folder of the older code")
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--protocols", nargs="+", default=PROTOCOLS[:1], choices=PROTOCOLS)
    parser.add_argument("--embeddings", nargs="+", default=EMBEDDINGS[:1], choices=EMBEDDINGS)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "scoring.json"
    found: dict[str, Any] = json.loads(path.read_text())["figures"] if path.exists() else {}
    for dataset in options.datasets:
        graph = load(dataset)
        for title in options.embeddings:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "embedding.npy"
                np.save(file, embedded(graph, title))
                for protocol in options.protocols:
                    name = f"{dataset}, {title}, {protocol}"
                    if name in found and not options.again:
                        continue
                    sources = {"after": SOURCE, "before": options.before.resolve()}
                    found[name] = {
                        label: in_process(source, str(file), dataset, protocol) for label, source in sources.items()
                    }
                    print(name, found[name], flush=True)
                    write("scoring", found)


def in_process(source: Path, *words: str) -> dict[str, Any]:
    """Score with the code in a folder, on one thread: idle threads of a pool count too."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, __file__, "--row", *words], check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **one, "PYTHONPATH": str(source)},
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        print(json.dumps(row(*sys.argv[2:])))
    else:
        main()
