"""One hostile case: files in a folder of its own, a command on them, and what must come of it."""

from __future__ import annotations

import gc
import io
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from cli.commands import code_of
from ssge.cli import main
from ssge.errors import MOST_TEXT
from ssge.io.embeddings import read_embedding
from ssge.runs.folder import RunFolder

SECONDS = 10
MEMORY = 1 << 30
"""Most seconds and bytes above those of a sound command."""
ADDRESSES = 6 << 30
"""Most address space above that of the tests: what is asked for and never touched counts here."""

Content = bytes | str | Callable[[Path], Any]
FIT = ("--epochs", "1", "--widths", "4", "--out", "run", "--quiet")


@dataclass(frozen=True)
class Case:
    """A command and its verdict.

    Attributes
    ----------
    words
        The command line; it runs in the folder of the case.
    files
        What the folder holds: bytes, text, or a function that writes to a path.
    says
        For a refusal: a pattern in its one line. None with ``nodes`` None: it may be refused or done.
    nodes, edges
        For a success: the size of the graph that was trained on; -1 stands for any.
    """

    name: str
    words: Sequence[str]
    files: Mapping[str, Content] = field(default_factory=dict)
    says: str | None = None
    nodes: int | None = None
    edges: int = -1

    def __str__(self) -> str:
        return self.name


class Done(NamedTuple):
    """What a command left: exit code or minus the signal, its output, its time, its most memory in bytes."""

    code: int
    out: str
    err: str
    seconds: float
    memory: int


def fit(name: str, file: str, content: Content, expected: str | int | tuple[int, int] | None, *words: str) -> Case:
    """Return a case of training on one file that holds edges: a pattern to be refused with, or the size to be read."""
    return fitted(name, file, {file: content}, expected, *(words or ("--features", "degree")))


def fitted(
    name: str, graph: str, files: Mapping[str, Content], expected: str | int | tuple[int, int] | None, *words: str
) -> Case:
    """Return a case of training on some files."""
    says = expected if isinstance(expected, str) else None
    nodes, edges = expected if isinstance(expected, tuple) else (expected, -1)
    return Case(name, ("fit", graph, *words, *FIT), files, says, None if isinstance(nodes, str) else nodes, edges)


def judge(case: Case, folder: Path, baseline: int) -> None:
    """Run a case in a folder and fail if its verdict is another."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    before = listing(folder)
    done = run(case.words, folder)
    told = f"{' '.join(case.words)[:300]}\n{done.err[:2000]}"
    assert done.code in (0, 2), f"exit code {done.code} after {done.seconds:.1f} s: {told}"
    assert done.seconds < SECONDS and done.memory - baseline < MEMORY, f"{done.seconds}, {done.memory}: {told}"
    assert "Traceback" not in done.err and "terminate" not in done.err, told
    assert all(line.isprintable() for line in (done.out + done.err).splitlines()), told
    if done.code == 2:
        assert case.nodes is None, f"refused: {told}"
        lines = [line for line in done.err.splitlines() if "--quiet" in case.words or line.startswith("ssge: ")]
        assert len(lines) == 1 and done.err.splitlines()[-1].startswith("ssge: ") and not done.out, told
        assert len(done.err) < MOST_TEXT + 100 and "not enough memory" not in done.err, told
        assert case.says is None or re.search(case.says, done.err), f"{case.says!r} expected: {told}"
        assert listing(folder) == before, f"left behind: {told}"
        return
    assert case.says is None, f"not refused: {told}{done.out}"
    after = listing(folder)
    assert {name: after.get(name) for name in before} == before, f"changed: {told}"
    if (folder / "run").is_dir() and "run/SHA256SUMS" not in before:
        trained = RunFolder(folder / "run")
        vectors, found = trained.read_embedding().vectors, trained.read_record().graph
        assert np.isfinite(vectors).all() and vectors.any(), told
        assert case.nodes in (None, -1, found["num_nodes"]), f"{found}: {told}"
        assert case.edges in (-1, found["num_edges"]), f"{found}: {told}"
    elif (folder / "out.parquet").exists():
        vectors = read_embedding(folder / "out.parquet").vectors
        assert np.isfinite(vectors).all() and vectors.any(), told


def listing(folder: Path) -> dict[str, Any]:
    """Return every path below a folder with its size and time, folders without."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(folder))] = None if path.is_dir() else (status.st_size, status.st_mtime_ns)
    return found


@cache
def _warm() -> None:
    """Run commands in this process, so that children find imported what they need."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        folder = Path(name)
        (folder / "e.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 20}\n" for i in range(20)))
        (folder / "l.csv").write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(20)))
        nx.write_graphml(nx.cycle_graph(3), folder / "g.graphml")
        at = folder / "run"
        for words in (
            ("fit", folder / "e.csv", "--features", "degree", "--epochs", "1", "--widths", "4", "--out", at),
            ("embed", at, folder / "e.csv", "--out", folder / "v.csv"),
            ("fit", folder / "g.graphml", "--features", "degree", "--epochs", "0", "--out", folder / "run2"),
            ("neighbors", at, "1"),
            ("cluster", at, "-k", "2"),
            ("outliers", at),
            ("classify", at, "--labels", folder / "l.csv"),
        ):
            assert code_of(*words) == 0, words


def run(words: Sequence[str], folder: Path) -> Done:
    """Run a command in a forked child, which costs no import of torch; it is killed after ten seconds."""
    _warm()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        gc.freeze()  # else a child that collects garbage writes to every object of its parent, and so copies them all
        child = os.fork()
        if child == 0:
            _command(words, folder, out.fileno(), err.fileno())
        gc.unfreeze()
        _, status, used = os.wait4(child, 0)
        seconds = time.monotonic() - began
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(1 << 20).decode("utf-8", "replace"))
        return Done(os.waitstatus_to_exitcode(status), *texts, seconds, 1024 * used.ru_maxrss)


def _command(words: Sequence[str], folder: Path, out: int, err: int) -> None:
    """Be the child: run a command, and exit with its code."""
    code = 99
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS + 1)
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESSES, now + ADDRESSES))
        main(list(words))
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
