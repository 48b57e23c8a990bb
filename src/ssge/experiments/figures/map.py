"""The map: nodes on a plane, colored by class and named where there is room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.evaluation._arrays import checked_embedding
from ssge.experiments.figures import canvas
from ssge.experiments.figures.canvas import DPI, FAINT, INK, MUTED, PALETTE
from ssge.experiments.layout import Coloring, Method, drawing_order, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array: TypeAlias = NDArray[np.floating[Any]]

MOST_POINTS = 5_000
# Each leaves room for lighter and darker shades of its own.
FAMILIES = ("#0072b2", "#d55e00", "#009e73", "#c0559a", "#ad9a00", "#00a0b4", "#8a4b2a", "#6a4fc0", "#6a6a6a")


def embedding_map(
    path: str | Path,
    embedding: ArrayLike,
    column: Coloring | None = None,
    title: str = "Nodes that lie together have similar embeddings",
    *,
    layout: Method = "auto",
    points: int | None = None,
    seed: int = 0,
) -> Path:
    """Draw the nodes on a plane, laid out by `ssge.experiments.layout.lay_out`, colored by a column.

    Up to twelve classes get a legend. More are named on the map, the largest first, where there is room;
    dotted names like ``scipy.sparse`` share a hue by their first part, and the legend names the hues.

    Parameters
    ----------
    path
        File to write.
    embedding
        n x d, finite.
    column
        Class or number of each node; None draws all nodes in one color. Nodes without a value are gray.
    title
        Headline.
    layout
        See `ssge.experiments.layout.lay_out`.
    points
        Largest number of nodes drawn; default: 5,000.
    seed
        Of the layout, of the choice of nodes when there are more than ``points``, and of their drawing order.
    """
    figure = canvas.figure(path, 10.0, 7.6, title)
    vectors = checked_embedding(embedding, "embedding")
    column = column or Coloring("", [], np.full(len(vectors), -1))
    # No class hides another, but nodes that have none lie below the others.
    rows = drawing_order(len(vectors), MOST_POINTS if points is None else points, seed)
    rows = rows[np.argsort(column.codes[rows] >= 0, kind="stable")]
    shown = column.codes[rows]
    placed = lay_out(vectors[rows], seed, layout)
    present = [int(c) for c in np.unique(shown) if c >= 0]
    names = [column.classes[c] for c in present]
    colors, dark, families = class_colors(names)

    axes = figure.subplots()
    paint: Any = np.full((len(shown), 3), canvas.rgb(FAINT if present else PALETTE[0]))
    for index, color in zip(present, colors, strict=True):
        paint[shown == index] = color
    shades: dict[str, Any] = {}
    if column.numbers is not None:
        paint, shades = np.ma.masked_invalid(column.numbers[rows]), {"cmap": "viridis", "plotnonfinite": True}
    size = float(np.clip(40_000 / len(shown), 7, 70))
    # Thousands of vector dots would make an SVG slow to open; the words around them stay vectors.
    dots = axes.scatter(
        placed.points[:, 0], placed.points[:, 1], s=size, c=paint, alpha=0.85, linewidths=0, rasterized=True, **shades
    )
    axes.set_aspect("equal", adjustable="datalim")
    canvas.dress(axes, *placed.axes)
    if not placed.scaled:
        axes.set(xticks=[], yticks=[])
    of_all = f" of {len(vectors):,}" if len(shown) < len(vectors) else ""
    kinds = f", {_counted(len(present))}" if present else ""
    axes.set_title(f"{len(shown):,}{of_all} nodes{kinds}", loc="left", fontsize=10, color=MUTED)

    entries: dict[str, list[Any]] = {}
    if families:
        for family, members in families.items():
            ends = sorted({0, len(members) // 2, len(members) - 1})
            entries[f"{family}, {_counted(len(members))}"] = [colors[members[k]] for k in ends]
    elif len(present) <= len(PALETTE):
        entries = {name: [color] for name, color in zip(names, colors, strict=True)}
    if present and shown[0] < 0:
        entries["no class"] = [FAINT]
    if column.numbers is not None:
        dots.cmap.set_bad(FAINT)
        canvas.color_bar(figure, dots, axes, column.name)
    _side_legend(figure, entries, "First part of the name" if families else column.name)
    if len(present) > len(PALETTE):
        _name_on_map(figure, axes, [placed.points[shown == index] for index in present], names, dark)
    return canvas.save(figure, path)


def class_colors(names: Sequence[str]) -> tuple[Array, Array, dict[str, list[int]]]:
    """Choose a color per class and a darker one for its name; also return the families that share a hue."""
    if len(names) <= len(PALETTE):
        few = np.array([canvas.rgb(color) for color in PALETTE[: len(names)]])
        return few, few, {}
    families: dict[str, list[int]] = {}
    for k in sorted(range(len(names)), key=lambda k: names[k]):
        families.setdefault(names[k].split(".")[0], []).append(k)
    families = dict(sorted(families.items(), key=lambda item: -len(item[1])))
    grouped = 1 < len(families) < len(names)
    if not grouped:  # deal the classes out to all hues
        families = {hue: list(range(len(names)))[k :: len(FAMILIES)] for k, hue in enumerate(FAMILIES)}
    colors, dark = np.empty((2, len(names), 3))
    for members, hue in zip(families.values(), cycle(FAMILIES), strict=False):
        steps = np.linspace(-0.35, 0.5, len(members)) if len(members) > 1 else [0.0]
        for k, step in zip(members, steps, strict=True):
            colors[k] = (1 - abs(step)) * canvas.rgb(hue) + max(step, 0.0)  # towards black or white
            dark[k] = 0.6 * canvas.rgb(hue)
    return colors, dark, families if grouped else {}


def _counted(classes: int) -> str:
    return f"{classes} class" if classes == 1 else f"{classes} classes"


def _side_legend(figure: Figure, entries: Mapping[str, Sequence[Any]], title: str | None) -> None:
    """Put a legend beside the axes; an entry of several colors shows them all."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D

    if not entries:
        return
    dots: list[Any] = [
        tuple(Line2D([], [], ls="", marker="o", ms=7, c=c) for c in colors) for colors in entries.values()
    ]
    look: dict[str, Any] = {"frameon": False, "fontsize": 10, "title_fontsize": 10, "labelcolor": INK}
    look |= {"title": title, "alignment": "left", "loc": "outside right upper"}
    legend = figure.legend(dots, list(entries), handler_map={tuple: HandlerTuple(ndivide=None)}, **look)
    legend.get_title().set_color(MUTED)


def _name_on_map(figure: Figure, axes: Axes, groups: list[Array], names: list[str], colors: Array) -> None:
    """Write each class's name on or next to its nodes, the largest class first; skip what has no room."""
    from matplotlib.patheffects import withStroke

    figure.draw_without_rendering()  # settles the layout, so that boxes can be measured
    enough = max(3.0, 0.003 * sum(map(len, groups)))
    halo = [withStroke(linewidth=2.4, foreground="white")]
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "fontweight": "bold"}
    look |= {"textcoords": "offset points", "path_effects": halo}
    taken: list[Any] = []
    for k in sorted(range(len(groups)), key=lambda k: -len(groups[k])):
        if len(groups[k]) < enough:
            break
        center, radius = _heart(groups[k])
        text = axes.annotate(names[k], center, xytext=(0, 0), color=colors[k], **look)
        text.set_in_layout(False)
        tall = 1.5 * radius * axes.transData.get_matrix()[1, 1] * 72 / DPI  # in points
        # A name that would cover a small class stands above or below it.
        for shift in (0, 10, -10) if tall > 20 else (tall + 5, -tall - 5, tall + 11, -tall - 11, 0):
            text.set_position((0, shift))
            box = text.get_window_extent().padded(1)
            if axes.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 and not any(map(box.overlaps, taken)):
                taken.append(box)
                break
        else:
            text.remove()


def _heart(group: Array) -> tuple[tuple[float, float], float]:
    """Return where a class is densest, and how far the nearer half of its nodes reaches from there."""
    core = group
    while True:  # the median of a class in several parts may lie between them; ever closer halves end in one
        x, y = np.median(core, axis=0)
        if len(core) < 12:
            return (float(x), float(y)), float(np.median(np.linalg.norm(group - (x, y), axis=1)))
        core = core[np.argsort(np.linalg.norm(core - (x, y), axis=1), kind="stable")[: len(core) // 2]]
