"""The folder of a run: names and formats of its files live here and nowhere else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ssge.errors import InputError
from ssge.files import atomic
from ssge.io.embeddings import Embedding, read_embedding, write_embedding
from ssge.records import RunRecord
from ssge.runs.recipes import write_toml
from ssge.schema import FeatureSchema

if TYPE_CHECKING:
    from ssge.methods import Method
    from ssge.runs.fit import Run


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def record(self) -> Path:
        """All facts and scores, JSON; written last, so its presence means the run is complete."""
        return self.path / "record.json"

    @property
    def history(self) -> Path:
        """One JSON line per epoch."""
        return self.path / "history.jsonl"

    @property
    def config(self) -> Path:
        """The resolved settings, TOML; ``--config`` takes the file."""
        return self.path / "config.toml"

    @property
    def model(self) -> Path:
        """Weights and all that is needed to build the model again."""
        return self.path / "model.safetensors"

    @property
    def embedding(self) -> Path:
        """Columns id, e000, e001, ..."""
        return self.path / "embedding.parquet"

    @property
    def schema(self) -> Path:
        """How the feature columns were made, JSON; only for graphs that were read from tables."""
        return self.path / "features.json"

    @property
    def card(self) -> Path:
        """Summary for people, Markdown."""
        return self.path / "README.md"

    @property
    def checkpoint(self) -> Path:
        """State of an unfinished training."""
        return self.path / "checkpoint.safetensors"

    @property
    def unfinished(self) -> bool:
        """Whether there is a run that can be resumed."""
        return self.config.exists() and not self.record.exists()

    def claim(self, force: bool = False, resume: bool = False) -> None:
        """Make the folder ready for a run, and make sure that no other run is lost."""
        files = [
            self.record, self.history, self.config, self.model, self.embedding, self.schema, self.checkpoint, self.card
        ]  # fmt: skip
        found = [file for file in files if file.exists()]
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is not a folder.")
        if force:
            for file in found:
                file.unlink()
        elif resume and self.record.exists():
            raise InputError(f"The run in {self.path} is complete; nothing to resume.")
        elif found and not (resume and self.unfinished):
            go_on = " or --resume it," if self.unfinished else ""
            raise InputError(
                f"{self.path} holds another run ({found[0].name}); choose another folder,{go_on} "
                "or --force to replace it."
            )
        self.path.mkdir(parents=True, exist_ok=True)

    def write_config(self, settings: dict[str, Any]) -> None:
        """Write the settings."""
        with atomic(self.config) as temporary:
            temporary.write_text(write_toml(settings), "utf-8")

    def open_history(self) -> HistoryFile:
        """Return an observer that appends each epoch to the history."""
        return HistoryFile(self.history)

    def write(self, run: Run) -> None:
        """Write everything a finished run leaves."""
        from ssge.training.checkpoint import save_model

        self.write_config(run.record.config)
        write_embedding(self.embedding, *run.embedding)
        save_model(self.model, run.method, seed=run.record.seed, graph=run.record.name)
        if run.schema is not None:
            run.schema.write(self.schema)
        with atomic(self.history) as temporary:
            temporary.write_text("".join(json.dumps(line) + "\n" for line in run.history), "utf-8")
        self.write_record(run.record)
        self.checkpoint.unlink(missing_ok=True)

    def write_record(self, record: RunRecord) -> None:
        """Write the record, and the card that is made of it."""
        from ssge.runs.card import card

        with atomic(self.card) as temporary:
            temporary.write_text(card(record), "utf-8")
        record.write(self.record)

    def read_record(self) -> RunRecord:
        """Read the record of a complete run."""
        if not self.path.is_dir():
            raise InputError(f"No such run: {self.path}.")
        self._refuse_unfinished()
        return RunRecord.read(self.record)

    def read_embedding(self) -> Embedding:
        """Read ids and vectors."""
        self._refuse_unfinished()
        return read_embedding(self.embedding)

    def _refuse_unfinished(self) -> None:
        if self.unfinished:
            raise InputError(f"The run in {self.path} is not finished; continue with ssge fit ... --resume.")

    def read_history(self) -> list[dict[str, float]]:
        """Read the history; a damaged line is named."""
        if not self.history.is_file():
            raise InputError(f"No such file: {self.history}.")
        history = []
        for number, line in enumerate(self.history.read_text("utf-8", "replace").splitlines(), 1):
            try:
                epoch = json.loads(line)
            except ValueError:
                epoch = None
            if not isinstance(epoch, dict):
                raise InputError(f"{self.history}, line {number}: an epoch as JSON expected; the file is damaged.")
            history.append(epoch)
        return history

    def read_schema(self) -> FeatureSchema | None:
        """Read how the feature columns were made; None for a graph that was not read from tables."""
        return FeatureSchema.read(self.schema)

    def read_model(self, device: str = "cpu") -> Method:
        """Build the trained model again."""
        from ssge.training.checkpoint import load_model  # torch

        return load_model(self.model, device)[0]


class HistoryFile:
    """An observer that appends each epoch to a file as a JSON line, so that a killed run leaves its history."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __call__(self, line: dict[str, Any]) -> None:
        """Append one epoch."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
