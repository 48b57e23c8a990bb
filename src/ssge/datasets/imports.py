"""A real graph without a download: the modules of installed packages and their imports.

Nodes are the modules of eight scientific packages, classes the second-level packages they belong to. Files
are parsed and never imported, so that nothing of them runs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import keyword
import logging
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.datasets.facts import Facts
from ssge.datasets.modules import Module, read_package, resolve
from ssge.datasets.store import cache_folder
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.graph_folder import StoredGraph
from ssge.io.graph_writer import write_graph
from ssge.records import version_of

log = logging.getLogger(__name__)

PACKAGES = ("numpy", "scipy", "sklearn", "networkx", "sympy", "matplotlib", "torch_geometric", "joblib")
"""Sympy comes with torch, joblib with scikit-learn."""

WORDS = 2_000
MOST_MODULES = 0.25
"""Words in more than this share of the modules are left out."""
SMALLEST_CLASS = 20
"""Second-level packages with fewer modules are merged with the modules directly in their package."""

_FORMAT = 3


def read(facts: Facts, _: Mapping[str, Path]) -> Graph:
    """Build the import graph, or read it from the cache folder if these versions have been read before."""
    folders = _installed()
    versions = {name: version_of("scikit-learn" if name == "sklearn" else name) for name in PACKAGES if name in folders}
    key = hashlib.sha256(repr((_FORMAT, sorted(versions.items()))).encode()).hexdigest()[:16]
    path = cache_folder() / f"imports-{key}"
    graph = _cached(path)
    if graph is None:
        log.info("imports: reading the source of %s, which takes some seconds once.", ", ".join(folders))
        modules: dict[str, Module] = {}
        for package, folder in folders.items():
            modules.update(read_package(package, folder))
        graph = build(modules, facts.name)
        try:
            write_graph(graph, path, force=True)
        except (OSError, InputError) as error:
            log.warning("imports: not kept for the next time, %s cannot be written (%s).", path, error)
    log.info("imports: %s.", graph)
    return graph


def _cached(path: Path) -> Graph | None:
    if not path.exists():
        return None
    try:
        return StoredGraph.open(path).load()
    except InputError as error:
        log.warning("imports: %s cannot be read and is built again (%s).", path, error)
        shutil.rmtree(path, ignore_errors=True)
        return None


def build(modules: Mapping[str, Module], name: str = "imports") -> Graph:
    """Turn modules into a graph.

    Features are tf-idf of the words, ``(1 + log count) * (1 + log((1 + n) / (1 + modules with the word)))``, in rows
    of length one. The vocabulary is the 2,000 words that occur in most modules but in no more than a quarter of them.
    Words of import statements and names of the packages are not counted, since they would give the class away.
    """
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import TfidfTransformer

    classes = _classes(modules)
    names = list(classes)
    position = {module: i for i, module in enumerate(names)}
    pairs = {
        (position[module], position[target])
        for module in names
        for item in modules[module].imports
        if (target := resolve(item, modules)) in position and target != module
    }
    vectorizer = DictVectorizer()
    counts = vectorizer.fit_transform([modules[module].words for module in names])
    chosen = _vocabulary(vectorizer.feature_names_, counts)
    matrix = sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts[:, chosen]), dtype=np.float32)
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    return Graph.of(
        adjacency=sp.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(len(names), len(names))),
        features=matrix,
        labels=list(classes.values()),
        node_ids=names,
        name=name,
    )


def _classes(modules: Mapping[str, Module]) -> dict[str, str]:
    """Give each module its class, in the order of names; modules of too small a class are left out."""

    def second_level(name: str) -> str:
        top, *rest = name.split(".")
        inner = ".".join([top, *rest[:1]])
        return inner if inner in modules and modules[inner].is_package else top

    classes = {name: second_level(name) for name in sorted(modules)}
    sizes = Counter(classes.values())
    classes = {n: c if sizes[c] >= SMALLEST_CLASS else c.split(".")[0] for n, c in classes.items()}
    sizes = Counter(classes.values())
    return {name: c for name, c in classes.items() if sizes[c] >= SMALLEST_CLASS}


def _vocabulary(words: Sequence[str], counts: sp.csr_matrix) -> NDArray[np.int64]:
    """Return the columns of the `WORDS` words that occur in most modules, in ascending order."""
    left_out = {word.lower() for word in keyword.kwlist}.union(*(package.split("_") for package in PACKAGES))
    in_modules = np.bincount(counts.indices, minlength=len(words))
    kept = (in_modules <= MOST_MODULES * counts.shape[0]) & ~np.isin(words, list(left_out))
    often = np.argsort(-in_modules, kind="stable")  # words are sorted, so ties are too
    return np.sort(often[kept[often]][:WORDS])


def _installed() -> dict[str, Path]:
    folders = {}
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)  # of a top-level name: looks for it, imports nothing
        if spec is None or not spec.submodule_search_locations:
            log.info("imports: %s is not installed and is left out.", package)
        else:
            folders[package] = Path(spec.submodule_search_locations[0])
    if len(folders) < 2:
        raise InputError(
            f"imports needs two or more of {', '.join(PACKAGES)}; installed: {', '.join(folders) or 'none'}."
        )
    return folders
