"""The feature matrix of a graph: columns of its tables encoded, structural features computed from its edges."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ssge.errors import InputError, shown
from ssge.foreign import Parts
from ssge.graph import FeatureMatrix, Graph
from ssge.io.columns import Raw
from ssge.io.encoding import encode, fit, warn_of_spreads
from ssge.ops.structural import structural_features
from ssge.schema import HEADINGS, STATED, FeatureSchema

log = logging.getLogger(__name__)


SPARSE_BELOW = 0.10
"""Share of nonzero entries below which a matrix is stored sparse. On one thread, the product with a weight matrix
takes the same time dense and sparse at about 15 %; below a tenth, sparse is always faster."""


def make_features(
    parts: Parts, raws: Sequence[Raw], schema: FeatureSchema, where: str
) -> tuple[FeatureMatrix, FeatureSchema]:
    """Return the features of a graph, and the fitted schema that reproduces them.

    Parameters
    ----------
    parts
        The graph, with arranged edges.
    raws
        The columns that become features.
    schema
        Which features to make; where it is fitted, columns are encoded as it says.
    where
        Name of the source in messages.
    """
    if "table" not in schema.features:
        raws = ()
    elif not raws:
        guessed = _guessed(schema)
        name = f" Columns are left out: {guessed}; give columns=[...] to use some of them." if guessed else ""
        raise InputError(f"{where} has no node features: features='structural' makes some from the edges alone.{name}")
    columns = schema.columns
    if not schema.fitted:
        columns = tuple(fit(raw, schema.missing, schema.scale) for raw in raws)
        if schema.scale == "none":
            warn_of_spreads(raws, where)
    expected, received = [column.name for column in columns], [raw.name for raw in raws]
    if expected != received:
        raise InputError(f"{where}: like expects the columns {shown(expected)}; received {shown(received)}.")
    for raw in raws:
        if count := int(raw.missing().sum()):
            log.info("column %r: %s missing values filled in.", raw.name, f"{count:,}")
    if "laplacian" in schema.features and schema.fitted:
        log.warning("%s: its Laplacian coordinates are not comparable with those of another graph.", where)
    done = schema.model_copy(update={"columns": columns})
    table = [encode(raw, column) for raw, column in zip(raws, columns, strict=True)]
    features, names = _joined(done, table, parts.edges, parts.weights, parts.num_nodes or 0)
    if schema.fitted and tuple(names) != schema.names:
        raise InputError(f"{where} has {len(names)} features, and {len(schema.names)} in like: {shown(names)}.")
    if not schema.fitted and schema.left_out:
        log_columns(done, where)
    return features, done.model_copy(update={"names": tuple(names)})


def _joined(
    schema: FeatureSchema, table: Sequence[Any], edges: Any, weights: Any, n: int
) -> tuple[FeatureMatrix, list[str]]:
    """Return the features of a schema in its order, given those of its columns, and their names."""
    blocks, names = list[Any](), list[str]()
    for kind in schema.features:
        if kind == "table":
            blocks += table
            names += [name for column in schema.columns for name in column.names]
        else:
            block, found = structural_features(edges, weights, n, [kind], schema.direction)
            blocks.append(block)
            names += found
    return compact(*blocks), names


def renew_structure(graph: Graph) -> Graph:
    """Return a graph with its structural features computed again, after some edges were removed."""
    schema = graph.schema
    if schema is None or set(schema.features) == {"table"}:
        return graph
    if schema.edge_columns:
        log.warning("%s: its aggregated edge columns still count the edges that were removed.", graph.name)
    names = tuple(name for column in schema.columns for name in column.names)
    at = next(i for i in range(len(schema.names) + 1) if schema.names[i : i + len(names)] == names)
    table = [graph.features[:, at : at + len(names)]] if names else []
    features, _ = _joined(schema, table, graph.edges, graph.weights, graph.num_nodes)
    return replace(graph, features=features.astype(graph.features.dtype))


def log_columns(schema: FeatureSchema, where: str) -> None:
    """Log how each column of the node table is used; warn of those that were left out by a guess."""
    lines = [HEADINGS, *schema.table()]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    log.info("%s: columns of the node table\n  %s", where, "\n  ".join(text))
    if guessed := _guessed(schema):
        warnings.warn(
            f"{where}: columns left out of the features: {guessed}; give columns=[...] to use some of them.",
            stacklevel=5,
        )


def _guessed(schema: FeatureSchema, most: int = 8) -> str:
    """Return the columns that were left out by a guess, and why, for messages."""
    found = [
        f"{repr(entry.name) if entry.name else 'one without a name'} {entry.why}"
        for entry in schema.left_out
        if entry.why not in STATED
    ]
    more = f", and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def compact(*blocks: Any) -> FeatureMatrix:
    """Concatenate blocks of features into one float32 matrix; sparse indices have 32 bits where they fit."""
    n, p = int(blocks[0].shape[0]), sum(int(block.shape[1]) for block in blocks)
    # Not block.count_nonzero(), which sorts the indices of the matrix that was given.
    filled = sum(np.count_nonzero(sp.csr_array(b).data if sp.issparse(b) else b) for b in blocks)
    with np.errstate(over="ignore"):  # the validator names a value that float32 cannot hold
        if filled >= SPARSE_BELOW * n * p:
            arrays = [block.toarray() if sp.issparse(block) else block for block in blocks]
            joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1, dtype=np.float32)
            return np.ascontiguousarray(joined, dtype=np.float32)
        matrix = sp.hstack([sp.csr_array(block, dtype=np.float32) for block in blocks], format="csr")
    matrix = sp.csr_array(matrix, copy=len(blocks) == 1)  # one block comes back as it was given
    matrix.eliminate_zeros()
    matrix.sort_indices()
    if max(matrix.nnz, p) < np.iinfo(np.int32).max:  # scikit-learn takes no 64-bit indices
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix
