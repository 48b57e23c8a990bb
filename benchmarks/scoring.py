"""Time of scoring an embedding, and its scores: writes results/scoring.json and prints the table.

Three embeddings of each graph are scored by two protocols: raw features, A^2 X, and the first 512 singular vectors of
A^2 X times their singular values. The table compares processor seconds, which depend little on other work on the
machine; set OMP_NUM_THREADS=1, since idle threads of a pool count too. Rows without them compare elapsed seconds.
``--label before`` records older code: run this file with its ``src`` in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse.linalg

from ssge.datasets import load
from ssge.experiments import protocols
from ssge.experiments.references import propagated_features, raw_features
from ssge.graph import Graph

RECORD = Path(__file__).resolve().parent.parent / "results" / "scoring.json"
STAGES = {"linear_probes": "probe", "cluster": "k-means", "geometry": "geometry"}
PROTOCOLS = ("quick", "paper-lbfgs")


def svd(graph: Graph, columns: int = 512) -> np.ndarray:
    """Return U S of the truncated singular value decomposition of A^2 X, with a fixed start."""
    matrix = propagated_features(graph)
    start = np.random.default_rng(0).standard_normal(min(matrix.shape))
    left, singular, _ = scipy.sparse.linalg.svds(matrix, k=columns, v0=start)
    product: np.ndarray = (left * singular)[:, ::-1].astype(np.float32)
    return product


EMBEDDINGS: dict[str, Callable[[Graph], np.ndarray]] = {"raw": raw_features, "A^2 X": propagated_features, "512": svd}


def timed(seconds: dict[str, float], stage: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that also adds its own time to that of its stage."""

    def run(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        found = real(*args, **options)
        seconds[stage] = seconds.get(stage, 0.0) + time.perf_counter() - start
        return found

    return run


def row(embedding: np.ndarray, graph: Graph, protocol: str, rounds: int) -> dict[str, Any]:
    """Score an embedding some times and return the quickest round."""
    found: list[dict[str, Any]] = []
    for _ in range(rounds):
        stages: dict[str, float] = {}
        real = {name: getattr(protocols, name) for name in STAGES}
        for name, stage in STAGES.items():
            setattr(protocols, name, timed(stages, stage, real[name]))
        start, processor = time.perf_counter(), time.process_time()
        scores = protocols.evaluate(embedding, graph, protocols.PROTOCOLS[protocol])
        total, processor = time.perf_counter() - start, time.process_time() - processor
        for name in STAGES:
            setattr(protocols, name, real[name])
        found.append({
            "seconds": round(total, 2),
            "processor_seconds": round(processor, 2),
            "stages": {stage: round(value, 2) for stage, value in stages.items()},
            "accuracy": round(100 * float(np.mean(scores.accuracies)), 3),
            "nmi": round(100 * float(np.mean(scores.nmi)), 2),
            "nmi_std": round(100 * float(np.std(scores.nmi, ddof=1)), 2),
            "ari": round(100 * float(np.mean(scores.ari)), 2),
            "effective_rank": round(scores.geometry["effective_rank"], 2),
        })  # fmt: skip
    return min(found, key=lambda one: one["processor_seconds"])


def table(record: dict[str, dict[str, Any]]) -> str:
    """Return before and after in Markdown."""
    lines = [
        "| graph, embedding, protocol | seconds before | after | times faster | accuracy % before / after | NMI % |",
        "| --- |" + " ---: |" * 5,
    ]
    before, after = record.get("before", {}), record.get("after", {})
    for name in [*before, *(name for name in after if name not in before)]:
        pair = [one.get(name) for one in (before, after)]
        measured = "processor_seconds" if all(one and "processor_seconds" in one for one in pair) else "seconds"
        seconds = [f"{one[measured]:.1f}" if one else "-" for one in pair]
        ratio = f"{pair[0][measured] / pair[1][measured]:.1f}" if pair[0] and pair[1] else "-"
        accuracy = " / ".join(f"{one['accuracy']:.2f}" if one else "-" for one in pair)
        nmi = " / ".join(f"{one['nmi']:.1f} ± {one['nmi_std']:.1f}" if one else "-" for one in pair)
        lines.append(f"| {name} | {seconds[0]} | {seconds[1]} | {ratio} | {accuracy} | {nmi} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["imports", "coauthor_cs"])
    parser.add_argument("--protocols", nargs="+", default=list(PROTOCOLS), choices=list(PROTOCOLS))
    parser.add_argument("--embeddings", nargs="+", default=list(EMBEDDINGS), choices=list(EMBEDDINGS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--label", default="after", choices=["before", "after"])
    parser.add_argument("--tables", action="store_true", help="print the table of the record, run nothing")
    options = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for dataset in () if options.tables else options.datasets:
        graph = load(dataset)
        for title in options.embeddings:
            embedding = EMBEDDINGS[title](graph)
            for protocol in options.protocols:
                name = f"{dataset}, {title}, {protocol}"
                found = row(embedding, graph, protocol, options.rounds)
                record.setdefault(options.label, {})[name] = found
                print(name, found, flush=True)
                RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(table(record))
