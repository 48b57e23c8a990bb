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
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import Pipe
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
COMMANDS = 16
SWOLLEN = MEMORY // 4
"""Most commands of one child, and most bytes above those it began with."""

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

    @property
    def kind(self) -> str:
        """The command and what it reads: the name of a case up to its comma."""
        group, comma, _ = self.name.partition(", ")
        return f"{self.words[0]} {group if comma else ''}"


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


def judge(case: Case, folder: Path, server: Server, baseline: int) -> None:
    """Run a case in a folder and fail if its verdict is another."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    before = listing(folder)
    done = server.run(case.words, folder, case.kind)
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


class Server:
    """A forked process that runs one command after another.

    A fork of a process with torch takes as long as most commands, and its child copies each page that it touches. So a
    child is kept for some commands, and begun anew for each kind of case and after one that ended or swelled it.
    """

    def __init__(self) -> None:
        _warm()
        self._child, self._left, self._kinds = 0, 0, set[str]()
        self._files = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed in close

    def run(self, words: Sequence[str], folder: Path, kind: str = "") -> Done:
        """Run a command in a folder, in a fresh child if its kind is new; what takes over ten seconds is killed."""
        if not self._left or kind not in self._kinds:
            self._begin()
        self._kinds.add(kind)
        began = time.monotonic()
        self._pipe.send((words, folder))
        code, memory = None, 0
        with suppress(EOFError):  # the child died
            if self._pipe.poll(SECONDS + 1):
                code, memory = self._pipe.recv()
        seconds = time.monotonic() - began
        self._left -= 1
        if code is None:
            code, memory = self._end()
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read(1 << 20).decode("utf-8", "replace"))
            file.seek(0)
            file.truncate()
        if memory > self._memory + SWOLLEN:
            self._left = 0
        return Done(code, *texts, seconds, memory)

    def _begin(self) -> None:
        self._end()
        self._pipe, theirs = Pipe()
        gc.freeze()  # else a child that collects garbage writes to every object of its parent, and so copies them all
        self._child = os.fork()
        if self._child == 0:
            self._pipe.close()
            _serve(theirs, *(file.fileno() for file in self._files))
        gc.unfreeze()
        theirs.close()
        self._left, self._memory = COMMANDS, self._pipe.recv()

    def _end(self) -> tuple[int, int]:
        """End the child, if there is one; return its exit code, or minus its signal, and its most memory."""
        if not self._child:
            return 0, 0
        os.kill(self._child, signal.SIGKILL)
        _, status, used = os.wait4(self._child, 0)
        self._child = self._left = 0
        self._pipe.close()
        return os.waitstatus_to_exitcode(status), 1024 * used.ru_maxrss

    def close(self) -> None:
        """End the child and forget its output."""
        self._end()
        for file in self._files:
            file.close()


def run(words: Sequence[str], folder: Path) -> Done:
    """Run one command in a process of its own."""
    with closing(Server()) as server:
        return server.run(words, folder)


def _most_memory() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _serve(pipe: Any, out: int, err: int) -> None:
    """Be the child: run commands, and answer with exit code and memory."""
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + ADDRESSES, now + ADDRESSES))
        pipe.send(_most_memory())
        while True:
            words, folder = pipe.recv()
            os.chdir(folder)
            code = 0
            try:
                main(list(words))
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:
                traceback.print_exc()
                code = 99
            sys.stdout.flush()
            sys.stderr.flush()
            pipe.send((code, _most_memory()))
    finally:
        os._exit(98)
