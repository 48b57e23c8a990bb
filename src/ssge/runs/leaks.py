"""Leaks: columns that a model was fitted on and that already say the labels it is to be judged by."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.io.reading import read_columns
from ssge.io.roles import told_by
from ssge.runs.folder import RunFolder
from ssge.runs.names import lines_of

log = logging.getLogger(__name__)

_TABLES = ("nodes", "id", "delimiter", "header", "limit")
"""The options of reading that concern the node table as a whole."""


def leaking_columns(folder: RunFolder, rows: NDArray[np.int64], labels: Sequence[Any]) -> list[str]:
    """Return the columns of a run's node table that became features and determine labels.

    `ssge.io.roles.told_by` says what determines means. The values are those of the node table as it is now; if it is
    gone, the log says so and there is nothing to compare with.

    Parameters
    ----------
    folder
        The run.
    rows
        Rows of the labeled nodes in the embedding.
    labels
        Their labels.
    """
    record, schema = folder.read_record(), folder.read_schema()
    if schema is None or not schema.table_columns:
        return []
    reading = {key: value for key, value in record.reading.items() if key in _TABLES}
    try:
        nodes = read_columns(record.dataset, schema, reading)
    except (InputError, OSError) as error:
        log.warning("The labels are not compared with the columns of the run, which cannot be read again: %s", error)
        return []
    assert nodes is not None
    at = lines_of(folder.read_embedding().node_ids, nodes.ids.values.to_pylist(), nodes.ids.table.free)[rows]
    classes = np.unique([str(label) for label in labels], return_inverse=True)[1][at >= 0]
    known = {raw.name: values[at[at >= 0]] for raw in nodes.raws if (values := raw.plain()) is not None}
    return told_by(known, classes)
