"""MLP: a supervised network on the features, without edges."""

from __future__ import annotations

from ssge.methods._supervised import Layered


class MLP(Layered):
    """GCN without edges: linear layers, ReLU between them, with the same dropout and penalty.

    Without hidden layers (``widths`` empty) it is logistic regression on the features, as in some published rows named
    MLP. Random: the initial weights and the dropout of each step. Cost of a step, for features
    with s non-zero entries and layers of width d: O(s d + n d^2).

    Differences from the released code: as for GCN, biases, and a fixed number of epochs.
    """

    name = "mlp"
    title = "MLP"
    inputs = "X, Y"
    reference = "Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, 2017"
