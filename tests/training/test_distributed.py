"""Two and three real processes: gradients, losses, embeddings and files are those of one."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import torch

from ssge.cli import main
from ssge.io.embeddings import read_embedding

HERE = Path(__file__).parent
WORLDS = [3, 2]
COMMAND = ["fit", "karate", "--widths", "6", "8", "--precision", "float64", "--checkpoint-every", "2", "--epochs", "12"]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def one() -> dict[str, Any]:
    return processes.everything()


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], dict[str, Any]]:
    """Return what each process found, by the size of its group and its rank."""
    folder = tmp_path_factory.mktemp("ranks")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["processes"])  # torch is imported once
    started = [context.Process(target=processes.process, args=(rank, WORLDS, folder)) for rank in range(max(WORLDS))]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0] * len(started)
    found = [(world, rank) for world in WORLDS for rank in range(world)]
    return {key: torch.load(folder / f"{key[0]}-{key[1]}.pt", weights_only=False) for key in found}


def close(found: processes.Arrays, expected: processes.Arrays, tolerance: float) -> bool:
    assert found.keys() == expected.keys()
    return all(
        np.allclose(found[name], expected[name], rtol=tolerance, atol=tolerance * max(1, np.abs(expected[name]).max()))
        for name in found
    )


@pytest.mark.parametrize("case", [*processes.CASES, "sparse"])
@pytest.mark.parametrize("world", WORLDS)
def test_every_gradient_is_that_of_one_process(
    world: int, case: str, one: dict[str, Any], several: dict[tuple[int, int], dict[str, Any]]
) -> None:
    expected = one[f"gradients {case}"]
    assert all(np.abs(value).max() > 1e-12 for name, value in expected.items() if "bias" not in name)
    for rank in range(world):
        assert close(several[world, rank][f"gradients {case}"], expected, 1e-10)


def test_two_processes_encode_one_view_each(several: dict[tuple[int, int], dict[str, Any]]) -> None:
    for (world, _), found in several.items():
        views = 1 if world == 2 else 2
        # The figures of a batch normalization are those of both views.
        assert found["views encoded"] == {"ssge folded": views, "cca_ssg": views, "g_bt": 2}


@pytest.mark.parametrize("mutation", ["identity backward", "sum of gradients"])
@pytest.mark.parametrize("world", WORLDS)
def test_the_usual_mistakes_would_be_found(
    world: int, mutation: str, one: dict[str, Any], several: dict[tuple[int, int], dict[str, Any]]
) -> None:
    expected, found = one["gradients ssge folded"], several[world, 0][mutation]
    assert not close(found, expected, 1e-2)
    assert np.allclose(found["step 0 loss"], expected["step 0 loss"], rtol=1e-10)  # which is why nobody sees them


@pytest.mark.parametrize("case", ["ssge folded", "ssge batches", "ssge sampled", "cca_ssg", "g_bt"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("world", WORLDS)
def test_losses_and_embedding_are_those_of_one_process(
    world: int, dtype: torch.dtype, tolerance: float, case: str, one: dict[str, Any],
    several: dict[tuple[int, int], dict[str, Any]],
) -> None:  # fmt: skip
    expected = one[f"training {case} {dtype}"]
    for rank in range(world):
        assert close(several[world, rank][f"training {case} {dtype}"], expected, tolerance)


@pytest.mark.parametrize("world", WORLDS)
def test_weights_are_the_same_bytes_in_every_process(
    world: int, several: dict[tuple[int, int], dict[str, Any]]
) -> None:
    found = [several[world, rank]["training g_bt torch.float32"] for rank in range(world)]
    assert all(np.array_equal(other[name], found[0][name]) for other in found for name in other if "state" in name)


def test_what_cannot_be_divided_is_refused(several: dict[tuple[int, int], dict[str, Any]]) -> None:
    for found in several.values():
        assert "GRACE with these settings must run in 1 process: its loss is not made of sums" in found["refused"]
        assert "G-BT with these settings must run in 1 process: its batch normalization" in found["refused norm"]
        assert "different checkpoints" in found["different starts"]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_run_with_one_line_and_one_process_resumes_it(killed: int, tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(HERE / "processes.py")]
    path = os.pathsep.join([str(HERE.parent), *sys.path])
    env = os.environ | {"KILLED": str(killed), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [*torchrun, *COMMAND, "--out", str(tmp_path / "shared")]
    done = subprocess.run(command, check=False, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and done.stdout == ""
    said = [line for line in done.stderr.splitlines() if line.startswith("ssge: ")]
    assert len(said) == 1, done.stderr
    assert "One of the 2 processes of this run has ended." in said[0] and "--resume" in said[0]
    for out, words in (("shared", ["--resume"]), ("whole", [])):
        with pytest.raises(SystemExit) as end:
            main([*COMMAND, "--out", str(tmp_path / out), "--quiet", *words])
        assert not end.value.code
    shared, whole = (read_embedding(tmp_path / out / "embedding.parquet").vectors for out in ("shared", "whole"))
    assert np.allclose(shared, whole, rtol=1e-9, atol=1e-9)
    histories = [
        [json.loads(line)["total"] for line in (tmp_path / out / "history.jsonl").read_text().splitlines()]
        for out in ("shared", "whole")
    ]
    assert len(histories[0]) == 12 and np.allclose(*histories, rtol=1e-9)
