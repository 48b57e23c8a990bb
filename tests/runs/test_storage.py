"""A run's folder: one writer, all at once, nobody else's files, and every byte checked."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cli.commands import code_of
from ssge import GraphEmbedder, load_dataset, read_graph
from ssge.errors import InputError, InterruptedRun, SSGEError
from ssge.runs import storage
from ssge.runs.fit import Run, fit
from ssge.runs.folder import CHECKPOINT, CONFIG, FILES, HISTORY, SCHEMA, RunFolder
from ssge.runs.plan import plan

OWN = {"README.md": "my notes\n", "config.toml": "mine = 1\n", "features.json": "{}\n", "thesis.txt": "years of work\n"}


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def trained(epochs: int = 2, seed: int = 0) -> Run:
    """Return a run on tables, so that its folder has every file there is."""
    ends = [str(i % 20) for i in range(0, 60)], [str(i * 7 % 20) for i in range(1, 61)]
    nodes = pa.table({"id": [str(i) for i in range(20)], "age": [i % 7 for i in range(20)], "plan": list("ab") * 10})
    graph = read_graph(pa.table({"source": ends[0], "target": ends[1]}), nodes)
    return fit(graph, plan(graph.info, settings={"epochs": epochs, "widths": (8, 4)}, seed=seed))


@pytest.fixture(scope="module")
def two_runs() -> tuple[Run, Run]:
    return trained(seed=0), trained(seed=1)


def write(path: Path, run: Run, force: bool = False) -> RunFolder:
    folder = RunFolder(path)
    with folder.claim(force):
        folder.write(run)
    return folder


@pytest.mark.parametrize("flags", [[], ["--resume"], ["--force"]], ids=str)
@pytest.mark.parametrize(
    "names", [list(OWN), ["README.md"], ["features.json"], ["record.json"], ["SHA256SUMS"]], ids=str
)
def test_somebody_s_files_stay_byte_for_byte(tmp_path: Path, flags: list[str], names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text(OWN.get(name, "mine\n"))
    before = content(tmp_path)
    assert code_of("fit", "karate", "--out", tmp_path, "--epochs", "1", "--quiet", *flags) == 2
    assert content(tmp_path) == before
    model = GraphEmbedder("ssge", epochs=1, widths=(4,)).fit(load_dataset("karate"))
    for force in (False, True):
        with pytest.raises(InputError, match="which no run of this version has written"):
            model.save(tmp_path, force=force)
    assert content(tmp_path) == before


def test_a_folder_with_other_names_can_hold_a_run(tmp_path: Path, two_runs: tuple[Run, Run]) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    for run, force in zip(two_runs, (False, True), strict=True):
        write(tmp_path, run, force)
        assert RunFolder(tmp_path).read_record().seed == run.record.seed
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert {path.name for path in tmp_path.iterdir()} <= {*FILES, storage.SUMS, "thesis.txt"}


def test_sums_cannot_name_a_file_elsewhere(tmp_path: Path, two_runs: tuple[Run, Run]) -> None:
    """A run from somebody else that is replaced with --force must not take files outside its folder with it."""
    folder = write(tmp_path / "run", two_runs[0])
    (tmp_path / "thesis.txt").write_text("years of work")
    sums = folder.path / storage.SUMS
    for name in ("../thesis.txt", str(tmp_path / "thesis.txt"), "", "..", ".run"):
        sums.write_text(sums.read_text().splitlines()[0] + f"\n{'0' * 64}  {name}\n")
        with pytest.raises(InputError, match="SHA256SUMS is missing or damaged"):
            folder.read_record()
        with pytest.raises(InputError, match="which no run of this version has written"):
            write(folder.path, two_runs[1], force=True)
        write(folder.path.with_name("other"), two_runs[1], force=True)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_the_sums_are_those_of_sha256sum(tmp_path: Path, two_runs: tuple[Run, Run]) -> None:
    write(tmp_path / "run", two_runs[0])
    names = sorted(path.name for path in (tmp_path / "run").iterdir() if path.name != storage.SUMS)
    sums = [f"{hashlib.sha256((tmp_path / 'run' / name).read_bytes()).hexdigest()}  {name}" for name in names]
    assert sorted((tmp_path / "run" / storage.SUMS).read_text().splitlines(), key=lambda line: line[66:]) == sums


@pytest.mark.parametrize("step", range(12))
def test_a_writer_that_dies_leaves_the_old_run_or_the_new_one(
    tmp_path: Path, two_runs: tuple[Run, Run], step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop at the n-th rename, as a killed process would, and read the folder."""
    old, new = two_runs
    folder = write(tmp_path / "run", old)
    calls = iter(range(100))

    class Killed(BaseException):
        pass

    def dying(real: object) -> object:
        def move(self: Path, target: Path) -> Path:
            if next(calls) == step:
                raise Killed
            return real(self, target)  # type: ignore[operator]

        return move

    monkeypatch.setattr(Path, "replace", dying(Path.replace))
    monkeypatch.setattr(Path, "rename", dying(Path.rename))
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # nor would it tidy up
    with contextlib.suppress(Killed):
        write(folder.path, new, force=True)
    monkeypatch.undo()
    record = folder.read_record()
    expected = {0: old, 1: new}[record.seed]
    assert folder.read_embedding().vectors.tobytes() == expected.embedding.vectors.tobytes()
    assert folder.read_history() == expected.history
    if expected is new:
        assert {path.name for path in folder.path.iterdir()} == {*FILES, storage.SUMS}
    again = write(folder.path, new, force=True)
    assert again.read_record().seed == 1 and not (folder.path / storage.WORK).exists()


def test_a_flipped_bit_anywhere_is_refused(tmp_path: Path, two_runs: tuple[Run, Run]) -> None:
    folder = write(tmp_path / "run", two_runs[0])
    rng, whole = random.Random(0), content(folder.path)
    expected = (two_runs[0].record, two_runs[0].embedding.vectors.tobytes(), two_runs[0].history)
    refused = 0
    assert set(whole) == {*FILES, storage.SUMS}
    for _ in range(500):
        name = rng.choice(sorted(whole))
        data = bytearray(whole[name])
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (folder.path / name).write_bytes(data)
        try:
            model = folder.read_model()
            found = (folder.read_record(), folder.read_embedding().vectors.tobytes(), folder.read_history())
            assert folder.read_schema() == two_runs[0].schema
            assert found == expected and model.state_dict().keys() == two_runs[0].method.state_dict().keys(), name
        except SSGEError as error:
            assert len(str(error).splitlines()) == 1
            refused += 1
        (folder.path / name).write_bytes(whole[name])
    assert refused > 300  # README.md, config.toml and much of the sums are not read back


def test_a_flipped_bit_in_an_unfinished_run_is_refused_or_not_read(tmp_path: Path) -> None:
    graph, folder = load_dataset("karate"), RunFolder(tmp_path / "run")
    planned = plan(graph.info, settings={"epochs": 4, "widths": (8, 4)})
    whole = fit(graph, planned).embedding.vectors.tobytes()
    with pytest.raises(InterruptedRun):
        fit(graph, planned, folder, observers=[lambda line: line["epoch"] == 2])
    rng, kept = random.Random(0), tmp_path / "kept"
    shutil.copytree(folder.path, kept)
    names = {path.name for path in (kept / storage.WORK).iterdir() if path.stat().st_size}
    assert names >= {CHECKPOINT, CONFIG, HISTORY}
    for name in [CHECKPOINT] * 60 + sorted(names - {CHECKPOINT}) * 3:
        path = folder.path / storage.WORK / name
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        if name == CHECKPOINT:
            with pytest.raises(SSGEError) as caught:
                fit(graph, planned, folder, resume=True)
            assert len(str(caught.value).splitlines()) == 1
        else:  # the checkpoint holds all that is read
            resumed = fit(graph, planned, folder, resume=True)
            assert resumed.embedding.vectors.tobytes() == whole and folder.read_history() == resumed.history
        shutil.rmtree(folder.path)
        shutil.copytree(kept, folder.path)
    assert fit(graph, planned, folder, resume=True).embedding.vectors.tobytes() == whole


@pytest.mark.parametrize("step", range(12))
def test_a_process_killed_when_all_is_written_leaves_no_run_to_resume(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop at the n-th step after the sums, which make a run complete, have moved up."""
    graph, folder = load_dataset("karate"), RunFolder(tmp_path / "run")
    planned = plan(graph.info, settings={"epochs": 1, "widths": (4,)})

    class Killed(BaseException):
        pass

    calls = iter(range(100))

    def dying(real: Any) -> Any:
        def act(*words: Any, **options: Any) -> Any:
            if (folder.path / storage.SUMS).exists() and next(calls) >= step:
                raise Killed
            return real(*words, **options)

        return act

    for name in ("rename", "replace", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))
    with contextlib.suppress(Killed):
        fit(graph, planned, folder, checkpoint_every=1)
    monkeypatch.undo()
    assert folder.complete
    assert {path.name for path in folder.path.iterdir()} == {*FILES, storage.SUMS} - {SCHEMA}
    with pytest.raises(InputError, match="is complete; nothing to resume"):
        fit(graph, planned, folder, resume=True)


def test_a_folder_that_was_being_published_is_locked_for_the_next_run(
    tmp_path: Path, two_runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run")
    monkeypatch.setattr(storage, "complete", lambda folder: None)
    write(folder.path, two_runs[0])
    monkeypatch.undo()
    assert (folder.path / storage.WORK / "ready").is_dir()
    with (
        folder.claim(force=True),
        pytest.raises(InputError, match="being written by process"),
        folder.claim(force=True),
    ):
        pass
    assert folder.read_record().seed == 0


@pytest.mark.parametrize("name", ["_opened", "_acquire"])
def test_a_folder_that_vanishes_while_it_is_locked_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process ends between two lines of this one, and removes the working folder."""
    real = getattr(storage, name)

    def late(argument: object) -> object:
        shutil.rmtree(tmp_path / "run" / storage.WORK)
        return real(argument)

    monkeypatch.setattr(storage, name, late)
    with pytest.raises(InputError, match="was written by another process just now"), storage.locked(tmp_path / "run"):
        pass


def test_a_writer_that_has_ended_leaves_the_next_one_s_lock(tmp_path: Path) -> None:
    with storage.locked(tmp_path):
        storage._discard(tmp_path)  # as at the end of publishing
        with storage.locked(tmp_path):
            pass
        following = storage.locked(tmp_path)
        following.__enter__()
    with pytest.raises(InputError, match="being written by process"), storage.locked(tmp_path):
        pass
    following.__exit__(None, None, None)


HOLD = """
import sys
from pathlib import Path
from ssge.runs.folder import RunFolder
with RunFolder(Path(sys.argv[1])).claim(force=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_refused_with_the_first_one_s_process(tmp_path: Path, two_runs: tuple[Run, Run]) -> None:
    folder = write(tmp_path / "run", two_runs[0])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    for options in ({"force": True}, {"resume": True}, {}):
        with (
            pytest.raises(InputError, match=rf"being written by process {holder.pid}, started 20"),
            folder.claim(**options),
        ):
            pass
    assert folder.read_record().seed == 0  # reading goes on
    holder.kill()
    holder.wait()
    assert write(folder.path, two_runs[1], force=True).read_record().seed == 1


def test_folders_from_before_are_refused_in_one_line(tmp_path: Path, two_runs: tuple[Run, Run]) -> None:
    folder = write(tmp_path / "run", two_runs[0])
    (folder.path / storage.SUMS).unlink()
    for call in (folder.read_record, folder.read_embedding, lambda: GraphEmbedder.load(folder.path)):
        with pytest.raises(InputError, match="No run of this version in"):
            call()
    with pytest.raises(InputError, match="No run in"):
        RunFolder(tmp_path).read_record()
    with pytest.raises(InputError, match="No such run"):
        RunFolder(tmp_path / "nowhere").read_record()
