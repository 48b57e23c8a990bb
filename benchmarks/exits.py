"""Run commands that fail, four at a time, and count how each process ends.

    python benchmarks/exits.py --commands 300

After an error the process ends at once, while threads of Arrow or torch may still be at work: one that lets go of a
Python object while the interpreter ends aborts it with exit code 134. Each command must print one line and exit with
code 2. One of ten commands is a new process; the others are forked, so they cost no import of torch, and end as any
interpreter does.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import itertools
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ssge.cli import main as command
from ssge.experiments import compare, sources  # noqa: F401 - what the commands import, once
from ssge.runs import fit  # noqa: F401

AT_ONCE = 4
ROWS = 600_000


def write(folder: Path) -> list[list[str]]:
    """Write files that are wrong near their beginning and go on for some blocks; return commands that read them."""
    rows = b"".join(b"%d,%d,1.25\n" % (i, i + 1) for i in range(ROWS))
    text = b"source,target,weight\n1,2\n" + rows
    (folder / "plain.csv").write_bytes(text)
    (folder / "packed.csv.gz").write_bytes(gzip.compress(text, 1))
    (folder / "packed.csv.zst").write_bytes(pa.Codec("zstd").compress(text, asbytes=True))
    (folder / "blanks.txt").write_bytes(text.replace(b",", b"  "))
    (folder / "words.csv").write_bytes(b"source,target,weight\n1,2,heavy\n" + rows)
    (folder / "latin.csv").write_bytes(b"source,target,weight\ncaf\xe9,2,1\n" + rows)
    (folder / "sound.csv").write_bytes(b"source,target\n1,2\n2,3\n3,1\n")
    (folder / "vectors.csv").write_bytes(b'"id","e000"\n"a",x\n' + b'"b",0.5\n' * ROWS)
    pq.write_table(pa.table({"source": [*range(ROWS), None], "target": range(ROWS + 1)}), folder / "null.parquet")
    whole = (folder / "null.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2] + whole[-5_000:])
    files = ("plain.csv", "packed.csv.gz", "packed.csv.zst", "blanks.txt", "words.csv", "latin.csv")
    graphs = [["fit", name, "--features", "degree"] for name in (*files, "null.parquet", "cut.parquet")]
    graphs += [["fit", "sound.csv", "--nodes", "packed.csv.gz"], ["fit", "karate", "--lr", "1e30"]]
    return [[*words, "--out", "run", "--quiet"] for words in graphs] + [["outliers", "vectors.csv"]]


def start(words: list[str], output: Path, folder: Path, new: bool) -> int:
    """Start a command in a process of its own; return its id."""
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(output, os.O_CREAT | os.O_APPEND | os.O_WRONLY), stream)
    if new:
        os.execv(sys.executable, [sys.executable, "-m", "ssge", *words])
    command(words)  # raises SystemExit, which ends this interpreter
    raise AssertionError


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--commands", type=int, default=300)
    count = arguments.parse_args().commands
    folder = Path(tempfile.mkdtemp())  # no context: a forked child would remove it when it ends
    running: dict[int, tuple[list[str], Path]] = {}
    wrong: collections.Counter[tuple[str, str]] = collections.Counter()
    parent = os.getpid()
    try:
        commands = itertools.islice(itertools.cycle(write(folder)), count)
        for index, words in enumerate(commands):
            output = folder / f"{index}.txt"
            running[start([word.replace("run", f"run-{index}") for word in words], output, folder, index % 10 == 0)] = (
                words,
                output,
            )
            if len(running) == AT_ONCE:
                finish(running, wrong)
        while running:
            finish(running, wrong)
    finally:
        if os.getpid() == parent:
            shutil.rmtree(folder)
    for (name, end), times in wrong.items():
        print(f"{times} times {name}: {end}")
    print(f"{count - wrong.total()} of {count} failing commands ended with one line and exit code 2")
    sys.exit(bool(wrong))


def finish(running: dict[int, tuple[list[str], Path]], wrong: collections.Counter[tuple[str, str]]) -> None:
    """Wait for one of the commands and judge it."""
    child, status = os.wait()
    words, output = running.pop(child)
    code, text = os.waitstatus_to_exitcode(status), output.read_text(errors="replace")
    if code != 2 or len(text.splitlines()) != 1 or not text.startswith("ssge: "):
        wrong[" ".join(words[:2]), f"exit {code}: {text[-300:]}"] += 1


if __name__ == "__main__":
    main()
