"""Figures of the paper that are not in a recipe, and which of its figures are doubtful.

Accuracy, NMI and ARI of each method stand in its recipes; Table 5 stands in `ssge.experiments.efficiency`.
"""

from __future__ import annotations

from typing import NamedTuple

DATASETS = ("cora", "citeseer", "pubmed", "wikics", "computer", "coauthor_cs", "arxiv")
"""The paper's datasets, in the order of its tables."""

METHODS = (
    "mlp", "gcn", "gat", "deepwalk", "node2vec", "gae", "vgae", "gmi", "dgi", "ggd", "mvgrl", "grace", "gca", "merit",
    "gcool", "costa", "homogcl", "bgrl", "afgrl", "rgrl", "cca_ssg", "g_bt", "ssge",
)  # fmt: skip
"""Rows of the paper's classification table, in its order."""

CLUSTERED = ("vgae", "dgi", "mvgrl", "grace", "gca", "gcool", "homogcl", "bgrl", "cca_ssg", "g_bt", "ssge")
"""Methods of its clustering table, without the two clusterings of raw data."""

CLUSTERINGS = {
    "raw features": {"cora": (15.44, 9.49), "citeseer": (20.66, 16.80), "pubmed": (31.34, 28.12)},
    "spectral clustering": {"cora": (46.07, 34.39), "citeseer": (23.95, 18.48), "pubmed": (28.75, 30.34)},
}
"""NMI and ARI of k-means on raw features and of spectral clustering, by the name of our reference row."""

ABLATION = {
    "alignment": {"cora": 79.7, "citeseer": 71.9, "pubmed": 78.1, "wikics": 77.02},
    "uniformity": {"cora": 48.7, "citeseer": 30.1, "pubmed": 51.4, "wikics": 76.47},
    "both": {"cora": 83.9, "citeseer": 74.1, "pubmed": 81.6, "wikics": 79.18},
}
"""Accuracy with one term of the loss or both."""


class Doubt(NamedTuple):
    """A published figure that cannot be what its row says, and why."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    why: str


DOUBTS = (
    Doubt(
        ("mlp",), ("wikics", "computer", "coauthor_cs"),
        "Equal to the row of raw features in the paper of COSTA, deviation 0.00: a logistic regression, no perceptron.",
    ),
    Doubt(("gae", "vgae"), ("wikics",), "The same figure for both; the paper of COSTA prints 70.15 and 75.63."),
    Doubt(("gmi",), ("coauthor_cs",), "The paper of COSTA says out of memory."),
    Doubt(
        ("bgrl",), ("cora", "citeseer", "pubmed"),
        "Equal to the re-run in the paper of GraphMAE, whose encoders have attention and are up to 8192 wide.",
    ),
    Doubt(("mvgrl",), ("cora",), "A re-run by others; its own paper prints 86.8 on another split."),
    Doubt(("gca", "merit"), ("wikics",), "The same figure and deviation for both."),
    Doubt(("node2vec",), ("arxiv",), "The leaderboard's figure, which has the raw features beside the embedding."),
    Doubt(
        ("gmi",), ("cora", "citeseer", "pubmed"),
        "Of the adaptive variant of its paper; the released code, and ours, is the variant with means.",
    ),
)  # fmt: skip

DOUBTFUL_CLUSTERS = (Doubt(("dgi", "grace"), ("cora",), "The same figures and deviations for both."),)


def doubt(method: str, dataset: str, among: tuple[Doubt, ...] = DOUBTS) -> str | None:
    """Return why a published figure is doubtful, if it is."""
    return next((d.why for d in among if method in d.methods and dataset in d.datasets), None)
