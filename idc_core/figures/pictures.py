"""Inputs and their relevance as pictures: pixelated, enlarged by a whole number, never blurred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.figures.palette import relevance_colours

SMALLEST_SIDE = 84
"""Pixels that a picture in a gallery has at least."""

GAP = 6
"""Pixels between a picture and its heatmap."""


def pictures(inputs: NDArray[np.floating], smallest: int = SMALLEST_SIDE) -> NDArray[np.uint8]:
    """Turn image inputs into RGB pictures, enlarged by the smallest whole number that reaches a width.

    Parameters
    ----------
    inputs : ndarray of float (n, C, H, W)
        Images in 0..1 with C = 1 (grey) or 3 (RGB).
    smallest : int
        Width in pixels to reach at least.

    Returns
    -------
    ndarray of uint8 (n, H * f, W * f, 3)

    Raises
    ------
    SettingError
        If `inputs` are no images.
    """
    if inputs.ndim != 4 or inputs.shape[1] not in (1, 3):
        raise SettingError(f"Pictures need inputs of shape (n, 1 or 3, height, width); got {inputs.shape}.")
    pixels = (np.clip(inputs, 0.0, 1.0) * 255.0).round().astype(np.uint8).transpose(0, 2, 3, 1)
    return enlarge(np.broadcast_to(pixels, (*pixels.shape[:3], 3)), smallest)


def enlarge(images: NDArray[np.uint8], smallest: int = SMALLEST_SIDE) -> NDArray[np.uint8]:
    """Repeat pixels by the smallest whole number that makes images at least `smallest` pixels wide.

    Parameters
    ----------
    images : ndarray of uint8 (n, H, W, 3)
    smallest : int
        Width in pixels to reach at least.

    Returns
    -------
    ndarray of uint8 (n, H * f, W * f, 3)
    """
    factor = max(1, -(-smallest // images.shape[2]))
    return images.repeat(factor, axis=1).repeat(factor, axis=2)


def heatmaps(
    inputs: NDArray[np.floating], relevance: NDArray[np.floating], smallest: int = SMALLEST_SIDE
) -> NDArray[np.uint8]:
    """Put each image beside its relevance.

    Parameters
    ----------
    inputs : ndarray of float (n, C, H, W)
        Images in 0..1.
    relevance : ndarray of float (n, C, H, W)
        Relevance of every input value; summed over the channels.
    smallest : int
        Width in pixels that one image reaches at least.

    Returns
    -------
    ndarray of uint8 (n, H * f, 2 * W * f + GAP, 4)
        RGBA: the image on the left, its relevance on the right after a transparent gap, red for, blue against,
        white for zero. Every image has its own symmetric scale, so that a faint and a strong decision can both
        be read.

    Raises
    ------
    SettingError
        If the shapes do not agree.
    """
    if inputs.shape != relevance.shape:
        raise SettingError(f"Expected relevance of shape {inputs.shape}, like the inputs; got {relevance.shape}.")
    left = pictures(inputs, smallest)
    per_pixel = relevance.sum(axis=1)
    limits = np.abs(per_pixel).max(axis=(1, 2))
    coloured = np.stack(
        [relevance_colours(one, limit if limit > 0 else 1.0) for one, limit in zip(per_pixel, limits, strict=True)]
    )
    right = enlarge(coloured, smallest)
    shown = np.zeros((*left.shape[:2], 2 * left.shape[2] + GAP, 4), dtype=np.uint8)
    for place, part in ((slice(None, left.shape[2]), left), (slice(left.shape[2] + GAP, None), right)):
        shown[:, :, place, :3] = part
        shown[:, :, place, 3] = 255
    return shown
