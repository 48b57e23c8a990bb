from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ssge.errors import InputError
from ssge.foreign import ids_of
from ssge.io.embeddings import column_names, read_embedding, write_embedding


def vectors(n: int, d: int = 3, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("ids", "written", "kind"),
    [
        ([5, -3, 2**60], [5, -3, 2**60], "int64"),
        (["b", "a", "å"], ["b", "a", "å"], "string"),
        ([(0, 1), "a", 2.5], ["(0, 1)", "a", "2.5"], "string"),
        ([2**64, 1, 2], [str(2**64), "1", "2"], "string"),
        ([True, False, 2], ["True", "False", "2"], "string"),
        (np.array([3, 2, 1], dtype=np.uint8), [3, 2, 1], "int64"),
        (np.array(["x", "y", "z"]), ["x", "y", "z"], "string"),
    ],
    ids=str,
)
def test_round_trip(tmp_path: Path, ids: Any, written: list[Any], kind: str, dtype: Any) -> None:
    path = tmp_path / "new" / "embedding.parquet"
    array = ids if isinstance(ids, np.ndarray) else ids_of(ids)
    expected = vectors(3, dtype=dtype)
    write_embedding(path, array, expected)
    found = read_embedding(path)
    assert found.node_ids.tolist() == written and str(pq.read_schema(path).field("id").type) == kind
    assert found.vectors.dtype == dtype and found.vectors.tobytes() == expected.tobytes()


def test_the_table_joins_by_id(tmp_path: Path) -> None:
    z = vectors(3, d=2)
    write_embedding(tmp_path / "e.parquet", np.array([10, 20, 30]), z)
    frame = pd.DataFrame({"id": [30, 10], "y": [1, 0]}).merge(pd.read_parquet(tmp_path / "e.parquet"), on="id")
    np.testing.assert_array_equal(frame[["e000", "e001"]].to_numpy(), z[[2, 0]])


def test_same_input_same_bytes_whatever_the_layout(tmp_path: Path) -> None:
    ids = ids_of([f"node {i}" for i in range(100)])
    a, b = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_embedding(a, ids, vectors(100))
    write_embedding(b, ids, np.asfortranarray(vectors(100)))
    assert a.read_bytes() == b.read_bytes()
    assert sorted(tmp_path.iterdir()) == [a, b], "no temporary file is left"


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.parquet"
    write_embedding(path, np.arange(3), vectors(3))
    before = path.read_bytes()

    def half(writer: Any, _table: Any) -> None:
        Path(writer.where).write_bytes(b"PAR1")
        raise OSError("disk full")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", half)
    with pytest.raises(OSError, match="disk full"):
        write_embedding(path, np.arange(3), vectors(3) + 1)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_column_names_sort_as_they_count() -> None:
    assert column_names(2) == ["e000", "e001"]
    for d in (1000, 1001, 10_001):
        assert column_names(d) == sorted(column_names(d)) and len(set(column_names(d))) == d


def test_no_rows(tmp_path: Path) -> None:
    write_embedding(tmp_path / "e.parquet", np.arange(0), vectors(0))
    assert read_embedding(tmp_path / "e.parquet").vectors.shape == (0, 3)


@pytest.mark.parametrize(
    ("message", "ids", "z"),
    [
        ("vectors must be a matrix with 2 rows, one per id; received \\(3, 3\\)", [0, 1], vectors(3)),
        ("vectors must be a matrix with 3 rows, one per id; received \\(3,\\)", [0, 1, 2], vectors(3)[:, 0]),
        ("Ids are written as text: node_ids must be unique; '1' occurs more than once", [1, "1", "a"], vectors(3)),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, message: str, ids: list[Any], z: np.ndarray) -> None:
    with pytest.raises(InputError, match=message):
        write_embedding(tmp_path / "e.parquet", ids_of(ids), z)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ("No such file", None),
        ("cannot be read as Parquet", b"id,e000\n1,2\n"),
        ("must have the columns id, e000, ...; received node, e000", {"node": [1], "e000": [1.0]}),
        ("must have the columns id, e000, ...; received id", {"id": [1]}),
        (
            "must have the columns id, e000, ...; received id, e001, e000",
            {"id": [1], "e001": [1.0], "e000": [1.0]},
        ),
        ("column e000 must be float or double; received string", {"id": [1], "e000": ["a"]}),
        (
            "column e000 must be float or double; received double with 1 nulls",
            {"id": [1, 2], "e000": [1.0, None]},
        ),
        ("column id must be int64 or string; received double", {"id": [1.5], "e000": [1.0]}),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, message: str, content: Any) -> None:
    path = tmp_path / "e.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        pq.write_table(pa.table(content), path)
    with pytest.raises(InputError, match=message) as caught:
        read_embedding(path)
    assert "\n" not in str(caught.value)


def test_a_cut_file_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    write_embedding(path, np.arange(3), vectors(3))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_embedding(path)


def test_no_temporary_file_has_one_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed process leaves is found by the name of the file that it was to become."""
    names, made = [], tempfile.mkstemp

    def spy(**how: Any) -> tuple[int, str]:
        handle, name = made(**how)
        names.append(Path(name).name)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", spy)
    for ending in (".npy", ".parquet", ".csv", ".txt"):
        write_embedding(tmp_path / f"z{ending}", np.arange(3), np.eye(3, dtype=np.float32))
    assert len(names) == 5 and not any(name.startswith("..") for name in names)
