"""Catalogs of named things: look-up ignores case, dash and underscore, and a miss names the nearest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from ssge.errors import UnknownNameError

T = TypeVar("T")


def plain(name: str) -> str:
    """Reduce a name to what look-up compares: ``CCA-SSG``, ``cca_ssg`` and ``CcaSsg`` are one."""
    return name.casefold().replace("-", "").replace("_", "")


class Registry(Generic[T]):
    """A catalog of one kind of thing, in the order of registration.

    Examples
    --------
    >>> animals: Registry[int] = Registry("animal")
    >>> animals.add("red_panda", 1)
    >>> animals["Red-Panda"]
    1
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}
        self._names: dict[str, str] = {}

    def add(self, name: str, item: T) -> None:
        """Enter ``item``; two things may not share a name."""
        if plain(name) in self._names:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._names[plain(name)] = name
        self._items[name] = item

    def canonical(self, name: str) -> str:
        """Return the registered spelling of ``name``."""
        try:
            return self._names[plain(name)]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._items) from None

    def __getitem__(self, name: str) -> T:
        return self._items[self.canonical(name)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and plain(name) in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
