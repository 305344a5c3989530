"""The grid of combinations of the Overview and Coverage pages, as an ECharts option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable
from idc_core.coverage.growth import Growth
from idc_core.coverage.reach import CellState, Reach
from idc_core.evidence.discovery import Discovery
from idc_core.figures.colourings import Piece, Tiles, beyond, categories, find_colouring, hold, mark
from idc_core.figures.grid import Grid
from idc_core.figures.grid_axes import axes, margins, tile_side
from idc_core.figures.palette import ON_FILL, Palette, palette
from idc_core.figures.style import FONT, band, finish, logarithmic_x
from idc_core.figures.wording import balanced

if TYPE_CHECKING:
    import pandas as pd

_ROOMY: Final = 14  # pixels of a tile that has room for text and a thick line
_LEGEND_PIXELS: Final = (430, 480)  # widths of the narrowest column that holds a grid, and of a narrow page
_NARROWEST: Final = 440  # of the whole drawing, for its title and the legend
_RIGHT: Final = 8
_NAMES_ROW: Final = 24  # above the rows' labels: which neuron each line of them belongs to
_LEGEND_ROW: Final = 18
_WRAP: Final = 60  # characters of the title that such a column holds


def grid_rows(
    grid: Grid,
    table: CellTable,
    colouring: str,
    class_names: Sequence[str] = (),
    shared: NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
) -> pd.DataFrame:
    """Return what the grid draws, one row a tile: ``column``, ``row``, ``category``, ``mark``, ``cell`` and ``tests``.

    `shared`, bool (covered cells,), for `SHARED`: whether another test set reaches each of them too. `reach` says what
    else reaches cells; without it, a cell is covered or not.
    """
    import pandas as pd

    tiles = hold(grid, table, shared, reach)
    category = beyond(tiles, find_colouring(colouring).categorise(tiles))
    columns, rows = np.meshgrid(grid.column_labels, grid.row_labels)
    names, labels = any(map(any, grid.cluster_names)), grid.names
    return pd.DataFrame(
        {
            "column": columns.ravel(),
            "row": rows.ravel(),
            "category": category,
            "mark": [mark(colouring, tiles, i, int(kind), class_names) for i, kind in enumerate(category)],
            "cell": [": ".join([label, *grid.named(i)]) for i, label in enumerate(labels)] if names else labels,
            "tests": [
                _contents(tiles, i, class_names, shared is not None, reach is not None) for i in range(grid.tiles)
            ],
        }
    )


def _contents(tiles: Tiles, tile: int, names: Sequence[str], compared: bool, reached: bool) -> str:
    """Put what a tile holds into words; `reached` says whether it is known what else reaches it."""
    covered, tests, wrong = (int(values[tile]) for values in (tiles.covered, tiles.tests, tiles.wrong))
    if tiles.cells == 1 and not covered:
        return _uncovered(int(tiles.learnt[tile]), int(tiles.generated[tile]), reached)
    words = [] if tiles.cells == 1 else [f"{covered:,} of {tiles.cells:,} cells covered"]
    for number, by in ((tiles.training[tile], "training inputs"), (tiles.generated[tile], "valid generated inputs")):
        if number:
            words.append(f"{number:,} reached by {by} only")
    if not covered:
        return ", ".join(words)
    if compared:
        words.append(f"{int(tiles.shared[tile]):,} reached by both")
    words.append(f"{tests:,} test{'s' if tests > 1 else ''}")
    if wrong:
        words.append(f"{wrong:,} misclassified")
    if names and tiles.by_class.shape[1]:
        by_class = tiles.by_class[tile]
        order = [i for i in np.argsort(-by_class, kind="stable")[:3] if by_class[i] > 0]
        words.append("class " + ", ".join(f"{names[i]} ({by_class[i]})" for i in order))
    return ", ".join(words)


def _uncovered(learnt: int, generated: int, reached: bool) -> str:
    """Say what reaches a cell without a test."""
    if learnt:
        return f"no test, {learnt:,} training input{'s' if learnt > 1 else ''}"
    if generated:
        return f"no test, {CellState.GENERATED}"
    return f"no test, {CellState.NOTHING}" if reached else "no test"


def coverage_grid(
    grid: Grid,
    table: CellTable,
    colouring: str,
    title: str,
    *,
    class_names: Sequence[str] = (),
    shared: NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
    selected: tuple[str, str] | None = None,
    together: Sequence[tuple[str, str]] = (),
    clickable: bool = True,
    dark: bool = False,
) -> dict[str, object]:
    """Describe the grid of combinations as an ECharts option.

    Its first series is the heatmap, tile by tile, row by row; `shared` and `reach` are as for `grid_rows`. `selected`
    (row label, column label) is outlined, `together` are tiles to frame lightly; `clickable` says whether the pointer
    shows that a click does something.
    """
    colours = palette(dark)
    rows = grid_rows(grid, table, colouring, class_names, shared, reach)
    legend = categories(colouring, colours, class_names, grid.cells_per_tile, reach is not None)
    used = set(rows["category"]) | {0}
    lines = balanced(title, _WRAP)
    pieces = [piece for piece in legend if piece["value"] in used]
    left, below = margins(grid)
    wide = tile_side(grid) * len(grid.column_cells)
    drawn, rows_of_legend = _legend(pieces, colours, min(_LEGEND_PIXELS[1], max(_LEGEND_PIXELS[0], left + wide)))
    across, down = axes(grid, colours)
    roomy = tile_side(grid) >= _ROOMY
    series = [_tiles(clickable, roomy, colours)]
    if together:
        series.append(_outline("together", together, colours.ink, 2 if roomy else 1))
    if selected is not None:
        series.append(_outline("selected", [selected], colours.error, 3 if roomy else 2))
    return {
        "title": {
            "text": "\n".join(lines),
            "left": 0,
            "top": 0,
            "textStyle": {"fontSize": 15, "fontWeight": "normal", "color": colours.ink, "lineHeight": 20},
        },
        "dataset": {"source": rows},
        "grid": {
            "left": left,
            "right": max(_RIGHT, _NARROWEST - left - wide),
            "top": 20 * len(lines) + (_NAMES_ROW if grid.axes.rows else 6),
            "bottom": 12 + below + _LEGEND_ROW * rows_of_legend,
            "outerBoundsMode": "none",
        },
        "xAxis": across,
        "yAxis": down,
        "tooltip": {
            "formatter": "{@cell}<br>{@tests}",
            "backgroundColor": colours.ground,
            "textStyle": {"color": colours.ink},
        },
        "visualMap": {"type": "piecewise", "dimension": 2, "seriesIndex": 0, "show": False, "pieces": pieces},
        "graphic": drawn,
        "series": series,
    }


def _legend(pieces: Sequence[Piece], colours: Palette, room: int) -> tuple[list[dict[str, object]], int]:
    """Draw the legend in as many rows as it needs, `room` pixels wide: that of ECharts has one, and cuts it off."""
    elements: list[dict[str, object]] = []
    widths = [36 + int(6.5 * len(piece["label"])) for piece in pieces]
    rows, columns = 0, [0]
    while not rows or (sum(columns) > room and len(columns) > 1):
        rows += 1
        in_row = -(-len(pieces) // rows)
        columns = [max(widths[place::in_row], default=0) for place in range(in_row)]
    for place, piece in enumerate(pieces):
        line, column = divmod(place, len(columns))
        left, bottom = sum(columns[:column]), 6 + _LEGEND_ROW * (rows - 1 - line)
        elements += [
            {
                "type": "rect",
                "left": left,
                "bottom": bottom,
                "silent": True,
                "shape": {"width": 16, "height": 12},
                "style": {"fill": piece["color"], "stroke": colours.muted},
            },
            {
                "type": "text",
                "left": left + 22,
                "bottom": bottom - 1,
                "silent": True,
                "style": {"text": piece["label"], "fill": colours.ink, "font": f"12px {FONT}"},
            },
        ]
    return elements, rows


def grid_size(grid: Grid, option: Mapping[str, Any]) -> tuple[int, int]:
    """Return the width and the height in pixels of a drawing of the grid in which tiles are squares."""
    side, inner = tile_side(grid), option["grid"]
    wide, high = side * len(grid.column_cells), side * len(grid.row_cells)
    return inner["left"] + wide + inner["right"], inner["top"] + high + inner["bottom"]


def _tiles(clickable: bool, roomy: bool, colours: Palette) -> dict[str, object]:
    """Draw the tiles, each with a name of its own."""
    return {
        "type": "heatmap",
        "name": "cells",
        "animation": False,
        "encode": {"x": "column", "y": "row", "value": "category", "itemName": "cell"},
        "label": {"show": True, "formatter": "{@mark}", "fontSize": 11 if roomy else 8, "color": ON_FILL},
        "itemStyle": {"borderColor": colours.line, "borderWidth": 1 if roomy else 0.5},
        "emphasis": {"itemStyle": {"borderColor": colours.ink, "borderWidth": 2}},
        "cursor": "pointer" if clickable else "default",
    }


def _outline(name: str, tiles: Sequence[tuple[str, str]], colour: str, width: int) -> dict[str, object]:
    """Frame tiles with a series of its own: a specification cannot set selections."""
    return {
        "type": "heatmap",
        "name": name,
        "silent": True,
        "animation": False,
        "z": 5,
        "data": [{"value": [column, row, 0]} for row, column in tiles],
        "itemStyle": {"color": "rgba(0,0,0,0)", "borderColor": colour, "borderWidth": width},
    }


def growth_curve(
    growth: Growth,
    total: int,
    title: str,
    *,
    left: Discovery | None = None,
    logarithmic: bool = False,
    dark: bool = False,
) -> go.Figure:
    """Draw IDC against the number of tests, in the given order, in shuffled ones and in the best one.

    `left` is what the tests leave to be reached, for the curve of as many more tests; `logarithmic` is of the number of
    tests.
    """
    colours = palette(dark)
    share = 100.0 / total
    figure = go.Figure()
    low, high = growth.low * share, growth.high * share
    band(figure, growth.tests, low, high, colours.counts[1], opacity=0.35, name="fewest to most")
    for name, cells, colour, dash, text in (
        (f"mean of {growth.orders} shuffled orders", growth.mean, colours.accent, "dash", "IDC %{y:.3g} % on average"),
        ("given order", growth.given, colours.tests, None, "%{customdata:,} cells, IDC %{y:.3g} %"),
        ("greedy order", growth.greedy, colours.muted, "dot", "%{customdata:,} cells at best, IDC %{y:.3g} %"),
    ):
        figure.add_scatter(
            x=growth.tests,
            y=cells * share,
            mode="lines",
            name=name,
            line={"color": colour, "dash": dash, "width": 2},
            customdata=cells,
            hovertemplate=f"%{{x:,}} tests<br>{text}<extra></extra>",
        )
    if left is not None:
        _extrapolate(figure, left, share, colours)
    figure.update_xaxes(title="number of tests", rangemode="tozero", tickformat=",d")
    figure.update_yaxes(title="IDC (% of cells)", rangemode="tozero", tickformat="~g")
    if logarithmic:
        logarithmic_x(figure)
    return finish(figure, title, colours, height=390)


def _extrapolate(figure: go.Figure, left: Discovery, share: float, colours: Palette) -> None:
    """Draw what as many more tests would reach: the number to expect, and its range, both dashed."""
    tests, cells = left.curve()
    for name, reached, width in (("expected", cells[:, 0], 2), ("lowest", cells[:, 1], 1), ("highest", cells[:, 2], 1)):
        figure.add_scatter(
            x=tests,
            y=reached * share,
            mode="lines",
            name={"expected": "more tests, 95 % range"}.get(name, name),
            legendgroup="more",
            showlegend=name == "expected",
            line={"color": colours.tests, "dash": "dash", "width": width},
            customdata=reached,
            hovertemplate=f"%{{x:,}} tests<br>{name}: %{{customdata:,.0f}} cells, IDC %{{y:.3g}} %<extra></extra>",
        )
