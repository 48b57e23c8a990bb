"""The feature matrix of a graph: columns of its tables encoded, structural features computed from its edges."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace

from ssge.errors import InputError, shown
from ssge.foreign import Parts
from ssge.graph import FeatureMatrix, Graph
from ssge.io.columns import Raw
from ssge.io.compact import compact
from ssge.io.encoding import encode, fit, warn_of_spreads
from ssge.ops.structural import structural_features
from ssge.schema import HEADINGS, STATED, FeatureSchema

log = logging.getLogger(__name__)


def make_features(
    parts: Parts, raws: Sequence[Raw], schema: FeatureSchema, where: str
) -> tuple[FeatureMatrix, FeatureSchema]:
    """Return the features of a graph, and the schema with all that is needed to make them again.

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
    blocks, names = [], []
    for kind in schema.features:
        if kind == "table":
            blocks += [encode(raw, column) for raw, column in zip(raws, columns, strict=True)]
            for raw in raws:
                if count := int(raw.missing().sum()):
                    log.info("column %r: %s missing values filled in.", raw.name, f"{count:,}")
            names += [name for column in columns for name in column.names]
            continue
        if kind == "laplacian" and schema.fitted:
            log.warning("%s: its Laplacian coordinates are not comparable with those of another graph.", where)
        block, found = structural_features(parts.edges, parts.weights, parts.num_nodes or 0, [kind], schema.direction)
        blocks.append(block)
        names += found
    if schema.fitted and tuple(names) != schema.names:
        raise InputError(f"{where} has {len(names)} features, and {len(schema.names)} in like: {shown(names)}.")
    done = schema.model_copy(update={"columns": columns, "names": tuple(names)})
    if not schema.fitted and schema.left_out:
        tell_columns(done, where)
    return compact(*blocks), done


def renew_structure(graph: Graph) -> Graph:
    """Return a graph whose features from the edges alone are computed again, after some edges were removed."""
    schema = graph.schema
    if schema is None or set(schema.features) == {"table"}:
        return graph
    if schema.edge_columns:
        log.warning("%s: its aggregated edge columns still count the edges that were removed.", graph.name)
    blocks, at = [], 0
    for kind in schema.features:
        if kind == "table":
            width = sum(len(column.names) for column in schema.columns)
            blocks.append(graph.features[:, at : at + width])
        else:
            block, names = structural_features(graph.edges, graph.weights, graph.num_nodes, [kind], schema.direction)
            width = len(names)
            blocks.append(block)
        at += width
    return replace(graph, features=compact(*blocks).astype(graph.features.dtype))


def tell_columns(schema: FeatureSchema, where: str) -> None:
    """Log what became of each column of the node table; warn of those that were left out by a guess."""
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
    """Return which columns were left out by what they look like, for messages."""
    found = [
        f"{repr(entry.name) if entry.name else 'one without a name'} {entry.why}"
        for entry in schema.left_out
        if entry.why not in STATED
    ]
    more = f", and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
