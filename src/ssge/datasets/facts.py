"""What is known of every dataset before it is read; the facts themselves are in ``catalog.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from ssge.registry import Registry


@dataclass(frozen=True)
class File:
    """One raw file of a dataset.

    Parameters
    ----------
    path
        Its path in the data folder.
    url
        Address to download it from, https only.
    sha256
        Its checksum, or None where none is on record; the note of the dataset then gives the reason.
    member
        Its path inside the zip archive at ``url``, or None if ``url`` leads to the file itself.
    """

    path: str
    url: str
    sha256: str | None = None
    member: str | None = None

    @property
    def name(self) -> str:
        """The last part of the path; no two files of a dataset share it."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Facts:
    """What is known of a dataset before it is read.

    Sizes are what the loader gives: edges are directed, after symmetrizing, without self-loops. They are None
    where they depend on options or on installed versions. ``split`` is what the dataset is evaluated on:
    its ``public`` split, the 20 splits of WikiCS, the split by year of OGB, or ``random`` ones, which
    `random_splits` makes. The last two fields are what the authors' released code does, which the paper does not
    say: the weight decay of its probe, and whether it uses the public splits.
    """

    name: str
    title: str
    description: str
    source: str
    reference: str
    license: str
    format: Literal["planetoid", "npz", "wikics", "ogb", "imports", "digits", "karate", "sbm"]
    num_nodes: int | None = None
    num_edges: int | None = None
    num_features: int | None = None
    num_classes: int | None = None
    split: Literal["public", "random", "wikics20", "ogb"] = "random"
    class_names: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    note: str = ""
    probe_weight_decay: float = 1e-4
    public_in_released_code: bool = False


DATASETS: Registry[Facts] = Registry("dataset")


def facts_of(source: str) -> Facts | None:
    """Return the facts of a dataset, given by name with or without options; None for a path or an unknown name."""
    name = source.partition(":")[0].strip()
    if name in DATASETS:
        return DATASETS[name]
    return None


def _facts(name: str, entry: dict[str, Any]) -> Facts:
    """Build the facts of one table of the catalog; its files are in a folder at ``url``, or of the zip at ``url``."""
    folder, url, archive = (entry.pop(key, None) for key in ("folder", "url", "archive"))
    files = []
    for file, checksum in entry.pop("files", {}).items():
        at, member = (url, f"{archive}/{file}") if archive else (f"{url}/{file}", None)
        files.append(File(f"{folder}/{file}", at, checksum or None, member))
    return Facts(name=name, files=tuple(files), class_names=tuple(entry.pop("class_names", ())), **entry)


_catalog = tomllib.loads(resources.files("ssge.datasets").joinpath("catalog.toml").read_text("utf-8"))
for _name, _entry in _catalog.items():
    DATASETS.add(_name, _facts(_name, _entry))
