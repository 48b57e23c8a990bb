"""The encoding of a column that is seen piece by piece; `ssge.io.encoding.fit` does the same with a whole column."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.io.columns import MOST_NAMED_LEVELS, Raw
from ssge.schema import Column


class ColumnFit:
    """Counts, levels, means and deviations of a column, merged from its pieces.

    Parameters
    ----------
    head
        The first rows, for name, kind and width.
    missing, scale
        As in `ssge.io.options.ReadOptions`.
    """

    def __init__(self, head: Raw, missing: Literal["error", "impute"], scale: Literal["none", "standard"]) -> None:
        self.head, self.missing, self.scale = head, missing, scale
        self.rows = self.absent = 0
        self.levels: set[str] = set()
        width = 0 if head.kind == "category" else int(head.values.shape[1])
        self.count, self.mean, self.square, self.peak = (np.zeros(width) for _ in range(4))

    @property
    def needed(self) -> bool:
        """Whether the encoding depends on more than the kind of the column."""
        return self.head.kind == "category" or self.missing == "impute" or self._scaled

    @property
    def _scaled(self) -> bool:
        return self.scale == "standard" and self.head.kind not in ("boolean", "category")

    def add(self, raw: Raw) -> None:
        """Take in some rows."""
        self.rows += raw.values.shape[0]
        self.absent += int(raw.missing().sum())
        if raw.kind == "category":
            self.levels.update(raw.levels)
            if len(self.levels) > MOST_NAMED_LEVELS:
                raise InputError(f"{raw.at(0)}: {MOST_NAMED_LEVELS:,} levels at most; leave it out with ignore.")
            return
        values: NDArray[Any] = raw.values
        known = ~np.isnan(values)
        count = known.sum(axis=0)
        filled = np.where(known, values, 0.0)
        mean = filled.sum(axis=0) / np.maximum(count, 1)
        square = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0)
        total = np.maximum(self.count + count, 1)
        shift = mean - self.mean
        self.square += square + shift**2 * self.count * count / total
        self.mean += shift * count / total
        self.count += count
        self.peak = np.maximum(self.peak, np.abs(filled).max(axis=0, initial=0))

    def column(self) -> Column:
        """Return the encoding."""
        fixed: dict[str, Any] = {"name": self.head.name, "kind": self.head.kind, "note": self.head.note}
        fixed |= {"indicator": self.absent > 0, "missing": self.absent / max(self.rows, 1)}
        impute = self.missing == "impute"
        if self.head.kind == "category":
            return Column(**fixed, levels=tuple(sorted(self.levels)), fill=(0.0,) if impute else ())
        means = tuple(self.mean.tolist()) if impute or self._scaled else ()
        deviations: tuple[float, ...] = ()
        if self._scaled:
            spread = np.sqrt(self.square / np.maximum(self.count, 1))
            varies = spread > max(4, self.rows) * np.finfo(np.float64).eps * self.peak
            deviations = tuple(np.where(varies, spread, 1.0).tolist())
        return Column(
            **fixed,
            width=len(self.mean),
            fill=means if impute else (),
            means=means if self._scaled else (),
            deviations=deviations,
        )
