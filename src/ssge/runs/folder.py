"""The folder of a run: names and formats of its files live here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssge.errors import InputError
from ssge.files import atomic
from ssge.io.embeddings import Embedding, read_embedding, write_embedding
from ssge.records import RunRecord
from ssge.runs import storage
from ssge.runs.recipes import write_toml
from ssge.schema import FeatureSchema

if TYPE_CHECKING:
    from ssge.methods import Method
    from ssge.runs.fit import Run


RECORD, HISTORY, CONFIG, MODEL = "record.json", "history.jsonl", "config.toml", "model.safetensors"
EMBEDDING, SCHEMA, CARD, CHECKPOINT = "embedding.parquet", "features.json", "README.md", "checkpoint.safetensors"
FILES = [RECORD, HISTORY, CONFIG, MODEL, EMBEDDING, SCHEMA, CARD]
"""The files of a complete run: all facts and scores; one line per epoch; the resolved settings, which ``--config``
takes; weights and all that is needed to build the model again; the columns id, e000, ...; how feature columns were
made of tables, if they were; a summary for people."""


@dataclass(frozen=True)
class RunFolder:
    """The files of one run; `ssge.runs.storage` says how they change."""

    path: Path

    @property
    def embedding(self) -> Path:
        """Columns id, e000, e001, ..."""
        return self.path / EMBEDDING

    @property
    def work(self) -> Path:
        """Hidden folder of an unfinished run."""
        return self.path / storage.WORK

    @property
    def checkpoint(self) -> Path:
        """State of an unfinished training."""
        return self.work / CHECKPOINT

    @property
    def unfinished(self) -> bool:
        """Whether there is a run to resume."""
        return (self.work / CONFIG).exists()

    @property
    def complete(self) -> bool:
        """Whether there is a complete run."""
        storage.settle(self.path)
        return bool(storage.checksums(self.path))

    @contextmanager
    def claim(self, force: bool = False, resume: bool = False) -> Iterator[None]:
        """Hold the folder for a new run. Nothing that another run or anybody else left there is lost.

        Parameters
        ----------
        force
            Replace the run in the folder, once the new one is complete.
        resume
            Continue an unfinished run.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is not a folder.")
        made = not self.path.exists()
        try:
            storage.settle(self.path)
            with storage.locked(self.path):
                self._check(force, resume)
                if not resume:
                    self._clear()
                try:
                    yield
                except BaseException:
                    if not self.checkpoint.exists():  # nothing to resume from
                        self._clear()
                    raise
        finally:
            if made and self.path.is_dir() and not any(self.path.iterdir()):
                self.path.rmdir()

    def _check(self, force: bool, resume: bool) -> None:
        there = storage.checksums(self.path)
        known = {*there, storage.SUMS} if RECORD in there else set()
        if foreign := [name for name in (*FILES, storage.SUMS) if (self.path / name).exists() and name not in known]:
            raise InputError(
                f"{self.path} holds {foreign[0]}, which no run of this version has written; choose another folder."
            )
        if resume and there and not self.unfinished:
            raise InputError(f"The run in {self.path} is complete; nothing to resume.")
        if (there or self.unfinished) and not (force or (resume and self.unfinished)):
            found, go_on = (RECORD, "") if not self.unfinished else (CONFIG, " or --resume it,")
            raise InputError(
                f"{self.path} holds another run ({found}); choose another folder,{go_on} or --force to replace it."
            )

    def _clear(self) -> None:
        """Remove what an unfinished run has left."""
        for file in self.work.iterdir() if self.work.is_dir() else ():
            if file.is_file() and file.name != "lock":
                file.unlink()

    def begin(self, settings: dict[str, Any]) -> None:
        """Write the settings of a claimed run, unless a checkpoint holds those that the run began with."""
        if not self.checkpoint.exists():
            with atomic(self.work / CONFIG) as temporary:
                temporary.write_text(write_toml(settings), "utf-8")

    @contextmanager
    def history(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """Yield an observer that appends each epoch to the history at once, so that a killed run leaves it."""
        with (self.work / HISTORY).open("a", encoding="utf-8") as file:
            yield lambda line: print(json.dumps(line), file=file, flush=True)

    def write(self, run: Run) -> None:
        """Write everything that a finished run leaves; the folder must be claimed."""
        from ssge.training.checkpoint import save_model

        history = "".join(json.dumps(line) + "\n" for line in run.history)
        texts = {CONFIG: write_toml(run.record.config), HISTORY: history, **_texts(run.record)}
        for name, text in texts.items():
            storage.staged(self.path, name).write_text(text, "utf-8")
        write_embedding(storage.staged(self.path, EMBEDDING), *run.embedding)
        save_model(storage.staged(self.path, MODEL), run.method, seed=run.record.seed, graph=run.record.name)
        if run.schema is not None:
            run.schema.write(storage.staged(self.path, SCHEMA))
        storage.publish(self.path)

    def write_record(self, record: RunRecord) -> None:
        """Renew the record of a complete run, and the card that is made of it."""
        storage.renew(self.path, _texts(record))

    def read_record(self) -> RunRecord:
        """Read the record of a complete run."""
        return RunRecord.read(self._checked(RECORD))

    def read_embedding(self) -> Embedding:
        """Read ids and vectors."""
        return read_embedding(self._checked(EMBEDDING))

    def read_history(self) -> list[dict[str, float]]:
        """Read the history."""
        return [json.loads(line) for line in self._checked(HISTORY).read_text("utf-8").splitlines()]

    def read_schema(self) -> FeatureSchema | None:
        """Read how the feature columns were made; None for a graph that was not read from tables."""
        if SCHEMA not in storage.checksums(self.path) and not (self.path / SCHEMA).exists():
            return None
        return FeatureSchema.read(self._checked(SCHEMA))

    def read_model(self, device: str = "cpu") -> Method:
        """Build the trained model again."""
        from ssge.training.checkpoint import load_model  # torch

        return load_model(self._checked(MODEL), device)[0]

    def _checked(self, name: str) -> Path:
        """Return the path of a file of a complete run, after a check of its checksum."""
        if not self.path.is_dir():
            raise InputError(f"No such run: {self.path}.")
        if not self.complete:
            if self.unfinished:
                raise InputError(f"The run in {self.path} is not finished; continue with ssge fit ... --resume.")
            old = " of this version" if (self.path / RECORD).exists() else ""
            raise InputError(f"No run{old} in {self.path}: {storage.SUMS} is missing or damaged.")
        storage.verify(self.path, name)
        return self.path / name


def read_vectors(path: Path) -> Embedding:
    """Read the embedding in the folder of a run, or in a file."""
    if not path.exists():
        raise InputError(f"No such run or file: {path}.")
    return RunFolder(path).read_embedding() if path.is_dir() else read_embedding(path)


def _texts(record: RunRecord) -> dict[str, str]:
    from ssge.runs.card import card

    return {RECORD: record.model_dump_json(indent=2) + "\n", CARD: card(record)}
