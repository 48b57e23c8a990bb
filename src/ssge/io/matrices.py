"""Adjacency matrices in files: scipy and gnn-benchmark npz, Matrix Market. Sizes are checked before memory is taken.

Matrix Market is read by hand because `scipy.io.mmread` crashes the process on some damaged files.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, one_line, shown
from ssge.foreign import Parts, from_adjacency
from ssge.io.sources import LIMIT, explained, refuse_unpacking, too_large, unpacked

BYTES_PER_NODE = 64
"""Least memory per node of a graph; bounds the nodes that a file may declare."""

_MARKET = re.compile(
    rb"%%MatrixMarket[ \t]+matrix[ \t]+(coordinate|array)[ \t]+(real|double|integer|pattern)[ \t]+(general|symmetric)"
    rb"[ \t\r]*\n(?:[ \t]*(?:%[^\n]*|\r?)\n)*([^\n]*)\n?",
    re.IGNORECASE,
)


_FEW = 1_000_000
_PER_ENTRY = 100


def refuse_size(path: Path, nodes: int, limit: int, held: int | None = None) -> None:
    """Refuse a graph with more nodes than fit into the limit, or than ``held`` entries can account for."""
    if nodes < 0:
        raise InputError(f"{path} declares {nodes:,} nodes.")
    if nodes * BYTES_PER_NODE > limit:
        raise too_large(path, f"declares {nodes:,} nodes, which take {nodes * BYTES_PER_NODE:,} bytes or more", limit)
    if held is not None and nodes > max(_FEW, _PER_ENTRY * held):
        raise InputError(f"{path} declares {nodes:,} nodes and holds {held:,} entries; it is damaged.")


def read_npz(path: Path, limit: int = LIMIT) -> Parts:
    """Read a scipy sparse matrix; adjacency, attributes and labels as in gnn-benchmark; or edges, features, labels.

    The last layout has ``edges`` (m x 2 or 2 x m), ``node_features`` and ``node_labels``.
    """
    with explained(f"{path} is damaged or no npz of arrays"):
        with zipfile.ZipFile(path) as archive:
            wanted, pickled = _sizes(path, archive, limit)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in wanted}
    if "adj_shape" in arrays or "adj_data" in arrays:
        parts = from_adjacency(_matrix(path, arrays, "adj_", limit))
        features: Any = arrays.get("attr_matrix")
        if features is None and "attr_data" in arrays:
            features = _matrix(path, arrays, "attr_", limit)
        return parts._replace(features=features, labels=arrays.get("labels"))
    if "indptr" in arrays or "row" in arrays:
        return from_adjacency(_matrix(path, arrays, "", limit))
    if "edges" in arrays:
        return _edge_list(path, arrays, limit)
    layouts = ("a scipy matrix (data, indices, indptr, shape)", "gnn-benchmark arrays (adj_data, ...)")
    expected = f"{', '.join(layouts)} or an edge list (edges, node_features, node_labels)"
    found = shown(sorted(arrays)[:8]) if arrays else "nothing"
    beside = f" beside pickled objects, which are never opened: {shown(pickled[:8])}" if pickled else ""
    raise InputError(f"{path} must hold {expected}; received {found}{beside}.")


def _edge_list(path: Path, arrays: Mapping[str, NDArray[Any]], limit: int) -> Parts:
    """Return the graph of an edge list, with features and labels where there are any."""
    edges, features, labels = (arrays.get(name) for name in ("edges", "node_features", "node_labels"))
    assert edges is not None
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or 2 not in edges.shape:
        raise InputError(f"{path}: edges must be whole numbers, m x 2 or 2 x m; received {edges.dtype}, {edges.shape}.")
    ends = edges.T if edges.shape[1] == 2 else edges
    sizes = [len(part) for part in (features, labels) if part is not None and part.ndim]
    n = sizes[0] if sizes else int(ends.max(initial=-1)) + 1
    refuse_size(path, n, limit, max(edges.size, *sizes, 0))
    return Parts(features, ends, None, labels, None, n)


def _sizes(path: Path, archive: zipfile.ZipFile, limit: int) -> tuple[list[str], list[str]]:
    """Return the names of the arrays, checked to be within the limit together, and those of pickled ones."""
    wanted, pickled, size = [], [], 0
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        with archive.open(member) as file:
            dtype = check_array(file, member.file_size, f"{path}: the array {shown(name)}")
        if dtype.hasobject:
            pickled.append(name)  # names of nodes and the like, which are never opened
            continue
        size += member.file_size
        refuse_unpacking(path, size, path.stat().st_size, limit)
        wanted.append(name)
    return wanted, pickled


def check_array(file: Any, size: int, where: str) -> np.dtype[Any]:
    """Read the header of a NumPy array, and refuse one that declares another size than the array has."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if min(shape, default=0) < 0:
        raise InputError(f"{where} declares the shape {shape}.")
    needed = math.prod(int(side) for side in shape) * dtype.itemsize
    if not dtype.hasobject and needed != size - file.tell():
        raise InputError(f"{where} declares {needed:,} bytes but does not hold as many.")
    return dtype


def _matrix(path: Path, arrays: Mapping[str, NDArray[Any]], prefix: str, limit: int) -> sp.csr_array:
    with explained(f"{path}: the arrays {prefix}... are no matrix"):
        form = bytes(arrays["format"].reshape(-1)[0]).decode() if "format" in arrays and not prefix else "csr"
        places = ("row", "col") if form == "coo" else ("indices", "indptr")
        keys = [prefix + key for key in ("shape", "data", *places)]
        if lacking := next((key for key in keys if key not in arrays), None):
            raise InputError(f"{path}: the array {lacking} is missing.")
        sides, data, *index = (arrays[key] for key in keys)
        shape = tuple(int(side) for side in sides.reshape(-1))
        if len(shape) != 2 or min(shape) < 0 or form not in ("csr", "csc", "coo"):
            raise InputError(f"{path}: a matrix in csr, csc or coo form expected; received {form}, shape {shape}.")
        for key in keys[2:]:
            if arrays[key].dtype.kind not in "iu":
                raise InputError(f"{path}: {key} must hold whole numbers; received {arrays[key].dtype}.")
        held = data.size if form == "coo" else max(data.size, index[1].size)
        if not prefix.startswith("attr"):
            refuse_size(path, max(shape), limit, held)
        elif max(shape) > max(_FEW, _PER_ENTRY * held):
            raise InputError(f"{path} declares features {shape[0]:,} x {shape[1]:,} and holds {held:,} of them.")
        if form == "coo":
            return sp.csr_array((data, tuple(index)), shape=shape)
        kind = sp.csr_array if form == "csr" else sp.csc_array
        matrix = kind((data, *index), shape=shape)
        matrix.check_format(full_check=True)  # an index out of range would read foreign memory
        return sp.csr_array(matrix)


def read_matrix_market(path: Path, limit: int) -> Parts:
    """Read a square matrix in Matrix Market format: coordinates or an array of real, integer or pattern entries."""
    data = b"".join(unpacked(path, limit))
    header = _MARKET.match(data)
    if header is None or (header[1].lower(), header[3].lower()) == (b"array", b"symmetric"):
        allowed = "coordinate or array; real, integer or pattern; general or symmetric (coordinate only)"
        raise InputError(f"{path} must be a Matrix Market matrix of these kinds: {allowed}.")
    form, field, symmetry = (word.decode().lower() for word in header.groups()[:3])
    sizes, lines, body = header[4].split(), header[0].count(b"\n"), data[header.end() :]
    if len(sizes) != (3 if form == "coordinate" else 2) or not all(s.isdigit() and len(s) < 19 for s in sizes):
        raise InputError(f"{path}, line {lines}: rows, columns and entries expected, {shown(header[4])} found.")
    n, columns, *rest = (int(size) for size in sizes)
    if n != columns:
        raise InputError(f"{path} must hold a square matrix; received {n:,} x {columns:,}.")
    # An entry takes four bytes at least, and an array of n x n two each.
    refuse_size(path, n, limit, len(body) // 4)
    entries, width = (rest[0], 2 if field == "pattern" else 3) if rest else (n * n, 1)
    if 2 * width * entries > len(body) + 1:
        raise InputError(f"{path} declares {entries:,} entries, more than its {len(body):,} bytes can hold.")
    if not entries:
        return Parts(edges=np.empty((2, 0), np.int64), num_nodes=n)
    values: Any
    try:
        values = np.loadtxt(io.BytesIO(body), comments="%", ndmin=2, encoding="latin-1") if body.strip() else body
    except ValueError as error:
        raise InputError(f"{path}, after line {lines}: {one_line(error).split(';')[0]}.") from None
    if np.shape(values) != (entries, width):
        raise InputError(f"{path} declares {entries:,} entries of {width} number(s); received {np.shape(values)}.")
    if form == "array":
        return from_adjacency(values.reshape(n, n).T)
    good = ((values[:, :2] >= 1) & (values[:, :2] <= n) & (values[:, :2] % 1 == 0)).all(axis=1)
    if not good.all():
        raise InputError(f"{path}, entry {np.argmin(good) + 1}: row and column must be whole numbers 1..{n}.")
    row, col = values[:, :2].T.astype(np.int64) - 1
    weights = np.ones(entries) if field == "pattern" else values[:, 2]
    if symmetry == "symmetric":
        other = row != col
        row, col = np.concatenate([row, col[other]]), np.concatenate([col, row[other]])
        weights = np.concatenate([weights, weights[other]])
    return from_adjacency(sp.coo_array((weights, (row, col)), shape=(n, n)))
