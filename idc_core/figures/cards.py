"""A neuron on one card: what it responds to, its activations, and what it does for each class. One SVG everywhere."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from idc_core.figures.card_parts import Activations, Card, Classes, Tiles
from idc_core.figures.clusters import bin_edges, bin_shares
from idc_core.figures.input_images import pictures, png
from idc_core.figures.palette import SCHEMES, Palette, palette
from idc_core.figures.style import FONT
from idc_core.figures.wording import percent, signed

WIDTH, SMALL_WIDTH = 262, 146
"""Of a card, and of a small one."""

_TILE, _GAP = (56, 64), 2
"""Pixels that a picture is wide, where whole multiples allow; and at least between two beside each other."""

_BELOW = 6
"""Pixels below a picture."""

_ROWS, _SMALL_ROWS = (4, 8), (2, 4)
"""Tests in a row, and in all, of a card and of a small one."""

CLASSES = 10
"""Classes that are listed at most."""

_LINE, _SMALL = 14, 11
"""Height of a line, and of small letters."""

_BUTTONS = 112
"""Pixels at the right of the last line of a card for what can be done with it."""

_LETTER = 0.54
"""Width of a letter as a share of its height, about."""


def draw_card(card: Card, *, clickable: bool = True, dark: bool = False) -> str:
    """Draw a card as SVG, 262 pixels wide.

    Where it is `clickable`, parts that can be clicked have `data-` attributes: test, neuron, clusters.
    """
    pen = _Pen(palette(dark), WIDTH, clickable)
    pen.head(card)
    pen.tiles(card.tiles, *_ROWS)
    if card.activations is not None:
        pen.activations(card.activations, card.neuron)
    if card.hypotheses:
        pen.hypotheses(card.hypotheses)
    if card.classes is not None:
        pen.classes(card.classes, dark)
    return pen.picture(card.title)


def draw_small(card: Card, *, dark: bool = False) -> str:
    """Draw a card of which many are seen together, 146 pixels wide."""
    pen = _Pen(palette(dark), SMALL_WIDTH, True)
    pen.head(card)
    pen.tiles(card.tiles, *_SMALL_ROWS)
    return pen.picture(card.title)


class _Pen:
    """Draws the parts of a card one below the other."""

    def __init__(self, colours: Palette, width: int, clickable: bool) -> None:
        self._colours, self._width, self._clickable = colours, width, clickable
        self._parts: list[str] = []
        self._y = 0.0

    def picture(self, title: str) -> str:
        """Return what was drawn."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self._width}" height="{self._y:.0f}" '
            f'viewBox="0 0 {self._width} {self._y:.0f}" font-family="{escape(FONT)}" role="group" '
            f'aria-label="{_safe(title)}">{"".join(self._parts)}</svg>'
        )

    def head(self, card: Card) -> None:
        """Write number, name and share of relevance."""
        small, share = self._width < WIDTH, percent(card.share) if card.share > 0 else "0 %"
        size = 13 if small else 15
        number = str(card.neuron) if small else f"Neuron {card.neuron}"
        room = self._width - (len(share) + 1) * _LETTER * 12 - (len(number) + 3) * _LETTER * size
        name = _cut(card.name, room, size)
        more = f'<tspan font-weight="400" fill="{self._colours.accent}">  {_safe(name)}</tspan>' if name else ""
        self._parts.append(
            f"<g{self._asked('neuron', card.neuron)}>"
            f"<title>{_safe(card.title)}</title>"
            f'<rect width="{self._width}" height="24" fill="transparent"/>'
            f'<text x="0" y="17" font-size="{size}" font-weight="600" fill="{self._colours.ink}">{number}{more}</text>'
            f'<text x="{self._width}" y="17" font-size="12" text-anchor="end" fill="{self._colours.muted}">{share}'
            "<title>Share of the layer's positive relevance</title></text></g>"
        )
        self._y = 28

    def tiles(self, tiles: Tiles, columns: int, most: int) -> None:
        """Draw tests, each of which can be clicked."""
        if not len(tiles.tests):
            self.line("No test")
        elif tiles.pictures is not None:
            self._pictures(tiles, tiles.pictures[:most], columns)
        else:
            for number, said, (text, marked) in list(zip(tiles.tests, tiles.said, tiles.texts, strict=True))[:most]:
                self._parts.append(self._button(number, said, 0, self._y, self._width, 18))
                self._parts.append(self._words(text, marked))
                self._y += 19
            self._y += 4

    def _pictures(self, tiles: Tiles, pictures: NDArray[np.uint8], columns: int) -> None:
        """Put pictures on one sheet, and a button over each."""
        count, height, width, _ = pictures.shape
        columns = max(1, min(columns, (self._width + _GAP) // (width + _GAP)))
        rows, step = -(-count // columns), (self._width - width) // max(1, columns - 1)
        sheet = np.zeros((rows * (height + _BELOW), self._width, 4), np.uint8)
        corners = [divmod(place, columns) for place in range(count)]
        for picture, (row, column) in zip(pictures, corners, strict=True):
            top, left = row * (height + _BELOW), column * step
            sheet[top : top + height, left : left + width] = np.pad(
                picture, ((0, 0), (0, 0), (0, 1)), constant_values=255
            )
        content = base64.b64encode(png(sheet)).decode()
        self._parts.append(
            f'<image x="0" y="{self._y:.0f}" width="{sheet.shape[1]}" height="{sheet.shape[0]}" '
            f'style="image-rendering:pixelated" href="data:image/png;base64,{content}"/>'
        )
        for number, said, (row, column) in zip(tiles.tests, tiles.said, corners, strict=False):
            x, y = column * step, self._y + row * (height + _BELOW)
            self._parts.append(self._button(number, said, x, y, width, height))
        self._y += sheet.shape[0] + 2

    def _button(self, test: int, said: str, x: float, y: float, width: float, height: float) -> str:
        return (
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" fill="transparent"'
            f"{self._asked('test', test, said)}><title>{_safe(said)}</title></rect>"
        )

    def _asked(self, part: str, number: int, said: str = "") -> str:
        """Return the attributes of what can be clicked, and by the keyboard; `said` where nothing is written on it."""
        if not self._clickable:
            return ""
        label = f' aria-label="{_safe(said)}"' if said else ""
        return f' role="button" tabindex="0" data-{part}="{number}"{label}'

    def _words(self, text: str, marked: Sequence[tuple[int, int]]) -> str:
        """Write a text around what the neuron looks at most, as much as there is room for, all it looks at marked."""
        runs = "".join(
            f'<tspan font-weight="700" fill="{self._colours.accent}" text-decoration="underline">{_safe(part)}</tspan>'
            if is_marked
            else _safe(part)
            for part, is_marked in looked_at(text, marked, int(self._width / (_LETTER * 12)) - 2)
        )
        return (
            f'<text x="0" y="{self._y + 13:.0f}" font-size="12" fill="{self._colours.ink}" xml:space="preserve" '
            f'pointer-events="none">{runs}</text>'
        )

    def activations(self, shown: Activations, neuron: int) -> None:
        """Draw the histogram with the boundaries of the clusters, and say how clear they are."""
        cells = " \u00b7 ".join(str(count) for count in shown.cells)
        clear = "" if shown.silhouette is None else f"silhouette {shown.silhouette:.2f}"
        line = self._text(0, f"Activations, {clear}" if clear else "Activations")
        if cells:
            line += (
                f"<g{self._asked('clusters', neuron)}>"
                "<title>Covered cells per cluster, from the lowest activations to the highest</title>"
                f"{self._text(self._width, f'{cells} cells', 'end', link=self._clickable)}</g>"
            )
        self._parts.append(line)
        self._y += _LINE + 3
        edges, height = bin_edges(shown.values, shown.values[:0]), 38.0
        shares = np.nan_to_num(bin_shares(shown.values, edges))
        floor = 50.0 / max(1, len(shown.values))  # half an input: below every bar
        tall = height * np.clip(np.log(np.maximum(shares, floor) / floor) / np.log(100.0 / floor), 0, 1)
        wide = self._width / len(shares)
        bars = "".join(
            f"M{i * wide:.1f} {self._y + height:.1f}v-{t:.1f}h{wide:.1f}v{t:.1f}z" for i, t in enumerate(tall) if t
        )
        self._parts.append(f'<path d="{bars}" fill="{self._colours.accent}" fill-opacity="0.55"/>')
        for place in (shown.boundaries - edges[0]) / (edges[-1] - edges[0]) * self._width:
            self._parts.append(
                f'<path d="M{place:.1f} {self._y:.1f}v{height:.0f}" stroke="{self._colours.ink}" '
                'stroke-width="1.5" stroke-dasharray="2 2"/>'
            )
        self._parts.append(f'<path d="M0 {self._y + height:.1f}h{self._width}" stroke="{self._colours.line}"/>')
        self._y += height + 6

    def classes(self, shown: Classes, dark: bool) -> None:
        """List classes with a bar of the relevance, and the change when the neuron is silenced."""
        order = shown.listed(CLASSES)
        names = 92.0 if max(len(shown.names[i]) for i in order) > 6 else 44.0
        left, right = names, self._width - 74.0
        largest = max(1e-12, float(np.nanmax(np.abs(shown.relevance[order]))))
        negative = float(np.nanmin(shown.relevance[order])) < 0
        zero = (left + right) / 2 if negative else left
        scale = SCHEMES["red-blue"].dark if dark else SCHEMES["red-blue"].light
        against, supports = scale[1], scale[-2]
        self._parts += [self._text(0, "Relevance"), self._text(self._width, shown.measure, "end")]
        self._y += _LINE
        top = self._y
        for place in order:
            value = float(shown.relevance[place])
            long = (right - zero) * abs(value) / largest if np.isfinite(value) else 0.0
            start = zero if value >= 0 else zero - long
            self._parts += [
                self._text(0, _cut(shown.names[place], names - 6, _SMALL), ink=True),
                f'<rect x="{start:.1f}" y="{self._y + 2:.1f}" width="{long:.1f}" height="9" '
                f'fill="{supports if value >= 0 else against}"><title>{_safe(shown.names[place])}: '
                f"{signed(value, '+.3g')}</title></rect>",
            ]
            self._y += _LINE - 1
        self._parts.append(f'<path d="M{zero:.1f} {top:.1f}V{self._y:.1f}" stroke="{self._colours.muted}"/>')
        self._changes(shown, order, top, right + 10)
        self._y += 4
        # Empty before it is measured: a card keeps its height, and the buttons at its right their place.
        self.line(shown.verdict, self._width - _BUTTONS)

    def _changes(self, shown: Classes, order: Sequence[int], top: float, left: float) -> None:
        """Write what silencing changes for classes, from `top` down, each in the range of what others change."""
        beyond, right = shown.beyond, self._width - 26.0
        ends = np.concatenate([array[list(order)] for array in (shown.low, shown.high, shown.change)])
        most = max(1.0, float(np.nanmax(np.abs(ends), initial=0.0)))

        def across(change: float) -> float:
            return (left + right) / 2 + change / most * (right - left) / 2

        for row, place in enumerate(order):
            y = top + (_LINE - 1) * row
            low, high, change = (float(array[place]) for array in (shown.low, shown.high, shown.change))
            if np.isfinite([low, high, change]).all():
                fill = self._colours.ink if place in beyond else self._colours.ground
                self._parts.append(
                    f"<g><title>{_safe(shown.names[place])}: {signed(change, '+.1f')} %; without another neuron "
                    f"{signed(low, '+.1f')} to {signed(high, '+.1f')} %</title>"
                    f'<rect x="{across(low) - 2:.1f}" y="{y + 3:.1f}" width="{across(high) - across(low) + 4:.1f}" '
                    f'height="7" rx="3.5" fill="{self._colours.line}"/><circle cx="{across(change):.1f}" '
                    f'cy="{y + 6.5:.1f}" r="2.5" fill="{fill}" stroke="{self._colours.ink}"/></g>'
                )
            written = signed(change, "+.0f") if np.isfinite(change) else "\u2013"
            self._parts.append(self._text(self._width, written, "end", ink=place in beyond, y=y))

    def hypotheses(self, shown: Sequence[tuple[str, str]]) -> None:
        """List hypotheses with their scores."""
        self._parts += [self._text(0, "Best hypotheses"), self._text(self._width, "score", "end")]
        self._y += _LINE
        for name, score in shown:
            self._parts += [
                self._text(0, _cut(name, self._width - 40, _SMALL), ink=True),
                self._text(self._width, score, "end", ink=True),
            ]
            self._y += _LINE - 1
        self._y += 4

    def line(self, text: str, room: float = WIDTH) -> None:
        """Write a line of its own, in so many pixels."""
        cut = _cut(text, min(room, self._width), _SMALL)
        self._parts.append(
            f"<g><title>{_safe(text)}</title>{self._text(0, cut)}</g>" if cut != text else self._text(0, cut)
        )
        self._y += _LINE + 3

    def _text(
        self, x: float, text: str, anchor: str = "start", ink: bool = False, link: bool = False, y: float | None = None
    ) -> str:
        colour = self._colours.accent if link else self._colours.ink if ink else self._colours.muted
        line, top = ' text-decoration="underline"' if link else "", self._y if y is None else y
        return (
            f'<text x="{x:.0f}" y="{top + 11:.0f}" font-size="{_SMALL}" text-anchor="{anchor}" fill="{colour}"'
            f"{line}>{_safe(text)}</text>"
        )


def _safe(text: str) -> str:
    """Write a text inside markup, with blanks for what cannot be printed."""
    return escape("".join(character if character.isprintable() else " " for character in text))


def looked_at(text: str, marked: Sequence[tuple[int, int]], room: int) -> list[tuple[str, bool]]:
    """Cut a text to so many letters around the first of its marked parts; return its parts, and which are marked."""
    first, last = marked[0] if marked else (0, 0)
    last = min(last, first + room)
    start = max(0, first - (room - last + first) // 3)
    stop = min(len(text), start + room)
    if start:  # whole words
        start += max(0, text.find(" ", start, first) + 1 - start)
    if stop < len(text):
        space = text.rfind(" ", max(last, start + 1), stop)
        stop = space if space > 0 else stop
    letters = np.zeros(len(text), np.bool_)
    for begin, end in marked:
        letters[begin:end] = True
    edges = [start, *(np.flatnonzero(np.diff(letters[start:stop])) + start + 1).tolist(), stop]
    parts = [(text[begin:end], bool(letters[begin])) for begin, end in pairwise(edges) if begin < end]
    before, after = [("\u2026", False)] * (start > 0), [("\u2026", False)] * (stop < len(text))
    return [*before, *parts, *after]


def _cut(text: str, room: float, size: float) -> str:
    """Shorten a text to the pixels that there are."""
    most = max(0, int(room / (_LETTER * size)))
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + "\u2026" if most > 1 else ""


def cropped(inputs: NDArray[np.floating], boxes: NDArray[np.int64], *, whole: bool = False) -> NDArray[np.uint8]:
    """Return pictures of what neurons look at in pictures (k, C, H, W), or of all of it, as a card shows them.

    `boxes` (k, 4) are top, bottom, left and right, all of one size. They grow where a picture of whole multiples needs
    it, and stay inside the input. Larger pictures are made smaller.
    """
    height, width = inputs.shape[2:]
    size = (height, width) if whole else (int(boxes[0, 1] - boxes[0, 0]), int(boxes[0, 3] - boxes[0, 2]))
    grown = _wide(size[1], width)
    wanted = (min(height, size[0] + grown - size[1]), grown)
    cut = []
    for picture, (top, bottom, left, right) in zip(inputs, boxes, strict=True):
        y = int(np.clip((top + bottom - wanted[0]) // 2, 0, height - wanted[0]))
        x = int(np.clip((left + right - wanted[1]) // 2, 0, width - wanted[1]))
        cut.append(picture[:, y : y + wanted[0], x : x + wanted[1]])
    if grown <= _TILE[1]:
        return pictures(np.stack(cut), _TILE[0])
    smaller = _TILE[1], max(1, round(_TILE[1] * wanted[0] / grown))
    return np.stack(
        [np.asarray(Image.fromarray(one).resize(smaller, Image.Resampling.BOX)) for one in pictures(np.stack(cut), 1)]
    )


def _wide(size: int, most: int) -> int:
    """Return the smallest width from a size on of which a whole multiple is as wide as a picture should be."""
    for wide in range(size, min(most, _TILE[1]) + 1):
        if -(-_TILE[0] // wide) * wide <= _TILE[1]:
            return wide
    return size
