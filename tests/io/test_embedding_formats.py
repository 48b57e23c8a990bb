"""Embeddings in every format: what comes back, which bytes, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ssge.errors import InputError, UnknownNameError
from ssge.foreign import ids_of
from ssge.io.embeddings import Embedding, find_ids, read_embedding, write_embedding

ENDINGS = (".parquet", ".csv", ".npy", ".txt", ".vec", ".emb")
ODD = ["a", "null", "NA", "", 'quo"te', "comma, space", "line\nbreak", "å", "1", "-0", "nan"]
NUMBERS = np.array([0.1, -1 / 3, 1e-42, 3.4e38, -0.0, 123456.789, 2**24 + 1, 0.30000001])


def vectors(n: int, dtype: Any = np.float32) -> np.ndarray:
    z = np.random.default_rng(0).normal(size=(n, 4)).astype(dtype)
    z.flat[: NUMBERS.size] = NUMBERS[: z.size]
    return z


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("ids", [[5, -3, 2**60], ["b", "a", "å#'\""]], ids=["integers", "text"])
def test_round_trip(tmp_path: Path, ending: str, ids: list[Any], dtype: Any) -> None:
    path = tmp_path / "new" / f"e{ending}"
    z = vectors(3, dtype)
    write_embedding(path, ids_of(ids), z)
    found = read_embedding(path)
    assert found.node_ids.tolist() == ids
    assert found.vectors.dtype == (dtype if ending in (".parquet", ".npy") else np.float64)
    assert found.vectors.astype(dtype).tobytes() == z.tobytes()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".npy"])
def test_odd_ids_come_back_as_text(tmp_path: Path, ending: str) -> None:
    write_embedding(tmp_path / f"e{ending}", ids_of(ODD), vectors(len(ODD)))
    assert read_embedding(tmp_path / f"e{ending}").node_ids.tolist() == ODD
    write_embedding(tmp_path / f"f{ending}", ids_of(["1", "2"]), vectors(2))
    assert read_embedding(tmp_path / f"f{ending}").node_ids.tolist() == ["1", "2"]


@pytest.mark.parametrize("bad", ["a b", "", "a\tb", "a\nb", "a\u00a0b"])
def test_word2vec_refuses_white_space(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InputError, match=r"must not be empty or hold white space in \.vec files"):
        write_embedding(tmp_path / "e.vec", ids_of(["fine", bad]), vectors(2))
    assert list(tmp_path.iterdir()) == []


def test_the_word2vec_file_itself(tmp_path: Path) -> None:
    z = np.array([[0.1, -2], [3, 4.5]], dtype=np.float32)
    write_embedding(tmp_path / "e.txt", ids_of(["ant", "bee"]), z)
    assert (tmp_path / "e.txt").read_text() == "2 2\nant 0.1 -2\nbee 3 4.5\n"
    write_embedding(tmp_path / "f.txt", ids_of(["1", "2"]), z)
    assert read_embedding(tmp_path / "f.txt").node_ids.tolist() == [1, 2], "text that is all integers"
    write_embedding(tmp_path / "g.txt", ids_of(["01", "2"]), z)
    assert read_embedding(tmp_path / "g.txt").node_ids.tolist() == ["01", "2"]


def test_other_tools_read_the_files(tmp_path: Path) -> None:
    z = vectors(3)
    write_embedding(tmp_path / "e.csv", ids_of(["a, b", 'c"', "d"]), z)
    frame = pd.read_csv(tmp_path / "e.csv")
    assert frame.columns.tolist() == ["id", "e000", "e001", "e002", "e003"] and frame["id"].tolist()[0] == "a, b"
    np.testing.assert_array_equal(frame.iloc[:, 1:].to_numpy(np.float32), z)
    write_embedding(tmp_path / "e.npy", np.arange(3), z)
    np.testing.assert_array_equal(np.load(tmp_path / "e.npy"), z)
    assert pd.read_parquet(tmp_path / "e.ids.parquet")["id"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_input_same_bytes_and_nothing_else(tmp_path: Path, ending: str) -> None:
    for name, z in (("a", vectors(100)), ("b", np.asfortranarray(vectors(100)))):
        (tmp_path / name).mkdir()
        write_embedding(tmp_path / name / f"e{ending}", np.arange(100), z)
    a, b = (sorted((tmp_path / name).iterdir()) for name in "ab")
    assert [p.name for p in a] == (["e.ids.parquet", "e.npy"] if ending == ".npy" else [f"e{ending}"])
    assert [p.read_bytes() for p in a] == [p.read_bytes() for p in b]


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_rows(tmp_path: Path, ending: str) -> None:
    write_embedding(tmp_path / f"e{ending}", np.arange(0), vectors(0))
    found = read_embedding(tmp_path / f"e{ending}")
    assert found.vectors.shape == (0, 4) and found.node_ids.size == 0


@pytest.mark.parametrize(
    ("message", "name", "content"),
    [
        ("No such file", "e.csv", None),
        ("must have the columns id, e000", "e.csv", "node,e000\n1,2\n"),
        ("cannot be read as text", "e.csv", "id,e000\n1,two\n"),
        ("cannot be read as text", "e.csv", "id,e000\n1,2\n2\n"),
        ("cannot be read as text", "e.csv", ""),
        ("column e000 must be .* with 1 nulls", "e.csv", "id,e000\n1,\n"),
        ("must begin with a line of two numbers", "e.txt", "a 1 2\n"),
        ("must begin with a line of two numbers", "e.txt", "-1 2\n"),
        ("announces 3 rows; received 1", "e.txt", "3 2\na 1 2\n"),
        ("cannot be read as text", "e.txt", "1 2\na 1 2 3\n"),
        ("needs the ids of its rows in e.ids.parquet", "e.npy", "x"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, message: str, name: str, content: str | None) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_embedding(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_npy_and_its_ids_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "e.npy"
    write_embedding(path, np.arange(3), vectors(3))
    for content, message in (
        (vectors(2), r"3 rows, one per id; received float32 \(2, 4\)"),
        (np.arange(3), r"received int64 \(3,\)"),
        (np.array([[None]] * 3, dtype=object), "cannot be read as a NumPy array"),
    ):
        np.save(path, content, allow_pickle=True)
        with pytest.raises(InputError, match=message):
            read_embedding(path)


def test_a_failed_write_leaves_the_old_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "e.npy"
    write_embedding(path, np.arange(3), vectors(3))

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr("pyarrow.parquet.ParquetWriter.write_table", fail)
        with pytest.raises(OSError, match="disk full"):
            write_embedding(path, np.arange(3) + 1, vectors(3) + 1)
    np.testing.assert_array_equal(read_embedding(path).vectors, vectors(3))
    assert len(list(tmp_path.iterdir())) == 2


def test_an_unknown_ending_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown ending of an embedding file '\.csw'. Did you mean '\.csv'"):
        write_embedding(tmp_path / "e.csw", np.arange(3), vectors(3))


def test_positions_of_ids() -> None:
    numbers = Embedding(np.array([7, -3, 12]), vectors(3))
    assert find_ids(numbers.node_ids, [12, "7", np.int64(-3)]).tolist() == [2, 0, 1]
    assert find_ids(numbers.node_ids, ["07", 3.5, None, -3]).tolist() == [-1, -1, -1, 1]
    names = Embedding(ids_of(["scipy.sparse", "numpy", "7"]), vectors(3))
    assert find_ids(names.node_ids, ["numpy", 7, "scipy.spare"]).tolist() == [1, 2, -1]


@pytest.mark.parametrize("ids", [[5, 3, 12], ["b", "a", "7x"]], ids=["integers", "text"])
@pytest.mark.parametrize("program", ["pandas", "polars", "narrow types"])
def test_embeddings_that_went_through_other_programs(tmp_path: Path, ids: list[Any], program: str) -> None:
    write_embedding(tmp_path / "e.parquet", ids_of(ids), vectors(3))
    frame = pd.read_parquet(tmp_path / "e.parquet")
    if program == "pandas":
        frame.to_csv(tmp_path / "other.csv", index=False)
    elif program == "polars":
        pl.from_pandas(frame).write_csv(tmp_path / "other.csv")
        pl.from_pandas(frame).write_parquet(tmp_path / "other.parquet")
    else:
        frame.astype({"id": "category" if isinstance(ids[0], str) else np.int16}).to_parquet(tmp_path / "other.parquet")
    for path in tmp_path.glob("other.*"):
        found = read_embedding(path)
        assert found.node_ids.tolist() == ids
        np.testing.assert_array_equal(found.vectors.astype(np.float32), vectors(3))
