"""The folder of a run: its files, and how to read them without more than each needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ssge.errors import InputError
from ssge.io.embeddings import Embedding, read_embedding
from ssge.io.history import read_history
from ssge.records import RunRecord

if TYPE_CHECKING:
    from ssge.methods import Method
    from ssge.schema import FeatureSchema
    from ssge.training.trainer import Epoch


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
        """The resolved settings, TOML; can be given back with ``--config``."""
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
        """How the feature columns were made of the user's tables, JSON; only for graphs that were read from them."""
        return self.path / "features.json"

    @property
    def card(self) -> Path:
        """What a person should know of the model, Markdown."""
        return self.path / "README.md"

    @property
    def checkpoint(self) -> Path:
        """State of a training that is not finished; gone when it is."""
        return self.path / "checkpoint.safetensors"

    @property
    def estimator(self) -> Path:
        """What `ssge.SSGE.save` writes beside model and embedding; no file of a run."""
        return self.path / "estimator.json"

    @property
    def unfinished(self) -> bool:
        """Whether there is a run that can be resumed."""
        return self.config.exists() and not self.record.exists() and not self.estimator.exists()

    def claim(self, force: bool, resume: bool) -> None:
        """Make sure that nothing of another run, nor of an estimator, is lost."""
        files = [
            self.record, self.estimator, self.history, self.config, self.model, self.embedding, self.schema,
            self.checkpoint, self.card,
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
            raise InputError(f"The run in {self.path} is not finished; go on with ssge fit ... --resume.")

    def read_history(self) -> list[Epoch]:
        """Read the history."""
        return read_history(self.history)

    def read_schema(self) -> FeatureSchema | None:
        """Read how the feature columns were made; None for a dataset, whose features need no such thing."""
        from ssge.schema import FeatureSchema

        return FeatureSchema.read(self.schema)

    def read_model(self, device: str = "cpu") -> Method:
        """Build the trained model again."""
        from ssge.training.checkpoint import load_model  # torch

        return load_model(self.model, device)[0]
