"""The grid of combinations of the Overview and Coverage pages, as an ECharts option."""

from __future__ import annotations

import itertools
import textwrap
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idc_core.coverage.table import CellTable
from idc_core.errors import SettingError
from idc_core.figures.grid import Grid
from idc_core.figures.palette import ON_FILL, Palette, class_colour, palette

COLOURINGS: Final = {"covered": "covered", "count": "how often", "class": "class", "errors": "errors"}
"""What the colour of a cell can mean: key and label."""

_BINS: Final = (1, 2, 5, 10, 25, 100)
_CELL_PIXELS: Final = (9, 32)  # smallest and largest height of a row


def grid_rows(grid: Grid, table: CellTable, colouring: str, class_names: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return what the grid draws, one row a cell, row by row.

    Parameters
    ----------
    grid : Grid
        Which cells are drawn where.
    table : CellTable
        The covered cells.
    colouring : str
        A key of `COLOURINGS`.
    class_names : tuple of str
        Names of the classes.

    Returns
    -------
    pandas.DataFrame
        Columns ``column``, ``row`` (labels), ``category`` (int, see `categories`), ``mark``, ``cell`` and
        ``tests`` (text).

    Raises
    ------
    SettingError
        If the colouring is unknown.
    """
    if colouring not in COLOURINGS:
        raise SettingError(f"Expected one of the colourings {', '.join(COLOURINGS)}; got {colouring!r}.")
    held = grid.table_row >= 0
    row = np.where(held, grid.table_row, 0)
    counts = np.where(held, table.counts[row], 0) if table.covered else np.zeros(grid.table_row.shape, np.int64)
    wrong = np.where(held, table.wrong[row], 0) if table.covered else counts
    category = _category(colouring, table, row, counts, wrong)
    roomy = grid.table_row.shape[1] <= 32
    columns, rows = np.meshgrid(grid.column_labels, grid.row_labels)
    return pd.DataFrame(
        {
            "column": columns.ravel(),
            "row": rows.ravel(),
            "category": category.ravel(),
            "mark": [_mark(c, w, roomy) for c, w in zip(counts.ravel(), wrong.ravel(), strict=True)],
            "cell": [f"{r} | {c}" for r, c in zip(rows.ravel(), columns.ravel(), strict=True)],
            "tests": [
                _contents(int(c), int(w), table.by_class[i] if h else None, class_names)
                for c, w, i, h in zip(counts.ravel(), wrong.ravel(), row.ravel(), held.ravel(), strict=True)
            ],
        }
    )


def _category(
    colouring: str,
    table: CellTable,
    row: NDArray[np.int64],
    counts: NDArray[np.int64],
    wrong: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Category of every drawn cell; 0 is uncovered."""
    covered = counts > 0
    if colouring == "count":
        return np.searchsorted(_BINS, counts, side="right").astype(np.int64)
    if colouring == "errors":
        return np.where(covered, np.where(wrong == 0, 1, np.where(wrong < counts, 2, 3)), 0)
    if colouring == "class" and table.by_class.shape[1] and table.covered:
        return np.where(covered, 1 + table.by_class.argmax(axis=1)[row], 0)
    return np.where(covered, 1, 0)


def _mark(count: int, wrong: int, roomy: bool) -> str:
    """Mark a cell: nothing where uncovered, a cross where only errors, else the number of tests."""
    if count == 0:
        return ""
    if wrong == count:
        return "\u00d7"
    return str(count) if roomy else "\u2022"


def _contents(count: int, wrong: int, by_class: NDArray[np.int64] | None, names: tuple[str, ...]) -> str:
    """Put the tests of a cell into words."""
    if count == 0:
        return "no test"
    words = f"{count} test{'s' if count > 1 else ''}"
    if wrong:
        words += f", {wrong} misclassified"
    if by_class is not None and len(by_class):
        order = [i for i in np.argsort(-by_class, kind="stable")[:3] if by_class[i] > 0]
        words += ", class " + ", ".join(f"{names[i]} ({by_class[i]})" for i in order)
    return words


def categories(colouring: str, colours: Palette, class_names: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Legend of a colouring: value, label and colour of every category, uncovered first."""
    empty = {"value": 0, "label": "not covered", "color": colours.ground}
    if colouring == "count":
        ends = [*(f"{a} to {b - 1}" if b - a > 1 else f"{a}" for a, b in itertools.pairwise(_BINS))]
        labels = [*ends, f"{_BINS[-1]} and more"]
        return [empty] + [
            {
                "value": i + 1,
                "label": label + (" test" if label == "1" else " tests"),
                "color": colours.counts[i],
            }
            for i, label in enumerate(labels)
        ]
    if colouring == "errors":
        return [
            empty,
            {"value": 1, "label": "all correct", "color": colours.counts[1]},
            {"value": 2, "label": "some misclassified", "color": colours.counts[3]},
            {"value": 3, "label": "only misclassified \u00d7", "color": colours.error},
        ]
    if colouring == "class" and class_names:
        named = [{"value": 1 + i, "label": name, "color": class_colour(i)} for i, name in enumerate(class_names)]
        return [empty, *named]
    return [empty, {"value": 1, "label": "covered", "color": colours.counts[3]}]


def coverage_grid(
    rows: pd.DataFrame,
    grid: Grid,
    legend: list[dict[str, Any]],
    title: str,
    *,
    selected: tuple[str, str] | None = None,
    clickable: bool = True,
    dark: bool = False,
) -> dict[str, Any]:
    """Describe the grid of combinations as an ECharts heatmap.

    Parameters
    ----------
    rows : pandas.DataFrame
        From `grid_rows`.
    grid : Grid
        Which cells are drawn where.
    legend : list of dict
        From `categories`.
    title : str
        The finding.
    selected : (row label, column label), optional
        Cell to outline.
    clickable : bool
        Whether a click selects a cell.
    dark : bool
        Whether the ground is dark.

    Returns
    -------
    dict
        An ECharts option. Its first series is the heatmap; selections give positions in `rows`.
    """
    colours = palette(dark)
    used = set(rows["category"]) | {0}
    lines = textwrap.wrap(title, 76)
    room = 6 * max(len(text) for text in grid.row_labels)  # pixels that the row labels need
    series = [_cells(clickable, colours)]
    if selected is not None:
        series.append(_outline(selected, colours))
    axis = {
        "type": "category", "axisTick": {"show": False}, "axisLine": {"show": False}, "nameLocation": "middle",
        "nameTextStyle": {"color": colours.muted, "fontSize": 12},
        "axisLabel": {"color": colours.muted, "fontSize": 10, "hideOverlap": True},
    }  # fmt: skip
    return {
        "title": {"text": "\n".join(lines), "left": 0, "top": 0,
                  "textStyle": {"fontSize": 15, "fontWeight": "normal", "color": colours.ink,
                                "lineHeight": 20}},
        "dataset": {"source": rows},
        "grid": {"left": 40 + room, "right": 8, "top": 18 + 20 * len(lines), "bottom": 84,
                 "outerBoundsMode": "none"},
        "xAxis": {**axis, "data": list(grid.column_labels), "name": grid.column_title, "nameGap": 34},
        "yAxis": {**axis, "data": list(grid.row_labels), "name": grid.row_title, "nameGap": room + 12,
                  "inverse": True},
        "tooltip": {"formatter": "{@cell}<br>{@tests}", "backgroundColor": colours.ground,
                    "textStyle": {"color": colours.ink}},
        "visualMap": {"type": "piecewise", "dimension": 2, "seriesIndex": 0, "orient": "horizontal",
                      "left": 0, "bottom": 0, "pieces": [piece for piece in legend if piece["value"] in used],
                      "itemWidth": 16, "itemHeight": 12, "textStyle": {"color": colours.ink},
                      "itemSymbol": "rect", "borderColor": colours.line},
        "series": series,
    }  # fmt: skip


def grid_height(grid: Grid) -> int:
    """Height in pixels that suits the number of rows."""
    low, high = _CELL_PIXELS
    rows = len(grid.row_labels)
    return int(150 + rows * np.clip(560 / max(rows, 1), low, high))


def _cells(clickable: bool, colours: Palette) -> dict[str, Any]:
    """Draw the cells; every one has a name of its own, or a click would select a whole column."""
    outlined = {"itemStyle": {"borderColor": colours.ink, "borderWidth": 2}}
    return {
        "type": "heatmap", "name": "cells", "animation": False,
        "encode": {"x": "column", "y": "row", "value": "category", "itemName": "cell"},
        "label": {"show": True, "formatter": "{@mark}", "fontSize": 11, "color": ON_FILL},
        "itemStyle": {"borderColor": colours.line, "borderWidth": 1},
        "emphasis": outlined, "select": outlined, "selectedMode": "single" if clickable else False,
    }  # fmt: skip


def _outline(selected: tuple[str, str], colours: Palette) -> dict[str, Any]:
    """Frame the selected cell with a series of its own: a specification cannot set selections."""
    row, column = selected
    return {
        "type": "heatmap", "name": "selected", "silent": True, "animation": False, "z": 5,
        "data": [{"value": [column, row, 0]}],
        "itemStyle": {"color": "rgba(0,0,0,0)", "borderColor": colours.error, "borderWidth": 3},
    }  # fmt: skip
