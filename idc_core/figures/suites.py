"""Figures of the Test sets page: what suites add, what they share, and in which order."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from idc_core.figures.palette import palette, suite_style
from idc_core.figures.style import finish, named_rows, numbered
from idc_core.figures.wording import percent

_ROW_PIXELS = 30
_SQUARE_PIXELS = 36
_COLUMNS = 2
_LABEL_WIDTH = 30
_FEW = 8
"""Cells up to which an axis has a tick for each."""

_BARE = ("asterisk",)
"""Marks that have no inside: they are drawn by their outline."""


@dataclass(frozen=True)
class DrawnSuite:
    """A suite in a figure: label, kind (as `suite_style` takes it), and whether it is a part of the first suite."""

    label: str
    kind: str
    within: bool = False

    def marker(self, dark: bool) -> dict[str, object]:
        """Return colour, mark and outline as plotly takes them."""
        style, colours = suite_style(self.kind), palette(dark)
        line = {"width": 1, "color": colours.ink} if style.outline else {"width": 0}
        if style.marker in _BARE:
            line = {"width": 3, "color": style.colour(dark)}
        return {"color": style.colour(dark), "symbol": style.marker, "size": 12, "line": line}

    @property
    def wrapped(self) -> str:
        """The label in lines."""
        return "<br>".join(textwrap.wrap(self.label, _LABEL_WIDTH))


def gains(
    suites: Sequence[DrawnSuite],
    ms: Sequence[int],
    scores: NDArray[np.float64],
    added: NDArray[np.int64],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw a panel per number of neurons (m), in it a row per suite: its IDC, from where it starts, and added cells.

    `scores` and `added` are (ms, suites); the first suite is what the others are measured against. Marks carry the
    number of their suite, and m, as `customdata`.
    """
    colours = palette(dark)
    columns = min(_COLUMNS, len(ms))
    rows = -(-len(ms) // columns)
    height = 96 + rows * (58 + _ROW_PIXELS * len(suites))
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=[f"m = {m}" for m in ms],
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=74 / height if rows > 1 else 0,
    )
    for index, (m, row, more) in enumerate(zip(ms, 100 * scores, added, strict=True)):
        place = {"row": index // columns + 1, "col": index % columns + 1}
        for number, suite in enumerate(suites):
            _gain(figure, place, suite, (number, int(m)), float(row[0]), float(row[number]), int(more[number]), dark)
        # A line is drawn only into a panel that has something in it already.
        figure.add_vline(x=float(row[0]), line={"color": colours.muted, "width": 1, "dash": "dot"}, **place)
        spread = float(row.max() - row.min()) or float(row.max()) or 1.0
        figure.update_xaxes(range=[row.min() - 0.06 * spread, row.max() + 0.42 * spread], nticks=5, **place)
    figure.update_yaxes(**named_rows([suite.wrapped for suite in suites], 0.6), showgrid=False, fixedrange=True)
    figure.update_xaxes(ticksuffix=" %", exponentformat="none", zeroline=False, fixedrange=True)
    figure.update_xaxes(title="IDC (axis not from zero)", row=rows)
    finish(figure, title, colours, height=height)
    figure.update_layout(margin_b=48)
    return figure.update_annotations(font={"size": 13, "color": colours.ink})


def _gain(
    figure: go.Figure,
    place: dict[str, int],
    suite: DrawnSuite,
    which: tuple[int, int],
    start: float,
    end: float,
    cells: int,
    dark: bool,
) -> None:
    """Draw one suite's row: a line from the first suite's IDC to its own, a mark, and the cells that it adds."""
    number, style, y = which[0], suite_style(suite.kind), [which[0]]
    figure.add_scatter(
        x=[start, end],
        y=2 * y,
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
        line={"color": style.colour(dark), "width": 3, "dash": style.dash},
        **place,
    )
    text = f"{cells:+,} cell{'' if cells == 1 else 's'}" if cells else "none"
    if not number or suite.within:
        text = percent(end / 100)
    figure.add_scatter(
        x=[end],
        y=y,
        mode="markers+text",
        marker=suite.marker(dark),
        showlegend=False,
        cliponaxis=False,
        text=[f"  {text}"],
        textfont={"size": 11, "color": palette(dark).ink},
        textposition="middle right" if end >= start else "top center",
        customdata=[list(which)],
        hovertemplate=f"{suite.label}<br>IDC {percent(end / 100)}, {cells:,} new cells<extra></extra>",
        **place,
    )


def shared_cells(
    suites: Sequence[DrawnSuite], counts: NDArray[np.int64], title: str, *, dark: bool = False
) -> go.Figure:
    """Draw how many cells every two suites share, int64 (suites, suites); on the diagonal, how many one reaches."""
    colours = palette(dark)
    labels = [suite.wrapped for suite in suites]
    most = max(1, int(counts.max()))
    figure = go.Figure(
        go.Heatmap(
            z=counts,
            x=list(range(len(suites))),
            y=list(range(len(suites))),
            colorscale=colours.scale,
            showscale=False,
            xgap=2,
            ygap=2,
            zmin=0,
            zmax=most,
            customdata=[[f"{first.label} and {other.label}" for other in suites] for first in suites],
            hovertemplate="%{customdata}: %{z:,} cells<extra></extra>",
        )
    )
    numbered(figure, [[f"{count:,}" for count in row] for row in counts], counts / most, colours.scale, 13)
    ticks = {"tickvals": list(range(len(suites))), "ticktext": labels, "showgrid": False, "zeroline": False}
    ends = [-0.5, len(suites) - 0.5]
    figure.update_xaxes(**ticks, range=ends, fixedrange=True)
    figure.update_yaxes(**ticks, range=ends[::-1], fixedrange=True)
    lines = max(suite.wrapped.count("<br>") + 1 for suite in suites)
    below = 16 + 15 * lines
    # Numbers to be read like a table's: rows of that height, and no room left below.
    finish(figure, title, colours, height=60 + _SQUARE_PIXELS * len(suites) + below)
    return figure.update_layout(margin_b=below)


def cumulative_gains(
    suites: Sequence[DrawnSuite],
    orders: Sequence[tuple[str, Sequence[int], NDArray[np.int64]]],
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """Draw what each suite adds to those before it, for several orders; bars begin where those before them end.

    An order is its name, the suites by number, the first one first, and what each adds to those before it. The first
    suite is left out: its cells are the ground.
    """
    colours = palette(dark)
    height = 96 + len(orders) * (50 + _ROW_PIXELS * (len(suites) - 1))
    figure = make_subplots(
        len(orders),
        1,
        subplot_titles=[name for name, _, _ in orders],
        shared_xaxes=True,
        vertical_spacing=40 / height if len(orders) > 1 else 0,
    )
    most = max([1, *(int(gains[1:].sum()) for _, _, gains in orders)])
    for row, (_, numbers, adds) in enumerate(orders, 1):
        ends = np.cumsum(adds[1:])
        later = list(range(len(numbers) - 1))
        inks = [suites[number].marker(dark)["color"] for number in numbers[1:]]
        figure.add_bar(
            x=adds[1:],
            base=ends - adds[1:],
            y=later,
            orientation="h",
            row=row,
            col=1,
            showlegend=False,
            marker={"color": inks, "line": {"width": 1, "color": colours.ink}},
            text=[f"{gain:+,}" if gain else "none" for gain in adds[1:]],
            textposition="outside",
            cliponaxis=False,
            textfont={"size": 12, "color": colours.ink},
            customdata=ends,
            hovertemplate="%{x:,} added cells, %{customdata:,} so far<extra></extra>",
        )
        names = [suites[number].wrapped for number in numbers[1:]]
        figure.update_yaxes(**named_rows(names, 0.6), showgrid=False, fixedrange=True, row=row)
    figure.update_xaxes(range=[0, 1.12 * most], fixedrange=True, nticks=8, tickformat=",d")
    if most <= _FEW:
        # Between whole numbers there are no cells, and a tick there would be written as one of them.
        figure.update_xaxes(dtick=1)
    figure.update_xaxes(title="added cells", row=len(orders))
    finish(figure, title, colours, height=height)
    figure.update_layout(margin_b=48, bargap=0.35)
    return figure.update_annotations(font={"size": 13, "color": colours.ink})
