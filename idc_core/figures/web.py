"""Figures as web pages of their own: one file, still interactive, without a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go

from idc_core.figures.colourings import MARK
from idc_core.figures.palette import ON_FILL, Palette, palette
from idc_core.figures.style import FONT, finish
from idc_core.figures.tile_contents import TileContents, picture_of_all

# The library's own buttons include one that sends a figure to its maker's server.
_CONFIG = {"displaylogo": False, "plotlyServerURL": "", "modeBarButtonsToRemove": ["sendChartToCloud"]}

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{
  margin: 1rem auto; padding: 0 1rem; max-width: 72rem; background: {ground}; color: {ink}; font-family: {font};
}}
</style>
</head>
<body>
{figure}
{lines}
</body>
</html>
"""


def web_page(figure: go.Figure, title: str, lines: Sequence[str] = (), *, dark: bool = False) -> str:
    """Write a figure as a web page of about 5 MB that holds all it needs, with plain `lines` below it."""
    colours = palette(dark)
    return _PAGE.format(
        title=html.escape(title),
        ground=colours.ground,
        ink=colours.ink,
        font=FONT,
        figure=figure.to_html(include_plotlyjs=True, full_html=False, config=_CONFIG),
        lines="\n".join(f"<p>{html.escape(line)}</p>" for line in lines),
    )


@cache
def packed_library() -> tuple[str, str]:
    """Return the charts' library, and how a page holds it: packed, in base64, a third of its size."""
    from plotly.offline import get_plotlyjs

    library = str(get_plotlyjs())
    return library, base64.b64encode(gzip.compress(library.encode(), 9, mtime=0)).decode()


def allowed_script(script: str) -> str:
    """Return the source that a content security policy lets run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def grid_figure(
    option: dict[str, Any], height: int, *, contents: TileContents | None = None, dark: bool = False
) -> go.Figure:
    """Draw `coverage_grid`'s option with plotly, whose figures can be saved with what they say under the pointer.

    Tiles show their `contents`, with the mark in a corner.
    """
    colours = palette(dark)
    rows, x, y = option["dataset"]["source"], option["xAxis"][0], option["yAxis"][0]
    shape = (len(y["data"]), len(x["data"]))
    pictured = np.isin(np.arange(len(rows)), [] if contents is None else contents.tile)
    pieces = option["visualMap"]["pieces"]
    index = {piece["value"]: place for place, piece in enumerate(pieces)}
    steps = [place / len(pieces) for place in range(len(pieces) + 1)]
    scale = [
        [edge, piece["color"]]
        for low, high, piece in zip(steps[:-1], steps[1:], pieces, strict=True)
        for edge in (low, high)
    ]

    def laid_out(column: str) -> object:
        return rows[column].to_numpy().reshape(shape)

    figure = go.Figure(
        go.Heatmap(
            x=x["data"],
            y=y["data"],
            z=rows["category"].map(index).to_numpy().reshape(shape),
            text=np.where(pictured, "", rows["mark"]).reshape(shape),
            texttemplate="%{text}",
            textfont={"size": 11, "color": ON_FILL},
            customdata=rows[["cell", "tests"]].to_numpy().reshape(*shape, 2),
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            colorscale=scale,
            zmin=-0.5,
            zmax=len(pieces) - 0.5,
            showscale=False,
            xgap=1,
            ygap=1,
        )
    )
    for piece in pieces:
        outline = {"width": 1, "color": colours.muted}
        marker = {"symbol": "square", "size": 12, "color": piece["color"], "line": outline}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=piece["label"])
    finish(figure, option["title"]["text"].replace("\n", " "), colours, height=height)
    # Of a category by name: labels such as 1-2-0 would be read as dates.
    figure.update_xaxes(title_text=x["name"], type="category", showgrid=False)
    figure.update_yaxes(title_text=y["name"], type="category", showgrid=False, autorange="reversed")
    for outlined in option["series"][1:]:
        column, row, _ = outlined["data"][0]["value"]
        left, top = list(x["data"]).index(column) - 0.5, list(y["data"]).index(row) - 0.5
        line = {"color": outlined["itemStyle"]["borderColor"], "width": 3}
        figure.add_shape(type="rect", x0=left, x1=left + 1, y0=top, y1=top + 1, line=line)
    if contents is not None:
        fills = {piece["value"]: piece["color"] for piece in pieces}
        _fill(figure, contents, shape, [fills[value] for value in rows["category"]], list(rows["mark"]), colours)
    return figure.update_layout(plot_bgcolor=colours.line)


def _fill(
    figure: go.Figure,
    contents: TileContents,
    shape: tuple[int, int],
    fills: Sequence[str],
    marks: Sequence[str],
    colours: Palette,
) -> None:
    """Lay what tiles show on them, which become squares, and their marks in a corner of it."""
    picture = picture_of_all(contents, shape, colours)
    place = {"xref": "x", "yref": "y", "x": -0.5, "y": -0.5, "sizex": shape[1], "sizey": shape[0]}
    figure.add_layout_image(source=picture, sizing="stretch", layer="above", **place)
    corner = {"name": MARK, "xanchor": "right", "yanchor": "bottom", "showarrow": False, "borderpad": 1}
    figure.update_layout(
        annotations=[
            corner
            | {"x": tile % shape[1] + 0.5, "y": tile // shape[1] + 0.5, "text": html.escape(marks[tile])}
            | {"bgcolor": fills[tile], "font": {"size": 11, "color": ON_FILL}}
            for tile in contents.tile.tolist()
            if marks[tile]
        ]
    )
    # Found by plotly, the ranges would make room for the marks.
    figure.update_xaxes(constrain="domain", range=[-0.5, shape[1] - 0.5])
    figure.update_yaxes(constrain="domain", scaleanchor="x", autorange=None, range=[shape[0] - 0.5, -0.5])
