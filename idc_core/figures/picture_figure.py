"""Pictures with captions as one figure, for a slide: the pixels stay as they are, the browser enlarges them."""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.figures.input_images import enlarge, png
from idc_core.figures.palette import palette
from idc_core.figures.style import finish

_ACROSS, _DOWN = 1200, 500  # pixels of a slide's picture, about
_CAPTION = 66  # pixels below a picture for three lines
_LETTER = 9  # pixels
_SMALLEST = 140  # pixels of a picture, before it is enlarged further
_FRAME = (138, 148, 155, 255)
_LINE_LETTERS = 92


def picture_figure(
    pictures: Sequence[NDArray[np.uint8]], captions: Sequence[str], title: str, *, dark: bool
) -> go.Figure:
    """Draw pictures (H, W, 3 or 4) of any sizes, each above its caption, as large as a slide has room for."""
    pictures = [_framed(one) for one in pictures]
    columns, width, height = _laid_out(len(pictures), max(one.shape[1] / one.shape[0] for one in pictures))
    rows = -(-len(pictures) // columns)
    letters = int(width / _LETTER)
    images, notes = [], []
    for place, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        row, column = divmod(place, columns)
        x, y = (column + 0.5) / columns, 1 - row / rows
        images.append(placed(picture, x, y, width / _ACROSS, height / _DOWN))
        text = "<br>".join(escape(line, quote=False) for line in textwrap.wrap(caption, max(letters, 8))[:3])
        below = y - height / _DOWN - 4 / _DOWN
        notes.append(
            {"text": text, "x": x, "y": below, "xanchor": "center", "yanchor": "top", "showarrow": False}
            | {"xref": "paper", "yref": "paper"}
        )
    return _on_paper(go.Figure(layout={"images": images, "annotations": notes}), title, dark)


def text_figure(texts: Sequence[tuple[str, Sequence[tuple[str, str]]]], title: str, *, dark: bool) -> go.Figure:
    """Draw texts, each below its caption: words with marks, "for" in bold and "against" in italics."""
    signs = {"for": "b", "against": "i"}
    lines: list[str] = []
    for caption, words in texts:
        lines += [f"<b>{escape(caption, quote=False)}</b>", ""]
        letters = 0
        for word, mark in words:
            if letters and letters + len(word) > _LINE_LETTERS:
                lines.append("")
                letters = 0
            letters += len(word) + 1
            shown = escape(word, quote=False)
            lines[-1] += f"<{signs[mark]}>{shown}</{signs[mark]}> " if mark else f"{shown} "
        lines.append("")
    note = {"text": "<br>".join(lines), "align": "left", "x": 0, "y": 1, "xanchor": "left", "yanchor": "top"}
    note |= {"xref": "paper", "yref": "paper", "showarrow": False}
    return _on_paper(go.Figure(layout={"annotations": [note]}), title, dark)


def placed(picture: NDArray[np.uint8], x: float, y: float, width: float, height: float) -> dict[str, object]:
    """Return a picture (H, W, 3 or 4) as an image of a figure: the middle of its top and its size are shares of it."""
    return {
        "source": f"data:image/png;base64,{base64.b64encode(png(np.ascontiguousarray(picture))).decode()}",
        "xref": "paper",
        "yref": "paper",
        "x": x,
        "y": y,
        "xanchor": "center",
        "yanchor": "top",
        "sizex": width,
        "sizey": height,
        "sizing": "contain",
    }


def _framed(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture (H, W, 4), enlarged, in a thin frame: white means no relevance, and is a page's ground too."""
    large = enlarge(picture[None], _SMALLEST)[0]
    opaque = np.concatenate([large[..., :3], np.full((*large.shape[:2], 1), 255, np.uint8)], axis=2)
    framed = opaque if large.shape[2] == 3 else large
    framed[[0, -1]] = framed[:, [0, -1]] = _FRAME
    return framed


def _laid_out(number: int, wide: float) -> tuple[int, float, float]:
    """Return how many pictures stand in a row, and the width and height in pixels of each, the largest that fit."""

    def size(columns: int) -> float:
        rows = math.ceil(number / columns)
        return min(0.94 * _ACROSS / columns / wide, _DOWN / rows - _CAPTION)

    columns = max(range(1, number + 1), key=size)
    return columns, wide * size(columns), size(columns)


def _on_paper(figure: go.Figure, title: str, dark: bool) -> go.Figure:
    """Give a figure without axes its title and colours."""
    finish(figure, title, palette(dark), height=_DOWN + 60)
    return figure.update_layout(
        xaxis={"visible": False}, yaxis={"visible": False}, margin={"l": 0, "r": 0, "b": 4}, showlegend=False
    )
