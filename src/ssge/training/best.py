"""The epoch that is best on validation nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods import Method
from ssge.views import View


def best_of(history: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the line of the best epoch: highest accuracy on validation nodes, then lowest loss on them, then first."""
    return max(history, key=_rank)


def _rank(line: dict[str, float]) -> tuple[float, float]:
    return line["valid_accuracy"], -line["valid_loss"]


class Best:
    """The weights of the best epoch so far, which `best_of` defines.

    It alone sees labels of validation nodes: they choose among weights, and no gradient comes from them.

    Parameters
    ----------
    method
        Looked at after each epoch.
    graph
        Holds the labels of all nodes.
    nodes
        The validation nodes.

    Attributes
    ----------
    labels
        One class a node of the graph, -1 for all but validation nodes.
    weights
        The state of the method after the best epoch; empty before the first.
    """

    def __init__(self, method: Method, graph: Graph, nodes: NDArray[np.int64]) -> None:
        labels = graph.with_labels_of(nodes).labels
        assert labels is not None
        self.method = method
        self.labels = labels
        self.weights: dict[str, Tensor] = {}
        self._nodes = torch.from_numpy(np.unique(nodes)).to(method.weight.device)
        self._classes = torch.from_numpy(labels).to(method.weight.device)[self._nodes]
        self._line: dict[str, float] | None = None

    @classmethod
    def of(cls, method: Method, graph: Graph, nodes: NDArray[np.int64] | None) -> Best | None:
        """Return None for a method that keeps its last epoch, as those without the setting ``keep`` do."""
        if getattr(method.config, "keep", "last") == "last":
            return None
        if nodes is None or nodes.size == 0:
            raise InputError(
                f"validation must name at least 1 node, because {method.title} keeps its best epoch; received none."
            )
        return cls(method, graph, nodes)

    @torch.no_grad()
    def look(self, view: View, line: dict[str, float]) -> None:
        """Measure the method as it embeds, without dropout; enter that in the epoch's line; keep the weights if best.

        The loss is the cross entropy of class scores as the encoder gives them. The method is left in evaluation mode.
        """
        self.method.eval()
        scores = self.method.encode(view, view.num_nodes)[self._nodes]
        right = int((scores.argmax(1) == self._classes).sum())
        line["valid_accuracy"] = right / len(self._nodes)
        line["valid_loss"] = float(functional.cross_entropy(scores, self._classes))
        if self._line is None or _rank(line) > _rank(self._line):
            self._line = line
            self.weights = {name: tensor.clone() for name, tensor in self.method.state_dict().items()}

    def go_on(self, history: Sequence[dict[str, float]], weights: dict[str, Tensor]) -> None:
        """Take over what was found before an interruption."""
        self._line, self.weights = best_of(history), weights

    def restore(self) -> None:
        """Give the method the weights of the best epoch, if there was any epoch."""
        if self.weights:
            self.method.load_state_dict(self.weights)
