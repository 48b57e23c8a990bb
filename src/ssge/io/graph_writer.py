"""Writing a graph folder: arrays grow by rows, and the folder takes its name when all of it is there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssge.errors import InputError
from ssge.files import file_digest, left_behind, sync
from ssge.graph import Graph
from ssge.io.graph_folder import FEATURES, FORMAT, MANIFEST, SCHEMA, VERSION, StoredGraph, manifest
from ssge.schema import FeatureSchema

_ROWS = 1 << 14


class ArrayFile:
    """A .npy file that grows by rows.

    `numpy.save` needs the whole array, and `numpy.lib.format.open_memmap` its final size.
    """

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self.dtype, self.width, self.rows = np.dtype(dtype), width, 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, rows: Any) -> None:
        """Add rows at the end."""
        array = np.ascontiguousarray(rows, dtype=self.dtype)
        self._file.write(array.data)
        self.rows += array.shape[0]

    def close(self) -> None:
        """Write the final header and close the file."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        """Write the header, which NumPy gives the same length for any number of rows."""
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


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

    def array(self, name: str, dtype: Any, width: int | None = None) -> closing[ArrayFile]:
        """Open an array of the folder."""
        return closing(ArrayFile(self.path / name, dtype, width))

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

    def sample_edges(self, rows: int, most: int = 1 << 16) -> Any:
        """Return the edges between the first rows, up to about ``most``, evenly spread, as 2 x k positions."""
        indptr = np.load(self.path / "incoming.indptr.npy", mmap_mode="r")
        end, found = int(indptr[min(rows, self.num_nodes)]), [np.empty((2, 0), dtype=np.int64)]
        step = max(1, end // most)
        for start in range(0, end, 1 << 20):
            chosen = np.arange(start + -start % step, min(start + (1 << 20), end), step)
            # Mapped again for each piece, since mapped pages count as memory of the process.
            source = np.load(self.path / "incoming.indices.npy", mmap_mode="r")[chosen]
            found.append(np.stack([source, np.searchsorted(indptr, chosen, side="right") - 1]))
        edges = np.concatenate(found, axis=1)
        return edges[:, edges[0] < rows]

    def ids(self, parts: Iterable[Any], text: bool) -> None:
        """Write ids from arrays of integers, or of pyarrow text."""
        if not text:
            with self.array("ids.npy", np.int64) as file:
                for part in parts:
                    file.append(part)
            return
        end = 0
        with self.array("ids.offsets.npy", np.int64) as offsets, self.array("ids.text.npy", np.uint8) as content:
            offsets.append([0])
            for part in parts:
                column = part if isinstance(part, pa.ChunkedArray) else pa.chunked_array([pa.array(part, pa.string())])
                found = "".join(column.to_pylist()).encode()
                content.append(np.frombuffer(found, np.uint8))
                offsets.append(end + np.cumsum(pc.binary_length(column).to_numpy(), dtype=np.int64))
                end += len(found)

    def finish(self, name: str, labels: Any, class_names: Iterable[str], schema: FeatureSchema | None) -> None:
        """Write labels and schema, if there are any, and the manifest, after all other arrays."""
        if labels is not None:
            with self.array("labels.npy", np.int64) as file:
                file.append(labels)
        if schema is not None:
            (self.path / SCHEMA).write_text(schema.model_dump_json(indent=1) + "\n", "utf-8")
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": file_digest(path)}
            for path in sorted(self.path.iterdir())
        }
        outgoing = [one for one in files if one.startswith("outgoing")]
        symmetric = all(files[one] == files.get(one.replace("outgoing", "incoming")) for one in outgoing)
        for one in outgoing if symmetric else ():
            (self.path / one).unlink()
            del files[one]
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

    Only a graph folder without any other file is replaced, and only with ``force``. The block may use the folder
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
        check_target(path, force)  # another process may have written there meanwhile
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
        writer.finish(graph.name, graph.labels, graph.class_names, graph.schema)
    return StoredGraph.open(path)
