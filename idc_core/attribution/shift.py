"""How relevance moved between an input and a changed version of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Floats
from idc_core.base.statistics import spearman
from idc_core.errors import SettingError


@dataclass(frozen=True, eq=False)
class Shift:
    """How far two heatmaps of each input differ."""

    cosine: Floats
    """(n,), cosine of the two maps: 1 for the same directions, 0 for unrelated ones; NaN where one is zero
    throughout."""
    rank: Floats
    """(n,), Spearman's correlation of the two orders of the pixels; NaN where one map is the same throughout."""
    before: Floats
    """(n, 2), as `after`: row and column of the centre of the positive relevance; NaN where there is none."""
    after: Floats

    @property
    def distance(self) -> Floats:
        """How far the centre moved, in pixels, float64 (n,)."""
        moved: Floats = np.hypot(*(self.after - self.before).T)
        return moved


def shift(before: NDArray[np.floating], after: NDArray[np.floating]) -> Shift:
    """Compare the relevance of inputs, float (n, C, H, W), before and after a change, summed over the channels."""
    if before.shape != after.shape or before.ndim != 4:
        raise SettingError(
            f"Expected the relevance of the same pictures twice, (n, channels, height, width); got {before.shape} and "
            f"{after.shape}."
        )
    first, second = (values.sum(axis=1, dtype=np.float64) for values in (before, after))
    flat = [values.reshape(len(values), -1) for values in (first, second)]
    norms = np.sqrt(np.square(flat[0]).sum(1) * np.square(flat[1]).sum(1))
    cosine = np.full(len(first), np.nan)
    np.divide((flat[0] * flat[1]).sum(1), norms, out=cosine, where=norms > 0)
    rank = np.array([spearman(np.stack(pair))[0, 1] for pair in zip(*flat, strict=True)], np.float64)
    return Shift(cosine.clip(-1.0, 1.0), rank, _centres(first), _centres(second))


def _centres(values: Floats) -> Floats:
    """Return the mean place of the positive relevance, (n, 2)."""
    positive = values.clip(0.0)
    weight = positive.sum((1, 2))
    rows, columns = np.arange(values.shape[1]), np.arange(values.shape[2])
    places = np.stack([positive.sum(2) @ rows, positive.sum(1) @ columns], 1)
    centres = np.full((len(values), 2), np.nan)
    np.divide(places, weight[:, None], out=centres, where=weight[:, None] > 0)
    return centres
