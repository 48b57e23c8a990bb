"""Amounts of memory, as people write them."""

from __future__ import annotations

import re

from ssge.errors import InputError, shown

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def bytes_of(text: str | int, option: str = "memory") -> int:
    """Return a number of bytes, from a number or from text such as ``2GB``, ``1.5GiB`` or ``800 MB``.

    Examples
    --------
    >>> bytes_of("2GB"), bytes_of("1.5GiB")
    (2000000000, 1610612736)
    """
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*([KMGT]?I?)B?\s*", str(text).upper())
    if found is None or found[2] not in _UNITS or float(found[1]) <= 0:
        raise InputError(f"{option} must be an amount such as 2GB or 500MiB; received {shown(text)}.")
    return round(float(found[1]) * _UNITS[found[2]])


def in_words(count: float) -> str:
    """Return a number of bytes as text."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
