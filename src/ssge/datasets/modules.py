"""Python source files as text and as imports: parsed, never imported or run."""

from __future__ import annotations

import ast
import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

LEFT_OUT = frozenset(
    {"tests", "test", "conftest", "examples", "benchmarks"}
    | {"externals", "extern", "_vendor", "vendor", "vendored", "array_api_compat", "array_api_extra"}
)
"""Folders and files that hold tests, examples or other people's code; so does any ``test_*.py``."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_IMPORT_LINE = re.compile(r"\s*(?:>>>|\.\.\.)?\s*(?:from\s+[\w.]+\s+)?import\s")
_SHORTEST = 3


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
        base = resolve_name(relative, module if is_package else module.rpartition(".")[0])
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
    counts: Counter[str] = Counter()
    for word, count in Counter(_WORD.findall(kept)).items():
        if len(word) >= _SHORTEST:
            counts[word.lower()] += count
    return counts


def resolve(wanted: Import, modules: Mapping[str, Module]) -> str | None:
    """Find the module that an import leads to, or None if it is not among ``modules``.

    ``from package import name`` leads to the submodule of that name; else to the module from which the
    package's own ``__init__`` takes the name; else to the package.
    """
    exports: dict[str, Import]
    for _ in range(8):  # re-exports may go in a circle
        if wanted.name is None:
            break
        if (submodule := f"{wanted.base}.{wanted.name}") in modules:
            return submodule
        package = modules.get(wanted.base)
        if package is None or not package.is_package:
            break
        exports = {item.alias: item for item in package.imports if item.alias is not None}
        further = exports.get(wanted.name)
        if further is None or further.base not in modules:
            break
        wanted = further
    return wanted.base if wanted.base in modules else None
