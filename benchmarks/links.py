"""How well held-out edges are told from random pairs: the table in docs/links.md.

A tenth of the edges is held out for the test and another tenth to learn the score on; as many random pairs without an
edge go with each. Training, propagation, structural features and neighborhoods have seen neither. All ways of scoring
judge the same pairs. `ssge links` does the same on a graph of one's own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from pyarrow import csv

import ssge
from pages import Record, asked, spread, where, write
from pages import table as markdown
from ssge.graph import Graph
from ssge.runs.fit import fit
from ssge.runs.plan import plan
from ssge.tasks.links import calibrate

SEEDS = range(3)
SETTINGS: dict[str, dict[str, Any]] = {"cora": {}, "imports": {}, "airports": {"widths": (64, 32), "epochs": 40}}
"""Settings of SSGE beside its defaults for the graph; airports as in docs/airports.md."""


def load(name: str) -> Graph:
    """Return a dataset, or the airports of examples/airports.py."""
    if name != "airports":
        return ssge.load_dataset(name).without_labels()
    found = importlib.util.find_spec("bokeh_sampledata")
    assert found and found.submodule_search_locations, "pip install 'bokeh_sampledata>=2026.1'"
    data = Path(found.submodule_search_locations[0]) / "_data"
    routes = csv.read_csv(data / "routes.csv.gz").group_by(["Source", "Destination"]).aggregate([([], "count_all")])
    return ssge.read_graph(
        routes.rename_columns(["source", "target", "weight"]), data / "airports.csv", id="IATA", scale="standard",
        columns=["Latitude", "Longitude", "Altitude", "Type"], features=["table", "degree", "laplacian"],
    )  # fmt: skip


def measure(names: Iterable[str]) -> dict[str, Any]:
    """Return AUC and hits of each way of scoring, one value per seed, for each graph."""
    found: dict[str, Any] = {}
    for name in names:
        graph = load(name)
        scores: dict[str, dict[str, list[float]]] = {}
        for seed in SEEDS:

            def embed(left: Graph, name: str = name, seed: int = seed) -> NDArray[Any]:
                return fit(left, plan(left.info, "ssge", settings=SETTINGS[name], seed=seed)).embedding.vectors

            _, judged, k = calibrate(graph, embed, seed=seed)
            for score in judged:
                row = scores.setdefault(score.name, {"auc": [], "hits": []})
                row["auc"].append(100 * score.auc)
                row["hits"].append(100 * score.hits)
                print(name, seed, score.name, f"{score.auc:.4f} {score.hits:.4f}", flush=True)
        found[name] = {"hits_at": k, "scores": scores}
    return found


def block(record: Record) -> str:
    """Return protocol and table."""
    figures = record.figures
    kept = "SSGE with its defaults (airports: as in [airports](airports.md))"
    hits = ", ".join(f"{found['hits_at']} on {name}" for name, found in figures.items())
    head = (
        f"{kept}, seeds 0-{len(SEEDS) - 1} of the encoder and of the edges held out; percent, mean ± deviation over\n"
        f"seeds; hits@k with k = {hits}; {where(record)}.\n\n"
    )
    names = list(next(iter(figures.values()))["scores"])
    rows = [
        (name, *(spread(found["scores"][name][figure]) for found in figures.values() for figure in ("auc", "hits")))
        for name in names
    ]
    return head + markdown(("score", *(f"{name}, {what}" for name in figures for what in ("AUC", "hits@k"))), rows)


if __name__ == "__main__":
    only = asked(__doc__, SETTINGS)
    measured = measure(only or SETTINGS)
    for name, found in measured.items():
        means = {way: sum(row["auc"]) / len(row["auc"]) for way, row in found["scores"].items()}
        simple = [means[way] for way in ("propagated features", "Adamic-Adar", "common neighbors")]
        assert means["links"] > max(simple), (name, means)
    if not only:
        write("links", measured)
