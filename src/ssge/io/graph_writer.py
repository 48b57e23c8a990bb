"""Writing a graph folder: arrays grow by rows, and the folder takes its name when all of it is there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ssge.errors import InputError
from ssge.files import file_digest, left_behind, sync
from ssge.graph import Graph
from ssge.io.graph_folder import FEATURES, FORMAT, MANIFEST, SCHEMA, VERSION, StoredGraph, manifest
from ssge.schema import FeatureSchema

_HEADER = 128
_ROWS = 1 << 14


class ArrayFile:
    """A .npy file that grows by rows.

    Written by hand because `numpy.save` wants the whole array, and `numpy.lib.format.open_memmap` its size beforehand.
    """

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self.dtype, self.width, self.rows = np.dtype(dtype), width, 0
        self._file = path.open("wb")
        self._file.write(bytes(_HEADER))

    def append(self, rows: Any) -> None:
        """Add rows at the end."""
        array = np.ascontiguousarray(rows, dtype=self.dtype)
        self._file.write(array.data)
        self.rows += array.shape[0]

    def close(self) -> None:
        """Write the header and close the file."""
        shape = f"({self.rows},)" if self.width is None else f"({self.rows}, {self.width})"
        text = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
        self._file.seek(0)
        self._file.write(b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little"))
        self._file.write(text.ljust(_HEADER - 11).encode() + b"\n")
        self._file.close()


class GraphWriter:
    """Writes the arrays of a graph into a folder that takes its final name when all are there.

    Parameters
    ----------
    path
        The folder while it is being written; `graph_folder` makes it.
    num_nodes
        Number of nodes.
    """

    def __init__(self, path: Path, num_nodes: int) -> None:
        self.path, self.num_nodes = path, num_nodes
        self.index_type = np.int32 if num_nodes < 2**31 else np.int64

    @contextmanager
    def array(self, name: str, dtype: Any, width: int | None = None) -> Iterator[ArrayFile]:
        """Open an array of the folder."""
        file = ArrayFile(self.path / name, dtype, width)
        try:
            yield file
        finally:
            file.close()

    def neighbors(self, side: str, parts: Iterable[tuple[Any, Any, Any]]) -> None:
        """Write in- or out-neighbors from parts with some nodes each: counts, indices, and weights or None."""
        total, ones = 0, True
        with (
            self.array(f"{side}.indptr.npy", np.int64) as indptr,
            self.array(f"{side}.indices.npy", self.index_type) as indices,
            self.array(f"{side}.weights.npy", np.float32) as values,
        ):
            indptr.append([0])
            for counts, index, weights in parts:
                indptr.append(total + np.cumsum(counts, dtype=np.int64))
                indices.append(index)
                if weights is not None:
                    values.append(weights)
                    ones = ones and bool((np.asarray(weights, np.float32) == 1).all())
                total += len(index)
        if ones:
            (self.path / f"{side}.weights.npy").unlink()

    def entries(self, side: str, size: int = 1 << 20) -> Iterator[tuple[Any, Any, Any]]:
        """Yield row, column and weight of entries that were written, some at a time."""
        indptr = np.load(self.path / f"{side}.indptr.npy")
        values = self.path / f"{side}.weights.npy"
        for start in range(0, int(indptr[-1]), size):
            stop = min(start + size, int(indptr[-1]))
            row = np.searchsorted(indptr, np.arange(start, stop), side="right") - 1
            weights = _read(values, start, stop) if values.exists() else np.ones(stop - start, np.float32)
            yield row, _read(self.path / f"{side}.indices.npy", start, stop), weights

    def sample_edges(self, rows: int, most: int = 1 << 16) -> Any:
        """Return the edges between the first rows, up to about ``most``, evenly spread, as 2 x k positions."""
        indptr = np.load(self.path / "incoming.indptr.npy", mmap_mode="r")
        end, found = int(indptr[min(rows, self.num_nodes)]), []
        step = max(1, end // most)
        for start in range(0, end, 1 << 20):
            stop = min(start + (1 << 20), end)
            chosen = np.arange(start + -start % step, stop, step)
            source = _read(self.path / "incoming.indices.npy", start, stop)[chosen - start]
            found.append(np.stack([source, np.searchsorted(indptr, chosen, side="right") - 1]))
        edges = np.concatenate(found, axis=1) if found else np.empty((2, 0), dtype=np.int64)
        return edges[:, edges[0] < rows]

    def ids(self, parts: Iterable[Any], text: bool) -> None:
        """Write ids from arrays of integers, or of pyarrow text."""
        if not text:
            with self.array("ids.npy", np.int64) as file:
                for part in parts:
                    file.append(part)
            return
        import pyarrow as pa

        end = 0
        with self.array("ids.offsets.npy", np.int64) as offsets, self.array("ids.text.npy", np.uint8) as content:
            offsets.append([0])
            for part in parts:
                given = part if isinstance(part, pa.ChunkedArray) else pa.chunked_array([pa.array(part, pa.string())])
                column = pa.concat_arrays(given.cast(pa.large_string()).chunks or [pa.array([], pa.large_string())])
                starts = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
                if column.buffers()[2] is not None:
                    content.append(np.frombuffer(column.buffers()[2], np.uint8)[starts[0] : starts[-1]])
                offsets.append(starts[1:] - starts[0] + end)
                end += int(starts[-1] - starts[0])

    def finish(self, name: str, class_names: Iterable[str] = (), schema: FeatureSchema | None = None) -> None:
        """Write the manifest, after all arrays."""
        if schema is not None:
            (self.path / SCHEMA).write_text(schema.model_dump_json(indent=1) + "\n", "utf-8")
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": file_digest(path)}
            for path in sorted(self.path.iterdir())
        }
        outgoing = [file for file in files if file.startswith("outgoing")]
        symmetric = all(files[file] == files.get(file.replace("outgoing", "incoming")) for file in outgoing)
        for file in outgoing if symmetric else ():
            (self.path / file).unlink()
            del files[file]
        sides = ("incoming",) if symmetric else ("incoming", "outgoing")
        degrees = [np.diff(np.load(self.path / f"{side}.indptr.npy", mmap_mode="r")) for side in sides]
        features = np.load(self.path / FEATURES, mmap_mode="r")
        total = hashlib.sha256("".join(f"{found['sha256']}  {file}\n" for file, found in files.items()).encode())
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "name": name,
            "nodes": self.num_nodes,
            "edges": int(degrees[0].sum()),
            "features": int(features.shape[1]),
            "weighted": (self.path / "incoming.weights.npy").exists(),
            "symmetric": symmetric,
            "max_degree": int(max(degree.max(initial=0) for degree in degrees)),
            "isolated": int((degrees[0] == 0).sum()),
            "class_names": list(class_names),
            "digest": total.hexdigest(),
            "files": files,
        }
        (self.path / MANIFEST).write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


@contextmanager
def graph_folder(path: Path, force: bool = False) -> Iterator[Path]:
    """Yield a new folder beside ``path`` that takes its place when the block ends well, and is removed otherwise.

    Only a graph folder without any other file is replaced, and only if ``force`` says so. The block may use the folder
    ``work`` beside the new one, on the same disk.
    """
    check_target(path, force)
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in left_behind(path):
        if not (left / "old").exists():
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f".{path.stem}-{os.getpid()}-", suffix=path.suffix, dir=path.parent))
    try:
        new = made / "new"
        new.mkdir()
        (made / "work").mkdir()
        yield new
        for file in [*new.iterdir(), new]:
            sync(file)
        check_target(path, force)  # somebody may have written there meanwhile
        if path.exists():
            path.rename(made / "old")
        new.rename(path)
        sync(path.parent)
    finally:
        if (made / "old").exists() and not path.exists():
            (made / "old").rename(path)
        shutil.rmtree(made, ignore_errors=True)


def check_target(path: Path, force: bool) -> None:
    """Refuse a place that holds anything but an old graph folder that may be replaced."""
    if not path.exists() and not path.is_symlink():
        return
    if not path.is_dir() or path.is_symlink():
        raise InputError(f"--out must be a new folder; {path} is a file or a link.")
    there = {file.name for file in path.iterdir()}
    found = manifest(path)
    if not there:
        return
    if found is None:
        raise InputError(f"{path} holds {min(there)}, which ssge convert has not written; choose another folder.")
    if foreign := there - set(found.get("files", ())) - {MANIFEST}:
        raise InputError(f"{path} holds {min(foreign)} beside a graph; move it away or choose another folder.")
    if not force:
        raise InputError(f"{path} holds another graph; choose another folder, or --force to replace it.")


def write_graph(graph: Graph, path: Path, force: bool = False) -> StoredGraph:
    """Write a graph as a folder; sparse features become dense."""
    n = graph.num_nodes
    text = graph.node_ids.dtype.kind not in "iu"
    weights = graph.weights
    with graph_folder(path, force) as folder:
        writer = GraphWriter(folder, n)
        source, target = graph.edges
        for side, row, column in (("incoming", target, source), ("outgoing", source, target)):
            order = np.lexsort((column, row))
            counts = np.bincount(row, minlength=n)
            values = None if weights is None else weights[order]
            writer.neighbors(side, [(counts, column[order], values)])
        with writer.array(FEATURES, graph.features.dtype, graph.num_features) as file:
            for start in range(0, n, _ROWS):
                rows = graph.features[start : start + _ROWS]
                file.append(rows if isinstance(rows, np.ndarray) else rows.toarray())
        writer.ids([graph.node_ids.astype(str).tolist() if text else graph.node_ids], text)
        if graph.labels is not None:
            with writer.array("labels.npy", np.int64) as file:
                file.append(graph.labels)
        writer.finish(graph.name, graph.class_names, graph.schema)
    return StoredGraph.open(path)


def _read(path: Path, start: int, stop: int) -> Any:
    """Return some entries of an array, not mapped: mapped pages would count as memory of the process."""
    with path.open("rb") as file:
        major = np.lib.format.read_magic(file)
        assert major == (1, 0)
        _, _, dtype = np.lib.format.read_array_header_1_0(file)
        file.seek(start * dtype.itemsize, os.SEEK_CUR)
        return np.fromfile(file, dtype, stop - start)
