"""The npz files of the gnn-benchmark collection: Computer and CoauthorCS."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ssge.datasets.facts import Facts
from ssge.datasets.features import compact
from ssge.errors import InputError
from ssge.graph import Graph


def read(facts: Facts, paths: Mapping[str, Path]) -> Graph:
    """Read adjacency, attributes and labels; they have no public split."""
    (path,) = paths.values()
    try:
        with np.load(path, allow_pickle=False) as content:
            adjacency, features = (
                sp.csr_array(
                    tuple(content[f"{part}_{key}"] for key in ("data", "indices", "indptr")),
                    shape=tuple(content[f"{part}_shape"]),
                )
                for part in ("adj", "attr")
            )
            labels = content["labels"]
        for matrix in (adjacency, features):
            matrix.check_format(full_check=True)  # an index out of range would read foreign memory
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} is not a whole gnn-benchmark npz file ({error}).") from error
    pairs = sp.coo_array(adjacency)
    return Graph.of(
        edges=np.stack([pairs.row, pairs.col]),
        features=compact(features),
        labels=labels,
        name=facts.name,
    )
