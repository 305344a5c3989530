"""Parts of a data set as data sets of their own, for inspections that need not read everything."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset
from idc_core.errors import SettingError


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


def draw(dataset: Dataset, most: int | None, *, seed: int = 0) -> Dataset:
    """Return items of a data set drawn at random; a smaller draw of the same seed is a part of a larger one.

    Parameters
    ----------
    dataset : Dataset
    most : int or None
        Items to draw; None, or more than there are, returns the data set itself.
    seed : int
        Fixes which.

    Raises
    ------
    SettingError
        If `most` is below 1.
    """
    if most is not None and most < 1:
        raise SettingError(f"The records to read must be at least 1, or None for all, not {most!r}.")
    if most is None or most >= len(dataset):
        return dataset
    return take(dataset, np.random.default_rng(seed).permutation(len(dataset))[:most].astype(np.int64))
