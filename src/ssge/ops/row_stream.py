r"""Streamed output of a graph neural network in chunks of rows, and its moments with gradient.

A network of products with A and of functions of single rows, ``U = f_L(A f_{L-1}( ... A f_0(X)))``, needs all rows only
for the products. The input of each f_l is stored on disk. The backward pass recomputes the rows of f_l with autograd,
which gives the gradients of its parameters and of its input, and multiplies by the transpose of A in between. Both
passes are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.disk import Scratch
from ssge.ops.streaming import StreamedAdjacency, StreamedFeatures


class Stage(NamedTuple):
    """A row-wise function, which may work in place, and its parameters; None is the identity."""

    function: Callable[[Tensor], Tensor] | None = None
    parameters: tuple[Tensor, ...] = ()

    def __call__(self, rows: Tensor) -> Tensor:
        """Apply the function to some rows."""
        return rows if self.function is None else self.function(rows)

    def then(self, other: Stage) -> Stage:
        """Return the composition with a following function."""
        if self.function is None:
            return other
        return Stage(lambda rows: other(self(rows)), (*self.parameters, *other.parameters))


class RowStream:
    """The matrix U of a view; rows are computed when read, from the last product with A.

    Parameters
    ----------
    features, adjacency
        Of the view.
    stages
        f_0 to f_L, with a product with A between two of them.
    """

    def __init__(self, features: StreamedFeatures, adjacency: StreamedAdjacency, stages: Sequence[Stage]) -> None:
        self.adjacency, self.stages = adjacency, stages
        self.parameters = list(dict.fromkeys(p for stage in stages for p in stage.parameters))
        widest = max(features.shape[1], *(size for p in self.parameters for size in p.shape))
        n, itemsize = adjacency.num_nodes, torch.empty((), dtype=adjacency.dtype).element_size()
        step = adjacency.workspace.rows(widest, itemsize)
        self.ranges = [(start, min(start + step, n)) for start in range(0, n, step)]
        self._inputs: list[StreamedFeatures | Scratch] = [features]
        with torch.no_grad():
            for index in range(len(stages) - 1):
                width = self._output(index, 0, 1).shape[1]
                panels = self._panels(width, ((a, self._output(index, a, b)) for a, b in self.ranges))
                self._inputs.append(self._propagated(panels, width))
        self.device = adjacency.device
        self.shape = torch.Size((n, self.read(0, 1).shape[1]))
        self._gradient = {p: torch.zeros_like(p, dtype=torch.float64) for p in self.parameters}
        self._above: Scratch | None = None

    @property
    def widths(self) -> list[int]:
        """Columns of each product with A."""
        return [int(matrix.shape[1]) for matrix in self._inputs[1:]]

    def __matmul__(self, other: object) -> Tensor:
        raise InputError("Streamed training takes an objective that is a function of moments alone.")

    @torch.no_grad()
    def read(self, start: int, stop: int) -> Tensor:
        """Return rows ``start`` to ``stop``."""
        return self._output(len(self.stages) - 1, start, stop)

    def pull(self, start: int, gradient: Tensor) -> None:
        """Back-propagate the gradient of the rows from ``start`` on through the last stage."""
        below = self._pulled(len(self.stages) - 1, start, gradient)
        if below is not None:
            if self._above is None:
                self._above = self.adjacency.scratch(below.shape[1])
            self._above.write(start, below)

    def gradients(self) -> dict[Tensor, Tensor]:
        """Return the gradient of each parameter, after `pull` of all rows."""
        if self._above is not None:
            panels = self._above.panels()
            for index in reversed(range(len(self.stages) - 1)):
                gradient = self._propagated(panels, self._output(index, 0, 1).shape[1], transpose=True)
                pulled = self._pulled_rows(index, gradient)
                if not self._goes_on(index):
                    for _ in pulled:  # accumulates the gradients of the parameters
                        pass
                    break
                panels = self._panels(self._inputs[index].read(0, 1).shape[1], pulled)
        return self._gradient

    def _output(self, index: int, start: int, stop: int) -> Tensor:
        return self.stages[index](self._inputs[index].read(start, stop))

    def _goes_on(self, index: int) -> bool:
        """Return whether a stage below this one has parameters."""
        return any(stage.parameters for stage in self.stages[:index])

    def _pulled_rows(self, index: int, gradient: Scratch) -> Iterator[tuple[int, Tensor]]:
        for start, stop in self.ranges:
            below = self._pulled(index, start, gradient.read(start, stop))
            if below is not None:
                yield start, below

    def _pulled(self, index: int, start: int, gradient: Tensor) -> Tensor | None:
        """Add to the gradients of a stage's parameters, and return that of its input if a lower stage needs it."""
        stage, below = self.stages[index], self._goes_on(index)
        if stage.function is None:
            return gradient if below else None
        rows = self._inputs[index].read(start, start + gradient.shape[0])
        with torch.enable_grad():
            rows.requires_grad_(below)
            output = stage.function(rows.clone())  # it may work in place
            wanted = [*([rows] if below else []), *stage.parameters]
            found = list(torch.autograd.grad(output, wanted, gradient))
        first = found.pop(0) if below else None
        for parameter, part in zip(stage.parameters, found, strict=True):
            self._gradient[parameter] += part
        return first

    def _panels(self, width: int, rows: Iterator[tuple[int, Tensor]]) -> Iterator[Tensor]:
        """Yield the panels of a matrix that is given in chunks of rows; a single panel is never on disk."""
        scratch = self.adjacency.scratch(width)
        if len(scratch.edges) > 2:
            for start, part in rows:
                scratch.write(start, part)
            yield from scratch.panels()
            return
        whole = torch.empty(self.adjacency.num_nodes, width, dtype=self.adjacency.dtype)
        for start, part in rows:
            whole[start : start + part.shape[0]] = part
        yield whole

    def _propagated(self, panels: Iterator[Tensor], width: int, transpose: bool = False) -> Scratch:
        target = self.adjacency.scratch(width)
        self.adjacency.propagate(panels, target, transpose)
        return target


def streamed_moments(first: RowStream, second: RowStream, whole: bool) -> tuple[Tensor, ...]:
    """Return means, scatter and cross moments of two streams; see `ssge.ops.moments.moments`.

    One pass over both streams. Each chunk of rows is centered by its own mean, and the moments of chunks are merged in
    double precision (Chan et al., 1983). Backward is another pass.
    """
    parameters = list(dict.fromkeys([*first.parameters, *second.parameters]))
    found: tuple[Tensor, ...] = _Moments.apply(first, second, whole, *parameters)  # type: ignore[no-untyped-call]
    return found


class _Moments(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: RowStream, second: RowStream, whole: bool, *parameters: Tensor) -> tuple[Tensor, ...]:
        d, dtype, n = first.shape[1], first.adjacency.dtype, 0
        mean1, mean2 = torch.zeros(2, d, dtype=torch.float64)
        scatter1, scatter2, both = torch.zeros(3, d, d, dtype=torch.float64)
        both = both if whole else both[0]
        for start, stop in first.ranges:
            z1, z2 = first.read(start, stop), second.read(start, stop)
            m1, m2, count = z1.mean(0), z2.mean(0), stop - start
            c1, c2 = z1 - m1, z2 - m2
            shift1, shift2 = m1.double() - mean1, m2.double() - mean2
            share = n * count / (n + count)
            scatter1 += c1.t() @ c1 + share * torch.outer(shift1, shift1)
            scatter2 += c2.t() @ c2 + share * torch.outer(shift2, shift2)
            if whole:
                c1 += c2
                both += c1.t() @ c1 + share * torch.outer(shift1 + shift2, shift1 + shift2)
            else:
                both += (c1 * c2).sum(0) + share * shift1 * shift2
            n += count
            mean1 += shift1 * (count / n)
            mean2 += shift2 * (count / n)
        result = tuple(part.to(dtype) for part in (mean1, mean2, scatter1, scatter2, both))
        ctx.streams, ctx.whole, ctx.parameters = (first, second), whole, parameters
        ctx.save_for_backward(*result[:2])
        ctx.mark_non_differentiable(*result[:2])
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        first, second = ctx.streams
        mean1, mean2 = ctx.saved_tensors
        _, _, scatter1, scatter2, both = gradients
        g1, g2 = scatter1 + scatter1.t(), scatter2 + scatter2.t()
        g12 = both + both.t() if ctx.whole else both
        for start, stop in first.ranges:
            c1, c2 = first.read(start, stop) - mean1, second.read(start, stop) - mean2
            if ctx.whole:
                shared = (c1 + c2) @ g12
                d1, d2 = shared + c1 @ g1, shared + c2 @ g2
            else:
                d1, d2 = c1 @ g1 + c2 * g12, c2 @ g2 + c1 * g12
            first.pull(start, d1)
            second.pull(start, d2)
        found = [stream.gradients() for stream in (first, second)]
        sums = [sum(part[p] for part in found if p in part) for p in ctx.parameters]
        return None, None, None, *(g.to(p.dtype) for g, p in zip(sums, ctx.parameters, strict=True))
