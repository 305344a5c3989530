"""Show a result at a glance: findings in words, three numbers, and the small grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.analysis.overview import Overview
from idc_core.figures import coverage as figures
from idc_core.figures.grid import Grid, lay_out
from idc_core.report import sentences
from studio.jobs.overview import Snapshot, summarise
from studio.jobs.results import View
from studio.shell import pins, tabs
from studio.shell.pages import PAGES, go_to
from studio.state.selection import Selection, select
from studio.state.setup import Setup
from studio.text import cell_name, count, literal, percent, plural
from studio.widgets import grid_axes, grid_pictures
from studio.widgets.cell_rows import cell_rows
from studio.widgets.cluster_names import cluster_names
from studio.widgets.layout import Headline, claim, counted, grid_chart, is_dark, lead
from studio.widgets.storytelling import add_button

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from idc_core.figures.tile_contents import TileContents

_SMALL = 1024
"""Tiles of the small grid at most."""


_PLACES = {
    "recall": ("classes", "pairs"),
    "pair": ("classes", "pair"),
    "class-share": ("classes", "pairs"),
    "cluster": ("clusters", ""),
    "errors-only": ("coverage", "grid"),
    sentences.UNTESTED: ("coverage", "grid"),
}
"""Page and tab that show the subject of a finding."""


@dataclass(frozen=True)
class _Finding:
    """A finding in words, and where it is shown: the page, its tab, and what is selected there."""

    sentence: str
    page: str
    tab: str
    selected: dict[str, str]

    @property
    def query(self) -> dict[str, str]:
        """What the page's address says."""
        return {tabs.TAB: self.tab, **self.selected} if self.tab else self.selected


def draw(shown: View | Snapshot) -> None:
    """Show the result of a setup, live or as it was made beforehand."""
    result = summarise(shown) if isinstance(shown, View) else shown.result
    st.markdown(_headline(result))
    _draw_numbers(result)
    _draw_findings(result, shown)
    _draw_small(result, shown)


def _draw_findings(result: Overview, shown: View | Snapshot) -> None:
    """Say what stands out, each with a link to what shows it."""
    for place, found in enumerate(_findings(result)):
        entry = PAGES[found.page]
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=f"finding-{place}"):
            st.page_link(
                entry.file, label=literal(found.sentence), help=entry.help, query_params=found.query, width="stretch"
            )
            chosen = {name: text for name, text in shown.setup.texts.items() if text} if isinstance(shown, View) else {}
            whole = {**chosen, **found.query}
            add_button(
                f"finding-{place}", found.sentence, partial(_figure, result, shown), shown.line, (found.page, whole)
            )
    if said := sentences.nothing(result):
        st.markdown(said)


def draw_pinned(view: View) -> None:
    """Show the small grids of this and of the pinned setup."""
    pins.beside(view, _draw_side)


def _headline(result: Overview) -> str:
    """Say how many combinations are within reach and untested, beside chance, and how many are covered."""
    return lead(headline(result), literal(sentences.reach(result)))


def headline(result: Overview) -> Headline:
    """Say how many combinations are within reach and untested, beside chance; else how many are covered."""
    untested = sentences.found(result, sentences.UNTESTED)
    return covered(result) if untested is None else claim(untested)


def covered(result: Overview) -> Headline:
    """Say how many cells the tests cover."""
    return counted("Covered", result.table.covered, result.table.total, "cell")


def _findings(result: Overview) -> list[_Finding]:
    """Return what stands out in words, each with the page that shows its subject."""
    return [_Finding(one.sentence, *_PLACES[one.subject], dict(one.where)) for one in sentences.told(result)]


def _draw_numbers(result: Overview) -> None:
    """Show the four numbers."""
    quality, idc, within, lonely = st.columns([2, 2, 2, 3])
    if result.accuracy is not None:
        text = "Share of the tests that are classified correctly."
        _number(quality, "Accuracy", percent(result.accuracy), text)
    elif result.rmse is not None:
        _number(quality, "RMSE", f"{result.rmse:.3f}", "Root mean square error, in the unit of the target.")
    else:
        text = "Accuracy is not defined: the tests' classes are not the network's."
        _number(quality, "Accuracy", "not defined", text)
    text = "Importance-driven coverage: share of the combinations of clusters that at least one test reaches."
    _number(idc, "IDC", percent(result.table.covered / result.table.total), text)
    text = "The same share of those combinations alone that tests or training inputs reach."
    reachable = result.reachable
    share = "not known" if not reachable else percent(result.table.covered / reachable)
    _number(within, "IDC within reach", share, text)
    text = "Covered cells in which every test is misclassified; by chance: if errors were spread at random."
    cells = "not defined" if result.accuracy is None else count(int(result.errors_only.sum()))
    chance = sentences.found(result, "errors-only")
    beside = None if chance is None else f"{chance.write(chance.control.value)} by chance"
    _number(lonely, "Cells reached only by misclassified tests", cells, text, beside)


def _number(place: DeltaGenerator, label: str, value: str, text: str, beside: str | None = None) -> None:
    """Show a number in a frame as high as those beside it."""
    place.metric(label, value, beside, "off", delta_arrow="off", border=True, height="stretch", help=text)


def _draw_small(result: Overview, shown: View | Snapshot) -> None:
    """Show the grid of combinations; a click opens its cell on the Coverage page."""
    grid = _laid_out(result, shown.setup)
    layer = partial(grid_pictures.layer, shown, grid)
    _draw_grid(
        result,
        grid,
        shown.line,
        partial(_open, result, grid),
        layer=layer,
        contents=lambda dark: grid_pictures.contents(shown, grid, dark=dark),
    )


def _laid_out(result: Overview, setup: Setup) -> Grid:
    axes = grid_pictures.usual_axes(result.table.sizes, most=_SMALL)
    names = cluster_names(setup, result.important, result.table.sizes)
    return lay_out(result.table, [str(neuron) for neuron in result.important], axes, cluster_names=names)


def _draw_grid(
    result: Overview,
    grid: Grid,
    line: str,
    clicked: Callable[[int], None] | None,
    name: str = "grid",
    layer: Callable[[dict[str, object]], dict[str, object]] = lambda option: {},
    contents: Callable[[bool], TileContents | None] = lambda dark: None,
) -> None:
    table, errors = result.table, result.accuracy is not None
    title = covered(result)
    option = figures.coverage_grid(
        grid,
        table,
        "errors" if errors else "covered",
        title,
        reach=result.reach(),
        clickable=clicked is not None,
        dark=is_dark(),
    )
    if grid.folded:
        read = (
            f"Each tile is a combination of clusters of {len(table.sizes) - len(grid.folded)} important neurons and "
            f"stands for {plural(grid.cells_per_tile, 'cell')}."
        )
    else:
        filled = " Colour and mark: share of misclassified tests." if errors else ""
        read = f"Each cell is a combination of clusters of the important neurons.{filled}"
    if clicked is not None:
        read += " Click one to open it in Coverage."
    size = figures.grid_size(grid, option)
    rows = cell_rows(table, result.reach())
    grid_chart(
        f"overview-{name}", option, size, title, read, line, clicked, name, rows, layer=layer(option), contents=contents
    )


def _figure(result: Overview, shown: View | Snapshot, dark: bool) -> go.Figure:
    """Draw the small grid on a slide that says a finding."""
    from idc_core.figures.web import grid_figure

    grid, colouring = _laid_out(result, shown.setup), "errors" if result.accuracy is not None else "covered"
    option = figures.coverage_grid(grid, result.table, colouring, covered(result), reach=result.reach(), dark=dark)
    contents = grid_pictures.contents(shown, grid, dark=dark)
    return grid_figure(option, figures.grid_size(grid, option)[1], contents=contents, dark=dark)


def _open(result: Overview, grid: Grid, tile: int) -> None:
    """Open a tile on the Coverage page: its cell, or where it stands for several, the grid of these."""
    if tile >= grid.tiles:
        return
    clusters = grid.clusters(tile)
    if not grid.folded:
        select(cell=cell_name(list(clusters.values())))
    else:
        grid_axes.fix_in(result.layer, result.important, clusters)
    tabs.open_at("coverage", "grid")
    go_to("coverage")


def _draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Show the numbers and the grid of one of two setups."""
    result = summarise(shown)
    _draw_numbers(result)
    _draw_grid(result, _laid_out(result, shown.setup), shown.line, None, f"grid-{key}")
