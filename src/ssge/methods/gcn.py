"""GCN: a graph convolutional network that is trained on labels."""

from __future__ import annotations

from ssge.methods._supervised import Layered


class GCN(Layered):
    """Graph convolutions, ReLU between them; the formula stands at `ssge.nn.encoders.GCN`.

    Random: the initial weights and the dropped inputs of each step. Cost of a step, for m edges, features with s
    non-zero entries and layers of width d: one pass of the encoder, O(s d + m d + n d^2).

    Differences from the released code: it has no biases, here each layer has one; it may stop early, once the loss on
    validation nodes exceeds the mean of the last ten epochs, here there are always as many epochs as are set.
    """

    name = "gcn"
    title = "GCN"
    inputs = "A, X, Y"
    reference = "Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, 2017"
