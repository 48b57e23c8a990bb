"""Graphs to work on: benchmarks from their raw files, and some that need neither network nor files."""

from __future__ import annotations

from ssge.datasets.facts import DATASETS, Facts, File, facts_of
from ssge.datasets.loading import from_facts, load
from ssge.datasets.splits import SplitKind, random_splits, split_of, splits_of

__all__ = [
    "DATASETS",
    "Facts",
    "File",
    "SplitKind",
    "facts_of",
    "from_facts",
    "load",
    "random_splits",
    "split_of",
    "splits_of",
]
