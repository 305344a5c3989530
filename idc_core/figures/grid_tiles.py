"""What lies above the tiles of a grid of combinations: pictures of typical tests, and tests that fall one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable
from idc_core.figures.grid import Grid
from idc_core.figures.palette import ON_FILL, palette
from idc_core.figures.style import FONT

_MOST_FALLS: Final = 3000  # tests that fall one by one; of more, a part stands for all


@dataclass(frozen=True, eq=False)
class _Filled:
    """The tiles that hold tests."""

    tile: NDArray[np.int64]  # (t,), ascending
    row: NDArray[np.int64]  # (t,), the covered cell of each with the most tests, as its row in the table


def filled(grid: Grid, table: CellTable) -> _Filled:
    """Return the tiles of a grid that hold tests; one of several cells is represented by the cell with most tests."""
    drawn = np.flatnonzero(grid.tile >= 0)
    order = drawn[np.lexsort((-table.counts[drawn], grid.tile[drawn]))]
    tile, first = np.unique(grid.tile[order], return_index=True)
    return _Filled(tile, order[first].astype(np.int64))


def falls(grid: Grid, rows: NDArray[np.int64]) -> dict[str, list[int]]:
    """Return how the drawn tests fall into the tiles, in the order of the tests.

    Parameters
    ----------
    grid : Grid
    rows : ndarray of int, shape (tests,)
        Covered cell of each test, as its row in the table.

    Returns
    -------
    dict
        ``tile`` of each fall; ``number`` of tests and of ``cells`` so far. Of more than 3,000 tests those that are the
        first in their cell, and some of the others, evenly spread.
    """
    inside = rows[grid.tile[rows] >= 0]
    first = np.zeros(len(inside), dtype=np.int64)
    first[np.unique(inside, return_index=True)[1]] = 1
    kept = np.arange(len(inside))
    if len(inside) > _MOST_FALLS:
        spread = np.linspace(0, len(inside) - 1, _MOST_FALLS).astype(np.int64)
        kept = np.union1d(spread, np.flatnonzero(first))
    return {
        "tile": grid.tile[inside[kept]].tolist(),
        "number": (kept + 1).tolist(),
        "cells": first.cumsum()[kept].tolist(),
    }


def tile_layer(
    grid: Grid, table: CellTable, option: dict[str, Any], rows: NDArray[np.int64], *, dark: bool = False
) -> dict[str, object]:
    """Describe what lies above the tiles for the browser, but for the pictures themselves.

    `option` is that of `coverage_grid`, `rows` are as for `falls`.
    """
    drawn, source, colours = filled(grid, table), option["dataset"]["source"], palette(dark)
    fills = {piece["value"]: piece["color"] for piece in option["visualMap"]["pieces"]}
    return {
        "filled": {
            "at": drawn.tile.tolist(),
            "mark": source["mark"].to_numpy()[drawn.tile].tolist(),
            "fill": [fills[value] for value in source["category"].to_numpy()[drawn.tile].tolist()],
            "counted": not grid.folded,
        },
        "falls": falls(grid, rows),
        "colours": {name: getattr(colours, name) for name in ("ground", "ink", "line", "accent")} | {"onFill": ON_FILL},
        "font": FONT,
    }
