"""Counter-based random numbers: a draw depends on its key and on its item, not on the order of execution.

Chunk size, thread count, device and rank cannot change a draw, and resuming needs no generator state. A custom
implementation, because torch has no counter-based generator that takes the item as input.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)
_ITEMS = 1 << 17
"""Chunk size, in items, of hashing: a dozen passes over a chunk stay in the cache."""


@dataclass(frozen=True)
class Key:
    """The source of all random draws for one purpose, as in ``jax.random``.

    Keys with different paths are independent: `numpy.random.SeedSequence` mixes seed and path.

    Parameters
    ----------
    seed
        Of the run, 0 or more.
    path
        What the key is for: purpose, epoch, view, and so on. `fold_in` extends it.
    step
        Step within the epoch. Draws that all steps of an epoch share use the key ``at_step(0)``.

    Examples
    --------
    >>> key = Key(0).fold_in("edges", 3)
    >>> key.keep(torch.arange(5), rate=0.5).tolist() == key.keep(torch.arange(5), rate=0.5).tolist()
    True
    """

    seed: int
    path: tuple[int, ...] = ()
    step: int = 0

    def fold_in(self, *data: int | str) -> Key:
        """Return the key of a purpose (text) or a counter (integer) below this one."""
        return Key(self.seed, self.path + tuple(_word(item) for item in data), self.step)

    def at_step(self, step: int) -> Key:
        """Return the same key for another step of the epoch."""
        return Key(self.seed, self.path, step)

    @cached_property
    def value(self) -> int:
        """64 random bits, as a signed integer."""
        state = np.random.SeedSequence(self.seed, spawn_key=(*self.path, self.step)).generate_state(1, np.uint64)
        return int(state.view(np.int64)[0])

    def generator(self, device: torch.device | str = "cpu") -> torch.Generator:
        """Return a generator for sequential draws, such as random walks."""
        return torch.Generator(device).manual_seed(self.value & (2**63 - 1))

    def bits(self, items: Tensor) -> Tensor:
        """Return 64 random bits per item (int64), a function of the key and the item only.

        The finalizer of SplitMix64 (Steele et al., 2014) on ``item xor value``.
        """
        x = items ^ self.value
        for shift, multiplier in zip(_SHIFTS, (*_MULTIPLIERS, None), strict=True):
            x ^= (x >> shift).bitwise_and_((1 << (64 - shift)) - 1)  # a logical shift; torch shifts arithmetically
            if multiplier is not None:
                x *= multiplier - (1 << 64)
        return x

    def keep(self, items: Tensor, rate: float | Tensor) -> Tensor:
        """Return a boolean mask that drops each item with probability ``rate``, independently.

        The rate is one number, or a tensor with one number per item. The bits of an item do not depend on the rate, so
        an item dropped at one rate is dropped at every higher rate.
        """
        if isinstance(rate, Tensor):
            parts = zip(items.split(_ITEMS), rate.split(_ITEMS), strict=True)  # type: ignore[no-untyped-call]
            return torch.cat([(self.bits(part) >= _thresholds(rates)) & (rates < 1) for part, rates in parts])
        threshold = round(rate * 2**64) - 2**63
        if threshold >= 2**63:
            return torch.zeros_like(items, dtype=torch.bool)
        kept = torch.empty_like(items, dtype=torch.bool)
        for part, out in zip(items.split(_ITEMS), kept.split(_ITEMS), strict=True):  # type: ignore[no-untyped-call]
            torch.ge(self.bits(part), threshold, out=out)
        return kept

    def permutation(self, n: int, device: torch.device | str = "cpu") -> Tensor:
        """Return 0..n-1 in random order."""
        return self.bits(torch.arange(n, device=device)).argsort(stable=True)


def _thresholds(rates: Tensor) -> Tensor:
    """Return ``round(rate * 2^64) - 2^63`` of rates below 1, exactly."""
    upper = rates >= 0.5  # these would overflow int64, so 1/2 is subtracted first
    return ((rates.double() - 0.5 * upper) * 2.0**64).round().long() + torch.where(upper, 0, -(2**63))


def _word(item: int | str) -> int:
    if isinstance(item, str):
        return int.from_bytes(hashlib.blake2b(item.encode(), digest_size=4).digest(), "little")
    return item
