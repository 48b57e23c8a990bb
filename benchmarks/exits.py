"""Run commands that fail, four at a time, and count how each process ends.

    python benchmarks/exits.py --commands 300

After an error the process ends at once, while threads of Arrow or torch may still be at work. Each command must print
its one line and exit with code 2; one that is aborted exits with 134.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import itertools
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

AT_ONCE = 4


def write(folder: Path) -> list[list[str]]:
    """Write files that are wrong near their beginning and go on for many blocks; return commands that read them."""
    rows = b"".join(b"%d,%d,1\n" % (i, i + 1) for i in range(1_500_000))
    text = b"source,target,weight\n1,2\n" + rows
    (folder / "plain.csv").write_bytes(text)
    (folder / "packed.csv.gz").write_bytes(gzip.compress(text, 1))
    (folder / "packed.csv.zst").write_bytes(pa.Codec("zstd").compress(text, asbytes=True))
    (folder / "blanks.txt").write_bytes(text.replace(b",", b"  "))
    (folder / "words.csv").write_bytes(b"source,target,weight\n1,2,heavy\n" + rows)
    (folder / "latin.csv").write_bytes(b"source,target,weight\ncaf\xe9,2,1\n" + rows)
    (folder / "sound.csv").write_bytes(b"source,target\n1,2\n2,3\n3,1\n")
    (folder / "vectors.csv").write_bytes(b'"id","e000"\n"a",x\n' + b'"b",0.5\n' * 1_500_000)
    pq.write_table(pa.table({"source": [*range(400_000), None], "target": range(400_001)}), folder / "null.parquet")
    whole = (folder / "null.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2] + whole[-5_000:])
    files = ("plain.csv", "packed.csv.gz", "packed.csv.zst", "blanks.txt", "words.csv", "latin.csv")
    graphs = [["fit", name, "--features", "degree"] for name in (*files, "null.parquet", "cut.parquet")]
    graphs += [["fit", "sound.csv", "--nodes", "packed.csv.gz"], ["fit", "karate", "--lr", "1e30"]]
    return [[*words, "--out", "run", "--quiet"] for words in graphs] + [["outliers", "vectors.csv"]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--commands", type=int, default=300)
    count = arguments.parse_args().commands
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as pool:

        def run(numbered: tuple[int, list[str]]) -> tuple[str, str]:
            index, words = numbered
            words = [f"run-{index}" if word == "run" else word for word in words]
            done = subprocess.run(
                [sys.executable, "-m", "ssge", *words], cwd=name, capture_output=True, text=True, check=False
            )
            right = done.returncode == 2 and len(done.stderr.splitlines()) == 1
            return " ".join(words[:2]), "right" if right else f"exit {done.returncode}: {done.stderr[-300:]}"

        commands = itertools.islice(itertools.cycle(write(Path(name))), count)
        found = list(pool.map(run, enumerate(commands)))
    wrong = collections.Counter((command, end) for command, end in found if end != "right")
    for (command, end), times in wrong.items():
        print(f"{times} times {command}: {end}")
    print(f"{sum(end == 'right' for _, end in found)} of {count} failing commands ended with one line and exit code 2")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
