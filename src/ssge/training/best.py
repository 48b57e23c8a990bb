"""The epoch that validation nodes choose."""

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


class Best:
    """The weights of the best epoch so far.

    It alone sees labels of validation nodes: they choose among weights, and no gradient comes from them. By the setting
    ``keep`` of the method the best is

    - ``best``: the epoch of highest accuracy on them, of equal ones that of lowest cross entropy, of equal ones the
      first;
    - ``loss``: the epoch of lowest cross entropy, of equal ones the first.

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
        One class per node of the graph, -1 for all but validation nodes.
    weights
        The state of the method after the best epoch; empty before the first.
    line
        The best epoch's line of history; empty before the first.
    """

    def __init__(self, method: Method, graph: Graph, nodes: NDArray[np.int64]) -> None:
        labels = graph.with_labels_of(nodes).labels
        assert labels is not None
        self.method = method
        self.labels = labels
        self.weights: dict[str, Tensor] = {}
        self._nodes = torch.from_numpy(np.unique(nodes)).to(method.weight.device)
        self._classes = torch.from_numpy(labels).to(method.weight.device)[self._nodes]
        self.line: dict[str, float] = {}

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
        if self._takes(line):
            self.weights = {name: tensor.clone() for name, tensor in self.method.state_dict().items()}

    def go_on(self, history: Sequence[dict[str, float]], weights: dict[str, Tensor]) -> None:
        """Take over what was found before an interruption."""
        for line in history:
            self._takes(line)
        self.weights = weights

    def _takes(self, line: dict[str, float]) -> bool:
        """Say whether an epoch is the best so far, and note it if it is."""
        better = not self.line or self._rank(line) > self._rank(self.line)
        if better:
            self.line = line
        return better

    def _rank(self, line: dict[str, float]) -> tuple[float, ...]:
        by_loss = self.method.config.keep == "loss"  # type: ignore[attr-defined]
        return (-line["valid_loss"],) if by_loss else (line["valid_accuracy"], -line["valid_loss"])

    def restore(self) -> None:
        """Give the method the weights of the best epoch, if there was any epoch."""
        if self.weights:
            self.method.load_state_dict(self.weights)
