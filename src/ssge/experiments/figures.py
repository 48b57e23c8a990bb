"""Pictures for the demo and for reports: drawn from plain arrays and dicts, never from a model.

Every function takes the path to write first and returns it; its suffix decides the format, ``.png`` (150
dots an inch) or ``.svg``. Neither pyplot nor a change of ``rcParams`` is involved, so figures need no display
and may be drawn in any thread, and the same input gives the same bytes.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.files import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array: TypeAlias = NDArray[np.floating[Any]]

FORMATS = (".png", ".svg")
DPI = 150
INK, MUTED, FAINT = "#222222", "#666666", "#c8c8c8"
# Okabe and Ito's colors for color-blind readers (black softened, yellow darkened), then four more.
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#3a3a3a", "#c9b800")
PALETTE = (*OKABE_ITO, "#882255", "#8a8a2b", "#332288", "#9a9a9a")
# Each leaves room for lighter and darker shades of its own.
FAMILIES = ("#0072b2", "#d55e00", "#009e73", "#c0559a", "#ad9a00", "#00a0b4", "#8a4b2a", "#6a4fc0", "#6a6a6a")
MOST_COLUMNS = 256
SMALLEST_EIGENVALUE = 1e-6  # below it an eigenvalue is rounding, and a log axis would show little else


def embedding_map(
    path: str | Path,
    embedding: ArrayLike,
    labels: ArrayLike | None,
    class_names: Sequence[str] = (),
    title: str = "Nodes that lie together have similar embeddings",
    seed: int = 0,
    max_points: int = 5000,
) -> Path:
    """Draw the nodes on a plane, colored by class.

    Two columns are drawn as they are. More are reduced to 50 principal components, the rows scaled to length
    one and laid out by t-SNE; a single column, fewer than five nodes or nodes that all coincide are drawn by
    the first two components alone.

    Up to twelve classes get a legend. More are named on the map, the largest first, where there is room;
    dotted names like ``scipy.sparse`` share a hue by their first part, and the legend names the hues.

    Parameters
    ----------
    path
        File to write.
    embedding
        n x d, finite.
    labels
        n class indices, negative for no class; None draws all nodes in one color.
    class_names
        What the indices stand for; without them classes are called by number.
    title
        Headline.
    seed
        Of the choice of nodes when there are more than ``max_points``, of their drawing order and of t-SNE.
    max_points
        Most nodes drawn.
    """
    target = _target(path)
    points = _matrix(embedding, "embedding")
    classes = _classes(labels, len(points), class_names)
    if max_points < 1:
        raise InputError(f"max_points must be at least 1; received {max_points}.")
    # The permutation is the drawing order too: no class hides another, only the nodes that have none.
    chosen = np.random.default_rng(seed).permutation(len(points))[:max_points]
    chosen = chosen[np.argsort(classes[chosen] >= 0, kind="stable")]
    shown = classes[chosen]
    layout, axis_names = _layout(points[chosen], seed)
    present = [int(c) for c in np.unique(shown) if c >= 0]
    names = [str(class_names[c]) if len(class_names) else f"class {c}" for c in present]
    colors, dark, families = _class_colors(names)

    figure = _figure(10.0, 7.6, title)
    axes = figure.subplots()
    paint = np.full((len(shown), 3), _rgb(FAINT if present else PALETTE[0]))
    for index, color in zip(present, colors, strict=True):
        paint[shown == index] = color
    size = float(np.clip(40_000 / len(shown), 7, 70))
    # Thousands of vector dots would make an SVG slow to open; the words around them stay vectors.
    axes.scatter(layout[:, 0], layout[:, 1], s=size, c=paint, alpha=0.85, linewidths=0, rasterized=True)
    axes.set_aspect("equal", adjustable="datalim")
    _dress(axes, *axis_names)
    if axis_names[0].startswith("t-SNE"):  # its distances have no scale to read off
        axes.set(xticks=[], yticks=[])
    of_all = f" of {len(points):,}" if len(shown) < len(points) else ""
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
    _side_legend(figure, entries, "First part of the name" if families else None)
    if len(present) > len(PALETTE):
        _name_on_map(figure, axes, [layout[shown == index] for index in present], names, dark)
    return _save(figure, target)


def loss_curves(path: str | Path, history: Sequence[Mapping[str, Any]], title: str) -> Path:
    """Draw the loss, its terms and the effective rank over the epochs.

    The history is one dict per epoch, with ``epoch`` and ``total``, and any of ``alignment``, ``uniformity``
    and ``effective_rank``. A term that only some epochs have is joined over the others; one that no epoch has
    gets no panel.
    """
    target = _target(path)
    if not history or any(row.get(key) is None for row in history for key in ("epoch", "total")):
        raise InputError("history must be dicts with epoch and total; received none, or one without.")
    curves: dict[str, Array] = {}
    for term in ("total", "alignment", "uniformity", "effective_rank"):
        pairs = [(row["epoch"], row[term]) for row in history if row.get(term) is not None]
        if pairs:
            curves[term] = np.array(pairs, dtype=np.float64)
    loss = "Total loss and alignment" if "alignment" in curves else "Total loss"
    panels = [
        (loss, "loss (no unit)", ["total", "alignment"]),
        ("Uniformity", "distance² to N(0, I)", ["uniformity"]),
        ("Effective rank", "dimensions in use", ["effective_rank"]),
    ]
    panels = [panel for panel in panels if curves.keys() & panel[2]]
    figure = _figure(0.6 + 3.9 * len(panels), 3.7, title)
    colors = dict(zip(curves, PALETTE, strict=False))
    row_of_axes = figure.subplots(1, len(panels), sharex=True, squeeze=False)[0]
    for axes, (head, unit, terms) in zip(row_of_axes, panels, strict=True):
        drawn = {term: curves[term] for term in terms if term in curves}
        for term, curve in drawn.items():
            marker = "o" if len(curve) <= 20 else ""
            last = f"last {curve[-1, 1]:,.4g}".replace("-", "\N{MINUS SIGN}")
            axes.plot(*curve.T, c=colors[term], lw=1.8, marker=marker, ms=4, label=f"{term}, {last}")
        values = np.concatenate(list(drawn.values()))[:, 1]
        wide = bool(0 < 30 * values.min() < values.max())
        axes.set_yscale("log" if wide else "linear")
        _dress(axes, "epoch", unit + ", log scale" * wide)
        axes.set_title(head, loc="left", fontsize=11, color=INK)
        if len(drawn) > 1:
            axes.legend(frameon=False, fontsize=9.5, labelcolor=INK)
        else:
            axes.set_title(last, loc="right", fontsize=9.5, color=MUTED)
    return _save(figure, target)


def covariance(
    path: str | Path,
    before: ArrayLike,
    after: ArrayLike,
    title: str = "Correlation between embedding columns, before and after training",
) -> Path:
    """Draw the absolute correlations between the columns of two embeddings, on one scale from 0 to 1.

    The first 256 columns are shown, in their own order; a constant one, which has no correlation, is gray.
    Each embedding needs two rows; their numbers of columns may differ.
    """
    from matplotlib import colormaps

    target = _target(path)
    figure = _figure(10.6, 5.05, title)
    both = figure.subplots(1, 2)
    for axes, head, values in zip(both, ("Before", "After"), (before, after), strict=True):
        embedding = _matrix(values, head.lower())
        correlation = _absolute_correlation(embedding[:, :MOST_COLUMNS], head.lower())
        shades = colormaps["Blues"].with_extremes(bad=FAINT)
        image = axes.imshow(np.ma.masked_invalid(correlation), vmin=0, vmax=1, cmap=shades)
        d, drawn = embedding.shape[1], len(correlation)
        name = "column" if drawn == d else f"column (first {drawn} of {d:,})"
        _dress(axes, name, name)
        between = correlation[~np.eye(drawn, dtype=bool) & np.isfinite(correlation)]
        note = f": {between.mean():.2f} on average off the diagonal" if between.size else ""
        axes.set_title(head + note, loc="left", fontsize=11, color=INK)
    bar = figure.colorbar(image, ax=both, pad=0.02, shrink=0.95)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9.5, color=MUTED, labelcolor=INK)
    bar.set_label("absolute correlation", fontsize=10.5, color=INK)
    return _save(figure, target)


def spectrum(
    path: str | Path,
    curves: Mapping[str, ArrayLike],
    title: str = "How evenly the embedding uses its dimensions",
) -> Path:
    """Draw the eigenvalues of the correlation matrix of the columns, one line an embedding.

    An isotropic Gaussian has every eigenvalue 1; those of a collapsed embedding fall steeply. The legend
    gives each effective rank.
    """
    from ssge.evaluation.geometry import effective_rank
    from ssge.evaluation.geometry import spectrum as eigenvalues_of

    target = _target(path)
    if not curves:
        raise InputError("curves must hold at least one named embedding; received none.")
    figure = _figure(7.6, 4.8, title)
    axes = figure.subplots()
    axes.set(yscale="log")
    axes.margins(x=0.02)
    smallest = 1.0
    for (name, embedding), color in zip(curves.items(), cycle(PALETTE), strict=False):
        eigenvalues = eigenvalues_of(embedding)
        label = f"{name}: effective rank {effective_rank(eigenvalues):.3g} of {len(eigenvalues)}"
        visible = np.maximum(eigenvalues, SMALLEST_EIGENVALUE / 10)  # what is lower leaves through the bottom
        marker = "o" if len(visible) <= 20 else ""
        axes.plot(np.arange(1, len(visible) + 1), visible, c=color, lw=1.9, marker=marker, ms=4, label=label)
        smallest = min(smallest, float(visible.min()))
    isotropic = "isotropic Gaussian: every eigenvalue 1"
    axes.axhline(1.0, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1, label=isotropic)
    axes.set_ylim(bottom=max(smallest / 2, SMALLEST_EIGENVALUE))
    _dress(axes, "eigenvalue number, largest first", "eigenvalue of the correlations, log scale")
    axes.legend(frameon=False, fontsize=9.5, labelcolor=INK, loc="best")
    return _save(figure, target)


def _matrix(values: ArrayLike, name: str) -> Array:
    matrix = np.asarray(values)
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "fiub":
        raise InputError(f"{name} must be an n x d matrix; received {matrix.dtype} of shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise InputError(f"{name} must be finite; received NaN or infinity.")
    return matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)


def _classes(labels: ArrayLike | None, n: int, class_names: Sequence[str]) -> NDArray[np.int64]:
    if labels is None:
        return np.full(n, -1, dtype=np.int64)
    classes = np.asarray(labels)
    if classes.shape != (n,) or classes.dtype.kind not in "iu":
        received = f"{classes.dtype} of shape {classes.shape}"
        raise InputError(f"labels must be {n} class indices, one a row; received {received}.")
    if 0 < len(class_names) <= classes.max():
        raise InputError(f"class_names must reach class {classes.max()}; received {len(class_names)} names.")
    return classes.astype(np.int64)


def _layout(points: Array, seed: int) -> tuple[Array, tuple[str, str]]:
    """Place points on a plane; also name its two axes."""
    if points.shape[1] == 2:
        return points, ("column 1", "column 2")
    points = points.astype(np.float64)
    left, singular, right = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    # A singular vector is unique up to its sign: make its largest entry positive.
    largest = np.abs(right).argmax(axis=1)
    components = (left * singular * np.where(right[np.arange(len(right)), largest] < 0, -1, 1))[:, :50]
    collapsed = singular[0] <= 1e-9 * np.linalg.norm(points)
    if len(points) < 5 or points.shape[1] < 2 or collapsed:
        plane: Array = np.pad(components, ((0, 0), (0, 1)))[:, :2]
        return plane, ("principal component 1", "principal component 2")

    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    length = np.linalg.norm(components, axis=1, keepdims=True)
    rows = (components / np.where(length > 0, length, 1.0)).astype(np.float32)
    tsne = TSNE(perplexity=min(30.0, (len(rows) - 1) / 3), init="pca", random_state=seed)
    with threadpool_limits(1, user_api="openmp"):  # more threads sum in another order
        return np.asarray(tsne.fit_transform(rows)), ("t-SNE 1", "t-SNE 2")


def _absolute_correlation(embedding: Array, name: str) -> Array:
    if len(embedding) < 2:
        raise InputError(f"{name} must have at least two rows to correlate columns; received 1.")
    deviation = embedding.std(axis=0, dtype=np.float64)
    rounding = 4 * np.finfo(embedding.dtype).eps * np.abs(embedding).max(axis=0)
    deviation[deviation <= rounding] = np.nan  # a constant column correlates with nothing
    standard = (embedding - embedding.mean(axis=0, dtype=np.float64)) / deviation
    correlation: Array = np.abs(standard.T @ standard) / len(embedding)
    return np.minimum(correlation, 1.0)


def _class_colors(names: Sequence[str]) -> tuple[Array, Array, dict[str, list[int]]]:
    """Choose a color a class and a darker one for its name; also return the families that share a hue."""
    if len(names) <= len(PALETTE):
        few = np.array([_rgb(color) for color in PALETTE[: len(names)]])
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
            colors[k] = (1 - abs(step)) * _rgb(hue) + max(step, 0.0)  # towards black or white
            dark[k] = 0.6 * _rgb(hue)
    return colors, dark, families if grouped else {}


def _rgb(color: str) -> Array:
    return np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])


def _counted(classes: int) -> str:
    return f"{classes} class" if classes == 1 else f"{classes} classes"


def _figure(width: float, height: float, title: str) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    lines = textwrap.fill(title, int(width * 10))
    figure.suptitle(lines, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK)
    return figure


def _dress(axes: Axes, x: str, y: str) -> None:
    """Give axes the house look, whatever style the caller's session has set."""
    axes.set_facecolor("white")
    axes.grid(False)
    axes.set_xlabel(x, fontsize=10.5, color=INK)
    axes.set_ylabel(y, fontsize=10.5, color=INK)
    axes.tick_params(which="both", labelsize=9.5, color=MUTED, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)


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


def _target(path: str | Path) -> Path:
    """Check the suffix, before any work is done."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"path must end in {' or '.join(FORMATS)}; received {target.name!r}.")
    return target


def _save(figure: Figure, target: Path) -> Path:
    kind = target.suffix.lower()[1:]
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata={"Software" if kind == "png" else "Date": None})
    content = buffer.getvalue()
    if kind == "svg":  # its ids are random; the setting that fixes them is global, hence not for threads
        ids: dict[bytes, bytes] = {}
        pattern = rb'(?<=["#])[A-Za-z]\w*?[0-9a-f]{10}(?=["\)])'
        content = re.sub(pattern, lambda match: ids.setdefault(match[0], b"id%d" % len(ids)), content)
    with atomic(target) as temporary:
        temporary.write_bytes(content)
    return target
