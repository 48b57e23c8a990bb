"""The floor under a step of SSGE: its products and eigendecompositions, each timed alone.

Counted are the products of the cheapest order that we know (see `ssge.ops.moments.moments` and
`ssge.ops.features.Features.propagate`), at the shapes of one view as drawn: dropped edges and masked columns are not
multiplied. Dense products write into the same memory again and again. Whatever else a step does - activations,
centering, drawing the views, the optimizer - is not in the floor. In bfloat16 are the products of n rows; those of
d x d matrices and the eigendecompositions are in float32 in either precision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from ssge.methods.ssge import SSGEConfig
from ssge.ops.random import Key
from ssge.ops.sparse import SparseMatrix, spmm
from ssge.training.allocator import kept_memory
from ssge.views import Compose, DropEdges, MaskFeatures, View

BLOCK = 128


class Work(NamedTuple):
    """A kind of product, how often a step does it, and a function that does it once."""

    name: str
    kind: str
    times: int
    run: Callable[[], object]


def dense(
    name: str, times: int, rows: int, inner: int, columns: int, dtype: torch.dtype, transposed: bool = False
) -> Work:
    left = torch.randn(inner, rows).to(dtype).t() if transposed else torch.randn(rows, inner).to(dtype)
    right, out = torch.randn(inner, columns).to(dtype), torch.empty(rows, columns, dtype=dtype)
    return Work(f"{name} {rows}x{inner}x{columns}", "dense", times, lambda: torch.mm(left, right, out=out))


def gram(times: int, n: int, d: int, dtype: torch.dtype) -> Work:
    z, out = torch.randn(n, d).to(dtype), torch.empty(d, d, dtype=dtype)

    def run() -> None:
        for i in range(0, d, BLOCK):
            torch.mm(z[:, i : i + BLOCK].t(), z[:, i:], out=out[i : i + BLOCK, i:])

    return Work(f"Z'Z, upper half, {n}x{d}", "dense", times, run)


def sparse(name: str, matrix: SparseMatrix, width: int, dtype: torch.dtype) -> Iterator[Work]:
    """Two views, forward and backward."""
    n, p = matrix.shape
    forward, backward = torch.randn(p, width).to(dtype), torch.randn(n, width).to(dtype)
    yield Work(f"{name} H, width {width}", "sparse", 2, lambda: spmm(matrix.rows, forward))
    yield Work(f"{name}'G, width {width}", "sparse", 2, lambda: spmm(matrix.columns, backward))


def works(clean: View, config: SSGEConfig, dtype: torch.dtype) -> Iterator[Work]:
    """Yield all products of one step."""
    draw = Compose(DropEdges(config.edge_drop), MaskFeatures(config.feature_mask))
    view = draw(clean, Key(0))
    n, p = view.num_nodes, view.features.shape[1]
    kept = p if view.features.kept is None else int(view.features.kept.sum())
    first, last = config.widths[0], config.widths[-1]
    gcn = config.encoder == "gcn"
    A = view.adjacency.matrix
    if isinstance(view.features.matrix, SparseMatrix):
        yield from sparse("X", view.features.matrix, first, dtype)
        if gcn:
            yield from sparse("A", A, first, dtype)
    else:
        if gcn and kept <= 2 * first:
            yield next(sparse("A", A, kept, dtype))
        elif gcn:
            yield from sparse("A", A, first, dtype)
        yield dense("X W", 2, n, kept, first, dtype)
        yield dense("X'G", 2, kept, n, first, dtype, transposed=True)
    if len(config.widths) > 2:
        raise ValueError("The floor is worked out for one layer or two.")
    if len(config.widths) == 2 and first <= last:
        if gcn:
            yield from sparse("A", A, first, dtype)
        yield gram(3, n, first, dtype)
        yield dense("U G", 3, n, first, first, dtype)
        yield dense("d x d", 15, first, first, last, torch.float32)
    else:
        if len(config.widths) == 2:
            yield dense("H W", 2, n, first, last, dtype)
            yield dense("H'G", 2, first, n, last, dtype, transposed=True)
            yield dense("G W'", 2, n, last, first, dtype)
            if gcn:
                yield from sparse("A", A, last, dtype)
        yield gram(2, n, last, dtype)
        yield dense("Z G", 2, n, last, last, dtype)
    R = torch.corrcoef(torch.randn(last, 4 * last))
    yield Work(f"eigh {last}", "eigen", 2, lambda: torch.linalg.eigh(R))


def seconds(work: Work, repeats: int = 3) -> float:
    """Return the least time of one product."""
    work.run()
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        work.run()
        best = min(best, time.perf_counter() - began)
    return best


def floor(clean: View, config: SSGEConfig, dtype: torch.dtype = torch.float32) -> dict[str, float]:
    """Return the seconds of one step's products by kind, and in sum."""
    found = {"dense": 0.0, "sparse": 0.0, "eigen": 0.0}
    with kept_memory():
        for work in works(clean, config, dtype):  # one after another, so that only one product's matrices are there
            found[work.kind] += work.times * seconds(work)
    return found | {"total": sum(found.values())}
