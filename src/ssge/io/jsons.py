"""A JSON object of nodes and lists, ``{"node": [3, 17, ...], ...}``, as a table with an id and a bag of ids."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ssge.errors import InputError, one_line, shown
from ssge.io.sources import content

BAG = "features"
"""Name of the column that the lists become."""
MOST_BYTES = 1 << 30
"""JSON takes about ten times its size in memory."""


def read_json(path: Path, limit: int) -> Any:
    """Return the lists of a JSON object, by node, as a pyarrow table."""
    import pyarrow as pa

    entries = _entries(path, min(limit, MOST_BYTES))
    names = [name for name, _ in entries]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{path}: the node {shown(twice)} occurs more than once.")
    for name, items in entries:
        if type(items) is not list or any(type(item) not in (int, str) for item in items):
            raise InputError(f"{path}, node {shown(name)}: a list of ids expected, integers or text.")
    try:
        bags = pa.array([items for _, items in entries], pa.list_(pa.int64()))
    except (pa.ArrowException, OverflowError, TypeError):  # some are text, or too large
        texts = [[_text(path, name, item) for item in items] for name, items in entries]
        bags = pa.array(texts, pa.list_(pa.string()))
    ids = pa.array([_text(path, name, name) for name in names], pa.string())
    return pa.table({"id": ids, BAG: bags})


def _text(path: Path, name: str, item: int | str) -> str:
    """Return an id as text; half of a surrogate pair, which JSON can write, is none."""
    text = str(item)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InputError(f"{path}, node {shown(name)}: its ids are no text: {shown(text)}.")
    return text


def _entries(path: Path, limit: int) -> list[tuple[str, Any]]:
    """Return the members of the object in a file; nested objects come as lists of pairs too."""
    try:
        found = json.loads(content(path, limit), object_pairs_hook=_Members)
    except RecursionError:
        raise InputError(f"{path} is nested too deeply; a JSON object of lists is expected.") from None
    except ValueError as error:  # no JSON, no UTF-8, or numbers of thousands of digits
        raise InputError(f"{path} cannot be read as JSON: {one_line(error)}") from None
    if not isinstance(found, _Members):
        raise InputError(f"{path} must hold one JSON object of lists, {{node: [ids]}}; turn records into a table.")
    if not found:
        raise InputError(f"{path} has no nodes.")
    return found


class _Members(list):  # type: ignore[type-arg]
    """The members of a JSON object, duplicates kept; not to be taken for a JSON array."""
