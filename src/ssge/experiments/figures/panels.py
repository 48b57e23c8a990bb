"""Figures of the paper: correlations of several embeddings, densities on the circle, sweeps with error bars, grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import checked_embedding
from ssge.experiments.figures import canvas
from ssge.experiments.figures.canvas import INK, MUTED, PALETTE

GRID = 160
"""Points per side of a density picture."""
BANDWIDTH = 0.08
"""Deviation of the kernel, where the circle has radius 1."""
CLASSES = 3
"""Classes with a panel of their own, from class 0 on."""


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

    target = canvas.target(path)
    points = checked_embedding(embedding, "embedding")
    if points.shape[1] != 2:
        raise InputError(f"embedding must have 2 columns to lie on a circle; received {points.shape[1]}.")
    centered = points - points.mean(axis=0)
    norm = np.linalg.norm(centered, axis=1)
    unit = centered[norm > 0] / norm[norm > 0, None]
    label = np.asarray(labels)[norm > 0]
    panels = {"All classes": unit} | {f"Class {c}": unit[label == c] for c in range(CLASSES)}
    figure = canvas.figure(3.1 * len(panels), 4.6, title)
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
    return canvas.save(figure, target)


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
    target = canvas.target(path)
    if not any(curves.values()):
        raise InputError("curves must have at least one point; received none.")
    figure = canvas.figure(7.2, 4.6, title)
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
    return canvas.save(figure, target)


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
    target = canvas.target(path)
    figure = canvas.figure(1.4 + 0.62 * len(columns) * len(panels) + 0.6 * len(panels), 1.5 + 0.55 * len(rows), title)
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
    return canvas.save(figure, target)
