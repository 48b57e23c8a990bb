"""SSGE as one would write it today on PyTorch Geometric: the yardstick for the speed of ours.

Dense features, masked by multiplication; ``GCNConv`` (or a perceptron with batch normalization) and ``dropout_edge``;
standardized copies of the two outputs; autograd through ``torch.linalg.eigvalsh``. Nothing in it is slow on purpose.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv
from torch_geometric.utils import dropout_edge

from ssge.graph import Graph


class Convolutions(nn.Module):
    """Graph convolutions with ELU between them."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GCNConv(a, b) for a, b in pairwise(widths))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return the representations."""
        for layer in self.layers[:-1]:
            x = functional.elu(layer(x, edges))
        return self.layers[-1](x, edges)  # type: ignore[no-any-return]


class Perceptron(nn.Module):
    """Linear layers with batch normalization and ELU between them; takes edges and ignores them."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Return the representations."""
        for layer, norm in zip(self.layers[:-1], self.norms, strict=True):
            x = functional.elu(norm(layer(x)))
        return self.layers[-1](x)  # type: ignore[no-any-return]


class Reference:
    """A training of SSGE, one step at a time."""

    def __init__(self, graph: Graph, config: dict[str, Any]) -> None:
        dense = graph.features.toarray() if hasattr(graph.features, "toarray") else graph.features
        self.x, self.edges = torch.from_numpy(dense), torch.from_numpy(graph.edges)
        self.config = config
        self.perceptron = config.get("encoder", "gcn") == "mlp"
        widths = [graph.num_features, *config["widths"]]
        self.model = Perceptron(widths) if self.perceptron else Convolutions(widths)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"], weight_decay=config["weight_decay"])

    def step(self) -> float:
        """Train one epoch and return its loss."""
        self.model.train()
        self.optimizer.zero_grad()
        h1, h2 = self._standardized_view(), self._standardized_view()
        n, d = h1.shape
        aligned = -(h1 * h2).sum() / n
        roots = [torch.linalg.eigvalsh(h.T @ h / (n - 1)).clamp(1e-8).sqrt().sum() for h in (h1, h2)]
        loss = aligned + self.config["uniformity_weight"] * (2 * d - roots[0] - roots[1])
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def _standardized_view(self) -> Tensor:
        edges = self.edges if self.perceptron else dropout_edge(self.edges, p=self.config["edge_drop"])[0]
        mask = torch.rand(self.x.shape[1]) >= self.config["feature_mask"]
        z: Tensor = self.model(self.x * mask, edges)
        return (z - z.mean(0)) / z.std(0)
