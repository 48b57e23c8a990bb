"""The command line as a user meets it: real processes, their output, their exit codes, their files."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from ssge.cli import main
from ssge.datasets import load
from ssge.errors import InterruptedRun
from ssge.methods import METHODS
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan

SMALL = ["--epochs", "6", "--widths", "16", "8"]


class Done(NamedTuple):
    """What a command left: exit code, standard output, standard error."""

    returncode: int
    stdout: str
    stderr: str


def ssge(*words: str | Path) -> Done:
    """Run a command in this process, which saves the import of torch; a few tests below start real ones."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    showwarning, handlers, level = warnings.showwarning, logging.root.handlers[:], logging.root.level
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = int(end.code or 0)
    warnings.showwarning, logging.root.handlers[:] = showwarning, handlers
    logging.root.setLevel(level)
    return Done(code, out.getvalue(), err.getvalue())


def failing(*words: str | Path) -> str:
    """Return the one line that a mistaken command prints."""
    done = ssge(*words)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert lines[-1].startswith("ssge: ")
    assert "Traceback" not in done.stderr
    return lines[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small finished run."""
    out = tmp_path_factory.mktemp("cli") / "run"
    done = ssge("fit", "digits", "--out", out, *SMALL, "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert "1,797 nodes x 8 columns" in done.stdout
    assert "epoch 6/6" in done.stderr
    return out


def test_a_run_leaves_its_files(run: Path) -> None:
    assert sorted(p.name for p in run.iterdir()) == [
        "README.md",
        "SHA256SUMS",
        "config.toml",
        "embedding.parquet",
        "history.jsonl",
        "model.safetensors",
        "record.json",
    ]
    record = json.loads((run / "record.json").read_text())
    assert (record["method"], record["dataset"], record["seed"]) == ("ssge", "digits", 3)
    assert record["parameters"] == 64 * 16 + 16 + 16 * 8
    assert record["config"]["widths"] == [16, 8]
    assert len((run / "history.jsonl").read_text().splitlines()) == 6
    table = pq.read_table(run / "embedding.parquet")
    assert table.column_names == ["id", *(f"e{i:03d}" for i in range(8))]
    assert table.num_rows == 1797


def test_same_seed_same_bytes(run: Path, tmp_path: Path) -> None:
    done = ssge("fit", "digits", "--out", tmp_path / "again", "--config", run / "config.toml", "--seed", "3", "--quiet")
    assert done.returncode == 0
    assert done.stderr == ""
    assert (tmp_path / "again" / "embedding.parquet").read_bytes() == (run / "embedding.parquet").read_bytes()


def test_nothing_is_overwritten_unless_forced(run: Path, tmp_path: Path) -> None:
    assert "holds another run (record.json)" in failing("fit", "digits", "--out", run, *SMALL)
    assert "is complete; nothing to resume" in failing("fit", "digits", "--out", run, *SMALL, "--resume")
    out = tmp_path / "e.parquet"
    assert ssge("embed", run, "digits", "--out", out).returncode == 0
    assert "exists; choose another file" in failing("embed", run, "digits", "--out", out)


def test_embed_gives_the_run_s_own_embedding(run: Path, tmp_path: Path) -> None:
    done = ssge("embed", run, "digits", "--out", tmp_path / "e.parquet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "e.parquet").read_bytes() == (run / "embedding.parquet").read_bytes()


def test_evaluate_keeps_the_scores(run: Path) -> None:
    done = ssge("evaluate", run, "--protocol", "paper-lbfgs", "--json")
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert len(scores["accuracies"]) == 10
    assert 0.5 < sum(scores["accuracies"]) / 10 <= 1
    kept = json.loads((run / "record.json").read_text())["scores"]["paper-lbfgs"]
    assert kept == scores
    assert "digits" in ssge("evaluate", run, "--protocol", "paper-lbfgs").stdout


def test_run_prints_one_table_with_the_reference_rows_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        'method = "ssge"\ndataset = "sbm:nodes=300,classes=3,features=8"\nprotocol = "paper-lbfgs"\n'
        "[config]\nepochs = 4\nwidths = [8, 4]\n[published]\naccuracy = 12.5\n"
    )
    done = ssge("run", recipe, "--seeds", "2", "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    for row in ("raw features", "propagated features", "untrained encoder", "SSGE", "published: accuracy 12.5"):
        assert row in done.stdout
    before = (tmp_path / "runs" / "seed-0" / "record.json").stat().st_mtime_ns
    again = ssge("run", recipe, "--seeds", "3", "--out", tmp_path / "runs", "--json")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "runs" / "seed-0" / "record.json").stat().st_mtime_ns == before
    assert [r["method"] for r in json.loads(again.stdout)["records"]].count("SSGE") == 3
    other = failing("run", recipe, "--seeds", "2", "--out", tmp_path / "runs", "--edge-drop", "0.5")
    assert "other settings" in other


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "croa", "--out", "x"], "Unknown dataset 'croa'. Did you mean 'cora'?"),
        (["fit", "karate", "--out", "x", "--method", "sge"], "Unknown method 'sge'. Did you mean 'ssge'?"),
        (["fit", "karate", "--out", "x", "--recipe", "ssge/citeser"], "Did you mean 'ssge/citeseer'?"),
        (["fit", "karate", "--out", "x", "--edge-drp", "1"], "Unknown option: --edge-drp. Did you mean --edge-drop?"),
        (["fit", "karate", "--out", "x", "--edge-drop", "2"], "--edge-drop: Input should be less than or equal to 1"),
        (["fit", "karate", "--out", "x", "--widths", "0"], "Input should be greater than 0"),
        (["fit", "karate", "--out", "x", "--device", "cuba"], "device 'cuba' cannot be used here"),
        (["fit", "karate", "--out", "x", "--device", "meta"], "device 'meta' cannot be used here"),
        (["fit", "karate", "--out", "x", "--seed", "9" * 30], "seed must be 0..2^63-1"),
        (["fit", "karate", "--out", "x", "--widths", "99999999999"], "Training needs about"),
        (["fit", "karate", "--out", "x", "--config", "none.toml"], "No such file: none.toml"),
        (["fit", "karate", "--out", "/dev/null/x"], "/dev/null/x"),
        (["fit", "sbm:nods=3", "--out", "x"], "nodes"),
        (["fit", "karate"], "--out"),
        (["run", "ssge/coar"], "Unknown recipe 'ssge/coar'. Did you mean 'ssge/cora'?"),
        (["evaluate", "nowhere"], "No such run: nowhere"),
        (["embed", "nowhere", "karate", "--out", "x.csv"], "No such run: nowhere"),
        (["evaluate", "nowhere", "--protocol", "papers"], "Unknown protocol 'papers'. Did you mean 'paper'?"),
        (["ls", "method"], "methods"),
        (["fit", "karate", "--out", "x", "--dim", "64"], "Unknown option: --dim. Did you mean --widths"),
        (
            ["fit", "edges.csv", "nodes.csv", "--out", "x"],
            "A table of nodes is given as --nodes nodes.csv",
        ),
        (["fit", "karate", "--out", "x", "--threads", "100000"], "--threads must be 1.."),
        (["fit", "karate", "--out", "x\0y"], "NUL"),
        (["fti"], 'Unknown command "fti". Did you mean "fit"?'),
    ],
)
def test_mistakes_get_one_line(words: list[str], message: str, tmp_path: Path) -> None:
    words = [str(tmp_path / "x") if word == "x" else word for word in words]
    assert message in failing(*words)
    assert list(tmp_path.iterdir()) == []


def test_settings_come_from_recipe_then_file_then_flags(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text("epochs = 2\nwidths = [6]\nedge_drop = 0.25\n")
    done = ssge(
        "fit", "karate", "--out", tmp_path / "r", "--recipe", "ssge/cora", "--config", file, "--edge-drop", "0.75",
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    config = record["config"]
    assert (config["feature_mask"], config["epochs"], config["widths"], config["edge_drop"]) == (0.1, 2, [6], 0.75)
    assert record["recipe"] == "ssge/cora"
    file.write_text("epoch = 2\n")
    message = failing("fit", "karate", "--out", tmp_path / "s", "--config", file)
    assert "Unknown setting of ssge 'epoch'. Did you mean 'epochs'?" in message


@pytest.mark.parametrize("kind", ["methods", "datasets", "recipes", "protocols"])
def test_ls(kind: str) -> None:
    text, data = ssge("ls", kind), ssge("ls", kind, "--json")
    assert text.returncode == data.returncode == 0
    first = json.loads(data.stdout)[0]["name"]
    assert first in text.stdout


def test_version_and_help_do_not_import_torch() -> None:
    code = "import sys; from ssge.cli import main\ntry: main({})\nexcept SystemExit: pass\n"
    code += "assert not {{'torch', 'numpy'}} & set(sys.modules)"
    for words in (["--help"], ["version"], ["ls"], ["fit", "--help", "--method", "BGRL"], ["run", "--help"]):
        done = subprocess.run([sys.executable, "-c", code.format(words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "torch" in ssge("version").stdout


def _start(out: Path, *words: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "ssge",
        "fit",
        "digits",
        "--out",
        str(out),
        "--epochs",
        "400",
        "--widths",
        "32",
        "16",
    ]
    return subprocess.Popen([*command, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _wait_for_epochs(process: subprocess.Popen[str], history: Path, epochs: int) -> None:
    until = time.monotonic() + 100
    while time.monotonic() < until:
        assert process.poll() is None, "the run ended before it could be interrupted"
        if history.exists() and history.read_text().count("\n") >= epochs:
            return
    raise AssertionError("the run did not get going")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    out = tmp_path_factory.mktemp("whole") / "run"
    process = _start(out, "--quiet")
    assert process.wait(120) == 0
    return (out / "embedding.parquet").read_bytes()


def test_killed_and_resumed_run_is_byte_identical(tmp_path: Path, uninterrupted: bytes) -> None:
    epoch = int.from_bytes(os.urandom(2), "big") % 150 + 1  # drawn here: all workers must collect the same tests
    out = tmp_path / "run"
    process = _start(out, "--checkpoint-every", "7")
    _wait_for_epochs(process, out / ".run" / "history.jsonl", epoch)
    process.kill()
    process.wait()
    assert not (out / "record.json").exists()
    assert "not finished" in failing("evaluate", out)
    assert "holds another run" in failing("fit", "digits", "--out", out, "--epochs", "400")
    resumed = _start(out, "--checkpoint-every", "7", "--resume")
    assert resumed.wait(120) == 0
    assert (out / "embedding.parquet").read_bytes() == uninterrupted, f"killed after epoch {epoch}"
    epochs = [json.loads(line)["epoch"] for line in (out / "history.jsonl").read_text().splitlines()]
    assert epochs == list(range(1, 401))
    assert not (out / ".run").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_saves_and_says_how_to_go_on(tmp_path: Path, uninterrupted: bytes, name: str) -> None:
    out = tmp_path / "run"
    process = _start(out, "--checkpoint-every", "0")
    _wait_for_epochs(process, out / ".run" / "history.jsonl", 3)
    process.send_signal(getattr(signal, name))
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "continue with --resume" in error
    assert "Traceback" not in error
    assert (out / ".run" / "checkpoint.safetensors").exists()
    resumed = _start(out, "--resume", "--quiet")
    assert resumed.wait(120) == 0
    assert (out / "embedding.parquet").read_bytes() == uninterrupted


def test_diverging_run_names_epoch_and_terms(tmp_path: Path) -> None:
    done = ssge("fit", "karate", "--out", tmp_path / "r", "--epochs", "30", "--widths", "16", "8", "--lr", "1e30")
    assert done.returncode == 2
    assert re.search(r"ssge: The loss is not finite in epoch \d+: total nan, alignment", done.stderr)


def test_resume_refuses_another_graph_or_precision(tmp_path: Path) -> None:
    graph, folder = load("sbm:nodes=200,features=8"), RunFolder(tmp_path / "r")
    words = ["--out", folder.path, "--epochs", "3", "--widths", "8", "4", "--resume"]
    planned = plan(graph.info, settings={"epochs": 3, "widths": (8, 4)})
    with pytest.raises(InterruptedRun):
        fit(graph, planned, folder, observers=[lambda line: line["epoch"] == 2])
    other = failing("fit", "sbm:nodes=200,features=8,seed=9", *words)
    assert "another run: its info" in other or "another run: its graph" in other or "num_edges" in other
    precise = failing("fit", "sbm:nodes=200,features=8", *words, "--precision", "float64")
    assert "its precision is float32, this run's is float64" in precise
    setting = failing("fit", "sbm:nodes=200,features=8", *words, "--edge-drop", "0.9")
    assert f"its edge_drop is {METHODS['ssge'].Config().edge_drop}, this run's is 0.9" in setting
    assert ssge("fit", "sbm:nodes=200,features=8", *words, "--quiet").returncode == 0


@pytest.mark.parametrize("checkpoint_every", ["1", "0"])
def test_full_disk_leaves_nothing_half_written(checkpoint_every: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: the system refuses to write on."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000));"
        "from ssge.cli import main; main(sys.argv[1:])"
    )
    out = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", code, "fit", "digits", "--out", str(out), *SMALL, "--quiet",
         "--checkpoint-every", checkpoint_every],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("ssge: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()
