"""The axes of the grid of combinations: one line of labels per neuron, the one that changes slowest outermost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from idc_core.figures.grid import Grid
from idc_core.figures.palette import Palette

_LINE: Final = 19  # pixels of a line of labels
_SMALLEST_LABEL: Final = 13  # pixels that a label needs along its axis
_LONG: Final = 4  # letters of a label beyond which it is a name, and written along a row's side
_WORD: Final = 42  # pixels of the word before the neurons' numbers
_SIDE: Final = (528, 740)  # pixels of all rows, and of all columns, at most: both fit on a small screen
_TILE: Final = (4, 84)  # smallest and largest side of a tile
_PICTURED: Final = 33  # smallest side of a tile with a picture
MOST_PICTURED: Final = (16, 20)
"""Rows and columns of a grid whose tiles have room for pictures, at most."""


def tile_side(grid: Grid) -> int:
    """Return the side of a tile in pixels: tiles are squares, and all of them fit on a small screen."""
    return side_of(len(grid.row_cells), len(grid.column_cells))


def side_of(rows: int, columns: int) -> int:
    """Return the same of a grid of so many rows and columns."""
    low, high = _TILE
    return max(low, min(high, _SIDE[0] // rows, _SIDE[1] // columns))


def has_room(grid: Grid) -> bool:
    """Whether tiles are large enough to show pictures."""
    return tile_side(grid) >= _PICTURED


def margins(grid: Grid) -> tuple[int, int]:
    """Return the pixels that the labels of the rows, on the left, and those of the columns, below, need."""
    rows, columns = (_levels(grid, axis) for axis in (grid.axes.rows, grid.axes.columns))
    named = max((len(grid.neurons[level.rank]) for level in columns), default=0)
    return _WORD + max(_LINE * len(rows), 7 * named + 8), _LINE * len(columns) + 6


def axes(grid: Grid, colours: Palette) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Describe the columns' and the rows' axes for ECharts: first the tiles', without labels, then those of labels."""
    hidden = {"type": "category", "show": False}
    columns = {**hidden, "data": list(grid.column_labels), "name": grid.column_title}
    rows = {**hidden, "data": list(grid.row_labels), "name": grid.row_title, "inverse": True}
    below = [_below(grid, level, colours) for level in _levels(grid, grid.axes.columns)]
    beside = [_beside(grid, level, colours) for level in _levels(grid, grid.axes.rows)]
    return [columns, *below], [rows, *beside]


@dataclass(frozen=True)
class _Level:
    """The labels of one neuron along an axis."""

    rank: int
    count: int  # labels
    span: int  # tiles that each spans
    place: int  # lines between them and the tiles
    is_outermost: bool


def _levels(grid: Grid, axis: Sequence[int]) -> list[_Level]:
    """Return the neurons of an axis whose labels have room, the innermost first."""
    tiles, span = math.prod(grid.sizes[rank] for rank in axis), 1
    found: list[_Level] = []
    for rank in reversed(axis):
        if span * tile_side(grid) >= _SMALLEST_LABEL or (rank == axis[0] and not found):
            found.append(_Level(rank, tiles // span, span, len(found), rank == axis[0]))
        span *= grid.sizes[rank]
    return found


def _below(grid: Grid, level: _Level, colours: Palette) -> dict[str, object]:
    """Describe the labels of one neuron below the columns; its name stands on their left."""
    axis = _line(grid, level, colours)
    name = {"color": colours.muted, "fontSize": 11, "align": "right", "verticalAlign": "top", "padding": [5, 0, 0, 0]}
    width = level.span * tile_side(grid) - 4
    return axis | {
        "position": "bottom",
        "name": f"neuron {grid.neurons[level.rank]}",
        "nameTextStyle": name,
        "axisLabel": {**_label(grid, level, colours), "width": width},
    }


def _beside(grid: Grid, level: _Level, colours: Palette) -> dict[str, object]:
    """Describe the labels of one neuron beside the rows, names along these; its own stands above them."""
    axis, name = _line(grid, level, colours), grid.neurons[level.rank]
    along = max(map(len, _names(grid, level))) > _LONG
    width = level.span * tile_side(grid) - 4 if along else _LINE
    return axis | {
        "position": "left",
        "inverse": True,
        "name": f"neuron {name}" if level.is_outermost else name,  # for the others there is no room
        "nameTextStyle": {"color": colours.muted, "fontSize": 11, "align": "right", "padding": [0, 4, 0, 0]},
        "axisLabel": {**_label(grid, level, colours), "width": width, "rotate": 90 if along else 0},
    }


def _line(grid: Grid, level: _Level, colours: Palette) -> dict[str, object]:
    """Describe what the axes of labels share; the outermost one divides the tiles too."""
    names, edge = _names(grid, level), level.place > 0
    return {
        "type": "category",
        "offset": _LINE * level.place,
        "data": [names[i % len(names)] for i in range(level.count)],
        "nameLocation": "start",
        "nameGap": 6,
        "axisLine": {"show": False},
        "axisTick": {"show": edge, "length": _LINE - 3, "interval": 0, "lineStyle": {"color": colours.line}},
        "splitLine": {
            "show": edge and level.is_outermost,
            "interval": 0,
            "lineStyle": {"color": colours.muted, "width": 1.5},
        },
        "z": 3,
    }


def _label(grid: Grid, level: _Level, colours: Palette) -> dict[str, object]:
    colour = colours.ink if level.is_outermost else colours.muted
    every = -(-_SMALLEST_LABEL // (level.span * tile_side(grid)))
    return {"color": colour, "fontSize": 11, "margin": 5, "interval": every - 1, "overflow": "truncate"}


def _names(grid: Grid, level: _Level) -> list[str]:
    """Return a person's names of a neuron's clusters, or their numbers."""
    return [name or str(cluster) for cluster, name in enumerate(grid.cluster_names[level.rank])]
