"""Leaks: feature columns of a run that determine the labels by which it is to be judged."""

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
from ssge.runs.names import TABLE, lines_of

log = logging.getLogger(__name__)


def check_leaks(folder: RunFolder, rows: NDArray[np.int64], labels: Sequence[Any], allow: bool = False) -> None:
    """Refuse labels that a feature column of a run determines, or warn of them; `ssge.io.roles.told_by` says which.

    The columns are those of the node table as it is now; if it cannot be read again, the log says so.

    Parameters
    ----------
    folder
        The run.
    rows
        Rows of the labeled nodes in the embedding.
    labels
        Their labels.
    allow
        Warn instead.
    """
    record, schema = folder.read_record(), folder.read_schema()
    if schema is None or not schema.table_columns:
        return
    reading = {key: value for key, value in record.reading.items() if key in ("nodes", *TABLE)}
    try:
        nodes = read_columns(record.dataset, schema, reading)
    except (InputError, OSError) as error:
        log.warning("The labels are not compared with the columns of the run, which cannot be read again: %s", error)
        return
    assert nodes is not None
    at = lines_of(folder.read_embedding().node_ids, nodes.ids.values.to_pylist(), nodes.ids.table.free)[rows]
    classes = np.unique([str(label) for label in labels], return_inverse=True)[1][at >= 0]
    known = {raw.name: values[at[at >= 0]] for raw in nodes.raws if (values := raw.plain()) is not None}
    if not (found := told_by(known, classes)):
        return
    names = ", ".join(map(repr, found))
    what = f"{names}: a column that the run was fitted on determines these labels, so the scores say nothing"
    if not allow:
        raise InputError(f"{what}; fit again with --ignore {' '.join(found)}, or give --allow-leak.")
    log.warning("%s.", what)
