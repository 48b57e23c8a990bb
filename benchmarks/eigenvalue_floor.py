"""Where to cut off the root of an eigenvalue: validation accuracy, clustering and rank for several floors.

Prints a line for each floor. Accuracies are those of the validation nodes; test nodes play no part.
"""

from __future__ import annotations

from typing import Any

from pages import asked, spread, write
from ssge.datasets import load
from ssge.evaluation import LbfgsProbe, cluster, linear_probe
from ssge.runs.fit import fit
from ssge.runs.plan import plan

DATASETS = ("cora", "citeseer")
FLOORS: tuple[tuple[float, str], ...] = (
    (1e-8, "clamp"),
    (1e-4, "tangent"),
    (1e-2, "tangent"),
    (0.1, "tangent"),
    (0.3, "tangent"),
)
COLUMNS = ("validation accuracy", "NMI", "ARI", "effective rank")
SEEDS = range(3)


def measure(dataset: str, floor: float, mode: str) -> dict[str, Any]:
    graph = load(dataset)
    assert graph.labels is not None
    settings, scores = {"eigenvalue_floor": floor, "floor_mode": mode}, []
    for seed in SEEDS:
        run = fit(graph, plan(graph.info, recipe=f"ssge/{dataset}", settings=settings, seed=seed))
        probe = linear_probe(run.embedding.vectors, graph.labels, graph.splits[0], LbfgsProbe())
        groups = cluster(run.embedding.vectors, graph.labels, seeds=range(3))
        rank = run.record.diagnostics["effective_rank"]
        scores.append((100 * probe.valid_accuracy, 100 * groups.nmi, 100 * groups.ari, rank))
    columns = dict(zip(COLUMNS, map(list, zip(*scores, strict=True)), strict=True))
    print(dataset, settings, *(f"{name} {spread(values, 2)}" for name, values in columns.items()), flush=True)
    return {"dataset": dataset, "floor": floor, "mode": mode, **columns}


if __name__ == "__main__":
    only = asked(__doc__, DATASETS)
    measured = [measure(dataset, *floor) for dataset in only or DATASETS for floor in FLOORS]
    if not only:
        write("eigenvalue_floor", measured, [f"ssge/{dataset}" for dataset in DATASETS])
