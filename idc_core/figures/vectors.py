"""Inputs that are no pictures, beside their relevance: feature vectors as bars, time series as lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idc_core.errors import SettingError
from idc_core.figures.palette import CLASSES, SCHEMES, Palette, palette, signed_fill
from idc_core.figures.style import BAR_PIXELS, finish
from idc_core.figures.wording import signed, typeset

MOST = 20
"""Features that are drawn, at most: those with the strongest relevance."""

_Explained = Sequence[tuple[str, NDArray[np.floating]]]
"""Explanations: the label of each, and its relevance."""


def standardised(values: NDArray[np.floating], like: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return values (F,) in standard deviations from the mean of other inputs (n, F); 0 where these are constant."""
    mean, deviation = like.mean(0, dtype=np.float64), like.std(0, dtype=np.float64)
    return np.where(deviation > 0, (values - mean) / np.where(deviation > 0, deviation, 1), 0.0)


def feature_bars(
    names: Sequence[str],
    values: NDArray[np.floating],
    like: NDArray[np.floating],
    explained: _Explained,
    title: str,
    *,
    scheme: str = "red-blue",
    dark: bool = False,
) -> go.Figure:
    """Draw the values of a feature vector, and beside them its relevance by one explanation or several.

    Parameters
    ----------
    names : sequence of str
        Of the F features.
    values : ndarray (F,)
        Drawn in standard deviations from the mean of `like`, written as they are.
    like : ndarray (n, F)
        Training inputs.
    explained : sequence of (str, ndarray (F,))
        The first one orders the features; of more than `MOST` the strongest are drawn.
    title : str
    scheme : str
        A key of `palette.SCHEMES`.
    dark : bool

    Returns
    -------
    Figure
    """
    if not (len(names) == len(values) == len(explained[0][1])):
        raise SettingError(
            f"Expected a name and a relevance for each of {len(values)} values; got {len(names)} names and "
            f"{len(explained[0][1])} relevances."
        )
    colours = palette(dark)
    order = np.argsort(-np.abs(explained[0][1]), kind="stable")[:MOST][::-1]
    # Bars of one name would stand on each other.
    rows = [names[place] if len(set(names)) == len(names) else f"{names[place]} ({place})" for place in order]
    scaled = standardised(values, like)[order]
    titles = ["value (standard deviations from the training mean)", *(label for label, _ in explained)]
    figure = make_subplots(1, len(titles), shared_yaxes=True, horizontal_spacing=0.04, subplot_titles=titles)
    figure.add_bar(
        x=scaled,
        y=rows,
        orientation="h",
        marker={"color": colours.accent},
        text=[typeset(f"{values[place]:.3g}") for place in order],
        textposition="outside",
        cliponaxis=False,
        showlegend=False,
        hovertemplate="%{y} = %{text}<extra></extra>",
        row=1,
        col=1,
    )
    for column, (_, relevance) in enumerate(explained, start=2):
        _add_signed(figure, relevance[order], rows, colours, scheme, {"row": 1, "col": column}, flat=True)
    figure.update_layout(barmode="relative", bargap=0.35)
    for column, shown in enumerate((scaled, *(relevance[order] for _, relevance in explained)), start=1):
        figure.update_xaxes(range=_with_room(shown), zeroline=True, col=column)
    finish(figure, title, colours, height=170 + BAR_PIXELS * len(rows))
    figure.update_annotations(font={"size": 12, "color": colours.ink})
    return figure


def series_lines(
    values: NDArray[np.floating], explained: _Explained, title: str, *, scheme: str = "red-blue", dark: bool = False
) -> go.Figure:
    """Draw a time series (channels, steps) as lines, and below them the relevance (steps,) of each explanation."""
    if values.ndim != 2 or any(len(relevance) != values.shape[1] for _, relevance in explained):
        raise SettingError(
            f"Expected a series (channels, steps) and a relevance for each step; got {values.shape} and "
            f"{[relevance.shape for _, relevance in explained]}."
        )
    colours, steps = palette(dark), np.arange(values.shape[1])
    titles = ["values", *(label for label, _ in explained)]
    figure = make_subplots(len(titles), 1, shared_xaxes=True, vertical_spacing=0.09, subplot_titles=titles)
    for channel, line in enumerate(values):
        colour = colours.ink if len(values) == 1 else CLASSES[channel % len(CLASSES)]
        figure.add_scatter(
            x=steps,
            y=line,
            mode="lines",
            name=f"channel {channel}",
            line={"color": colour, "width": 1.8},
            showlegend=len(values) > 1,
            row=1,
            col=1,
        )
    for row, (_, relevance) in enumerate(explained, start=2):
        _add_signed(figure, relevance, list(map(str, steps)), colours, scheme, {"row": row, "col": 1}, flat=False)
        figure.update_yaxes(title="relevance", row=row)
    figure.update_layout(barmode="relative", bargap=0.1)
    figure.update_xaxes(title="step", row=len(titles), type="linear")
    finish(figure, title, colours, height=140 + 150 * len(titles))
    figure.update_annotations(font={"size": 12, "color": colours.ink})
    return figure


def _with_room(values: NDArray[np.floating]) -> list[float]:
    """Return a range of the axis with room for the numbers at both ends of its bars."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    room = 0.28 * ((high - low) or 1.0)
    return [low - room if low < 0 else 0.0, high + room if high > 0 else 0.0 if low < 0 else 1.0]


def _add_signed(
    figure: go.Figure,
    relevance: NDArray[np.floating],
    places: list[str],
    colours: Palette,
    scheme: str,
    where: dict[str, int],
    *,
    flat: bool,
) -> None:
    """Add bars of relevance for, and hatched ones against; lying ones with their numbers."""
    negative, positive = SCHEMES[scheme].fills
    for name, sign, fill, pattern in (("for", 1, positive, ""), ("against", -1, negative, "/")):
        part = np.clip(sign * relevance, 0, None) * sign
        mine = sign * relevance > 0
        sides = {"x": part, "y": places, "orientation": "h"} if flat else {"x": places, "y": part}
        texts = [signed(float(value), "+.2g") if own else "" for value, own in zip(part, mine, strict=True)]
        numbers = {"text": texts, "textposition": "outside", "cliponaxis": False} if flat else {}
        figure.add_bar(
            **sides,
            **numbers,
            name=name,
            legendgroup=name,
            showlegend=sum(where.values()) == 3,
            marker=signed_fill(fill, pattern, colours),
            hovertemplate=f"%{{{'y' if flat else 'x'}}}<br>{name} %{{{'x' if flat else 'y'}:.4g}}<extra></extra>",
            **where,
        )
