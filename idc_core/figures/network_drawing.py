"""A drawing of a network: its layers in order with their shapes, coloured by the IDC of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from idc_core.figures.palette import at, ink_on, palette
from idc_core.figures.style import finish
from idc_core.figures.wording import percent

_A_ROW = 6
_ROW_PIXELS = 92
_LINE_PIXELS = 24
"""Pixels of a row for another line of text in its boxes."""
WIDTH, _HEIGHT = 0.84, 0.62
"""Share of its place that a layer's box fills."""
_MOST = 20
"""Characters of a layer's name that fit into its box."""


def network_drawing(
    layers: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    scores: Mapping[str, float],
    title: str,
    *,
    selected: str = "",
    dark: bool = False,
) -> go.Figure:
    """Draw one box per layer, from input to output, row by row; those with an IDC are filled.

    Parameters
    ----------
    layers : sequence of str
        In the order in which they run.
    shapes : mapping
        Shape of each layer's output for one input; layers without one are written by name alone.
    scores : mapping
        IDC of the layers that have one, 0..1; the boxes of others are empty.
    selected : str, optional
        The layer that is framed.

    Returns
    -------
    Figure
        Boxes are bars, which a page can make clickable; their `customdata` is the layer's name.
    """
    colours = palette(dark)
    rows = math.ceil(len(layers) / _A_ROW)
    places = [(index % _A_ROW, -(index // _A_ROW)) for index in range(len(layers))]
    figure = go.Figure()
    for here, there in itertools.pairwise(places):
        _arrow(figure, here, there, colours.muted)
    scale = {"colorscale": colours.scale, "cmin": 0, "cmax": 100}
    counted = [place for place, layer in enumerate(layers) if layer in scores]
    others = [place for place, layer in enumerate(layers) if layer not in scores]
    filled = [100 * scores[layers[place]] for place in counted]
    for shown, marker, inks in (
        (counted, {"color": filled, **scale}, [ink_on(at(colours.scale, score / 100)) for score in filled]),
        (others, {"color": colours.ground}, [colours.ink] * len(others)),
    ):
        names = [layers[place] for place in shown]
        framed = [layer == selected for layer in names]
        line = {
            "color": [colours.error if is_framed else colours.muted for is_framed in framed],
            "width": [3 if is_framed else 1 for is_framed in framed],
        }
        figure.add_bar(
            x=[places[place][0] for place in shown],
            y=[_HEIGHT] * len(shown),
            base=[places[place][1] - _HEIGHT / 2 for place in shown],
            width=WIDTH,
            marker=marker | {"line": line},
            text=[_written(layer, shapes.get(layer), scores.get(layer)) for layer in names],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            constraintext="none",
            insidetextfont={"color": inks, "size": 12},
            customdata=names,
            hovertext=[_spoken(layer, shapes.get(layer), scores.get(layer)) for layer in names],
            hoverinfo="text",
        )
    figure.update_xaxes(visible=False, range=[-0.5, _A_ROW - 0.5], fixedrange=True)
    figure.update_yaxes(visible=False, range=[0.5 - rows, 0.5], fixedrange=True)
    figure.update_layout(barmode="overlay", showlegend=False)
    tall = _ROW_PIXELS + _LINE_PIXELS * any(len(_name(layer)) > 1 for layer in layers)
    finish(figure, title, colours, height=60 + tall * rows)
    return figure.update_layout(margin={"l": 8, "r": 8, "b": 8})


def _arrow(figure: go.Figure, here: tuple[int, int], there: tuple[int, int], colour: str) -> None:
    """Lead from a box to the next one: straight, or down and back to the beginning of the next row."""
    (x, y), (next_x, next_y) = here, there
    middle = y - 0.5
    if y == next_y:
        tail, head = (x + WIDTH / 2, float(y)), (next_x - WIDTH / 2, float(y))
    else:
        tail, head = (float(next_x), middle), (float(next_x), next_y + _HEIGHT / 2)
        path = f"M {x} {y - _HEIGHT / 2} L {x} {middle} L {next_x} {middle}"
        figure.add_shape(type="path", path=path, line={"color": colour, "width": 1.5})
    ends = {"x": head[0], "y": head[1], "ax": tail[0], "ay": tail[1]}
    axes = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
    figure.add_annotation(text="", arrowhead=2, arrowwidth=1.5, arrowcolor=colour, **ends, **axes)


def _written(layer: str, shape: tuple[int, ...] | None, score: float | None) -> str:
    """Write what stands in a box: the name, the shape, and IDC."""
    lines = _name(layer) + ([_sides(shape)] if shape else []) + ([] if score is None else [percent(score)])
    return "<br>".join(lines)


def _name(layer: str) -> list[str]:
    """Return a name in lines that fit: a long one in two, broken at a dot, and of a longer one the end."""
    if len(layer) <= _MOST:
        return [layer]
    cut = layer.rfind(".", 0, _MOST) + 1
    if cut and len(layer) - cut <= _MOST:
        return [layer[:cut], layer[cut:]]
    return [f"\u2026{layer[1 - _MOST :]}"]


def _sides(shape: tuple[int, ...]) -> str:
    return " \u00d7 ".join(map(str, shape))


def _spoken(layer: str, shape: tuple[int, ...] | None, score: float | None) -> str:
    """Say what the pointer is over."""
    size = f"<br>output {_sides(shape)}" if shape else ""
    covered = "not counted" if score is None else f"IDC {percent(score)}"
    return f"layer {layer}{size}<br>{covered}"
