"""Propagated features without trainable weights: the encoder of training-free methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from ssge.ops.adjacency import Adjacency
from ssge.ops.propagation import CHUNK
from ssge.ops.reduction import right_singular_vectors
from ssge.views import View

Filter: TypeAlias = Callable[[Adjacency, Tensor, int], Tensor]
"""Maps the adjacency, an n x d matrix and a chunk size to an n x d matrix."""


class Reduction(nn.Module):
    """X V with a maximum number of columns; V is `ssge.ops.reduction.right_singular_vectors` of the fitted graph.

    If X is narrow enough, it is used unchanged, without V.
    """

    vectors: Tensor | None

    def __init__(self, inputs: int, columns: int) -> None:
        super().__init__()
        self.width = min(inputs, columns)
        self.register_buffer("vectors", torch.zeros(inputs, columns) if columns < inputs else None)

    def fit(self, view: View) -> None:
        """Compute V, unless already fitted."""
        if self.vectors is not None and not self.vectors.any():
            self.vectors.copy_(right_singular_vectors(view.features, self.width))

    def forward(self, view: View, chunk: int = CHUNK) -> Tensor:
        """Return X V (n x d), dense."""
        n = view.num_nodes
        output = torch.empty(n, self.width, dtype=view.features.dtype, device=view.features.device)
        for start in range(0, n, chunk):
            stop = min(start + chunk, n)
            output[start:stop] = view.features.block(start, stop, self.vectors)
        return output


class Propagation(nn.Module):
    """S(X V): the features, reduced to some columns, then propagated.

    Parameters
    ----------
    inputs
        Number of features, p.
    columns
        Maximum number of columns to keep.
    hops
        Number of hops of the filter.
    propagate
        A filter of `ssge.ops.propagation`, with its settings bound.
    """

    def __init__(self, inputs: int, columns: int, hops: int, propagate: Filter) -> None:
        super().__init__()
        self.hops, self.propagate = hops, propagate
        self.reduction = Reduction(inputs, columns)

    @torch.no_grad()
    def embed(self, view: View, chunk: int = CHUNK) -> Tensor:
        """Return the propagated features, in chunks of nodes."""
        return self.propagate(view.adjacency, self.reduction(view, chunk), chunk)
