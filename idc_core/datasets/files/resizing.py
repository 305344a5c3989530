"""Pictures in memory brought to another size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def resize(pictures: NDArray[np.float32], size: tuple[int, int], fit: str) -> NDArray[np.float32]:
    """Resize pictures bilinearly, smoothed where they become smaller.

    Parameters
    ----------
    pictures : ndarray, float32 (n, C, H, W)
    size : (int, int)
        Rows and columns.
    fit : {"stretch", "crop", "pad"}
        As in `Preparation`.

    Returns
    -------
    ndarray, float32 (n, C, *size)
    """
    from PIL import Image  # only here: most data need none

    rows, columns = pictures.shape[2:]
    scales = (size[0] / rows, size[1] / columns)
    scale = {"stretch": None, "crop": max(scales), "pad": min(scales)}[fit]
    brought = size if scale is None else (max(1, round(rows * scale)), max(1, round(columns * scale)))
    resized = np.zeros((*pictures.shape[:2], *size), np.float32)
    (top, up, height), (left, lead, width) = (_overlap(*pair) for pair in zip(brought, size, strict=True))
    for picture, out in zip(pictures, resized, strict=True):
        for channel, target in zip(picture, out, strict=True):
            whole = np.asarray(Image.fromarray(channel).resize(brought[::-1], Image.Resampling.BILINEAR))
            target[up : up + height, lead : lead + width] = whole[top : top + height, left : left + width]
    return resized


def _overlap(have: int, want: int) -> tuple[int, int, int]:
    """Return where the middle of one side begins in what there is and in what is wanted, and its length."""
    return max(0, (have - want) // 2), max(0, (want - have) // 2), min(have, want)
