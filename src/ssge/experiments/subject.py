"""The subject of pictures and pages: a run, in its folder or in memory, or an embedding alone; and its pictures."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ssge.datasets import facts_of
from ssge.errors import InputError, UnknownNameError, cut, printable
from ssge.experiments import figures
from ssge.experiments.layout import color_by
from ssge.io.embeddings import Embedding
from ssge.records import RunRecord
from ssge.runs.folder import RunFolder, read_vectors
from ssge.runs.names import LABEL, Names, read_names

log = logging.getLogger(__name__)

Kind: TypeAlias = Literal["losses", "spectrum", "correlation"]
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
        label = any(column[-1] == "no: the label" for column in self.record.node_columns)
        return bool(self.record.scores) or label or facts_of(self.record.dataset) is not None

    def names(
        self,
        show: str | Sequence[str] | None = None,
        color: str | Sequence[str] | None = None,
        nodes: Any = None,
        id: str | None = None,
    ) -> tuple[Names, list[str]]:
        """Return the columns to show and to color by, and which are those to color by.

        Without any, those of the run's node table that look like names, labels and categories, if it can be read.
        """
        wanted = [*_listed(show), *_listed(color)]
        if wanted:
            return read_names(self.embedding.node_ids, wanted, self.record, nodes=nodes, id=id), _listed(color)
        found, colors = _usual(self.record) if nodes is None else ([], [])
        try:
            usual = list(dict.fromkeys([*found, *colors])) or None
            return read_names(self.embedding.node_ids, usual, self.record, nodes=nodes, id=id), colors
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


def draw_map(path: Path, subject: Subject, *, title: str | None = None, **options: Any) -> Path:
    """Draw the nodes on a plane, as a picture or as a page.

    Parameters
    ----------
    path
        File to write: ``.png``, ``.svg`` or ``.html``.
    subject
        The run or embedding.
    title
        Headline of a picture.
    **options
        ``color``, ``show``, ``nodes`` and ``id`` as in `Subject.names`, where a picture is colored by the first column;
        ``layout``, ``points`` and ``seed`` as in `ssge.experiments.figures.embedding_map`.
    """
    if path.suffix.casefold() not in (*figures.FORMATS, ".html"):
        raise UnknownNameError("ending of a map", path.suffix, (*figures.FORMATS, ".html"))
    if path.suffix.casefold() == ".html":
        from ssge.experiments.report import write_map_page

        return write_map_page(path, subject, **options)
    placing = {name: options.pop(name) for name in ("layout", "points", "seed") if name in options}
    names, colors = subject.names(**options)
    column = color_by(colors[0], names.columns[colors[0]]) if colors else None
    return figures.embedding_map(
        path, subject.embedding.vectors, column, title or f"Embedding{_of(subject)}", **placing
    )


def draw_plot(path: Path, subject: Subject, kind: Kind) -> Path:
    """Draw the losses, the spectrum or the correlation of columns."""
    vectors, of = subject.embedding.vectors, _of(subject)
    if kind == "losses":
        if not subject.history:
            raise InputError("losses needs the folder of a trained run; an embedding alone has no history.")
        return figures.loss_curves(path, subject.history, f"Losses of the embedding{of}")
    if kind == "spectrum":
        return figures.spectrum(path, {"embedding": vectors}, f"Directions that the embedding{of} uses")
    if kind == "correlation":
        return figures.correlations(path, {"Embedding": vectors}, f"Correlation between columns of the embedding{of}")
    raise UnknownNameError("plot", kind, ("map", *get_args(Kind)))


def _of(subject: Subject) -> str:
    return f" of {cut(printable(subject.name))}" if subject.name else ""
