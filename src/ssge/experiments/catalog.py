"""What there is to choose from, as tables."""

from __future__ import annotations

from typing import Any

from ssge.datasets import DATASETS
from ssge.runs.recipes import load_recipe, recipes


def catalog(kind: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and lines of a list of methods, datasets, recipes or protocols."""
    if kind == "methods":
        from ssge.methods import METHODS

        found = [METHODS[name] for name in METHODS]
        return (
            ("name", "title", "family", "inputs", "batches", "reference"),
            [(m.name, m.title, m.family, m.inputs, _batches(m), m.reference) for m in found],
        )
    if kind == "datasets":
        facts = [DATASETS[name] for name in DATASETS]
        return (
            ("name", "nodes", "edges", "features", "classes", "split", "description"),
            [
                (
                    f.name,
                    _count(f.num_nodes),
                    _count(f.num_edges),
                    _count(f.num_features),
                    _count(f.num_classes),
                    f.split,
                    f.description,
                )
                for f in facts
            ],
        )
    if kind == "protocols":
        from ssge.experiments.protocols import PROTOCOLS

        return ("name", "description"), [(name, PROTOCOLS[name].description) for name in PROTOCOLS]
    loaded = [load_recipe(name) for name in recipes()]
    return (
        ("name", "method", "dataset", "protocol", "published"),
        [
            (r.name, r.method, r.dataset, r.protocol, ", ".join(f"{k} {v:g}" for k, v in r.published.items()))
            for r in loaded
        ],
    )


def _batches(method: Any) -> str:
    if "walk_length" in method.Config.model_fields:
        return "walks"
    if "fanouts" in method.Config.model_fields:
        return "full, nodes, sampled"
    return "full, nodes" if "batch_nodes" in method.Config.model_fields else "full"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
