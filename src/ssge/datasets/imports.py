"""A real graph without a download: the modules of installed packages and their imports.

Nodes are the modules of eight scientific packages, classes the second-level packages they belong to. Files
are parsed and never imported, so that nothing of them runs.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import keyword
import logging
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.datasets.facts import Facts
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

LEFT_OUT = frozenset(
    {"tests", "test", "conftest", "examples", "benchmarks"}
    | {"externals", "extern", "_vendor", "vendor", "vendored", "array_api_compat", "array_api_extra"}
)
"""Folders and files that hold tests, examples or other people's code; so does any ``test_*.py``."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IMPORT_LINE = re.compile(r"\s*(?:>>>|\.\.\.)?\s*(?:from\s+[\w.]+\s+)?import\s")
_SHORTEST = 3
_FORMAT = 3


class Import(NamedTuple):
    """One imported name: ``import base``, or ``from base import name`` seen by the importer as ``alias``."""

    base: str
    name: str | None = None
    alias: str | None = None


class Module(NamedTuple):
    """The imports of one file, and its words with their counts."""

    is_package: bool
    imports: tuple[Import, ...]
    words: Counter[str]


def read(facts: Facts, _: Mapping[str, Path]) -> Graph:
    """Build the import graph, or read it from the cache folder if these versions have been read before."""
    folders = _installed()
    versions = {name: version_of("scikit-learn" if name == "sklearn" else name) for name in PACKAGES if name in folders}
    key = hashlib.sha256(repr((_FORMAT, sorted(versions.items()))).encode()).hexdigest()[:16]
    path = cache_folder() / f"imports-{key}"
    if path.exists():
        try:
            return StoredGraph.open(path).load()
        except InputError as error:
            log.warning("imports: %s cannot be read and is built again (%s).", path, error)
            shutil.rmtree(path, ignore_errors=True)
    log.info("imports: reading the source of %s, which takes some seconds once.", ", ".join(folders))
    packages = (read_package(package, folder) for package, folder in folders.items())
    graph = build(dict(item for modules in packages for item in modules.items()), facts.name)
    try:
        write_graph(graph, path, force=True)
    except (OSError, InputError) as error:
        log.warning("imports: not kept for the next time, %s cannot be written (%s).", path, error)
    return graph


def build(modules: Mapping[str, Module], name: str = "imports") -> Graph:
    """Turn modules into a graph.

    Features are tf-idf of the words, ``(1 + log count) * (1 + log((1 + n) / (1 + modules with the word)))``, in rows
    of length one. The vocabulary is the 2,000 words that occur in most modules but in no more than a quarter of them.
    Words of import statements and names of the packages are not counted, since they would give the class away.
    """
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.feature_extraction.text import TfidfTransformer

    classes = _classes(modules)
    pairs = {
        (module, target)
        for module in classes
        for item in modules[module].imports
        if (target := resolve(item, modules)) in classes and target != module
    }
    vectorizer = DictVectorizer()
    counts = vectorizer.fit_transform([modules[module].words for module in classes])
    chosen = _vocabulary(vectorizer.feature_names_, counts)
    matrix = sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts[:, chosen]), dtype=np.float32)
    labels, ids = list(classes.values()), list(classes)
    return Graph.of(edges=sorted(pairs), features=matrix, labels=labels, node_ids=ids, name=name)


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


def read_package(package: str, folder: Path) -> dict[str, Module]:
    """Read every module of a package that is its own code, by dotted name."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if not LEFT_OUT.isdisjoint(parts) or parts[-1].startswith("test_"):
            continue
        is_package = parts[-1] == "__init__"
        name = ".".join((package, *(parts[:-1] if is_package else parts)))
        try:
            modules[name] = read_module(name, path.read_bytes(), is_package)
        except (OSError, SyntaxError, ValueError) as error:
            log.info("imports: %s left out, it cannot be read (%s).", path, error)
    return modules


def read_module(name: str, source: bytes, is_package: bool) -> Module:
    """Read one file; raise SyntaxError or ValueError if it is not Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's invalid escapes are not the user's concern
        tree = ast.parse(source)
    statements = [s for s in ast.walk(tree) if isinstance(s, ast.Import | ast.ImportFrom)]
    statements.sort(key=lambda statement: statement.lineno)  # of two imports of a name the later one counts
    imports = [item for statement in statements for item in _imports(statement, name, is_package)]
    return Module(is_package, tuple(imports), _words(source.decode("utf-8", "replace"), statements))


def _imports(statement: ast.Import | ast.ImportFrom, module: str, is_package: bool) -> Iterator[Import]:
    if isinstance(statement, ast.Import):
        yield from (Import(alias.name) for alias in statement.names)
        return
    relative = "." * statement.level + (statement.module or "")
    try:
        base = importlib.util.resolve_name(relative, module if is_package else module.rpartition(".")[0])
    except ImportError:  # above the package
        return
    for alias in statement.names:
        yield Import(base, alias.name, alias.asname or alias.name)


def _words(text: str, statements: Iterable[ast.Import | ast.ImportFrom]) -> Counter[str]:
    """Count the words of identifiers (split at case and underscore), docstrings, comments and messages.

    Import statements are blanked, those of doctests as well: they spell out the package a module belongs to.
    """
    lines = text.splitlines(keepends=True)
    for statement in statements:
        for line in range(statement.lineno - 1, min(statement.end_lineno or statement.lineno, len(lines))):
            lines[line] = ""
    kept = "".join(line for line in lines if "import" not in line or not _IMPORT_LINE.match(line))
    return Counter(word.lower() for word in _WORD.findall(kept) if len(word) >= _SHORTEST)


def resolve(wanted: Import, modules: Mapping[str, Module]) -> str | None:
    """Find the module that an import leads to, or None if it is not among ``modules``.

    ``from package import name`` leads to the submodule of that name; else to the module from which the
    package's own ``__init__`` takes the name; else to the package.
    """
    for _ in range(8):  # re-exports may go in a circle
        if wanted.name is None:
            break
        if (submodule := f"{wanted.base}.{wanted.name}") in modules:
            return submodule
        package = modules.get(wanted.base)
        if package is None or not package.is_package:
            break
        further = next((item for item in reversed(package.imports) if item.alias == wanted.name), None)
        if further is None or further.base not in modules:
            break
        wanted = further
    return wanted.base if wanted.base in modules else None
