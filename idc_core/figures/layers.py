"""The figures of the Layers page: the chance of a new cell per layer, and IDC over layers and numbers of neurons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from idc_core.figures.palette import Palette, at, ink_on, palette
from idc_core.figures.style import finish, named_rows
from idc_core.figures.wording import percent, rounded

if TYPE_CHECKING:
    from idc_core.analysis.layer_sweep import LayerCoverage, Sweep

_ROW_PIXELS = 36
"""Height of a row: two lines of text fit."""

_SIDE = 0.94
"""Share of its place that a cell fills."""

_AROUND = 150  # pixels of a panel that are not rows: its title, the axis below and the gap to the next panel


def sweep_grid(
    sweep: Sweep,
    title: str,
    *,
    labels: Mapping[str, str] | None = None,
    selected: tuple[str, str, int] | None = None,
    dark: bool = False,
) -> go.Figure:
    """Draw one square per layer and number of neurons with its IDC written in it, the `selected` one outlined.

    Squares are bars, which a page can make clickable; their `customdata` is (test set, layer, m).
    """
    colours = palette(dark)
    columns = min(2, len(sweep.suites))
    rows = math.ceil(len(sweep.suites) / columns)
    names = [(labels or {}).get(suite, suite) for suite in sweep.suites]
    height = 60 + rows * (_AROUND + _ROW_PIXELS * len(sweep.layers))
    figure = make_subplots(
        rows, columns, subplot_titles=names, horizontal_spacing=0.09, vertical_spacing=110 / height if rows > 1 else 0
    )
    for index, suite in enumerate(sweep.suites):
        cells = [cell for cell in sweep.cells if cell.suite == suite]
        figure.add_trace(_squares(sweep, cells, selected, colours), index // columns + 1, index % columns + 1)
    figure.update_layout(coloraxis=_scale(sweep, colours), barmode="overlay", bargap=0, showlegend=False)
    figure.update_xaxes(
        title="number of important neurons (m)",
        tickvals=list(range(len(sweep.ms))),
        ticktext=list(map(str, sweep.ms)),
        range=[-0.5, len(sweep.ms) - 0.5],
        showgrid=False,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_yaxes(**named_rows(sweep.layers), showgrid=False, fixedrange=True)
    figure.update_yaxes(title="layer, from input to output", title_standoff=14, col=1)
    finish(figure, title, colours, height=height)
    figure.update_layout(margin_b=56, margin_l=84)
    figure.update_annotations(font={"size": 13, "color": colours.ink})
    return figure


def chances(cells: Sequence[LayerCoverage], title: str, *, selected: str = "", dark: bool = False) -> go.Figure:
    """Draw the chance that the next test reaches a new cell, one row per layer, with its 95 % interval.

    A point's `customdata` is (test set, layer, m); that of the `selected` layer is a diamond.
    """
    colours = palette(dark)
    known = [(cell, cell.left) for cell in cells if cell.left is not None and cell.coverable]
    values = [100 * left.chance for _, left in known]
    spoken = [
        f"{cell.layer}<br>chance of a new cell {percent(left.chance)} ({percent(left.low)} to {percent(left.high)})"
        f"<br>{cell.covered:,} of {cell.total:,} cells covered, at least {left.at_least:,} can be reached"
        for cell, left in known
    ]
    figure = go.Figure(
        go.Scatter(
            x=values,
            y=list(range(len(known))),
            mode="markers",
            marker={
                "color": colours.tests,
                "size": 10,
                "symbol": ["diamond" if cell.layer == selected else "circle" for cell, _ in known],
            },
            error_x={
                "type": "data",
                "array": [100 * left.high - value for (_, left), value in zip(known, values, strict=True)],
                "arrayminus": [value - 100 * left.low for (_, left), value in zip(known, values, strict=True)],
                "color": colours.tests,
                "thickness": 1.5,
            },
            customdata=[[cell.suite, cell.layer, cell.m] for cell, _ in known],
            hovertext=spoken,
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )
    figure.update_xaxes(title="chance of a new cell (%)", rangemode="tozero", tickformat="~g")
    figure.update_yaxes(**named_rows([cell.layer for cell, _ in known]), title="layer, from input to output")
    finish(figure, title, colours, height=_AROUND - 20 + _ROW_PIXELS * len(known))
    return figure.update_layout(margin_b=56)


def _squares(
    sweep: Sweep, cells: list[LayerCoverage], selected: tuple[str, str, int] | None, colours: Palette
) -> go.Bar:
    """Draw the cells of one test set as bars that float in their row."""
    outlined = [(cell.suite, cell.layer, cell.m) == selected for cell in cells]
    return go.Bar(
        x=[sweep.ms.index(cell.m) for cell in cells],
        y=[_SIDE] * len(cells),
        base=[sweep.layers.index(cell.layer) - _SIDE / 2 for cell in cells],
        width=_SIDE,
        marker={
            "color": [math.log10(100 * cell.score) if cell.coverable else math.nan for cell in cells],
            "coloraxis": "coloraxis",
            "line": {"color": colours.error, "width": [3 if chosen else 0 for chosen in outlined]},
        },
        text=[_written(cell, colours) for cell in cells],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        insidetextfont={"color": [_ink(sweep, cell, colours) for cell in cells], "size": 12},
        customdata=[[cell.suite, cell.layer, cell.m] for cell in cells],
        hovertext=[_spoken(cell) for cell in cells],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _ends(sweep: Sweep) -> tuple[int, int]:
    """Return the powers of ten between which IDC in per cent is coloured."""
    shares = [100 * cell.score for cell in sweep.cells if cell.coverable]
    lowest = min((math.floor(math.log10(share)) for share in shares), default=0)
    return min(lowest, 1), 2


def _ink(sweep: Sweep, cell: LayerCoverage, colours: Palette) -> str:
    """Return the colour of the number on a square's fill."""
    if not cell.coverable:
        return colours.ink
    low, high = _ends(sweep)
    return ink_on(at(colours.scale, (math.log10(100 * cell.score) - low) / (high - low)))


def _scale(sweep: Sweep, colours: Palette) -> dict[str, object]:
    """Colour by the logarithm: every further neuron divides the share of cells by a factor."""
    low, high = _ends(sweep)
    ticks = range(low, high + 1)
    return {
        "colorscale": colours.scale,
        "cmin": ticks[0],
        "cmax": ticks[-1],
        "colorbar": {
            "title": {"text": "IDC (%)", "font": {"size": 12, "color": colours.muted}},
            "tickvals": list(ticks),
            "ticktext": [f"{10.0**tick:g}" for tick in ticks],
            "tickfont": {"size": 11, "color": colours.muted},
            "thickness": 12,
            "outlinewidth": 0,
        },
    }


def _written(cell: LayerCoverage, colours: Palette) -> str:
    """Write IDC in per cent, and below it that a small layer gives all its neurons."""
    if not cell.coverable:
        return f"<span style='color:{colours.ink}'>\u2013</span>"
    share = 100 * cell.score
    text = f"{share:.1f}" if share >= 1 else rounded(share)
    return f"{text}<br><span style='font-size:11px'>all {cell.used}</span>" if cell.used < cell.m else text


def _spoken(cell: LayerCoverage) -> str:
    neurons = f"all {cell.used} neurons" if cell.used < cell.m else f"m = {cell.m}"
    if not cell.coverable:
        return f"{cell.layer}, {neurons}<br>Nothing can be covered: none of these neurons varies"
    return f"{cell.layer}, {neurons}<br>{cell.covered:,} of {cell.total:,} cells: IDC {percent(cell.score)}"
