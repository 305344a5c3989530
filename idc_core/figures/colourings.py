"""What the colour and the mark of a tile can mean. Colour is never the only sign: every tile has a mark too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from idc_core.coverage.cell_table import CellTable
from idc_core.coverage.reach import CellState, Reach
from idc_core.errors import SettingError
from idc_core.figures.grid import Grid
from idc_core.figures.palette import CLASSES, Palette

_Counts = NDArray[np.int64]

_BINS: Final = (1, 2, 5, 10, 25, 100)
"""Where the bins of counts begin."""

_SHARES: Final = ((0.0, "\u25cb", "none misclassified"), (0.25, "\u25d4", "up to 25 %"), (0.5, "\u25d1", "up to 50 %"))
"""Bins of the share of misclassified tests: upper end, mark and label. All tests, and more than half, come after."""

WRONG: Final = "\u00d7"
MARK: Final = "mark"
"""The name of annotations that say what a tile's colour does, in a corner of its picture."""
_HELD: Final = "\u2022"
_ROOM: Final = (450, 40, 6.5)
"""Pixels of a narrow grid's width, rows up to which a number fits, and pixels of a digit."""


@dataclass(frozen=True, eq=False)
class Tiles:
    """What each tile of a grid holds."""

    cells: int  # cells that a tile stands for
    covered: _Counts  # (tiles,), its covered cells
    tests: _Counts  # (tiles,), the tests in them
    wrong: _Counts  # (tiles,), the misclassified ones of those
    by_class: _Counts  # (tiles, classes), its tests of each true class
    shared: _Counts  # (tiles,), its covered cells that another test set reaches too; all 0 without another
    training: _Counts  # (tiles,), its cells that training inputs reach and no test
    learnt: _Counts  # (tiles,), the training inputs in those
    generated: _Counts  # (tiles,), its cells that only valid generated inputs reach
    roomy: bool  # whether there is room for numbers in a tile


def hold(grid: Grid, table: CellTable, shared: NDArray[np.bool_] | None = None, reach: Reach | None = None) -> Tiles:
    """Add up what each tile of a grid holds.

    `shared` (covered cells,): whether another test set reaches them too; `reach`: what else reaches cells.
    """
    ones = np.ones(table.covered, dtype=np.int64)
    beyond = Reach(table.cells[:0], ones[:0]) if reach is None else reach
    tile, learnt = grid.tiles_of(beyond.cells), beyond.training
    tests = grid.sums(table.counts)
    width, rows, digit = _ROOM
    longest = digit * len(str(int(tests.max(initial=0))))
    return Tiles(
        cells=grid.cells_per_tile,
        covered=grid.sums(ones),
        tests=tests,
        wrong=grid.sums(table.wrong),
        by_class=grid.sums(table.by_class),
        shared=grid.sums(ones * 0 if shared is None else shared.astype(np.int64)),
        training=grid.sums_of(tile, (learnt > 0).astype(np.int64)),
        learnt=grid.sums_of(tile, learnt),
        generated=grid.sums_of(tile, (learnt == 0).astype(np.int64)),
        roomy=len(grid.row_cells) <= rows and len(grid.column_cells) * longest <= width,
    )


@dataclass(frozen=True)
class _Colouring:
    """One meaning of the colour."""

    label: str  # its name in a menu
    reads: str  # how to read colour and mark, in a sentence
    categorise: Callable[[Tiles], _Counts]  # category of every tile, 0 where no cell is covered
    mark: Callable[[Tiles, int, int, Sequence[str]], str]
    """What is written into a tile that holds tests; called with the tiles, which tile, its category and the names of
    the classes."""
    legend: Callable[[Palette, Sequence[str], int], list[tuple[str, str]]]
    """Label and colour of the categories from 1 on, given the palette, the names of the classes and the number of cells
    a tile stands for."""
    crosses: bool = True  # whether a cross marks what only misclassified tests reach


def find_colouring(name: str) -> _Colouring:
    """Return a colouring by its name."""
    if name == SHARED:
        return _SHARED
    if name not in COLOURINGS:
        raise SettingError(f"Expected one of the colourings {', '.join(COLOURINGS)}; got {name!r}.")
    return COLOURINGS[name]


class Piece(TypedDict):
    """A category as ECharts takes it, in a legend."""

    value: int
    label: str
    color: str


def categories(
    name: str, colours: Palette, class_names: Sequence[str] = (), cells: int = 1, reach: bool = False
) -> list[Piece]:
    """Return a colouring's categories as ECharts' ``visualMap.pieces``: value, label and colour, uncovered first.

    With `reach` these are three: reached by nothing, and below zero those of `beyond`.
    """
    named = list(enumerate(find_colouring(name).legend(colours, class_names, cells), 1))
    empty = [(0, ("not covered", colours.ground))]
    if reach:
        empty = [
            (0, (str(CellState.NOTHING), colours.ground)),
            (_TRAINING, (f"{_BEYOND[_TRAINING]} {CellState.TRAINING}", colours.training)),
            (_GENERATED, (f"{_BEYOND[_GENERATED]} {CellState.GENERATED}", colours.generated)),
        ]
    return [{"value": value, "label": label, "color": colour} for value, (label, colour) in [*empty, *named]]


_TRAINING, _GENERATED = -1, -2
_BEYOND: Final = {_TRAINING: "\u25b3", _GENERATED: "\u25c7"}
"""Categories of tiles that no test reaches and something else does, and their marks."""


def beyond(tiles: Tiles, category: _Counts) -> _Counts:
    """Return the categories of tiles (tiles,) with those of tiles that only training or generated inputs reach."""
    others = np.where(tiles.training > 0, _TRAINING, np.where(tiles.generated > 0, _GENERATED, 0))
    return np.where(tiles.covered > 0, category, others).astype(np.int64)


def mark(colouring: str, tiles: Tiles, tile: int, category: int, class_names: Sequence[str]) -> str:
    """Return what is written into a tile of a category that `beyond` gives; nothing where nothing reaches it."""
    if category > 0:
        return find_colouring(colouring).mark(tiles, tile, category, class_names)
    return _BEYOND.get(category, "")


def _number(tiles: Tiles, numbers: _Counts, tile: int) -> str:
    """Write a number where there is room; a cross says that every test of the tile is misclassified."""
    if tiles.wrong[tile] == tiles.tests[tile]:
        return WRONG
    return str(int(numbers[tile])) if tiles.roomy else _HELD


def _binned(numbers: _Counts) -> _Counts:
    return np.searchsorted(_BINS, numbers, side="right").astype(np.int64)


def _count_legend(colours: Palette, noun: str) -> list[tuple[str, str]]:
    ends = [f"{a} to {b - 1}" for a, b in itertools.pairwise(_BINS)][1:]
    labels = [f"1 {noun}", *ends, f"{_BINS[-1]} and more"]
    return list(zip(labels, colours.counts, strict=True))


def _covered(tiles: Tiles) -> _Counts:
    return np.minimum(tiles.covered, 1) if tiles.cells == 1 else _binned(tiles.covered)


def _covered_mark(tiles: Tiles, tile: int, _category: int, _names: Sequence[str]) -> str:
    return _number(tiles, tiles.tests if tiles.cells == 1 else tiles.covered, tile)


def _covered_legend(colours: Palette, _names: Sequence[str], cells: int) -> list[tuple[str, str]]:
    return [("covered", colours.counts[3])] if cells == 1 else _count_legend(colours, "covered cell")


def _class(tiles: Tiles) -> _Counts:
    if not tiles.by_class.shape[1]:
        return np.minimum(tiles.covered, 1)
    return np.where(tiles.covered > 0, 1 + tiles.by_class.argmax(axis=1), 0)


def _class_mark(tiles: Tiles, tile: int, category: int, names: Sequence[str]) -> str:
    if not names:
        return _covered_mark(tiles, tile, category, names)
    name = names[category - 1]
    return name if len(name) <= (4 if tiles.roomy else 1) else _HELD


def _class_legend(colours: Palette, names: Sequence[str], _cells: int) -> list[tuple[str, str]]:
    return [(name, CLASSES[i % len(CLASSES)]) for i, name in enumerate(names)] or [("covered", colours.counts[3])]


def _errors(tiles: Tiles) -> _Counts:
    share = tiles.wrong / np.maximum(tiles.tests, 1)
    bins = np.searchsorted([end for end, _, _ in _SHARES], share, side="left") + (share == 1)
    return np.where(tiles.covered > 0, 1 + bins, 0).astype(np.int64)


_ERROR_MARKS: Final = (*(mark for _, mark, _ in _SHARES), "\u25d5", WRONG)


def _errors_legend(colours: Palette, _names: Sequence[str], _cells: int) -> list[tuple[str, str]]:
    labels = [*(label for _, _, label in _SHARES), "over 50 %", "all misclassified"]
    shades = (colours.counts[1], *colours.errors, colours.error)
    return [(f"{mark} {label}", colour) for mark, label, colour in zip(_ERROR_MARKS, labels, shades, strict=True)]


_SHARED_MARKS: Final = ("\u25a0", "\u25e7", "\u25a1")


def _shared(tiles: Tiles) -> _Counts:
    counts = np.where(tiles.shared == tiles.covered, 1, np.where(tiles.shared > 0, 2, 3))
    return np.where(tiles.covered > 0, counts, 0).astype(np.int64)


def _shared_legend(colours: Palette, _names: Sequence[str], _cells: int) -> list[tuple[str, str]]:
    labels = ("both reach", "both reach in part", "only these tests reach")
    shades = (colours.counts[1], colours.errors[1], colours.error)
    return [(f"{mark} {label}", colour) for mark, label, colour in zip(_SHARED_MARKS, labels, shades, strict=True)]


CROSS: Final = f"{WRONG}: reached only by misclassified tests."
"""How to read the mark of what only errors reach, where a test can be right or wrong."""

COLOURINGS: Final = {
    "covered": _Colouring(
        "covered",
        "The number counts tests; in a tile of several cells, it counts covered cells.",
        _covered,
        _covered_mark,
        _covered_legend,
    ),
    "count": _Colouring(
        "how often",
        "Colour and number: how many tests.",
        lambda tiles: _binned(tiles.tests),
        lambda tiles, tile, *_: _number(tiles, tiles.tests, tile),
        lambda colours, _, __: _count_legend(colours, "test"),
    ),
    "class": _Colouring(
        "class", "Colour and mark: the most frequent true class.", _class, _class_mark, _class_legend, crosses=False
    ),
    "errors": _Colouring(
        "share misclassified",
        "Filled part of the circle: share of misclassified tests.",
        _errors,
        lambda *given: _ERROR_MARKS[given[2] - 1],
        _errors_legend,
    ),
}
"""Meanings that a person can choose."""

SHARED: Final = "shared"
"""The meaning for two test sets beside each other: which cells the other one reaches too."""

_SHARED: Final = _Colouring(
    "shared",
    f"{_SHARED_MARKS[0]}: reached on both setups; {_SHARED_MARKS[2]}: only on this one.",
    _shared,
    lambda *given: _SHARED_MARKS[given[2] - 1],
    _shared_legend,
    crosses=False,
)
