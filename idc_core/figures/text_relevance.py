"""Relevance as text: words that carry its colour, its sign and its number, and the legend of a colour scale."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from idc_core.figures.palette import SCHEMES, palette, relevance_colours
from idc_core.figures.wording import signed

_FAINT = 0.1
"""Share of the limit below which a word stays without colour."""

_NUMBERED = 0.33
"""Share of the limit from which a word shows its number."""

_DEEPEST = 0.42
"""How far up the scale a word's ground goes: text stays readable on it in either theme (contrast 4.5)."""


def words(
    tokens: Sequence[str],
    relevance: NDArray[np.floating],
    limit: float,
    scheme: str = "red-blue",
    *,
    glue: str = " ",
    marks: Collection[str] = (),
    dark: bool = False,
) -> str:
    """Write words as HTML on a ground of their relevance (n,).

    Words for are bold, words against italic with a dotted line; every coloured word has its number as a tooltip,
    strong ones also behind them. Pieces of words bring their spaces along, so that nothing is between them (`glue`);
    `marks`, such as the one of the beginning, are small.
    """
    if not len(tokens):
        return "<p>(no words)</p>"
    grounds = relevance_colours(relevance * _DEEPEST, limit, scheme, dark=dark)
    ink = palette(dark).ink
    written = [
        (" " if token.startswith(" ") else "") + _word(token.removeprefix(" "), token.strip() in marks, ink, *of_token)
        for token, *of_token in zip(tokens, relevance / limit, relevance, grounds, strict=False)
    ]
    return f'<p style="line-height:2.1;margin:0">{glue.join(written)}</p>'


def _word(token: str, mark: bool, ink: str, share: float, value: float, ground: NDArray[np.uint8]) -> str:
    text, number = escape(token), signed(value, "+.3g")
    if mark:
        text = f"<small>{text}</small>"
    if abs(share) < _FAINT:
        return f'<span title="{number}">{text}</span>'
    sign = "font-weight:600" if value > 0 else "font-style:italic;border-bottom:2px dotted currentColor"
    red, green, blue = (int(channel) for channel in ground)
    style = f"background:rgb({red},{green},{blue});color:{ink};padding:1px 3px;border-radius:3px;{sign}"
    behind = f'<sub style="font-size:max(0.7em,11px)">&nbsp;{number}</sub>' if abs(share) >= _NUMBERED else ""
    return f'<span title="{number}" style="{style}">{text}{behind}</span>'


def legend(against: str, supports: str, scheme: str = "red-blue", *, dark: bool = False) -> str:
    """Return a colour scale as HTML, with the names of its two ends; `scheme` is a key of `palette.SCHEMES`."""
    stops = ",".join(colour for _, colour in SCHEMES[scheme].scale(dark))
    bar = (
        f'<span style="flex:0 1 220px;height:12px;border:1px solid #808080;background:linear-gradient(90deg,{stops})">'
    )
    return (
        '<div style="display:flex;gap:0.6em;align-items:center;flex-wrap:wrap;font-size:0.875rem">'
        f"<span>{escape(against)}</span>{bar}</span><span>{escape(supports)}</span></div>"
    )
