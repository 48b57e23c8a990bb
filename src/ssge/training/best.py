"""Selection of the best epoch on validation nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ssge.methods import Method


class Best:
    """The weights of the best epoch so far.

    Only this class sees labels of validation nodes. They select an epoch and give no gradient.

    Parameters
    ----------
    labels
        One class per node, -1 for all but the validation nodes.
    keep
        ``best``: the epoch of highest accuracy on validation nodes, ties broken by the lowest cross entropy, then by
        the first epoch. ``loss``: the epoch of lowest cross entropy, then the first.

    Attributes
    ----------
    weights
        State of the method after the best epoch; empty before the first.
    line
        The best epoch's line of history; empty before the first.
    """

    def __init__(self, labels: NDArray[np.int64], keep: Literal["best", "loss"]) -> None:
        self.labels = labels
        self.keep = keep
        self.weights: dict[str, Tensor] = {}
        self.line: dict[str, float] = {}
        self._nodes = torch.from_numpy(np.flatnonzero(labels >= 0))
        self._classes = torch.from_numpy(labels)[self._nodes]

    @torch.no_grad()
    def update(self, method: Method, prepared: Any, line: dict[str, float]) -> None:
        """Evaluate the method without dropout, add the scores to the epoch's history, and keep the weights if best."""
        method.eval()
        scores = method.encode(prepared)[self._nodes.to(method.device)].cpu()
        right = int((scores.argmax(1) == self._classes).sum())
        line["valid_accuracy"] = right / len(self._nodes)
        line["valid_loss"] = float(functional.cross_entropy(scores, self._classes))
        if self._better(line):
            self.weights = {name: tensor.clone() for name, tensor in method.state_dict().items()}

    def resume(self, history: Sequence[dict[str, float]], weights: dict[str, Tensor]) -> None:
        """Restore the state from before an interruption."""
        for line in history:
            self._better(line)
        self.weights = weights

    def restore(self, method: Method) -> None:
        """Load the weights of the best epoch into the method, if there is one."""
        if self.weights:
            method.load_state_dict(self.weights)

    def _better(self, line: dict[str, float]) -> bool:
        """Return whether an epoch is the best so far, and record it if so."""
        better = not self.line or self._rank(line) > self._rank(self.line)
        if better:
            self.line = line
        return better

    def _rank(self, line: dict[str, float]) -> tuple[float, ...]:
        if self.keep == "loss":
            return (-line["valid_loss"],)
        return line["valid_accuracy"], -line["valid_loss"]
