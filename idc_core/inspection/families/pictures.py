"""Hypotheses about pictures: where there is ink, which way its edges and strokes run, what it encloses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from idc_core.base.scipy_parts import ndimage
from idc_core.datasets import Dataset
from idc_core.inspection.hypothesis import Hypothesis, Records, register_family

_INK = 0.5
"""From this brightness a pixel is ink."""

_STEEP = 0.5
"""From this slope of brightness a pixel lies on an edge; the steepest that there can be is 4."""

_ANGLES = {"horizontal": 0, "rising": 45, "vertical": 90, "falling": 135}
"""Directions in which edges and strokes run, in degrees against the horizontal."""

_STROKE = 1 / 4
"""Length of a stroke, as a share of the picture's smaller side."""

_FOUR = np.zeros((3, 3, 3), bool)
_FOUR[1] = [[0, 1, 0], [1, 1, 1], [0, 1, 0]]


def _grey(records: Records) -> NDArray[np.float32]:
    """Return brightness in 0..1, float32 (n, H, W): the mean over channels."""
    grey: NDArray[np.float32] = records.once("grey", lambda: records.inputs.mean(1, dtype=np.float32))
    return grey


def _ink(records: Records) -> NDArray[np.bool_]:
    """Return where there is ink, bool (n, H, W)."""
    return np.asarray(_grey(records) >= _INK)


def _holes(records: Records) -> NDArray[np.bool_]:
    """Return pixels without ink that no such path of four-neighbours joins to the border, bool (n, H, W)."""

    def make() -> NDArray[np.bool_]:
        free = ~_ink(records)
        regions, count = ndimage.label(free, _FOUR)
        outside = np.zeros(count + 1, bool)
        for border in (regions[:, 0], regions[:, -1], regions[:, :, 0], regions[:, :, -1]):
            outside[np.unique(border)] = True
        return np.asarray(free & ~outside[regions])

    holes: NDArray[np.bool_] = records.once("holes", make)
    return holes


def _hole_count(records: Records) -> NDArray[np.int64]:
    """Return how many holes each picture has, int64 (n,)."""
    regions, _ = ndimage.label(_holes(records), _FOUR)
    return np.array([len(np.unique(region[region > 0])) for region in regions], np.int64)


def _edges(records: Records) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how steep brightness is (Sobel) and which way the edge runs, in degrees 0..180; float32 (n, H, W) both."""

    def make() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        right, down = ndimage.sobel(_grey(records), 2), ndimage.sobel(_grey(records), 1)
        # Brightness changes across an edge; rows count downwards, angles upwards.
        along = np.degrees(np.arctan2(right, down)) % 180
        return np.hypot(right, down), along

    edges: tuple[NDArray[np.float32], NDArray[np.float32]] = records.once("edges", make)
    return edges


def _edge_at(records: Records, angle: float) -> NDArray[np.bool_]:
    """Return where an edge runs within 22.5 degrees of an angle, bool (n, H, W)."""
    steepness, along = _edges(records)
    apart = np.abs((along - angle + 90) % 180 - 90)
    return np.asarray((steepness >= _STEEP) & (apart <= 22.5))


def _stroke_at(records: Records, angle: float) -> NDArray[np.bool_]:
    """Return where a straight line of ink of at least `_STROKE` runs in a direction of `_ANGLES`, bool (n, H, W)."""
    pixels = _ink(records)
    length = max(3, round(min(pixels.shape[1:]) * _STROKE))
    line = {0: np.zeros((length, length), bool), 45: np.eye(length, dtype=bool)[::-1], 135: np.eye(length, dtype=bool)}
    line[0][length // 2] = True
    line[90] = line[0].T
    return np.asarray(ndimage.binary_opening(pixels, line[int(angle)][None]))


def _half(name: str, pick: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]) -> Hypothesis:
    def behave(records: Records) -> NDArray[np.generic]:
        pixels = _ink(records)
        height, width = pixels.shape[1:]
        down, across = np.mgrid[0:height, 0:width]
        return np.asarray(pixels & pick((down + 0.5) / height, (across + 0.5) / width))

    return Hypothesis(name, "regions", "binary", behave)


def _is_picture(dataset: Dataset) -> bool:
    """Whether the inputs are pictures, (n, C, H, W)."""
    return bool(dataset.inputs.ndim == 4)


@register_family("regions", "Ink and regions", "Ink at the pixel, anywhere or in one part of the picture.")
def regions(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer ink everywhere, in each half and in the middle, and brightness itself."""
    if not _is_picture(dataset):
        return
    yield Hypothesis("ink", "regions", "binary", _ink)
    yield Hypothesis("brightness", "regions", "number", _grey)
    yield _half("ink above the middle", lambda down, across: down < 0.5)
    yield _half("ink below the middle", lambda down, across: down >= 0.5)
    yield _half("ink left of the middle", lambda down, across: across < 0.5)
    yield _half("ink right of the middle", lambda down, across: across >= 0.5)
    yield _half("ink in the centre", lambda down, across: (abs(down - 0.5) < 0.2) & (abs(across - 0.5) < 0.2))


@register_family(
    "shapes", "Holes, edges and strokes", "The pixel lies in a hole, or on an edge or stroke of one direction."
)
def _shapes(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer holes, and edges and strokes of four directions."""
    if not _is_picture(dataset):
        return
    yield Hypothesis("in a hole", "shapes", "binary", _holes)
    for name, angle in _ANGLES.items():
        yield Hypothesis(f"{name} edge", "shapes", "binary", partial(_edge_at, angle=angle))
    for name, angle in _ANGLES.items():
        yield Hypothesis(f"{name} stroke", "shapes", "binary", partial(_stroke_at, angle=angle))


@register_family("looks", "The whole picture", "Properties of the whole picture: holes, brightness, extent.")
def _looks(dataset: Dataset) -> Iterator[Hypothesis]:
    """Offer what is true of a picture as a whole."""
    if not _is_picture(dataset):
        return
    yield Hypothesis("has a hole", "looks", "binary", lambda records: np.asarray(_holes(records).any((1, 2))))
    yield Hypothesis("has two holes", "looks", "binary", lambda records: _hole_count(records) >= 2)
    yield Hypothesis("mean brightness", "looks", "number", lambda records: _grey(records).mean((1, 2)))
    yield Hypothesis("share of ink above", "looks", "number", _above)
    yield Hypothesis("width of the ink", "looks", "number", lambda records: _ink(records).any(1).sum(1))
    yield Hypothesis("height of the ink", "looks", "number", lambda records: _ink(records).any(2).sum(1))


def _above(records: Records) -> NDArray[np.generic]:
    pixels = _ink(records)
    height = pixels.shape[1]
    return np.asarray(pixels[:, : height // 2].sum((1, 2)) / np.maximum(pixels.sum((1, 2)), 1))
