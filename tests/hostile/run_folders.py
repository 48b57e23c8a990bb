"""Runs whose folder somebody has damaged or forged, and files of embeddings."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file, save_file

from hostile.case import Case, Content
from hostile.graph_files import header

SUMS = "SHA256SUMS"
Change = Callable[[bytes], bytes | None]
COMMANDS: dict[str, tuple[str, ...]] = {
    "neighbors": ("neighbors", "run", "1", "--quiet"),
    "embed": ("embed", "run", "karate", "--out", "out.parquet", "--quiet"),
    "evaluate": ("evaluate", "run", "--protocol", "quick"),
    "warm start": ("fit", "karate", "--warm-start", "run", "--out", "next", "--epochs", "1", "--quiet"),
}
READ = {
    "record.json": ("embed", "evaluate", "warm start"),
    "embedding.parquet": ("neighbors", "embed"),
    "model.safetensors": ("embed", "warm start"),
    SUMS: ("neighbors", "embed", "evaluate", "warm start"),
}
DAMAGE: dict[str, Change] = {
    "gone": lambda data: None,
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"\n",
    "noise": lambda data: bytes(range(256)) * 4,
    "one bit": lambda data: data[: len(data) // 3] + bytes([data[len(data) // 3] ^ 1]) + data[len(data) // 3 + 1 :],
}


def changed(folder: dict[str, bytes], name: str, data: bytes | None, signed: bool = False) -> dict[str, Content]:
    """Return the files of a run with one of them changed; signed, the sums are those of the change."""
    files = dict(folder)
    if data is None:
        del files[name]
    else:
        files[name] = data
    if signed:
        sums = {key: hashlib.sha256(value).hexdigest() for key, value in files.items() if key != SUMS}
        files[SUMS] = "".join(f"{digest}  {key}\n" for key, digest in sorted(sums.items())).encode()
    return {f"run/{key}": value for key, value in files.items()}


def record(folder: dict[str, bytes], **facts: Any) -> bytes:
    return json.dumps(json.loads(folder["record.json"]) | facts).encode()


def model(folder: dict[str, bytes], change: Callable[[dict[str, Any], dict[str, Any]], Any], tmp: Path) -> bytes:
    """Return the model of a run with tensors and header changed, and a fitting checksum inside."""
    from ssge.training.checkpoint import _digest

    path = tmp / "model.safetensors"
    path.write_bytes(folder["model.safetensors"])
    tensors = load_file(path)
    size = struct.unpack("<Q", folder["model.safetensors"][:8])[0]
    facts = json.loads(json.loads(folder["model.safetensors"][8 : 8 + size])["__metadata__"]["ssge"])
    change(tensors, facts)
    text = json.dumps(facts)
    save_file(tensors, path, {"ssge": text, "sha256": _digest(tensors, text)})
    return path.read_bytes()


def config(**settings: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda tensors, facts: facts["config"].update(settings)


def weights(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def apply(tensors: dict[str, Any], facts: dict[str, Any]) -> None:
        for name, value in tensors.items():
            if value.is_floating_point() and value.ndim:
                tensors[name] = change(value)

    return apply


FORGED_MODELS: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], Any], str | None]] = {
    "NaN": (weights(lambda value: value * torch.nan), "The embedding is not finite"),
    "zeros": (weights(torch.zeros_like), "The embedding is zero everywhere"),
    "infinite": (weights(lambda value: value + torch.inf), "The embedding is not finite"),
    "1e38": (weights(lambda value: value * 1e38), "not finite"),
    "other shapes": (weights(lambda value: value[:1].contiguous()), "not a model of this version"),
    "no tensors": (lambda tensors, facts: tensors.clear(), "not a model of this version|cannot be read"),
    "more tensors": (lambda tensors, facts: tensors.update(more=torch.zeros(3)), "not a model of this version"),
    "integers": (weights(lambda value: value.long()), "not a model of this version|."),
    "unknown method": (lambda tensors, facts: facts.update(method="gpt"), "Unknown method|not a model"),
    "method is a number": (lambda tensors, facts: facts.update(method=7), "not a model"),
    "no config": (lambda tensors, facts: facts.pop("config"), "not a model"),
    "config is a list": (lambda tensors, facts: facts.update(config=[]), "not a model"),
    "unknown setting": (config(nope=1), "not a model"),
    "widths of 10^9": (config(widths=[10**9, 10**9]), "not a model|memory"),
    "widths of 0": (config(widths=[0]), "not a model"),
    "widths of text": (config(widths="x" * 5000), "not a model"),
    "other widths": (config(widths=[9, 9]), "not a model"),
    "encoder unknown": (config(encoder="x"), "not a model"),
    "10^9 features": (lambda tensors, facts: facts["info"].update(num_features=10**9), "not a model|memory|features"),
    "-1 features": (lambda tensors, facts: facts["info"].update(num_features=-1), "not a model"),
    "info is text": (lambda tensors, facts: facts.update(info="x"), "not a model"),
    "more info": (lambda tensors, facts: facts["info"].update(more=1), "not a model"),
}  # fmt: skip
FORGED_RECORDS: dict[str, tuple[dict[str, Any], str | None]] = {
    "another dataset": ({"dataset": "nope"}, "Unknown dataset 'nope'|No such file"),
    "dataset of 10^12 nodes": ({"dataset": "sbm:nodes=1000000000000"}, "nodes"),
    "dataset /dev/zero": ({"dataset": "/dev/zero"}, "/dev/zero"),
    "dataset upwards": ({"dataset": "../../../etc/passwd"}, "passwd"),
    "dataset of escapes": ({"dataset": "\x1b[2J"}, "dataset|No such file"),
    "reading is a list": ({"reading": []}, "record"),
    "unknown option of reading": ({"dataset": "/nowhere.csv", "reading": {"nope": 1}}, "nope|No such file|record"),
    "columns is text": ({"columns": "many"}, "record"),
    "seed is text": ({"seed": "x"}, "record"),
    "more": ({"more": 1}, "record"),
    "scores of nothing": ({"scores": {"quick": {}}}, "record"),
    "method is a list": ({"method": []}, "record"),
    "unknown splits": ({"splits": "nope"}, "splits 'nope'"),
}  # fmt: skip


def folder_cases(folder: dict[str, bytes], tmp: Path) -> Iterator[Case]:
    """Yield cases on a run of karate, given as its files."""
    for name, commands in READ.items():
        for what, change in DAMAGE.items():
            for command in commands:
                says = None if name == SUMS else r"damaged or changed|is missing|not a complete run"
                files = changed(folder, name, change(folder[name]))
                yield Case(f"run {name}, {what}, {command}", COMMANDS[command], files, says)
    for name in ("README.md", "config.toml", "history.jsonl"):
        files = changed(folder, name, b"anything")
        yield Case(f"run {name}, another, neighbors", COMMANDS["neighbors"], files, None, -1)
    for what, (forge, says) in FORGED_MODELS.items():
        files = changed(folder, "model.safetensors", model(folder, forge, tmp), signed=True)
        yield Case(f"forged model, {what}", COMMANDS["embed"], files, says)
    for what, (facts, wrong) in FORGED_RECORDS.items():
        files = changed(folder, "record.json", record(folder, **facts), signed=True)
        yield Case(f"forged record, {what}", COMMANDS["evaluate"], files, wrong)
    for what, text in {
        "no JSON": "{", "a list": "[]", "null": "null", "deeply nested": "[" * 100_000, "a string": '"x"',
        "5,000 digits": '{"seed": ' + "9" * 5000 + "}", "not UTF-8": "\udcff", "NaN": '{"seed": NaN}',
        "8 MB": '{"method": "' + "x" * 8_000_000 + '"}',
    }.items():  # fmt: skip
        data = text.encode(errors="surrogateescape")
        for command in ("evaluate", "embed", "warm start"):
            files = changed(folder, "record.json", data, signed=True)
            yield Case(f"forged record, {what}, {command}", COMMANDS[command], files, "record")
    for what, data in {
        "header of 2^60": struct.pack("<Q", 1 << 60) + b"{}", "header cut": struct.pack("<Q", 90) + b"{",
        "header a list": struct.pack("<Q", 2) + b"[]", "no metadata": struct.pack("<Q", 2) + b"{}",
        "tensor beyond the end": struct.pack("<Q", 61) + b'{"a":{"dtype":"F32","shape":[99],"data_offsets":[0,396]}}     ',
        "a pickle": b"\x80\x04}q\x00.", "deeply nested": struct.pack("<Q", 50_000) + b"[" * 50_000,
    }.items():  # fmt: skip
        for command in ("embed", "warm start"):
            files = changed(folder, "model.safetensors", data, signed=True)
            yield Case(f"forged model, {what}, {command}", COMMANDS[command], files, "model.safetensors")
    for what, text in {
        "a path upwards": "0" * 64 + "  ../../x\n", "no digests": "record.json\n", "not UTF-8": "\udcff",
        "a million lines": ("0" * 64 + "  x\n") * 200_000, "an absolute path": "0" * 64 + "  /etc/passwd\n",
    }.items():  # fmt: skip
        files = changed(folder, SUMS, text.encode(errors="surrogateescape"))
        yield Case(f"forged sums, {what}", COMMANDS["neighbors"], files, "run")
    whole = {f"run/{name}": data for name, data in folder.items()}
    links: dict[str, Content] = {"loop": lambda path: path.symlink_to("loop")}
    yield Case("run, a link to itself", ("neighbors", "loop", "1"), links, "loop")
    yield Case("run, a file", ("embed", "e.csv", "karate", "--out", "out.parquet"), {"e.csv": "x"}, "No such run|run")
    own = {"run/README.md": "mine", "run/config.toml": "mine = 1\n", "run/features.json": "{}"}
    for flags in ((), ("--resume",), ("--force",)):
        words = ("fit", "karate", "--out", "run", "--epochs", "1", *flags, "--quiet")
        yield Case(f"run, somebody's files, {flags}", words, own, "which no run of this version has written")
    for flags, says in (((), "holds another run"), (("--resume",), "is complete; nothing to resume")):
        words = ("fit", "karate", "--out", "run", "--epochs", "1", *flags, "--quiet")
        yield Case(f"run, a run is there, {flags}", words, whole, says)
    failing = ("fit", "karate", "--out", "run", "--force", "--lr", "1e30", "--epochs", "9", "--quiet")
    yield Case("run, a replacement that fails", failing, whole, "not finite")


NAMES = ["id", "e000", "e001"]


def embedding(ids: Any, *columns: Any, names: list[str] | None = None) -> Content:
    table = pa.table([pa.array(ids), *map(pa.array, columns)], names=names or NAMES)
    return lambda path: pq.write_table(table, path)


VALUES = [0.1, 0.9, 0.3, 0.7]
ESCAPES = ["\x1b[31ma", "b\x07", "c\n", "=cmd|x"]
PARQUET: dict[str, tuple[Content, str | None]] = {
    "plain": (embedding(list("abcd"), VALUES, VALUES[::-1]), None),
    "escapes in ids": (embedding(ESCAPES, VALUES, VALUES[::-1]), None),
    "near 3e38": (embedding(list("abcd"), [3e38, -3e38, 1.0, 2.0], VALUES), ""),
    "near 1e308": (embedding(list("abcd"), [1e308, -1e308, 1.0, 2.0], VALUES), ""),
    "near 1e-320": (embedding(list("abcd"), [1e-320, 2e-320, 0.0, 0.0], VALUES), None),
    "all zero": (embedding(list("abcd"), [0.0] * 4, [0.0] * 4), ""),
    "all equal": (embedding(list("abcd"), [1.0] * 4, [2.0] * 4), ""),
    "NaN": (embedding(list("abcd"), [np.nan, 1, 2, 3], VALUES), "finite"),
    "infinite": (embedding(list("abcd"), [np.inf, 1, 2, 3], VALUES), "finite"),
    "null": (embedding(list("abcd"), [None, 1.0, 2.0, 3.0], VALUES), "with 1 nulls"),
    "integers": (embedding(list("abcd"), [1, 2, 3, 4], VALUES), "must be float or double"),
    "text": (embedding(list("abcd"), ["x"] * 4, VALUES), "must be float or double"),
    "other names": (embedding(list("abcd"), VALUES, VALUES, names=["id", "x", "y"]), "must have the columns id, e000"),
    "no ids": (embedding(list("abcd"), VALUES, VALUES, names=["e000", "e001", "e002"]), "must have the columns id"),
    "real ids": (embedding([1.5, 2, 3, 4], VALUES, VALUES), "column id must be int64 or string"),
    "null ids": (embedding(["a", None, "c", "d"], VALUES, VALUES), "column id"),
    "one row": (embedding(["a"], [1.0], [2.0]), ""),
    "no rows": (embedding(pa.array([], pa.string()), pa.array([], pa.float64()), pa.array([], pa.float64())), "n, d >= 1|Unknown node"),
    "not Parquet": (b"PAR1" + bytes(50), "cannot be read as Parquet"),
}  # fmt: skip
VEC: dict[str, tuple[str | bytes, str | None]] = {
    "plain": ("4 2\na 0.1 0.2\nb 0.5 0.1\nc 0.9 0.3\nd 0.2 0.2\n", None),
    "999,999,999 columns": ("4 999999999\na 0.1\n", "announces 999,999,999 columns, more than its bytes can hold"),
    "10^30 rows": (f"{10**30} 2\na 0.1 0.2\n", "two numbers"),
    "other rows": ("9 2\na 0.1 0.2\n", "announces 9 rows; received 1"),
    "negative": ("-4 2\na 0.1 0.2\n", "two numbers"),
    "no sizes": ("a 0.1 0.2\nb 0.1 0.2\n", "two numbers"),
    "5,000 digits": ("9" * 5000 + " 2\na 0.1 0.2\n", "two numbers"),
    "a word": ("2 2\na 0.1 x\nb 0.1 0.2\n", "cannot be read as text"),
    "too few": ("2 2\na 0.1\nb 0.1 0.2\n", "cannot be read as text"),
    "NaN": ("2 2\na nan 0.1\nb 0.1 0.2\n", "with 1 nulls"),
    "not UTF-8": (b"2 2\n\xff 0.1 0.1\nb 0.1 0.2\n", r"e\.vec"),
    "nothing": ("", "two numbers"),
    "no rows": ("0 2\n", "n, d >= 1|Unknown node"),
    "a line of 20 MB": ("9" * 20_000_000, "first line"),
}  # fmt: skip
CSV: dict[str, tuple[str | bytes, str | None]] = {
    "plain": ('"id","e000","e001"\n"a",0.1,0.2\n"b",0.5,0.1\n"c",0.9,0.3\n', None),
    "nothing": ("", r"e\.csv"),
    "header alone": ('"id","e000"\n', "n, d >= 1|Unknown node"),
    "other names": ("id,x\na,1\n", r"e\.csv"),
    "a word": ('"id","e000"\n"a",x\n', "cannot be read as text"),
    "too few": ('"id","e000","e001"\n"a",1\n', "cannot be read as text"),
    "not UTF-8": (b'"id","e000"\n"\xff",1\n"b",2\n', r"e\.csv"),
    "open quote": ('"id","e000"\n"a,1\n', r"e\.csv"),
}  # fmt: skip
NPY: dict[str, tuple[bytes, str | None]] = {
    "10^30 rows": (header((10**30, 2)) + bytes(8), "declares .* bytes but does not hold as many|cannot be read"),
    "2^50 rows": (header((2**50, 2)) + bytes(8), "declares .* bytes but does not hold as many"),
    "objects": (header((4, 2), "|O") + bytes(8), "cannot be read|objects|declares"),
    "text": (header((4, 2), "<U1") + bytes(32), "must be a matrix of floats"),
    "a vector": (header((4,)) + bytes(32), "must be a matrix of floats"),
    "other rows": (header((2, 2)) + bytes(32), "must be a matrix of floats with 4 rows"),
    "a zip": (b"PK\x03\x04" + bytes(60), "cannot be read as a NumPy array"),
    "a pickle": (b"\x80\x04}q\x00.", "cannot be read as a NumPy array"),
    "nothing": (b"", "cannot be read as a NumPy array"),
    "cut": (header((4, 2)) + bytes(60), "declares"),
}  # fmt: skip
FOUR = embedding(list("abcd"), names=["id"])
USES = (
    ("neighbors", "{}", "a", "-k", "1", "--quiet"),
    ("outliers", "{}", "--neighbors", "1"),
    ("cluster", "{}", "-k", "2"),
)


def embedding_cases() -> Iterator[Case]:
    """Yield files of embeddings; an empty pattern stands for either verdict."""
    for file, group in (("e.parquet", PARQUET), ("e.vec", VEC), ("e.csv", CSV)):
        for index, (name, (content, says)) in enumerate(group.items()):  # type: ignore[attr-defined]
            for words in USES if not says else (USES[index % 3],):  # one reader refuses for all commands
                first = "\x1b[31ma" if name == "escapes in ids" else "a"
                line = [word.format(file) if word != "a" else first for word in words]
                label = f"embedding, {file[2:]}, {name}, {words[0]}"
                yield Case(label, line, {file: content}, says or None, -1 if says is None else None)
    for name, (data, says) in NPY.items():
        yield Case(f"embedding, npy, {name}", ("outliers", "e.npy"), {"e.npy": data, "e.ids.parquet": FOUR}, says)
    yield Case("embedding, npy without ids", ("outliers", "e.npy"), {"e.npy": NPY["cut"][0]}, "needs the ids")
    sound: dict[str, Content] = {"e.parquet": PARQUET["plain"][0]}
    for words, says in (
        (("neighbors", "e.parquet", "z"), "Unknown node 'z'"),
        (("neighbors", "e.parquet", "\x1b[2J"), "Unknown node"),
        (("neighbors", "e.parquet"), "Name the nodes, or give --all"),
        (("neighbors", "e.parquet", "--all"), "--all needs --out"),
        (("neighbors", "e.parquet", "a", "-k", "0"), "k must be"),
        (("neighbors", "e.parquet", "a", "-k", "99"), "k must be"),
        (("neighbors", "e.parquet", "a", "-k", "-1"), "k must be"),
        (("neighbors", "e.parquet", "a", "-k", "9" * 25), "k must be"),
        (("neighbors", "e.parquet", "a", "--metric", "x"), "metric"),
        (("cluster", "e.parquet", "-k", "0"), "k must be|clusters"),
        (("cluster", "e.parquet", "-k", "99"), "k must be|clusters"),
        (("cluster", "e.parquet", "-k", "2", "--seed", "-1"), "seed"),
        (("cluster", "e.parquet", "-k", "2", "--seed", "9" * 30), "seed"),
        (("cluster", "e.parquet", "-k", "2", "--out", "e.parquet"), "e.parquet exists"),
        (("outliers", "e.parquet", "-k", "0"), "k must be"),
        (("outliers", "e.parquet", "--neighbors", "0"), "neighbors"),
        (("outliers", "e.parquet", "--out", "x.txt"), "Unknown ending of a table"),
        (("outliers", "nowhere"), "No such run or file"),
        (("outliers", "e.xyz"), "No such run or file"),
    ):
        yield Case(f"{' '.join(words)[:60]}", words, sound, says)
