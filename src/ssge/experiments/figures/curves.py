"""Pictures of numbers: losses, correlations, spectra; densities on the circle, sweeps and grids as in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import Matrix, checked_embedding, deviations
from ssge.evaluation.geometry import effective_rank
from ssge.evaluation.geometry import spectrum as eigenvalues_of
from ssge.experiments.figures import canvas
from ssge.experiments.figures.canvas import FAINT, INK, MUTED, PALETTE

MOST_COLUMNS = 256
SMALLEST_EIGENVALUE = 1e-6  # below it an eigenvalue is rounding, and a log axis would show little else
GRID = 160
"""Points per side of a density picture."""
BANDWIDTH = 0.08
"""Deviation of the kernel, where the circle has radius 1."""
CLASSES = 3
"""Classes with a panel of their own, from class 0 on."""

UNITS = {"uniformity": "distance² to N(0, I)", "effective_rank": "dimensions in use"}


def curves_of(history: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[np.float64]]:
    """Return each term of a history as rows of epoch and value: the total, the terms, and the effective rank last."""
    found = [term for row in history for term in row if term not in ("epoch", "seconds")]
    terms = sorted(dict.fromkeys(found), key=lambda term: (term == "effective_rank") - (term == "total"))
    pairs = {term: [(row["epoch"], row[term]) for row in history if row.get(term) is not None] for term in terms}
    return {term: np.array(rows, dtype=np.float64) for term, rows in pairs.items() if rows}


def loss_curves(path: str | Path, history: Sequence[Mapping[str, Any]], title: str) -> Path:
    """Draw the loss, its terms and the effective rank over the epochs.

    The history is one dict per epoch, with ``epoch`` and ``total``, and any terms. A term that only some epochs have
    is joined over the others; one that no epoch has gets no panel.
    """
    if not history or any(row.get(key) is None for row in history for key in ("epoch", "total")):
        raise InputError("history must be dicts with epoch and total; received none, or one without.")
    curves = curves_of(history)
    loss = "Total loss and alignment" if "alignment" in curves else "Total loss"
    panels = [(loss, "loss (no unit)", ["total", "alignment"])]
    panels += [
        (term.capitalize().replace("_", " "), UNITS.get(term, "loss (no unit)"), [term])
        for term in curves
        if term not in ("total", "alignment")
    ]
    figure = canvas.figure(path, 0.6 + 3.9 * len(panels), 3.7, title)
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
        canvas.dress(axes, "epoch", unit + ", log scale" * wide)
        axes.set_title(head, loc="left", fontsize=11, color=INK)
        if len(drawn) > 1:
            axes.legend(frameon=False, fontsize=9.5, labelcolor=INK)
        else:
            axes.set_title(last, loc="right", fontsize=9.5, color=MUTED)
    return canvas.save(figure, path)


def correlations(
    path: str | Path, panels: Mapping[str, ArrayLike], title: str = "Correlation between embedding columns"
) -> Path:
    """Draw the absolute correlations between the columns of embeddings side by side, on one scale from 0 to 1.

    The first 256 columns are shown, in their own order; a constant one, which has no correlation, is gray.
    Each embedding needs two rows; their numbers of columns may differ.
    """
    figure = canvas.figure(path, 1 + 4.8 * len(panels), 5.05, title)
    from matplotlib import colormaps

    row_of_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (head, values) in zip(row_of_axes, panels.items(), strict=True):
        embedding = checked_embedding(values, head.lower())
        correlation = absolute_correlation(embedding[:, :MOST_COLUMNS], head.lower())
        shades = colormaps["Blues"].with_extremes(bad=FAINT)
        image = axes.imshow(np.ma.masked_invalid(correlation), vmin=0, vmax=1, cmap=shades)
        d, drawn = embedding.shape[1], len(correlation)
        name = "column" if drawn == d else f"column (first {drawn} of {d:,})"
        canvas.dress(axes, name, name)
        between = correlation[~np.eye(drawn, dtype=bool) & np.isfinite(correlation)]
        note = f": {between.mean():.2f} on average off the diagonal" if between.size else ""
        axes.set_title(head + note, loc="left", fontsize=11, color=INK)
    canvas.color_bar(figure, image, list(row_of_axes), "absolute correlation")
    return canvas.save(figure, path)


def spectrum(
    path: str | Path,
    curves: Mapping[str, ArrayLike],
    title: str = "How evenly the embedding uses its dimensions",
) -> Path:
    """Draw the eigenvalues of the correlation matrix of the columns, one line per embedding.

    An isotropic Gaussian has every eigenvalue 1; those of a collapsed embedding fall steeply. The legend
    gives each effective rank.
    """
    if not curves:
        raise InputError("curves must hold at least one named embedding; received none.")
    figure = canvas.figure(path, 7.6, 4.8, title)
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
    canvas.dress(axes, "eigenvalue number, largest first", "eigenvalue of the correlations, log scale")
    axes.legend(frameon=False, fontsize=9.5, labelcolor=INK, loc="best")
    return canvas.save(figure, path)


def absolute_correlation(embedding: Matrix, name: str) -> Matrix:
    """Return the absolute correlations between columns; NaN for those of a constant column."""
    if len(embedding) < 2:
        raise InputError(f"{name} must have at least two rows to correlate columns; received 1.")
    varying = np.where(deviations(embedding) > 0, embedding, np.nan)  # a constant column correlates with nothing
    correlation: Matrix = np.abs(np.atleast_2d(np.corrcoef(varying, rowvar=False)))
    return correlation


def circle_densities(path: str | Path, embedding: ArrayLike, labels: ArrayLike, title: str) -> Path:
    """Draw where nodes lie on the unit circle: Gaussian kernel density in the plane, for all nodes and single classes.

    Rows are centered and scaled to unit length. Below each density stands the histogram of the angles, where a uniform
    distribution is flat.

    Parameters
    ----------
    path
        File to write.
    embedding
        n x 2.
    labels
        Class of each node, negative for none.
    title
        Headline.
    """
    from sklearn.neighbors import KernelDensity

    points = checked_embedding(embedding, "embedding")
    if points.shape[1] != 2:
        raise InputError(f"embedding must have 2 columns to lie on a circle; received {points.shape[1]}.")
    centered = points - points.mean(axis=0)
    norm = np.linalg.norm(centered, axis=1)
    unit = centered[norm > 0] / norm[norm > 0, None]
    label = np.asarray(labels)[norm > 0]
    panels = {"All classes": unit} | {f"Class {c}": unit[label == c] for c in range(CLASSES)}
    figure = canvas.figure(path, 3.1 * len(panels), 4.6, title)
    axes = figure.subplots(2, len(panels), height_ratios=(3, 1), squeeze=False)
    side = np.linspace(-1.4, 1.4, GRID)
    plane = np.stack(np.meshgrid(side, side)).reshape(2, -1).T
    for column, (name, rows) in enumerate(panels.items()):
        density, angles = axes[0, column], axes[1, column]
        density.set_title(f"{name}, {len(rows):,} nodes", loc="left", fontsize=11, color=INK)
        if len(rows) > 2:
            values = np.exp(KernelDensity(bandwidth=BANDWIDTH).fit(rows).score_samples(plane)).reshape(GRID, GRID)
            density.imshow(values, origin="lower", extent=(-1.4, 1.4, -1.4, 1.4), cmap="Blues")
            angles.hist(
                np.arctan2(rows[:, 1], rows[:, 0]), bins=36, range=(-np.pi, np.pi), color=PALETTE[0], density=True
            )
        density.set_aspect("equal")
        density.set(xticks=[], yticks=[])
        density.spines[:].set_visible(False)
        angles.axhline(1 / (2 * np.pi), color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        canvas.dress(angles, "angle", "density" if column == 0 else "")
        angles.set_xticks([-np.pi, 0, np.pi], ["−π", "0", "π"])
        angles.set_yticks([])
    return canvas.save(figure, path)


def sweeps(
    path: str | Path,
    curves: Mapping[str, Sequence[tuple[float, float, float]]],
    title: str,
    setting: str,
) -> Path:
    """Draw accuracy over a setting, one line per graph, with a bar of one standard deviation over encoder seeds.

    Parameters
    ----------
    path
        File to write.
    curves
        By graph: value of the setting, mean, standard deviation.
    title
        Headline.
    setting
        Name of the horizontal axis, which is logarithmic.
    """
    if not any(curves.values()):
        raise InputError("curves must have at least one point; received none.")
    figure = canvas.figure(path, 7.2, 4.6, title)
    axes = figure.subplots()
    axes.set_xscale("log")
    ticks = sorted({point[0] for curve in curves.values() for point in curve})
    for (name, curve), color in zip(curves.items(), PALETTE, strict=False):
        x, mean, std = (np.array(part) for part in zip(*curve, strict=True))
        axes.errorbar(x, mean, std if std.any() else None, color=color, lw=1.8, marker="o", ms=4, capsize=3, label=name)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    canvas.dress(axes, setting, "accuracy %")
    axes.legend(frameon=False, fontsize=9.5, labelcolor=INK, loc="best")
    return canvas.save(figure, path)


def grids(
    path: str | Path,
    panels: Mapping[str, NDArray[np.floating[Any]]],
    rows: Sequence[float],
    columns: Sequence[float],
    title: str,
    names: tuple[str, str],
) -> Path:
    """Draw a figure over two settings as heat maps with the numbers in their cells, one map per graph.

    Parameters
    ----------
    path
        File to write.
    panels
        By graph: a matrix of figures, rows by the first setting. NaN where there is none.
    rows, columns
        Values of the two settings.
    title
        Headline.
    names
        Names of the two settings.
    """
    width, height = 1.4 + 0.62 * len(columns) * len(panels) + 0.6 * len(panels), 1.5 + 0.55 * len(rows)
    figure = canvas.figure(path, width, height, title)
    every = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (name, values) in zip(every, panels.items(), strict=True):
        low, high = np.nanmin(values), np.nanmax(values)
        axes.imshow(
            values, cmap="Blues", vmin=low - 0.15 * (high - low + 1e-9), vmax=high, origin="lower", aspect="auto"
        )
        for i, j in np.ndindex(values.shape):
            dark = values[i, j] > (low + high) / 2
            axes.text(j, i, f"{values[i, j]:.1f}", ha="center", va="center", fontsize=9, color="white" if dark else INK)
        canvas.dress(axes, names[1], names[0])
        axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
        axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
        axes.set_title(name, loc="left", fontsize=11, color=INK)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    return canvas.save(figure, path)
