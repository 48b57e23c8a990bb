"""Objectives: formulas on representations, as pure functions."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Losses(NamedTuple):
    """The loss to minimize, and its named terms (detached) for logs and plots."""

    total: Tensor
    terms: dict[str, Tensor]
