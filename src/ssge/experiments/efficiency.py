"""The paper's efficiency comparison: parameters, training time and memory of five methods on four graphs.

The configurations have the paper's numbers of parameters. Three differ in that from the recipes, which follow accuracy:
DGI has two layers and a linear map of the summary, GRACE has narrower layers, and SSGE has a bias in its last layer.
Everything else, the number of epochs too, is that of the recipe without ``-fast``.
"""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ssge.datasets import load
from ssge.records import peak_memory_mb
from ssge.runs.recipes import load_recipe

if TYPE_CHECKING:
    from ssge.training.trainer import Epoch

GRAPHS = ("cora", "citeseer", "pubmed", "computer")


class Published(NamedTuple):
    """A cell of the paper's Table 5: parameters in thousands, seconds, and memory in MB of a GPU."""

    thousands: int
    seconds: float
    memory_mb: int


_TABLE = {
    "dgi": ((1260, 4.06, 570), (2422, 4.51, 710), (782, 10.24, 1024), (919, 13.50, 926)),
    "mvgrl": ((1731, 17.73, 3838), (4055, 15.48, 7386), (775, 83.64, 4622), (1049, 124.96, 4660)),
    "grace": ((564, 10.57, 748), (2159, 7.59, 1018), (326, 396.97, 12744), (394, 267.72, 6630)),
    "homogcl": ((866, 3.95, 1014), (2028, 6.01, 1478), (388, 167.97, 22010), (525, 92.35, 11788)),
    "ssge": ((433, 3.41, 580), (1896, 2.44, 800), (388, 7.90, 1256), (656, 15.42, 1234)),
}
PUBLISHED = {
    (method, dataset): Published(*cell)
    for method, cells in _TABLE.items()
    for dataset, cell in zip(GRAPHS, cells, strict=True)
}
"""The paper's Table 5, by method and dataset, in the order of its rows."""


class Measured(NamedTuple):
    """What a training of some epochs cost.

    Attributes
    ----------
    parameters
        Trained numbers.
    epochs, measured_epochs
        Of the recipe, and how many were run.
    prepare_seconds, epoch_seconds
        Processor time, once before training (diffusion) and the median of the epochs that were run.
    peak_mb
        Highest resident memory of the process, with libraries and graph.
    """

    parameters: int
    epochs: int
    measured_epochs: int
    prepare_seconds: float
    epoch_seconds: float
    peak_mb: float

    @property
    def seconds(self) -> float:
        """Processor time of a training, extrapolated from the epochs that were run."""
        return self.prepare_seconds + self.epochs * self.epoch_seconds


def settings(method: str, dataset: str) -> dict[str, Any]:
    """Return the settings of a method on a dataset whose parameters are as many as in the paper."""
    recipe = load_recipe(f"{method}/{dataset}").config
    wide = dataset == "citeseer"
    changes: dict[str, dict[str, Any]] = {
        "dgi": {"widths": (512, 512), "linear_summary": True},
        "grace": {"widths": (512 if wide else 256, 256)},
        "ssge": {"output_bias": True},
    }
    return recipe | changes.get(method, {})


def measure(method: str, dataset: str, seconds: float) -> Measured:
    """Train for so many seconds, for one epoch at least, in this process, and return what that cost.

    Time is that of the processor, all threads together, which other work on the machine does not lengthen much. Peak
    memory is that of the process so far: call it in a fresh one.
    """
    from ssge.ops.random import Key
    from ssge.training.allocator import kept_memory
    from ssge.training.checkpoint import build
    from ssge.training.trainer import train

    graph = load(dataset).without_labels()
    model = build(method, settings(method, dataset), graph.info)
    with kept_memory():
        began = time.process_time()
        prepared = model.prepare(graph)
        ends = [time.process_time()]

        def stop(_: Epoch) -> bool:
            ends.append(time.process_time())
            return ends[-1] - ends[0] >= seconds

        train(model, prepared, Key(0), observers=[stop])
    times = [end - start for start, end in pairwise(ends)]
    return Measured(
        model.num_parameters,
        model.config.epochs,
        len(times),
        ends[0] - began,
        statistics.median(times),
        peak_memory_mb(),
    )
