"""MLP: a perceptron on the features alone that is trained on labels."""

from __future__ import annotations

from ssge.methods._supervised import Layered


class MLP(Layered):
    """GCN without its edges: linear layers, ReLU between them, with the same dropout and penalty.

    Without hidden layers (``widths`` empty) it is logistic regression on the features, which is what some published
    rows named MLP are. Random: the initial weights and the dropped inputs of each step. Cost of a step, for features
    with s non-zero entries and layers of width d: O(s d + n d^2).

    Difference from the released code: as for GCN, biases, and a fixed number of epochs.
    """

    name = "mlp"
    title = "MLP"
    inputs = "X, Y"
    reference = "Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, 2017"
