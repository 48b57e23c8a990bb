"""Graphs to work on: benchmarks from their raw files, and some that need neither network nor files."""

from __future__ import annotations

from ssge.datasets.facts import DATASETS, Facts, File, facts_of
from ssge.datasets.loading import from_facts, load
from ssge.datasets.splits import random_splits, released_code_splits

__all__ = ["DATASETS", "Facts", "File", "facts_of", "from_facts", "load", "random_splits", "released_code_splits"]
