"""Corruptions by blur: a lens out of focus, frosted glass, a moving camera, a lens that zooms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from idc_core.perturbation.corruptions.registry import Bytes, Levels, corruption


@corruption("defocus-blur", "Defocus blur", "A lens out of focus: every point becomes a disc.")
def _defocus(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    from idc_core.base.scipy_parts import ndimage

    radius, softness = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))[severity - 1]
    disc = _disc(radius, softness).astype(np.float64)
    values = picture / 255.0
    channels = [ndimage.correlate(values[:, :, one], disc, mode="mirror") for one in range(picture.shape[2])]
    blurred: Levels = np.clip(np.stack(channels, 2), 0, 1) * 255
    return blurred


def _disc(radius: int, softness: float) -> NDArray[np.float32]:
    """Return a disc of sum 1 whose edge is smoothed over 3 pixels, of large ones 5."""
    from idc_core.base.scipy_parts import ndimage

    reach, half = max(8, radius), 1 if radius <= 8 else 2
    places = np.arange(-reach, reach + 1)
    disc = (places[:, None] ** 2 + places**2 <= radius**2).astype(np.float32)
    bell = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * softness**2))
    bell /= bell.sum()
    disc /= disc.sum()
    for axis in (0, 1):
        disc = ndimage.correlate1d(disc, bell, axis, mode="mirror")
    smooth: NDArray[np.float32] = disc
    return smooth


@corruption("glass-blur", "Glass blur", "Frosted glass: pixels take the values of others nearby.", random=True)
def _glass(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    from idc_core.base.scipy_parts import ndimage

    width, reach, rounds = ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))[severity - 1]

    def softened(values: Levels) -> Levels:
        soft: Levels = ndimage.gaussian_filter(values, (width, width, 0), mode="nearest", truncate=4.0)
        return soft

    values = (softened(picture / 255.0) * 255).astype(np.uint8)
    rows, columns = (range(side - reach, reach, -1) for side in picture.shape[:2])
    for _ in range(rounds):
        moves = iter(random.integers(-reach, reach, size=(len(rows) * len(columns), 2)).tolist())
        for row in rows:
            for column in columns:
                right, down = next(moves)
                values[row, column] = values[row + down, column + right]
    return np.clip(softened(values / 255.0), 0, 1) * 255


@corruption("motion-blur", "Motion blur", "A camera that moves in one direction.", random=True)
def _motion(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    radius, width = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))[severity - 1]
    return np.clip(moved(picture, radius, width, random.uniform(-45, 45)), 0, 255)


def moved(values: Levels | Bytes, radius: int, width: float, degrees: float) -> Levels:
    """Return values (H, W, ...) averaged along a line, with weights that fall off like half a bell of that width."""
    steps = radius * 2 + 1
    weights = np.exp(-(np.arange(steps) ** 2) / (2 * width**2)) / (np.sqrt(2 * np.pi) * width)
    weights = weights / np.sum(weights)
    down, right = steps * np.sin(np.deg2rad(degrees)), steps * np.cos(np.deg2rad(degrees))
    length = math.hypot(down, right)
    height, wide = values.shape[:2]
    blurred = np.zeros(values.shape, np.float32)
    for step in range(steps):
        rows, columns = (-math.ceil(step * way / length - 0.5) for way in (down, right))
        if abs(rows) >= height or abs(columns) >= wide:
            break  # out of the picture
        from_rows = np.clip(np.arange(height) - rows, 0, height - 1)
        from_columns = np.clip(np.arange(wide) - columns, 0, wide - 1)
        blurred = blurred + weights[step] * values[from_rows[:, None], from_columns]
    return blurred


@corruption("zoom-blur", "Zoom blur", "A lens that zooms while the picture is taken.")
def _zoom(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    most, step = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))[severity - 1]
    factors = np.arange(1, most, step)
    values = (picture / 255.0).astype(np.float32)
    total = np.zeros_like(values)
    for factor in factors:
        total += enlarged(values, factor)[: len(values), : values.shape[1]]
    return np.clip((values + total) / (len(factors) + 1), 0, 1) * 255


def enlarged(values: Levels, factor: float) -> Levels:
    """Return the middle of values (H, W, C), enlarged to their size or a little more."""
    from idc_core.base.scipy_parts import ndimage

    height, wide = values.shape[:2]
    rows, columns = (math.ceil(side / factor) for side in (height, wide))
    top, left = (height - rows) // 2, (wide - columns) // 2
    middle = values[top : top + rows, left : left + columns]
    return np.asarray(ndimage.zoom(middle, (factor, factor, 1), order=1))
