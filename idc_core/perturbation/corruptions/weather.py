"""Corruptions by weather: snow, frost, fog, bright light."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.perturbation.corruptions.blur import enlarged, moved
from idc_core.perturbation.corruptions.registry import Bytes, Levels, corruption

_GREY = np.array([0.299, 0.587, 0.114], np.float32)
"""Shares of red, green and blue in brightness (ITU-R BT.601)."""


@corruption("snow", "Snow", "Flakes blown across a whitened picture.", random=True)
def _snow(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    mean, deviation, size, least, radius, width, kept = (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    )[severity - 1]
    values = picture.astype(np.float32) / 255
    flakes = enlarged(random.normal(size=picture.shape[:2], loc=mean, scale=deviation)[:, :, None], size)[:, :, 0]
    flakes[flakes < least] = 0
    flakes = moved(np.clip(flakes, 0, 1), int(radius), width, random.uniform(-135, -45))
    flakes = np.round(flakes * 255).astype(np.uint8)[: len(values), : values.shape[1], None] / 255.0
    grey = values if picture.shape[2] == 1 else (values @ _GREY)[:, :, None]
    whitened = kept * values + (1 - kept) * np.maximum(values, grey * 1.5 + 0.5)
    return np.clip(whitened + flakes + np.rot90(flakes, k=2), 0, 1) * 255


@corruption("frost", "Frost", "Ice crystals on the lens.", random=True)
def _frost(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    return frosted(picture, severity, _crystals(picture.shape[0], picture.shape[1], random)[:, :, : picture.shape[2]])


def frosted(picture: Bytes, severity: int, ice: NDArray[np.floating] | Bytes) -> Levels:
    """Lay ice (H, W, C) in 0..255 over a picture of that shape."""
    kept, strength = ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))[severity - 1]
    return np.clip(kept * picture + strength * ice, 0, 255)


_NEEDLES, _TINT = 60, np.array([0.86, 0.94, 1.0])
"""Needles of ice across a picture, and how much of red, green and blue ice reflects."""


def _crystals(height: int, width: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw needles of ice that grow from the edges, float64 (H, W, 3) in 0..255.

    Photographs of frost, which the paper's program lays over pictures, are not ours to give away.
    """
    from idc_core.base.scipy_parts import ndimage

    side = max(height, width)
    ice = np.zeros((height, width))
    for _ in range(_NEEDLES):
        edge, along, length = int(random.integers(4)), random.random(), side * random.uniform(0.15, 0.7)
        start = np.array([(0.0, along), (1.0, along), (along, 0.0), (along, 1.0)][edge]) * (height - 1, width - 1)
        turn = (0, np.pi, np.pi / 2, -np.pi / 2)[edge] + random.normal(0, 0.6)
        steps = np.arange(0, length, 0.5)
        places = np.rint(start + steps[:, None] * [np.cos(turn), np.sin(turn)]).astype(int)
        inside = ((places >= 0) & (places < (height, width))).all(1)
        rows, columns = places[inside].T
        ice[rows, columns] = np.maximum(ice[rows, columns], random.uniform(0.4, 1) * (1 - steps[inside] / length))
    haze = ndimage.gaussian_filter(random.random((height, width)), side / 16, mode="reflect")
    haze = (haze - haze.min()) / max(float(np.ptp(haze)), 1e-12)
    ice = np.clip(0.7 * ndimage.gaussian_filter(ice, side / 224, mode="nearest") + 0.5 * haze, 0, 1)
    return np.asarray(ice[:, :, None] * _TINT * 255, np.float64)


@corruption("fog", "Fog", "Thicker here and thinner there.", random=True)
def _fog(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    strength, decay = ((1.5, 2), (2.0, 2), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))[severity - 1]
    values = picture / 255.0
    height, width = picture.shape[:2]
    most = float(values.max())
    side = 1 << (max(picture.shape) - 1).bit_length()
    fog = _landscape(side, decay, random)[:height, :width, None]
    fogged: Levels = np.clip((values + strength * fog) * most / (most + strength), 0, 1) * 255
    return fogged


def _landscape(side: int, decay: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Return heights (side, side) in 0..1 by the diamond-square algorithm, whose opposite edges meet.

    A. Fournier, D. Fussell, L. Carpenter, "Computer rendering of stochastic models", CACM 25(6), 1982.
    """
    heights = np.zeros((side, side))
    step, rough = side, 100.0

    def between(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return sums / 4 + rough * random.uniform(-rough, rough, sums.shape)

    while step >= 2:
        half = step // 2
        corners = heights[::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=0)
        heights[half::step, half::step] = between(pairs + np.roll(pairs, -1, axis=1))
        middles = heights[half::step, half::step]
        heights[::step, half::step] = between((middles + np.roll(middles, 1, axis=0)) + _next(corners, 1))
        heights[half::step, ::step] = between((middles + np.roll(middles, 1, axis=1)) + _next(corners, 0))
        step, rough = half, rough / decay
    heights -= heights.min()
    return np.asarray(heights / heights.max(), np.float64)


def _next(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return each value plus the one after it along an axis."""
    return np.asarray(values + np.roll(values, -1, axis=axis), np.float64)


@corruption("bright-light", "Bright light", "Raises the value of hue, saturation and value.")
def _brightness(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    added = (0.1, 0.2, 0.3, 0.4, 0.5)[severity - 1]
    values = picture / 255.0
    if picture.shape[2] == 1:
        return np.clip(values + added, 0, 1) * 255
    hue, saturation, value = _to_hsv(values)
    return np.clip(_from_hsv(hue, saturation, np.clip(value + added, 0, 1)), 0, 1) * 255


def _to_hsv(values: Levels) -> tuple[Levels, Levels, Levels]:
    """Return hue, in sixths of the circle, saturation and value, each (H, W), of RGB (H, W, 3) in 0..1."""
    red, green, blue = np.moveaxis(values, 2, 0)
    value, spread = values.max(2), np.ptp(values, axis=2)
    some = np.where(spread > 0, spread, 1.0)
    hue = np.select(
        [blue == value, green == value], [4.0 + (red - green) / some, 2.0 + (blue - red) / some], (green - blue) / some
    )
    hue = np.where(spread > 0, hue / 6.0 % 1.0, 0.0) * 6.0
    return hue, np.where(spread > 0, spread / np.where(value > 0, value, 1.0), 0.0), value


def _from_hsv(hue: Levels, saturation: Levels, value: Levels) -> Levels:
    """Return RGB (H, W, 3) in 0..1."""
    sixth = np.floor(hue)
    part = hue - sixth
    low, falling, rising = (
        value * (1 - saturation),
        value * (1 - part * saturation),
        value * (1 - (1 - part) * saturation),
    )
    ways = [(value, rising, low), (falling, value, low), (low, value, rising), (low, falling, value)]
    ways += [(rising, low, value), (value, low, falling)]
    channels = [np.choose(sixth.astype(int) % 6, [way[channel] for way in ways]) for channel in range(3)]
    return np.stack(channels, 2)
