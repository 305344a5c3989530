"""Inputs and their relevance as pictures: pixelated, enlarged by a whole number, never blurred."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from idc_core.errors import SettingError
from idc_core.figures.palette import palette, relevance_colours

SMALLEST_SIDE = 84
"""Pixels that a picture in a gallery has at least."""

GAP = 6
"""Pixels between pictures that belong together."""

_SHEET_WIDTH = 1200  # pixels of a contact sheet, at most
_SHEET_GAP = 10
_LETTERS = 13  # height of a caption's letters
_LINE = 17  # distance of its lines
_LOSSY_QUALITY = 85
_GLANCE_QUALITY = 20
_SLACK = 1e-3
_INKS = {False: ("#1b2024", "#0072b2", "#b35806", "#007a5a"), True: ("#e7ebee", "#6cb8ea", "#f0a35c", "#4fc9a4")}
"""Of its channels, on a light ground and on a dark one."""


def pictures(inputs: NDArray[np.floating], smallest: int = SMALLEST_SIDE) -> NDArray[np.uint8]:
    """Turn image inputs (n, C, H, W) into RGB pictures (n, H * f, W * f, 3), f by `factor`.

    One channel is grey, three are RGB; of any other number the mean is shown. Where values leave 0..1, as decibels and
    heights do, black is the lowest of them all and white the highest.
    """
    if inputs.ndim != 4:
        raise SettingError(f"Pictures need inputs of shape (n, channels, height, width); got {inputs.shape}.")
    if inputs.shape[1] not in (1, 3):
        inputs = inputs.mean(1, keepdims=True)
    low, high = (float(inputs.min()), float(inputs.max())) if inputs.size else (0.0, 1.0)
    if low < -_SLACK or high > 1 + _SLACK:
        inputs = (inputs - low) / np.float32(max(high - low, 1e-30))
    pixels = (np.clip(inputs, 0.0, 1.0) * 255.0).round().astype(np.uint8).transpose(0, 2, 3, 1)
    return enlarge(np.broadcast_to(pixels, (*pixels.shape[:3], 3)), smallest)


def still(inputs: NDArray[Any]) -> NDArray[Any]:
    """Return the middle picture (n, C, H, W) of videos and volumes (n, C, T, H, W); others as they are."""
    return inputs[:, :, inputs.shape[2] // 2] if inputs.ndim == 5 else inputs


def bars(
    values: NDArray[np.floating], usual: NDArray[np.floating], unit: NDArray[np.floating], *, dark: bool = False
) -> NDArray[np.uint8]:
    """Draw feature vectors (n, features) as small pictures of bars (n, 48, 48, 3).

    A bar is how far a feature is from the `usual` one (features,), in units (features,), at most three up or down; of
    more than 24 features the first ones are drawn.
    """
    side, reach, most = 48, 3.0, 24
    away = np.clip((values - usual) / unit, -reach, reach)[:, :most] / reach
    edges = 2 + np.round(np.linspace(0, side - 4, away.shape[1] + 1)).astype(int)
    colours = palette(dark)
    drawn = np.tile(_pixel(colours.ground), (len(values), side, side, 1))
    drawn[:, side // 2] = _pixel(colours.line)
    for picture, heights in zip(drawn, np.round(away * (side / 2 - 3)).astype(int), strict=True):
        for start, end, height in zip(edges[:-1], edges[1:], heights.tolist(), strict=True):
            low, high = sorted((side // 2, side // 2 - height))
            picture[low : high + 1, start : max(end - 1, start + 1)] = _pixel(colours.lines[0 if height > 0 else 1])
    return drawn


def _pixel(colour: str) -> NDArray[np.uint8]:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.uint8)


def lines(
    series: NDArray[np.floating],
    relevance: NDArray[np.floating] | None = None,
    size: tuple[int, int] = (56, 112),
    *,
    dark: bool = False,
) -> NDArray[np.uint8]:
    """Draw time series (n, channels, steps) as small pictures of lines (n, *size, 3), each in its own range.

    Relevance of the same shape, summed over channels, colours the ground below each step.
    """
    if series.ndim != 3:
        raise SettingError(f"Lines need inputs of shape (n, channels, steps); got {series.shape}.")
    height, width = size
    drawn = []
    for number, item in enumerate(series):
        ground = np.tile(relevance_colours(np.zeros((1, 1)), 1.0, dark=dark)[0], (width, 1))
        if relevance is not None:
            per_step = relevance[number].sum(0)
            coloured = relevance_colours(per_step[None], float(np.abs(per_step).max()) or 1.0, dark=dark)[0]
            ground = coloured[np.arange(width) * item.shape[1] // width]
        picture = Image.fromarray(np.repeat(ground[None], height, axis=0))
        pen = ImageDraw.Draw(picture)
        low, high = float(item.min()), float(item.max())
        across = (np.arange(item.shape[1]) + 0.5) * width / item.shape[1]
        for channel, values in enumerate(item):
            down = 4 + (height - 9) * (1 - (values - low) / ((high - low) or 1.0))
            pen.line(list(zip(across.tolist(), down.tolist(), strict=True)), _INKS[dark][channel % len(_INKS[dark])])
        drawn.append(np.asarray(picture))
    return np.stack(drawn)


def factor(width: int, smallest: int = SMALLEST_SIDE) -> int:
    """Return the smallest whole number that makes a picture of some width at least `smallest` pixels wide."""
    return max(1, -(-smallest // width))


def enlarge(images: NDArray[np.uint8], smallest: int = SMALLEST_SIDE) -> NDArray[np.uint8]:
    """Repeat pixels of images (n, H, W, c) by the smallest whole number that makes them at least `smallest` wide."""
    times = factor(images.shape[2], smallest)
    return images.repeat(times, axis=1).repeat(times, axis=2)


def heatmaps(
    relevance: NDArray[np.floating], smallest: int = SMALLEST_SIDE, *, dark: bool = False
) -> NDArray[np.uint8]:
    """Colour the relevance (n, C, H, W) of inputs, summed over channels: red for, blue against, the ground for zero.

    Every input has its own symmetric scale, so that a faint and a strong decision can both be read.
    """
    if relevance.ndim != 4:
        raise SettingError(f"Heatmaps need relevance of shape (n, channels, height, width); got {relevance.shape}.")
    per_pixel = relevance.sum(axis=1)
    limits = np.abs(per_pixel).max(axis=(1, 2))
    coloured = np.stack(
        [
            relevance_colours(pixels, limit if limit > 0 else 1.0, dark=dark)
            for pixels, limit in zip(per_pixel, limits, strict=True)
        ]
    )
    return enlarge(coloured, smallest)


def side_by_side(tiles: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """Put pictures (n, H, W, c) next to each other, without gaps, row by row; places after the last are black."""
    n, height, width, channels = tiles.shape
    rows = -(-n // columns)
    whole = np.zeros((rows * columns, height, width, channels), dtype=np.uint8)
    whole[:n] = tiles
    folded = whole.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return folded.reshape(rows * height, columns * width, channels)


def apart(sheet: NDArray[np.uint8], columns: int, count: int) -> NDArray[np.uint8]:
    """Take apart what `side_by_side` put on a sheet of no more than `count` pictures: (count, H, W, c).

    Of fewer pictures than `columns` the sheet is that wide all the same.
    """
    high, wide = sheet.shape[0] // -(-count // columns), sheet.shape[1] // columns
    folded = sheet.reshape(-1, high, columns, wide, sheet.shape[2]).swapaxes(1, 2)
    return folded.reshape(-1, high, wide, sheet.shape[2])[:count]


def spaced(tiles: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Give pictures a transparent margin on the right and below, so that neighbours do not touch: (n, H, W, 4)."""
    covered = np.concatenate([tiles, np.full((*tiles.shape[:3], 1), 255, np.uint8)], axis=3)
    return np.pad(covered, ((0, 0), (0, GAP), (0, GAP), (0, 0)))


def contact_sheet(tiles: Sequence[NDArray[np.uint8]], captions: Sequence[str]) -> NDArray[np.uint8]:
    """Put pictures of any sizes on a white sheet of at most 1,200 pixels, or one picture, each above its caption."""
    if not len(tiles) or len(tiles) != len(captions):
        raise SettingError(f"Expected a caption for each picture; got {len(captions)} for {len(tiles)} pictures.")
    words = [word for caption in captions for word in caption.split()]
    room = max(max(tile.shape[1] for tile in tiles), *(math.ceil(font().getlength(word)) for word in words))
    lines = [_wrap(caption, room) for caption in captions]
    columns = max(1, min(len(tiles), (_SHEET_WIDTH - _SHEET_GAP) // (room + _SHEET_GAP)))
    rows = [range(start, min(start + columns, len(tiles))) for start in range(0, len(tiles), columns)]
    pictured = [max(tiles[i].shape[0] for i in row) for row in rows]
    written = [_LINE * max(len(lines[i]) for i in row) for row in rows]
    width = _SHEET_GAP + columns * (room + _SHEET_GAP)
    height = _SHEET_GAP + sum(pictured) + sum(written) + len(rows) * (_SHEET_GAP + GAP)
    sheet = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(sheet)
    top = _SHEET_GAP
    for row, tall, text in zip(rows, pictured, written, strict=True):
        for column, i in enumerate(row):
            left = _SHEET_GAP + column * (room + _SHEET_GAP)
            picture = Image.fromarray(tiles[i]).convert("RGBA")
            sheet.paste(picture, (left, top), picture)
            pen.multiline_text(
                (left, top + tall + GAP), "\n".join(lines[i]), fill="black", font=font(), spacing=_LINE - _LETTERS
            )
        top += tall + text + _SHEET_GAP + GAP
    return np.asarray(sheet)


def _wrap(text: str, room: int) -> list[str]:
    """Break a text into lines of at most `room` pixels."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font().getlength(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


@cache
def font(pixels: int = _LETTERS) -> ImageFont.FreeTypeFont:
    """Return a font, its letters so high, with arrows and most letters; the one that comes with Pillow lacks both."""
    import matplotlib

    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", pixels)


def png(image: NDArray[np.uint8], said: str = "") -> bytes:
    """Write a picture (H, W, 3 or 4) as PNG, with what is said of it as its description."""
    file, info = io.BytesIO(), PngInfo()
    if said:
        info.add_itxt("Description", said)
    Image.fromarray(image).save(file, "PNG", pnginfo=info)
    return file.getvalue()


def webp(image: NDArray[np.uint8], most: int) -> bytes:
    """Write a picture (H, W, 3 or 4) as WebP: exactly, unless that needs too many bytes."""
    exact, photograph = io.BytesIO(), io.BytesIO()
    Image.fromarray(image).save(exact, "WEBP", lossless=True)
    if exact.tell() <= most:
        return exact.getvalue()
    Image.fromarray(image).save(photograph, "WEBP", quality=_LOSSY_QUALITY)
    return photograph.getvalue()


def glance(image: NDArray[np.uint8]) -> bytes:
    """Write a picture (H, W, 3) as a small WebP, good enough to be looked at for a moment."""
    photograph = io.BytesIO()
    Image.fromarray(image).save(photograph, "WEBP", quality=_GLANCE_QUALITY)
    return photograph.getvalue()
