"""Pictures for the demo and for reports: drawn from plain arrays and dicts, never from a model.

Every function takes the path to write first and returns it. The suffix decides the format: ``.png`` (150 dots per
inch) or ``.svg``. Pictures use neither pyplot nor ``rcParams``: they need no display, can be drawn in any thread, and
the same input gives the same bytes.
"""

from ssge.experiments.figures.canvas import FORMATS
from ssge.experiments.figures.curves import circle_densities, correlations, grids, loss_curves, spectrum, sweeps
from ssge.experiments.figures.map import embedding_map

__all__ = [
    "FORMATS",
    "circle_densities",
    "correlations",
    "embedding_map",
    "grids",
    "loss_curves",
    "spectrum",
    "sweeps",
]
