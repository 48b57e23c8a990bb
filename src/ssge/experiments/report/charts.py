"""The charts of a report besides the map, each with what it shows in words and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.evaluation.geometry import effective_rank, spectrum
from ssge.experiments.figures.curves import MOST_COLUMNS, SMALLEST_EIGENVALUE, UNITS, absolute_correlation, curves_of
from ssge.experiments.report.points import packed

_MOST_ROWS = 12
_MOST_EPOCHS = 500
_EXPLAINED = {
    "total": "What training minimizes.",
    "alignment": "How far the two views of a node agree; lower is closer.",
    "uniformity": "Distance of the embedding to an isotropic Gaussian; 0 is no correlation between columns at all.",
    "effective_rank": "How many directions the embedding uses. A fall to 1 is a collapse.",
}

Chart = dict[str, Any]


def loss_charts(history: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Return a chart for the loss, for each of its terms and for the effective rank."""
    return [_curve(term, rows) for term, rows in curves_of(history).items()]


def _curve(term: str, rows: NDArray[np.float64]) -> Chart:
    title = term.replace("_", " ")
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, _MOST_EPOCHS).round().astype(int))]
    first, last = rows[0, 1], rows[-1, 1]
    way = "stays at" if first == last else "falls from" if last < first else "rises from"
    to = _number(last) if first == last else f"{_number(first)} to {_number(last)}"
    words = f"{title} {way} {to} over {rows[-1, 0]:.0f} epochs"
    some = rows[np.unique(np.linspace(0, len(rows) - 1, _MOST_ROWS).round().astype(int))]
    return {
        "title": title.capitalize(),
        "note": _EXPLAINED.get(term, ""),
        "words": words[0].upper() + words[1:] + ".",
        "headings": ("epoch", title),
        "rows": [(f"{epoch:.0f}", _number(value)) for epoch, value in some],
        "data": {
            "kind": "line",
            "x": rows[:, 0].tolist(),
            "y": [float(value) if np.isfinite(value) else None for value in rows[:, 1]],  # JSON has no NaN
            "log": bool(0 < 30 * rows[:, 1].min() < rows[:, 1].max()),
            "axes": ("epoch", UNITS.get(term, "loss")),
        },
    }


def spectrum_chart(vectors: NDArray[np.floating[Any]]) -> Chart:
    """Return the chart of the eigenvalues of the correlations between columns."""
    values = spectrum(vectors)
    rank, d = effective_rank(values), len(values)
    share = np.cumsum(values) / max(values.sum(), 1e-300)
    half = int(np.searchsorted(share, 0.5)) + 1
    some = np.unique(np.geomspace(1, d, _MOST_ROWS).round().astype(int))
    return {
        "title": "Spectrum",
        "note": "Eigenvalues of the correlations between columns. An isotropic embedding has 1 everywhere (dashed); a "
        "collapsed one falls steeply.",
        "words": f"Eigenvalues fall from {values[0]:.3g} to {values[-1]:.2g}. Half of the variation lies in "
        f"{half} of {d} directions; the effective rank is {rank:.1f}.",
        "headings": ("eigenvalue number", "eigenvalue", "share up to here"),
        "rows": [(str(i), f"{values[i - 1]:.3g}", f"{100 * share[i - 1]:.0f} %") for i in some.tolist()],
        "data": {
            "kind": "line",
            "x": list(range(1, d + 1)),
            "y": np.maximum(values, SMALLEST_EIGENVALUE).tolist(),
            "log": True,
            "level": 1,
            "axes": ("eigenvalue number, largest first", "eigenvalue"),
        },
    }


def correlation_chart(vectors: NDArray[np.floating[Any]]) -> Chart:
    """Return the chart of the absolute correlations between the first columns."""
    d = vectors.shape[1]
    found = absolute_correlation(vectors[:, :MOST_COLUMNS].astype(np.float64), "embedding")
    size = len(found)
    pairs = found[~np.eye(size, dtype=bool)]
    pairs = pairs[np.isfinite(pairs)]
    levels = (0.1, 0.3, 0.5, 0.9)
    level = f"{pairs.mean():.2f} on average, {pairs.max():.2f} at most" if pairs.size else "not defined"
    first = f" Shown are the first {size} of {d:,}." if size < d else ""
    return {
        "title": "Correlation of columns",
        "note": f"Absolute correlation of each column with each other.{first}",
        "words": f"Correlations between different columns are {level}.",
        "headings": ("absolute correlation above", "share of pairs"),
        "rows": [(f"{level}", f"{100 * (pairs > level).mean():.1f} %") for level in levels if pairs.size],
        "data": {"kind": "heat", "size": size, "values": packed(np.rint(255 * np.nan_to_num(found)), np.uint8)},
    }


def _number(value: float) -> str:
    return f"{value:,.4g}".replace("-", "\N{MINUS SIGN}")
