"""Figures of the Class errors page: distances of classes, third classes of a pair, and what inspecting pairs finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.confusion.distance import fold
from idc_core.confusion.evaluation import Curve
from idc_core.figures.palette import ON_FILL, Palette, at, ink_on, palette
from idc_core.figures.style import SHORT, finish

MOST_CLICKABLE = 40
"""Classes up to which every pair is a square of its own that can be clicked."""

MOST_ROWS = 200
"""Rows drawn at most; more classes are put together."""

_MOST_NUMBERS = 12
"""Classes up to which every distance is written into its square."""

_MARKS = {
    "hit": ("reported, truly confused", "circle"),
    "false": ("reported, not certain", "circle-open"),
    "missed": ("truly confused, not reported", "x-thin"),
    "reported": ("reported", "circle-open"),
}
"""What is known of a pair: its name in the legend and its mark."""


def distance_map(
    distance: NDArray[np.floating],
    order: NDArray[np.int64],
    names: Sequence[str],
    marks: Mapping[str, NDArray[np.int64]],
    title: str,
    *,
    selected: tuple[int, int] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draw the distance of every two classes (classes, classes) as a square, the closer the stronger.

    `order` (k,) holds the classes to draw, close ones next to each other; more than `MOST_ROWS` share rows. Up to
    `MOST_CLICKABLE` classes the squares can be clicked, with the two classes, such as ``3-5``, as `customdata`, and
    `marks` shows pairs (pairs, 2) by a key of `_MARKS`. The `selected` pair gets a frame.
    """
    colours = palette(dark)
    folded, groups = fold(distance, order, MOST_ROWS)
    labels = [_group_name(group, names) for group in groups]
    small = len(order) <= MOST_CLICKABLE
    place = {int(number): row for row, group in enumerate(groups) for number in group}
    nearest, farthest = float(np.nanmin(folded, initial=np.inf)), float(np.nanmax(folded, initial=-np.inf))

    def ink(first: int, second: int) -> str:
        """Return the colour of what is written on a pair's square."""
        closeness = (farthest - float(distance[first, second])) / ((farthest - nearest) or 1.0)
        return ink_on(at(colours.scale, closeness))

    heatmap = go.Heatmap(
        z=np.asarray(folded, np.float32),
        zmin=nearest,
        zmax=farthest,
        xgap=int(small),
        ygap=int(small),
        colorscale=[(1 - place, colour) for place, colour in reversed(colours.scale)],
        hoverongaps=False,
        colorbar={"title": {"text": "distance", "side": "right"}, "thickness": 12},
        hoverinfo="skip" if small else "z",
    )
    if not small:
        heatmap.update(x=labels, y=labels, hovertemplate="%{y}<br>%{x}<br>distance %{z:.4g}<extra></extra>")
    figure = go.Figure(heatmap)
    if small:
        _squares(figure, distance, order, names, ink)
        for key, pairs in marks.items():
            _marks(figure, key, pairs, place, colours, ink)
    ticks = {"tickvals": list(range(len(labels))), "ticktext": labels, "tickmode": "array"} if small else {}
    size = {"showgrid": False, "zeroline": False, "ticks": "outside" if small else ""}
    longest = max((len(label) for label in labels), default=0) if small else 0
    figure.update_xaxes(**ticks, **size, tickangle=-45 if longest > SHORT else 0, showticklabels=small)
    figure.update_yaxes(**ticks, **size, autorange="reversed", showticklabels=small)
    if selected is not None and all(number in place for number in selected):
        _frame(figure, place[selected[0]], place[selected[1]], small, colours)
    if not small:
        what = f"{len(order):,} classes, similar ones next to each other"
        figure.update_xaxes(title=what)
        figure.update_yaxes(title=what)
    height = 170 + 24 * max(8, len(labels)) if small else 620
    finish(figure, title, colours, height=min(height, 1000), wrap=74)
    bottom = 70 + 5 * min(longest, 22)
    return figure.update_layout(margin={"l": 40 + 6 * min(longest, 26), "r": 92, "b": bottom})


def _group_name(group: NDArray[np.int64], names: Sequence[str]) -> str:
    if len(group) <= 2:
        return ", ".join(names[number] for number in group)
    return f"{names[group[0]]} to {names[group[-1]]} ({len(group)})"


def _squares(
    figure: go.Figure,
    distance: NDArray[np.floating],
    order: NDArray[np.int64],
    names: Sequence[str],
    ink: Callable[[int, int], str],
) -> None:
    """Lay invisible marks over the squares: those of a heatmap cannot be clicked."""
    rows, columns = np.nonzero(~np.eye(len(order), dtype=bool))
    first, second = order[rows], order[columns]
    values = distance[first, second]
    numbers = len(order) <= _MOST_NUMBERS
    figure.add_scatter(
        x=columns,
        y=rows,
        mode="markers+text" if numbers else "markers",
        showlegend=False,
        marker={"symbol": "square", "size": 20, "opacity": 0},
        customdata=[f"{a}-{b}" for a, b in zip(first, second, strict=True)],
        text=[f"{value:.2f}" for value in values] if numbers else None,
        textposition="middle center",
        textfont={"size": 11, "color": [ink(*pair) for pair in zip(first, second, strict=True)]},
        hovertext=[
            f"{names[a]} and {names[b]}<br>distance {v:.4g}" for a, b, v in zip(first, second, values, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _marks(
    figure: go.Figure,
    key: str,
    pairs: NDArray[np.int64],
    place: Mapping[int, int],
    colours: Palette,
    ink: Callable[[int, int], str],
) -> None:
    """Mark pairs in the lower half, off the middle of their squares, where a number may stand."""
    label, symbol = _MARKS[key]
    there = [(a, b) for a, b in pairs.tolist() if a in place and b in place]
    drawn = [(place[a], place[b]) for a, b in there]
    # The legend lies on the ground, marks on squares of any colour.
    for shades, x, y, shown in (
        ([ink(*pair) for pair in there], [min(pair) + 0.36 for pair in drawn], [max(p) - 0.15 for p in drawn], False),
        (colours.ink, [None], [None], True),
    ):
        figure.add_scatter(
            x=x,
            y=y,
            mode="markers",
            name=f"{label} ({len(drawn)})",
            hoverinfo="skip",
            showlegend=shown,
            legendgroup=key,
            marker={"symbol": symbol, "size": 7, "color": shades, "line": {"width": 1.6, "color": shades}},
        )


def _frame(figure: go.Figure, row: int, column: int, small: bool, colours: Palette) -> None:
    half = 0.5 if small else 1.5
    for x, y in ((column, row), (row, column)):
        figure.add_shape(
            type="rect", x0=x - half, x1=x + half, y0=y - half, y1=y + half, line={"color": colours.error, "width": 3}
        )


def third_classes(
    bias: NDArray[np.floating],
    names: Sequence[str],
    pair: tuple[str, str],
    title: str,
    *,
    most: int = 16,
    dark: bool = False,
) -> go.Figure:
    """Draw the third classes of largest bias (classes,), positive where closer to the first of the pair.

    At most `most` bars; `customdata` of a bar is its class.
    """
    colours = palette(dark)
    known = np.flatnonzero(np.isfinite(bias) & (bias != 0))
    shown = known[np.argsort(-np.abs(bias[known]), kind="stable")][:most]
    figure = go.Figure()
    for name, inside, colour, pattern in (
        (f"closer to {pair[0]}", bias[shown] > 0, colours.accent, ""),
        (f"closer to {pair[1]}", bias[shown] < 0, colours.error, "/"),
    ):
        bars = shown[inside]
        figure.add_bar(
            x=bias[bars],
            y=[names[number] for number in bars],
            orientation="h",
            name=name,
            customdata=bars,
            marker={
                "color": colour,
                "line": {"color": colours.ink, "width": 1},
                "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": ON_FILL, "size": 7},
            },
            hovertemplate="%{y}<br>bias %{x:+.3f}<extra></extra>",
        )
    limit = float(np.abs(bias[shown]).max(initial=0.0)) * 1.15 or 1.0
    figure.update_xaxes(title="bias of the third class", range=[-limit, limit], zeroline=True)
    order = [names[number] for number in shown]
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=order, autorange="reversed")
    figure.update_layout(barmode="overlay", bargap=0.3, showlegend=True)
    finish(figure, title, colours, height=190 + 24 * max(3, len(shown)), wrap=68)
    return figure.update_layout(margin={"l": 30 + 7 * max((len(name) for name in order), default=0)})


def cost_effectiveness(curves: Mapping[str, Curve], title: str, *, dark: bool = False) -> go.Figure:
    """Draw the share of the true pairs that is found against the share inspected, for one or two searches by name."""
    colours = palette(dark)
    figure = go.Figure()
    figure.add_scatter(
        x=[0, 100],
        y=[0, 100],
        mode="lines",
        name="random order",
        line={"color": colours.muted, "dash": "dot"},
        hoverinfo="skip",
    )
    for (name, curve), colour in zip(curves.items(), (colours.accent, colours.error), strict=False):
        for label, values, dash, width in (
            (name, curve.found, "solid", 2.5),
            (f"{name}, best possible", curve.optimal, "dash", 1.2),
        ):
            figure.add_scatter(
                x=100 * curve.inspected,
                y=100 * values,
                mode="lines",
                name=label,
                line={"color": colour, "dash": dash, "width": width},
                hovertemplate=f"{label}<br>%{{x:.3g}} % inspected: %{{y:.3g}} % found<extra></extra>",
            )
    figure.update_xaxes(title="pairs inspected, most suspected first (%)", range=[0, 101])
    figure.update_yaxes(title="true pairs found (%)", range=[0, 103])
    finish(figure, title, colours, height=420)
    return figure.update_layout(margin_b=110)
