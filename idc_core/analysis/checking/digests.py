"""Which inputs are identical: a digest of each, read a few at a time, in no more memory than these."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from idc_core.base.progress import Progress, report
from idc_core.datasets import Dataset

READ = 640 * 2**20
"""Bytes of one split that are read at most: all of CIFAR-10; of larger splits inputs drawn at random."""

_ROWS = 256
"""Inputs read at a time."""


@dataclass(frozen=True)
class Digests:
    """Digests of the inputs of one split.

    Attributes
    ----------
    first : dict of bytes to int
        Position of the first input with each digest.
    repeated : tuple of (int, int)
        Later inputs that are identical to one before: its position, and that of the first.
    read : int
        How many inputs were compared.
    """

    first: dict[bytes, int]
    repeated: tuple[tuple[int, int], ...]
    read: int


def digests(data: Dataset, on_progress: Progress | None = None) -> Digests:
    """Return the digests of a split; its inputs are asked for by slices, or by index arrays where not all are read."""
    row = data.inputs[:1].nbytes
    most = max(_ROWS, READ // max(1, row))
    chosen = None if most >= len(data) else np.sort(np.random.default_rng(0).permutation(len(data))[:most])
    count = len(data) if chosen is None else most
    first: dict[bytes, int] = {}
    repeated = []
    for begin in range(0, count, _ROWS):
        report(on_progress, begin, count, f"comparing {'training inputs' if data.split == 'train' else 'tests'}")
        end = min(begin + _ROWS, count)
        positions = np.arange(begin, end) if chosen is None else chosen[begin:end]
        rows = data.inputs[begin:end] if chosen is None else data.inputs[positions]
        for position, row in zip(positions.tolist(), np.ascontiguousarray(rows), strict=True):
            digest = hashlib.blake2b(row.data, digest_size=16).digest()
            if (before := first.setdefault(digest, position)) != position:
                repeated.append((position, before))
    return Digests(first, tuple(repeated), count)
