"""A neuron's card as one wide figure, for a slide of a story: what the card shows, side by side and larger."""

from __future__ import annotations

from html import escape

import numpy as np
import plotly.graph_objects as go

from idc_core.figures.card_parts import Activations, Card, Classes, Tiles
from idc_core.figures.cards import CLASSES, looked_at
from idc_core.figures.clusters import bin_edges, bin_shares
from idc_core.figures.palette import SCHEMES, Palette, palette
from idc_core.figures.picture_figure import placed
from idc_core.figures.style import finish

_HEIGHT = 560
_TESTS, _SHAPE = 0.46, 2.6
"""Share of the width that tests take, and how often its height goes into a slide's width."""

_BARS, _CHANGES, _HISTOGRAM = ([0.53, 0.74], [0.0, 0.56]), ([0.79, 1.0], [0.0, 0.56]), ([0.53, 1.0], [0.74, 1.0])
"""Where the three charts lie, across and up."""

_ROWS, _A_ROW, _TEXTS = 2, 4, 7
_LETTERS = 46
"""Letters of a text on its line."""


def card_figure(card: Card, title: str, *, dark: bool = False) -> go.Figure:
    """Draw a card of a neuron with activations and classes: tests at the left, its charts at the right."""
    colours, figure = palette(dark), go.Figure()
    notes, images = _tests(card.tiles)
    if card.hypotheses:
        said = ", ".join(f"{name} ({score})" if score else name for name, score in card.hypotheses)
        notes.append(_note(f"Best hypotheses: {said}", 0, 0.08))
    if card.activations is not None:
        notes.append(_note(_histogram(figure, card.activations, colours), _HISTOGRAM[0][0], 1.1))
    if card.classes is not None:
        _classes(figure, card.classes, colours, dark)
        notes += [
            _note("Relevance", _BARS[0][0], 0.64),
            _note("Error without it, %" if "error" in card.classes.measure else "Accuracy without it", 0.79, 0.64),
            _note(card.classes.verdict, _BARS[0][0], -0.07),
        ]
    figure.update_layout(images=images, annotations=[note for note in notes if note["text"]], showlegend=False)
    finish(figure, title, colours, height=_HEIGHT)
    return figure.update_layout(margin={"l": 8, "r": 24, "b": 40}, bargap=0.25)


def _note(text: str, x: float, y: float) -> dict[str, object]:
    return {
        "text": escape(text, quote=False),
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "top",
        "align": "left",
        "showarrow": False,
    }


def _tests(tiles: Tiles) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return a card's tests as notes and images."""
    if tiles.pictures is None:
        lines = [
            "".join(
                f"<b>{escape(part, quote=False)}</b>" if is_marked else escape(part, quote=False)
                for part, is_marked in looked_at(text, marked, _LETTERS)
            )
            for text, marked in tiles.texts[:_TEXTS]
        ]
        return [_note("", 0, 1) | {"text": "<br><br>".join(lines)}], []
    wide = _TESTS / _A_ROW
    high = min(0.88 / _ROWS, _SHAPE * wide * tiles.pictures.shape[1] / tiles.pictures.shape[2])
    images = []
    for place, picture in enumerate(tiles.pictures[: _ROWS * _A_ROW]):
        row, column = divmod(place, _A_ROW)
        images.append(placed(picture, (column + 0.5) * wide, 1 - row * high, 0.94 * wide, 0.94 * high))
    return [], images


def _histogram(figure: go.Figure, shown: Activations, colours: Palette) -> str:
    """Draw the activations with the boundaries of the clusters; return what they are called."""
    edges = bin_edges(shown.values, shown.values[:0])
    middles = (edges[1:] + edges[:-1]) / 2
    bars = {
        "marker": {"color": colours.accent, "opacity": 0.55},
        "hovertemplate": "%{x:.3g}: %{y:.2g} %<extra></extra>",
    }
    figure.add_bar(x=middles, y=bin_shares(shown.values, edges), width=np.diff(edges), xaxis="x", yaxis="y", **bars)
    for place in shown.boundaries.tolist():
        figure.add_shape(
            type="line", x0=place, x1=place, y0=_HISTOGRAM[1][0], y1=1, yref="paper", line={"dash": "dot", "width": 2}
        )
    across, up = _HISTOGRAM
    figure.update_layout(
        xaxis={"domain": across, "anchor": "y", "showgrid": False},
        yaxis={"domain": up, "anchor": "x", "type": "log", "showgrid": False, "showticklabels": False},
        shapes=[shape.update(line_color=colours.ink) for shape in figure.layout.shapes],
    )
    return "Activations" if shown.silhouette is None else f"Activations, silhouette {shown.silhouette:.2f}"


def _classes(figure: go.Figure, shown: Classes, colours: Palette, dark: bool) -> None:
    """Draw the relevance of each class, and what silencing changes beside what other neurons change."""
    order = np.array(shown.listed(CLASSES))
    names = [escape(shown.names[place], quote=False) for place in order]
    scale = SCHEMES["red-blue"].dark if dark else SCHEMES["red-blue"].light
    values, change, low, high = (array[order] for array in (shown.relevance, shown.change, shown.low, shown.high))
    figure.add_bar(
        x=values,
        y=names,
        orientation="h",
        marker={"color": [scale[-2] if value >= 0 else scale[1] for value in values]},
        hovertemplate="%{y}: %{x:.3g}<extra></extra>",
        xaxis="x2",
        yaxis="y2",
    )
    line = {"color": colours.line, "width": 12}
    for name, start, end in zip(names, low.tolist(), high.tolist(), strict=True):
        figure.add_scatter(
            x=[start, end], y=[name, name], mode="lines", line=line, hoverinfo="skip", xaxis="x3", yaxis="y3"
        )
    fills = [colours.ink if place in shown.beyond else colours.ground for place in order]
    figure.add_scatter(
        x=change,
        y=names,
        mode="markers",
        marker={"size": 10, "color": fills, "line": {"color": colours.ink, "width": 1.5}},
        customdata=np.stack([low, high], 1),
        hovertemplate="%{y}: %{x:+.1f} %<br>others %{customdata[0]:+.1f} to %{customdata[1]:+.1f} %<extra></extra>",
        xaxis="x3",
        yaxis="y3",
    )
    rows = {"type": "category", "categoryorder": "array", "categoryarray": names, "autorange": "reversed"}
    figure.update_layout(
        xaxis2={"domain": _BARS[0], "anchor": "y2", "showgrid": False, "showticklabels": False, "zeroline": True},
        yaxis2={**rows, "domain": _BARS[1], "anchor": "x2", "showgrid": False, "ticks": ""},
        xaxis3={"domain": _CHANGES[0], "anchor": "y3", "ticksuffix": " %", "zeroline": True, "nticks": 5},
        yaxis3={**rows, "domain": _CHANGES[1], "anchor": "x3", "showticklabels": False, "matches": "y2"},
    )
