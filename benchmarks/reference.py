"""SSGE as one would write it today: the yardstick for the speed of ours.

Dense features, masked by multiplication; dropped edges; standardized copies of the two outputs; autograd through
``torch.linalg.eigvalsh``. The graph convolutions come in three forms, and the quickest of them counts:

- ``gather``: PyTorch Geometric's ``GCNConv`` on edges, one message per edge.
- ``csr``: the same layer on a CSR tensor of the normalized adjacency, whose gradient PyTorch transposes in each step.
- ``released``: as DGL computes in the code that the authors released: products with a CSR matrix and, backward, with
  its transpose, which is there already; the narrower side of a layer is aggregated.

Nothing in it is slow on purpose. Dropping edges keeps their order, so that neither CSR form sorts anything.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv
from torch_geometric.utils import dropout_edge

from ssge.graph import Graph

Form: TypeAlias = Literal["gather", "csr", "released"]
FORMS: tuple[Form, ...] = ("gather", "csr", "released")


class Pair(NamedTuple):
    """A normalized adjacency and its transpose as CSR tensors."""

    forward: Tensor
    backward: Tensor


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, pair: Pair) -> Tensor:
        ctx.pair = pair
        return pair.forward @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.pair.backward @ gradient, None


class Released(nn.Module):
    """A graph convolution in the order of DGL's ``GraphConv``."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        linear = nn.Linear(inputs, outputs)
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, x: Tensor, pair: Pair) -> Tensor:
        """Return A X W + b."""
        if self.weight.shape[1] > self.weight.shape[0]:
            return _Product.apply(functional.linear(x, self.weight), pair) + self.bias  # type: ignore[no-any-return, no-untyped-call]
        return functional.linear(_Product.apply(x, pair), self.weight, self.bias)  # type: ignore[no-untyped-call]


class Convolutions(nn.Module):
    """Graph convolutions with ELU between them."""

    def __init__(self, widths: list[int], form: Form) -> None:
        super().__init__()
        kind: Any = {"gather": GCNConv, "csr": lambda a, b: GCNConv(a, b, normalize=False), "released": Released}[form]
        self.layers = nn.ModuleList(kind(a, b) for a, b in pairwise(widths))

    def forward(self, x: Tensor, edges: Any) -> Tensor:
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

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        """Return the representations."""
        for layer, norm in zip(self.layers[:-1], self.norms, strict=True):
            x = functional.elu(norm(layer(x)))
        return self.layers[-1](x)  # type: ignore[no-any-return]


def forms(config: dict[str, Any]) -> tuple[Form, ...]:
    """Return the forms that differ; a perceptron has no edges."""
    return FORMS[:1] if config.get("encoder", "gcn") == "mlp" else FORMS


class Reference:
    """A training of SSGE, one step at a time."""

    def __init__(self, graph: Graph, config: dict[str, Any], form: Form = "gather") -> None:
        dense = graph.features.toarray() if hasattr(graph.features, "toarray") else graph.features
        self.x, self.edges = torch.from_numpy(dense), torch.from_numpy(graph.edges)
        self.config, self.form = config, form
        self.perceptron = config.get("encoder", "gcn") == "mlp"
        widths = [graph.num_features, *config["widths"]]
        self.model = Perceptron(widths) if self.perceptron else Convolutions(widths, form)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"], weight_decay=config["weight_decay"])
        if form != "gather":
            loops = torch.arange(graph.num_nodes).expand(2, -1)
            self.edges = torch.cat([self.edges, loops], 1)
            self.edges = self.edges[:, _order(self.edges[1], self.edges[0])]  # by target
            self.by_source = _order(*self.edges)
            self.is_loop = self.edges[0] == self.edges[1]

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

    @torch.no_grad()
    def embed(self) -> Tensor:
        """Return the output on the whole graph."""
        self.model.eval()
        embedding: Tensor = self.model(self.x, self._edges(drop=0.0))
        return embedding

    def _standardized_view(self) -> Tensor:
        edges = None if self.perceptron else self._edges(self.config["edge_drop"])
        mask = torch.rand(self.x.shape[1]) >= self.config["feature_mask"]
        z: Tensor = self.model(self.x * mask, edges)
        return (z - z.mean(0)) / z.std(0)

    def _edges(self, drop: float) -> Any:
        """Return the edges of a view as its form takes them."""
        if self.form == "gather":
            return dropout_edge(self.edges, p=drop)[0]
        n = self.x.shape[0]
        kept = (torch.rand(self.edges.shape[1]) >= drop) | self.is_loop
        source, target = self.edges[:, kept]
        inwards, outwards = torch.bincount(target, minlength=n), torch.bincount(source, minlength=n)
        value = inwards.float().rsqrt()[target] * outwards.float().rsqrt()[source]
        forward = _csr(inwards, source, value)
        if self.form == "csr":
            return forward
        place = torch.zeros(kept.numel(), dtype=torch.int64)
        place[kept] = torch.arange(target.numel())
        order = place[self.by_source[kept[self.by_source]]]
        return Pair(forward, _csr(outwards, target[order], value[order]))


def _order(first: Tensor, second: Tensor) -> Tensor:
    """Return the order by one index, and by another among equals."""
    return torch.argsort(first * (int(second.max()) + 1) + second)


def _csr(counts: Tensor, indices: Tensor, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        indptr = functional.pad(counts.cumsum(0), (1, 0))
        return torch.sparse_csr_tensor(
            indptr, indices, values, (counts.numel(), counts.numel()), check_invariants=False
        )
