"""Relevance as pictures: one map per layer, on a scale of its own or a common one, alone or laid over the image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.figures.input_images import enlarge, pictures
from idc_core.figures.palette import relevance_colours

_Maps = Mapping[str, NDArray[np.float64]]

SCALES = {"picture": "per picture", "layer": "per layer", "all": "shared"}
"""What shares one colour scale: key and label."""

_MARKED = 0.1
"""Share of the scale from which a pixel against is marked with a dot."""

_DOT_FROM = 4
"""Enlargement from which a pixel has room for a dot."""

_ROW = 16
"""Units that are drawn in one row."""


def layer_map(relevance: NDArray[np.floating]) -> NDArray[np.float64]:
    """Lay the relevance of one layer, (C, H, W), (C, positions) or (units,), out as a picture, float64 (h, w).

    Summed over channels where there are positions; units, and positions in a row, in reading order in a block that is
    about square, filled up with NaN; few units in one row.
    """
    values = relevance.astype(np.float64)
    if values.ndim > 1 and np.prod(values.shape[1:]) > 1:
        values = values.sum(axis=0)
    if values.ndim == 2 and min(values.shape) > 1:
        return values
    values = values.ravel()
    width = values.size if values.size <= _ROW else int(np.ceil(np.sqrt(values.size)))
    block = np.full(-(-values.size // width) * width, np.nan)
    block[: values.size] = values
    return block.reshape(-1, width)


def limits(maps: Sequence[_Maps], scale: str) -> list[dict[str, float]]:
    """Return the relevance, above 0, that gets the strongest colour, for every map of explanations shown together."""
    if scale not in SCALES:
        raise SettingError(f"Unknown scale {scale!r}: expected one of {', '.join(SCALES)}.")
    own = [{layer: float(np.nanmax(np.abs(values))) for layer, values in by_layer.items()} for by_layer in maps]
    if scale == "layer":
        own = [{layer: max(other.get(layer, 0.0) for other in own) for layer in by_layer} for by_layer in own]
    if scale == "all":
        largest = max(limit for by_layer in own for limit in by_layer.values())
        own = [dict.fromkeys(by_layer, largest) for by_layer in own]
    return [{layer: limit if limit > 0 else 1.0 for layer, limit in by_layer.items()} for by_layer in own]


def heatmap(
    values: NDArray[np.floating], limit: float, smallest: int, scheme: str = "red-blue", *, dark: bool = False
) -> NDArray[np.uint8]:
    """Colour one map (h, w) as RGBA, NaN transparent; a dot marks pixels against, so that colour is not the only sign.

    `smallest` is the width in pixels to reach at least, by a whole factor.
    """
    there = ~np.isnan(values)
    colours = relevance_colours(np.where(there, values, 0.0), limit, scheme, dark=dark)
    covering = np.where(there, 255, 0).astype(np.uint8)[..., None]
    shown = enlarge(np.concatenate([colours, covering], axis=-1)[None], smallest)[0]
    return _dotted(shown, np.where(there, values, 0.0) < -_MARKED * limit)


def _dotted(shown: NDArray[np.uint8], marked: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Put a dot, dark on pale and pale on dark, into the middle of marked pixels."""
    factor = shown.shape[1] // marked.shape[1]
    if factor < _DOT_FROM:
        return shown
    size = factor // 4
    start = (factor - size) // 2
    middle = slice(start, start + size)
    shown = np.ascontiguousarray(shown)
    rows, columns = marked.shape
    spots = shown.reshape(rows, factor, columns, factor, -1)[:, middle, :, middle, :3]  # a view
    dots = np.where(spots[:, :1, :, :1].mean(axis=-1, keepdims=True) > 110, 20, 255)
    np.copyto(spots, dots, casting="unsafe", where=marked[:, None, :, None, None])
    return shown


def overlay(
    image: NDArray[np.floating], values: NDArray[np.floating], strength: float, smallest: int, scheme: str = "red-blue"
) -> NDArray[np.uint8]:
    """Lay a heatmap (H, W) over its image (C, H, W), in grey: the more relevant a pixel, the more of it is coloured.

    At a `strength` of 0 the image is alone, at 1 the most relevant hundredth of its pixels is covered.
    """
    if not 0.0 <= strength <= 1.0:
        raise SettingError(f"The strength of an overlay must lie in 0..1; got {strength}.")
    if image.shape[1:] != values.shape:
        raise SettingError(f"Expected relevance of shape {image.shape[1:]}, like the image; got {values.shape}.")
    base = pictures(image[None], 1)[0].astype(np.float64).mean(axis=-1, keepdims=True)
    limit = float(np.quantile(np.abs(values), 0.99)) or float(np.abs(values).max()) or 1.0
    # Colours halfway up the scale are seen on black as well as on white.
    colours = relevance_colours(np.sign(values) / 2, 1.0, scheme).astype(np.float64)
    cover = strength * np.clip(np.abs(values) / limit, 0.0, 1.0)[..., None] ** 0.5
    mixed = (base * (1 - cover) + colours * cover).round().astype(np.uint8)
    return _dotted(enlarge(mixed[None], smallest)[0], (values < -_MARKED * limit) & (strength > 0))


def shares(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return a map as shares of its sum of absolute values, so that maps in different units can be compared."""
    total = float(np.nansum(np.abs(values)))
    return values.astype(np.float64) / (total if total > 0 else 1.0)


def half(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the fewest places of the flattened values with half of the positive relevance, most relevant first."""
    positive = np.clip(np.nan_to_num(values.astype(np.float64)).ravel(), 0.0, None)
    order = np.argsort(-positive, kind="stable")
    reached = np.cumsum(positive[order])
    if not reached.size or not reached[-1] > 0:
        return np.zeros(0, dtype=np.int64)
    return order[: int(np.searchsorted(reached, reached[-1] / 2)) + 1].astype(np.int64)
