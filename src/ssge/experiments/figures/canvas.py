"""The style that all pictures share: colors, canvas, axes and the file."""

from __future__ import annotations

import importlib.util
import io
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.files import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")
DPI = 150
INK, MUTED, FAINT = "#222222", "#666666", "#c8c8c8"
# Okabe and Ito's colors for color-blind readers (black softened, yellow darkened), then four more.
OKABE_ITO = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#3a3a3a", "#c9b800")
PALETTE = (*OKABE_ITO, "#882255", "#8a8a2b", "#332288", "#9a9a9a")


def figure(path: str | Path, width: float, height: float, title: str) -> Figure:
    """Return an empty figure for a file, sizes in inches, with its headline; to be called before any work is done."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"path must end in {' or '.join(FORMATS)}; received {Path(path).name!r}.")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("Pictures need a package that is not here: pip install 'ssge[plots]'")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    lines = textwrap.fill(title, int(width * 10))
    figure.suptitle(lines, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK)
    return figure


def dress(axes: Axes, x: str, y: str) -> None:
    """Give axes the house look, whatever style the caller's session has set."""
    axes.set_facecolor("white")
    axes.grid(False)
    axes.set_xlabel(x, fontsize=10.5, color=INK)
    axes.set_ylabel(y, fontsize=10.5, color=INK)
    axes.tick_params(which="both", labelsize=9.5, color=MUTED, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)


def color_bar(figure: Figure, image: Any, axes: Any, title: str) -> None:
    """Put a scale of colors beside axes."""
    bar = figure.colorbar(image, ax=axes, pad=0.02, shrink=0.95)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9.5, color=MUTED, labelcolor=INK)
    bar.set_label(title, fontsize=10.5, color=INK)


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure; the same figure gives the same bytes."""
    target = Path(path)
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


def rgb(color: str) -> NDArray[np.floating[Any]]:
    """Return red, green and blue of ``#rrggbb``, each between 0 and 1."""
    return np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
