"""GCN: a supervised graph convolutional network."""

from __future__ import annotations

from ssge.methods._supervised import Layered


class GCN(Layered):
    """Graph convolutions, ReLU between them; see `ssge.nn.encoders.GCN` for the formula.

    Random: the initial weights and the dropout of each step. Cost of a step, for m edges, features with s
    non-zero entries and layers of width d: one pass of the encoder, O(s d + m d + n d^2).

    Differences from the released code: each layer has a bias, whereas the code has none; the number of epochs is fixed,
    whereas the code may stop early, once the validation loss exceeds the mean of the last ten epochs.
    """

    name = "gcn"
    title = "GCN"
    inputs = "A, X, Y"
    reference = "Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, 2017"
