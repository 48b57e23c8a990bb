"""What pictures and pages are made of: a run, in its folder or in memory, or an embedding alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssge.datasets import facts_of
from ssge.errors import InputError
from ssge.io.embeddings import Embedding
from ssge.records import RunRecord
from ssge.runs.folder import RunFolder, read_vectors
from ssge.runs.names import LABEL, Names, read_names

log = logging.getLogger(__name__)

_MOST_COLORS = 6
_NAMES = ("name", "title")


class Subject(NamedTuple):
    """Vectors, and what is known of how they were made."""

    embedding: Embedding
    record: RunRecord | None = None
    history: Sequence[Mapping[str, Any]] = ()
    folder: Path | None = None

    @classmethod
    def of(cls, path: Path) -> Subject:
        """Read the folder of a run, or a file with an embedding."""
        embedding = read_vectors(path)
        if not path.is_dir():
            return cls(embedding)
        folder = RunFolder(path)
        return cls(embedding, folder.read_record(), folder.read_history(), path)

    @property
    def name(self) -> str:
        """Of the graph."""
        return self.record.name or self.record.dataset if self.record else ""

    @property
    def labeled(self) -> bool:
        """Whether the graph is known to have labels."""
        if self.record is None:
            return False
        told = any(column[-1] == "no: the label" for column in self.record.node_columns)
        return bool(self.record.scores) or told or facts_of(self.record.dataset) is not None

    def names(
        self,
        show: str | Sequence[str] | None,
        color: str | Sequence[str] | None,
        nodes: Any = None,
        id: str | None = None,
    ) -> tuple[Names, list[str]]:
        """Return the columns to show and to color by, and which are those to color by.

        Without any, those of the run's node table that look like names, labels and categories, if it can be read.
        """
        asked = [*_listed(show), *_listed(color)]
        if asked:
            return read_names(self.embedding.node_ids, asked, self.record, nodes=nodes, id=id), _listed(color)
        found, colors = _usual(self.record) if nodes is None else ([], [])
        try:
            wanted = list(dict.fromkeys([*found, *colors])) or None
            return read_names(self.embedding.node_ids, wanted, self.record, nodes=nodes, id=id), colors
        except (InputError, OSError) as error:
            log.warning("Nodes are shown by their ids alone: %s", error)
            return Names(self.embedding.node_ids), []


def _listed(columns: str | Sequence[str] | None) -> list[str]:
    if isinstance(columns, str):
        return [name.strip() for name in columns.split(",") if name.strip()]
    return list(columns or ())


def _usual(record: RunRecord | None) -> tuple[list[str], list[str]]:
    """Return the columns that name nodes and those that may color them, from what became of each column."""
    if record is None:
        return [], []
    if not record.node_columns:
        return [], [LABEL] if facts_of(record.dataset) else []
    names: list[str] = []
    colors: list[str] = []
    for name, kind, *_, used in record.node_columns:
        if used == "no: the id" or name.startswith("and "):
            continue
        if name.casefold().endswith(_NAMES):
            names.append(name)
        elif "label" in used:
            colors.insert(0, name)
        elif kind in ("category", "boolean", "number"):
            colors.append(name)
    return names[:1], colors[:_MOST_COLORS]
