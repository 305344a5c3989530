"""Draw the mark: with the name for either ground, alone as an icon, and on a picture for cards that announce a link.

``python -m docs.pictures.marks`` writes ``assets/logo.svg``, ``logo-dark.svg``, ``icon.png`` and ``social.png``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from PIL import Image, ImageDraw, ImageFont

from idc_core.figures.palette import Palette, between, palette

ASSETS = Path(__file__).resolve().parents[2] / "assets"
GRID = ("ooe", "xoo", "eoo")
"""The mark, row by row: covered, empty, and reached only by misclassified tests."""
SENTENCE = ("What have the tests of a", "neural network not exercised?")
PICTURE = Path(__file__).parent / "overview.png"

_FONT = FontProperties(family="DejaVu Sans", weight="bold")


def _squares(side: float, gap: float) -> list[tuple[str, float, float]]:
    """Return state, left and top of each square."""
    step = side + gap
    return [(state, column * step, row * step) for row, line in enumerate(GRID) for column, state in enumerate(line)]


def _name(text: str, size: float, left: float, foot: float) -> str:
    """Return a name as the path of its outlines, so that it looks the same with every font."""
    path = TextPath((0, 0), text, size=size, prop=_FONT)
    parts = []
    for corners, code in path.iter_segments(curves=True):
        points = np.asarray(corners).reshape(-1, 2) * (1, -1) + (left, foot)
        letter = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}[int(code)]
        parts.append(letter + ("" if letter == "Z" else " ".join(f"{x:.2f},{y:.2f}" for x, y in points)))
    return "".join(parts)


def logo(colours: Palette) -> str:
    """Return the mark with the name as SVG, for a ground."""
    parts = []
    for state, left, top in _squares(6.5, 1.75):
        place = f'x="{left + 1:g}" y="{top + 3:g}" width="6.5" height="6.5"'
        if state == "e":
            parts.append(f'<rect {place} fill="none" stroke="{colours.muted}" stroke-width="1"/>')
        else:
            parts.append(f'<rect {place} fill="{colours.error if state == "x" else colours.accent}"/>')
    name = _name("IDC Studio", 18, 32, 21)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="148" height="28" viewBox="0 0 148 28" role="img" '
        f'aria-label="IDC Studio">{"".join(parts)}<path fill="{colours.ink}" d="{name}"/></svg>\n'
    )


def mark(side: int, colours: Palette) -> Image.Image:
    """Return the mark alone, on nothing."""
    times = 8
    image = Image.new("RGBA", (times * side, times * side))
    pen = ImageDraw.Draw(image)
    square, gap = side * 0.27, side * 0.075
    margin = (side - 3 * square - 2 * gap) / 2
    for state, left, top in _squares(square, gap):
        corners = [times * (place + margin) for place in (left, top, left + square, top + square)]
        if state == "e":
            pen.rectangle(corners, outline=colours.muted, width=max(1, round(times * side / 24)))
        else:
            pen.rectangle(corners, fill=colours.error if state == "x" else colours.accent)
    return image.resize((side, side), Image.Resampling.LANCZOS)


def _icon() -> Image.Image:
    """Return the mark in colours that are seen on the tabs of a light and of a dark browser."""
    light, dark = palette(dark=False), palette(dark=True)
    middle = {name: between(getattr(light, name), getattr(dark, name), 0.45) for name in ("accent", "error", "muted")}
    return mark(64, replace(light, **middle))


def social() -> Image.Image:
    """Return the picture for cards: mark, name, what it asks, and a page."""
    colours = palette(dark=True)
    image = Image.new("RGB", (1280, 640), colours.ground)
    sign = mark(132, colours)
    image.paste(sign, (72, 92), sign)
    pen = ImageDraw.Draw(image)
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    bold = ImageFont.truetype(fonts / "DejaVuSans-Bold.ttf", 58)
    plain = ImageFont.truetype(fonts / "DejaVuSans.ttf", 29)
    pen.text((72, 262), "IDC Studio", fill=colours.ink, font=bold)
    pen.multiline_text((74, 356), "\n".join(SENTENCE), fill=colours.muted, font=plain, spacing=12)
    page = Image.open(PICTURE).convert("RGB")
    page = page.resize((760, round(760 * page.height / page.width)), Image.Resampling.LANCZOS)
    page = page.crop((0, 0, 760, min(page.height, 548)))
    image.paste(page, (580, 92))
    pen.rectangle((579, 91, 1340, 92 + page.height), outline=colours.line, width=2)
    return image


def main() -> None:
    """Write all of them."""
    (ASSETS / "logo.svg").write_text(logo(palette(dark=False)), encoding="utf-8")
    (ASSETS / "logo-dark.svg").write_text(logo(palette(dark=True)), encoding="utf-8")
    _icon().save(ASSETS / "icon.png", optimize=True)
    social().save(ASSETS / "social.png", optimize=True)


if __name__ == "__main__":
    main()
