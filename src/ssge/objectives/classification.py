"""Classification: cross entropy over the nodes whose class is known."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from ssge.objectives import Losses

UNKNOWN = -1
"""The label of nodes to ignore."""


def cross_entropy(scores: Tensor, labels: Tensor) -> Losses:
    r"""Return the mean cross entropy of the nodes with a label.

    .. math:: L = -\frac{1}{|V_L|} \sum_{i \in V_L} \log \mathrm{softmax}(s_i)_{y_i}

    Parameters
    ----------
    scores
        Class scores (logits) s, n x k.
    labels
        Class y_i of each node, n; -1 if unknown. At least one must be known.

    Returns
    -------
    Losses
        The mean, and the accuracy on the labeled nodes in training mode, with dropout (``training_accuracy``).

    Notes
    -----
    The gradient is (softmax(s_i) - e_{y_i}) / |V_L| for nodes in V_L and zero for all others. Cost O(n k).
    """
    known = labels != UNKNOWN
    right = (scores.detach().argmax(1) == labels) & known
    return Losses(
        functional.cross_entropy(scores, labels, ignore_index=UNKNOWN),
        {"training_accuracy": right.sum().to(scores.dtype) / known.sum()},
    )
