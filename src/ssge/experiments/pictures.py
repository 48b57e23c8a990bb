"""Pictures of a run or of an embedding, by the ending of the file: matplotlib draws .png and .svg, a page is .html."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

from ssge.errors import InputError, UnknownNameError, cut, printable
from ssge.experiments import figures
from ssge.experiments.coloring import color_by
from ssge.experiments.layout import Method
from ssge.experiments.report.points import MOST_POINTS
from ssge.experiments.subject import Subject

Kind: TypeAlias = Literal["losses", "spectrum", "correlation"]
KINDS: tuple[Kind, ...] = ("losses", "spectrum", "correlation")
_MOST_DRAWN = 5_000


def draw_map(
    path: Path,
    subject: Subject,
    *,
    color: Any = None,
    show: Any = None,
    nodes: Any = None,
    id: str | None = None,
    layout: Method = "auto",
    points: int | None = None,
    seed: int = 0,
    title: str | None = None,
) -> Path:
    """Draw the nodes on a plane, as a picture or as a page.

    Parameters
    ----------
    path
        File to write: ``.png``, ``.svg`` or ``.html``.
    subject
        The run or embedding.
    color, show, nodes, id
        See `Subject.names`; a picture is colored by the first column.
    layout, seed
        See `ssge.experiments.layout.lay_out`.
    points
        Most nodes drawn.
    title
        Headline of a picture.
    """
    if path.suffix.casefold() not in (*figures.FORMATS, ".html"):
        raise UnknownNameError("ending of a map", path.suffix, (*figures.FORMATS, ".html"))
    names, colors = subject.names(show, color, nodes, id)
    if path.suffix.casefold() == ".html":
        from ssge.experiments.report import write_map_page

        return write_map_page(
            path, subject, names, colors, layout=layout, seed=seed, max_points=MOST_POINTS if points is None else points
        )
    head = title or (f"Embedding of {cut(printable(subject.name))}" if subject.name else "Embedding")
    column = color_by(colors[0], names.columns[colors[0]]) if colors else None
    return figures.embedding_map(
        path,
        subject.embedding.vectors,
        column.codes if column and column.classes else None,
        column.classes if column else (),
        title=head,
        seed=seed,
        max_points=_MOST_DRAWN if points is None else points,
        values=column.numbers if column else None,
        legend=colors[0] if colors else None,
        layout=layout,
    )


def draw_plot(path: Path, subject: Subject, kind: Kind) -> Path:
    """Draw the losses, the spectrum or the correlation of columns."""
    vectors, of = subject.embedding.vectors, f" of {cut(printable(subject.name))}" if subject.name else ""
    if kind == "losses":
        if not subject.history:
            raise InputError("losses needs the folder of a run that was trained; an embedding has no history.")
        return figures.loss_curves(path, subject.history, title=f"Losses of the embedding{of}")
    if kind == "spectrum":
        return figures.spectrum(path, {"embedding": vectors}, title=f"Directions that the embedding{of} uses")
    if kind == "correlation":
        title = f"Correlation between columns of the embedding{of}"
        return figures.correlations(path, {"Embedding": vectors}, title=title)
    raise UnknownNameError("plot", kind, KINDS)
