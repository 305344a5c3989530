"""Inspect nested random parts of the records, each four times the one before, so that scores can be watched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.errors import SettingError

FIRST, GROWTH = 256, 4
"""Records of the first part, and how many times larger each next one is."""


def take(dataset: Dataset, positions: NDArray[np.int64]) -> Dataset:
    """Return some items of a data set as one of their own; their ids stay those of the split.

    Parameters
    ----------
    dataset : Dataset
    positions : ndarray, int64 (n,)
        Which items, in which order.
    """
    digest = hashlib.sha256(dataset.fingerprint.encode() + np.ascontiguousarray(positions, np.int64).tobytes())
    return replace(
        dataset,
        inputs=dataset.inputs[positions],
        targets=dataset.targets[positions],
        texts=tuple(dataset.texts[at] for at in positions.tolist()) if dataset.texts else (),
        ids=dataset.ids[positions],
        fingerprint=digest.hexdigest()[:16],
    )


def stages(dataset: Dataset, most: int | None = None, *, seed: int = 0) -> Iterator[Dataset]:
    """Yield growing random parts of a data set; each holds the one before it, and the last is what was asked for.

    Parameters
    ----------
    dataset : Dataset
    most : int, optional
        Items of the last part; all unless given. The last part of all items is the data set itself.
    seed : int
        Fixes the order in which items enter.

    Raises
    ------
    SettingError
        If `most` is below 1.
    """
    if most is not None and most < 1:
        raise SettingError(f"The records to read must be at least 1, or None for all, not {most!r}.")
    total = len(dataset) if most is None else min(most, len(dataset))
    order = np.random.default_rng(seed).permutation(len(dataset)).astype(np.int64)
    size = FIRST
    # A part that is almost as large as the last one would show the same twice.
    while size * GROWTH <= total:
        yield take(dataset, order[:size])
        size *= GROWTH
    yield dataset if total == len(dataset) else take(dataset, order[:total])
