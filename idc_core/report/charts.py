"""The charts of a report: as plotly draws them for either theme, and still, for print and where scripts do not run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.coverage.cell_table import CellTable
from idc_core.coverage.reach import Reach
from idc_core.figures.clusters import bin_edges, bin_shares, histograms
from idc_core.figures.colourings import categories
from idc_core.figures.coverage import coverage_grid, grid_rows, grid_size
from idc_core.figures.grid import Grid, default_axes, lay_out
from idc_core.figures.grid_axes import MOST_PICTURED
from idc_core.figures.grid_tiles import filled
from idc_core.figures.palette import LIGHT, ON_FILL
from idc_core.figures.tile_contents import TileContents, picture_of_all, small_pictures, strongest_words
from idc_core.figures.web import grid_figure
from idc_core.figures.wording import counted, plural
from idc_core.report.bounds import NEURONS
from idc_core.report.material import Material
from idc_core.runs import Planned

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Chart:
    """A chart: its title, how to read it, plotly's description for either theme, a still picture."""

    name: str
    title: str
    read: str
    height: int
    light: dict[str, object]
    dark: dict[str, object]
    picture: Markup


def grid_chart(material: Material, on_progress: Progress | None = None) -> Chart:
    """Draw the grid of combinations, in its tiles their most typical tests."""
    table, errors, reach = material.table, material.correct is not None, material.overview.reach()
    axes = default_axes(table.sizes, within=MOST_PICTURED)
    grid = lay_out(table, [str(neuron) for neuron in material.analysis.important], axes)
    shown = _contents(material, grid, on_progress)
    title = counted("Covered", table.covered, table.total, "cell")
    colouring = "errors" if errors else "covered"

    def draw(dark: bool) -> go.Figure:
        option = coverage_grid(grid, table, colouring, title, reach=reach, clickable=False, dark=dark)
        contents = shown(dark)
        return grid_figure(option, min(620, grid_size(grid, option)[1]), contents=contents, dark=dark)

    if grid.folded:
        read = f"Each tile stands for {plural(grid.cells_per_tile, 'cell')}: one cluster of each neuron on the axes."
    else:
        read = "Each tile is a cell: one cluster of every important neuron. Cluster 0 has the lowest activations."
    read += " Colour and mark: share of misclassified tests." if errors else " Filled tiles hold tests."
    read += " Each shows its most typical test."
    picture = _grid_picture(grid, table, colouring, title, reach, shown(False))
    return _chart("grid", title, read, draw(False), draw(True), picture)


def _contents(material: Material, grid: Grid, on_progress: Progress | None) -> Callable[[bool], TileContents]:
    """Return what gives the contents of the tiles on either ground: the most typical test of the fullest cell."""
    drawn, test, train = filled(grid, material.table), material.test, material.train
    typical = np.array(material.overview.typical)[drawn.row]
    positions = np.searchsorted(test.ids, typical).astype(np.int64)
    if test.inputs.dtype.kind == "f":
        return lambda dark: TileContents(drawn.tile, small_pictures(test, train, positions, dark=dark), [])
    maps = None if test.is_spelt else _relevance(material, positions, on_progress)
    words = strongest_words(test, positions, maps)
    return lambda dark: TileContents(drawn.tile, np.zeros((0, 1, 1, 3), np.uint8), words)


def _relevance(material: Material, positions: NDArray[np.int64], on_progress: Progress | None) -> NDArray[np.floating]:
    """Return the relevance (k, length) of texts for their predictions, kept as the dashboard keeps it."""
    from idc_core.attribution.relevance import relevance

    def work(report: Progress | None) -> NDArray[np.float32]:
        inputs = material.test.inputs[positions]
        maps = relevance(material.open_model(), inputs, ["input"], target="predicted", on_progress=report)["input"]
        return np.asarray(maps, dtype=np.float32)

    key = (*material.fingerprints, tuple(positions.tolist()), None)
    return Planned("heatmaps", key, work).kept(on_progress)


def histogram_chart(material: Material) -> Chart:
    """Draw one histogram per important neuron."""
    analysis = material.analysis
    ranks = range(min(analysis.m, NEURONS))
    title = "Activations of the important neurons, and their clusters"

    def draw(dark: bool) -> go.Figure:
        return histograms(
            analysis.clusters[: len(ranks)],
            analysis.train_activations[:, : len(ranks)],
            analysis.test_activations[material.chosen][:, : len(ranks)],
            [_panel_title(material, rank) for rank in ranks],
            title,
            numbers=analysis.important[: len(ranks)].tolist(),
            clickable=False,
            dark=dark,
        )

    read = (
        "Bars: share of the training inputs per activation (logarithmic); outline: the same for the tests. Dotted "
        "lines are the boundaries between clusters."
    )
    if len(ranks) < analysis.m:
        read += f" The first {len(ranks)} of {analysis.m} important neurons are drawn."
    return _chart("histograms", title, read, draw(False), draw(True), _histogram_picture(material, ranks, title))


def _chart(name: str, title: str, read: str, light: go.Figure, dark: go.Figure, picture: Markup) -> Chart:
    in_light, in_dark = (json.loads(figure.to_json()) for figure in (light, dark))
    return Chart(name, title, read, int(light.layout.height), in_light, in_dark, picture)


_WIDTH = 710
_TILE = 72.0  # largest side of a tile
_TALLEST = 500  # of the grid without its labels
_LETTER = 4.6  # width of a small letter
_PANEL = (236, 150)  # width and height of a histogram with its labels
_PLOT = (40, 18, 190, 104)  # left, top, width and height of its bars within
_COLUMNS = 3
_TOP = 250.0  # per cent at the upper end of a histogram


def _grid_picture(
    grid: Grid, table: CellTable, colouring: str, title: str, reach: Reach | None, contents: TileContents
) -> Markup:
    """Draw the grid of combinations, coloured, marked and filled as `grid_figure` does."""
    squares = grid_rows(grid, table, colouring, reach=reach)
    category = squares["category"].to_numpy()
    rows, columns = len(grid.row_labels), len(grid.column_labels)
    left = 24 + _LETTER * len(grid.row_labels[-1])
    wide = tall = min((_WIDTH - left) / columns, _TALLEST / rows, _TILE)
    x, y = left + wide * (np.arange(grid.tiles) % columns), tall * (np.arange(grid.tiles) // columns)
    named = categories(colouring, LIGHT, (), grid.cells_per_tile, reach is not None)
    pieces = [entry for entry in named if entry["value"] in {0, *category}]
    parts = []
    for piece in pieces:
        tiles = "".join(
            f"M{x[i]:.1f} {y[i]:.1f}h{wide:.1f}v{tall:.1f}h-{wide:.1f}z"
            for i in np.flatnonzero(category == piece["value"])
        )
        parts.append(f'<path d="{tiles}" fill="{piece["color"]}" stroke="{LIGHT.line}" stroke-width="0.5"/>')
    whole = picture_of_all(contents, (rows, columns), LIGHT)
    extent = f'x="{left:.1f}" y="0" width="{columns * wide:.1f}" height="{rows * tall:.1f}"'
    parts.append(f'<image {extent} preserveAspectRatio="none" href="{whole}"/>')
    fills = {piece["value"]: piece["color"] for piece in pieces}
    pictured = set(contents.tile.tolist())
    for tile, (a, b, mark, kind) in enumerate(zip(x, y, squares["mark"], category, strict=True)):
        if mark and tile in pictured:
            parts += _corner(a + wide, b + tall, mark, fills[kind])
        elif mark:
            parts.append(_text(a + wide / 2, b + tall / 2 + 3, mark, 10, ON_FILL))
    bottom = rows * tall
    for label, place in _some(grid.row_labels, 9 / tall):
        parts.append(_text(left - 4, (place + 0.5) * tall + 3, label, anchor="end"))
    turned = wide < _LETTER * (len(grid.column_labels[-1]) + 1)
    for label, place in _some(grid.column_labels, 9 / wide if turned else 0):
        parts.append(
            _text(left + (place + 0.5) * wide + 3 * turned, bottom + 4, label, anchor="end", turn=True)
            if turned
            else _text(left + (place + 0.5) * wide, bottom + 11, label)
        )
    bottom += (16 + _LETTER * len(grid.column_labels[-1])) if turned else 16
    parts.append(_text(left + columns * wide / 2, bottom + 10, grid.column_title))
    parts.append(_text(10, rows * tall / 2, grid.row_title, turn=True))
    legend, height = _legend([(entry["label"], entry["color"]) for entry in pieces], bottom + 22)
    return _picture([*parts, *legend], height, title)


def _corner(right: float, bottom: float, mark: str, fill: str) -> tuple[str, str]:
    """Write a mark into the lower right corner of a tile, on the tile's colour."""
    wide = 6 + 5.5 * len(mark)
    ground = f'<path d="M{right:.1f} {bottom:.1f}h-{wide:.1f}v-11h{wide:.1f}z" fill="{fill}"/>'
    return ground, _text(right - wide / 2, bottom - 2, mark, 9, ON_FILL)


def _histogram_picture(material: Material, ranks: range, title: str) -> Markup:
    """Draw the histograms of the important neurons of these ranks, as `histograms` does."""
    parts: list[str] = []
    for rank in ranks:
        across, down = rank % _COLUMNS * _PANEL[0], rank // _COLUMNS * _PANEL[1]
        parts.append(f'<g transform="translate({across} {down})">{"".join(_panel(material, rank))}</g>')
    bottom = -(-len(ranks) // _COLUMNS) * _PANEL[1]
    named = ("training inputs", LIGHT.accent), ("tests (outline)", LIGHT.tests)
    lines = ("centroid", LIGHT.error), ("boundary (dotted)", LIGHT.ink)
    legend, height = _legend([*named, *lines], bottom + 4)
    return _picture([*parts, *legend], height, title)


def _panel_title(material: Material, rank: int) -> str:
    """Name an important neuron with the number of its clusters."""
    clusters = material.sizes[rank]
    return f"neuron {material.analysis.important[rank]}, {clusters} cluster{'' if clusters == 1 else 's'}"


def _panel(material: Material, rank: int) -> Iterator[str]:
    """Draw one neuron's histogram: bars, outline, centroids, boundaries and axes."""
    analysis, clusters = material.analysis, material.analysis.clusters[rank]
    train, test = analysis.train_activations[:, rank], analysis.test_activations[material.chosen, rank]
    edges = bin_edges(train, test)
    left, top, wide, tall = _PLOT
    floor = 50.0 / max(len(train), len(test))

    def across(values: NDArray[np.float64]) -> NDArray[np.float64]:
        places: NDArray[np.float64] = left + wide * (values - edges[0]) / (edges[-1] - edges[0])
        return places

    def up(values: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = np.log(np.maximum(np.nan_to_num(values, nan=floor), floor) / floor) / math.log(_TOP / floor)
        return top + tall * (1 - shares)

    x, foot = across(edges), top + tall
    bars = "".join(
        f"M{a:.1f} {foot}V{y:.1f}H{b:.1f}V{foot}z"
        for a, b, y in zip(x, x[1:], up(bin_shares(train, edges)), strict=False)
    )
    yield f'<path d="{bars}" fill="{LIGHT.accent}" fill-opacity="0.55"/>'
    outline = "".join(f"V{y:.1f}H{b:.1f}" for b, y in zip(x[1:], up(bin_shares(test, edges)), strict=True))
    yield f'<path d="M{x[0]:.1f} {foot}{outline}V{foot}" fill="none" stroke="{LIGHT.tests}"/>'
    for values, colour, dash in ((clusters.centroids, LIGHT.error, ""), (clusters.boundaries, LIGHT.ink, "2 3")):
        lines = "".join(f"M{place:.1f} {top}V{foot}" for place in across(values))
        yield f'<path d="{lines}" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dash}"/>'
    yield f'<path d="M{left} {top}V{foot}H{left + wide}" fill="none" stroke="{LIGHT.muted}"/>'
    ticks = [10.0**power for power in range(-6, 3) if 10.0**power >= floor]
    for tick, y in zip(ticks, up(np.array(ticks)), strict=True):
        yield _text(left - 3, y + 3, f"{tick:g}", anchor="end")
    for tick in _ticks(float(edges[0]), float(edges[-1])):
        yield _text(float(across(np.array([tick]))[0]), foot + 11, f"{tick:g}")
    yield _text(left + wide / 2, foot + 22, "activation")
    yield _text(9, top + tall / 2, "share of inputs (%)", turn=True)
    yield _text(left + wide / 2, top - 6, _panel_title(material, rank), 10, LIGHT.ink)


def _ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers in a range."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _some(labels: Sequence[str], room: float) -> list[tuple[str, int]]:
    """Return labels with their places, not all where one needs the `room` of several."""
    return [(labels[place], place) for place in range(0, len(labels), max(1, math.ceil(room)))]


def _legend(named: Sequence[tuple[str, str]], top: float) -> tuple[list[str], float]:
    """Draw names beside their colours in rows; return them and where they end."""
    parts, x = [], 4.0
    for name, colour in named:
        wide = 30 + 5.5 * len(name)
        if x + wide > _WIDTH:
            x, top = 4.0, top + 16
        parts.append(f'<path d="M{x:.1f} {top:.1f}h14v9h-14z" fill="{colour}" stroke="{LIGHT.muted}"/>')
        parts.append(_text(x + 19, top + 8, name, 10, LIGHT.ink, "start"))
        x += wide
    return parts, top + 16


def _text(
    x: float,
    y: float,
    said: str,
    size: float = 9,
    colour: str = LIGHT.muted,
    anchor: str = "middle",
    turn: bool = False,
) -> str:
    """Write a text; one that is turned reads from below."""
    place = f'transform="translate({x:.1f} {y:.1f}) rotate(-90)"' if turn else f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text {place} font-size="{size:.1f}" fill="{colour}" text-anchor="{anchor}">{escape(said)}</text>'


def _picture(parts: Iterable[str], height: float, title: str) -> Markup:
    return Markup(
        f'<svg class="still" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
