"""Show the grid of combinations: colours, zoom, clicks, and the grids of two setups side by side."""

from __future__ import annotations

import numpy as np
import streamlit as st

from idc_core.coverage.cell_table import overlap
from idc_core.figures import colourings
from idc_core.figures import coverage as figures
from idc_core.figures.grid import Grid, default_axes, lay_out
from studio.coverage import cell_details, filling
from studio.jobs.brushed import in_chart
from studio.jobs.overview import summarise
from studio.jobs.results import View
from studio.shell import pins
from studio.state.choices import choose_one
from studio.state.selection import Selection, select, selected
from studio.text import cell_name, parse_cell
from studio.widgets import grid_axes, grid_pictures, layout
from studio.widgets.cell_rows import cell_rows
from studio.widgets.cluster_names import names_in


def draw(view: View) -> None:
    """Show the grid, what is in a cell, and, folded away, all covered cells."""
    held = grid_axes.read_zoom(view)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        colouring = _choose_colouring(view)
        grid_axes.controls(view, held)
        grid_pictures.switch()
        _only_selected(view, held)
    grid_axes.crumbs(view, held)
    cell_details.draw_covered(view, _draw_grid(view, held, colouring))
    _draw_pinned(view, held, colouring)
    layout.computed(
        view,
        "Each test falls into one cell: the combination of the clusters that the activations of the m important "
        "neurons fall into. Importance-driven coverage (IDC) is the share of all cells that hold at least one test.",
    )


def _choose_colouring(view: View) -> str:
    """Choose what the colour of a tile says."""
    offered = {
        key: colouring.label
        for key, colouring in colourings.COLOURINGS.items()
        if (key != "class" or view.is_classifier) and (key != "errors" or view.correct is not None)
    }
    return choose_one(
        st.segmented_control,
        "Colour by",
        offered,
        "covered",
        "colour",
        required=True,
        help="Meaning of a tile's colour and mark. Default whether it is covered.",
    )


def _only_selected(view: View, held: grid_axes.Zoom) -> None:
    """Offer to show only the cells in which the selected neuron is in the selected cluster."""
    chosen, important = selected(), view.analysis.important.tolist()
    if chosen.neuron not in important or chosen.cluster is None:
        return
    rank = important.index(chosen.neuron)
    if chosen.cluster < view.sizes[rank] and held.fixed.get(rank) != chosen.cluster:
        st.button(
            f"Show only cells with neuron {chosen.neuron} in cluster {chosen.cluster}",
            key="only-selected",
            on_click=grid_axes.fix,
            args=(view, {**held.fixed, rank: chosen.cluster}),
            help="Restrict the grid to the selected cluster.",
        )


def _draw_grid(view: View, held: grid_axes.Zoom, colouring: str) -> Grid:
    """Show the grid above what is in the chosen cell; return it."""
    grid = lay_out(view.table, _numbers(view), held.axes, held.fixed, names_in(view))
    above, below = st.container(), st.container()
    with below:
        usual = _default_cell(view, grid)
        default = "the selected test's cell, else one reached only by misclassified tests"
        cell = cell_details.draw_cell(view, grid, usual, default)
    with above:
        key = f"grid-{hash((view.setup, held.axes, tuple(held.fixed.items())))}"
        reach = summarise(view).reach(filling.generated(view))
        click = "Click a tile to zoom in." if grid.folded else "Click a cell to see its tests."
        option = figures.coverage_grid(
            grid,
            view.table,
            colouring,
            grid_axes.finding(view, grid),
            class_names=view.test.class_names,
            reach=reach,
            selected=grid.place(cell),
            together=_tiles_of(view, grid),
            dark=layout.is_dark(),
        )
        layout.grid_chart(
            key,
            option,
            figures.grid_size(grid, option),
            grid_axes.finding(view, grid),
            f"{grid_axes.reading(view, grid, colouring)} {click}",
            view.line,
            lambda tile: _clicked(view, grid, tile),
            table=cell_rows(view.table, reach, view.test.class_names),
            layer=grid_pictures.layer(view, grid, option),
            contents=lambda dark: grid_pictures.contents(view, grid, dark=dark),
        )
    return grid


def _tiles_of(view: View, grid: Grid) -> list[tuple[str, str]]:
    """Return the tiles that hold tests which were selected in a chart."""
    cells = np.unique(view.analysis.assignments[in_chart(view)], axis=0).tolist()
    return list(dict.fromkeys(place for cell in cells if (place := grid.place(cell)) is not None))


def _clicked(view: View, grid: Grid, tile: int) -> None:
    """Select the tile's cell, or zoom into its cells."""
    if tile < grid.tiles:
        clusters = grid.clusters(tile)
        if grid.folded:
            grid_axes.fix(view, clusters)
        else:
            select(cell=cell_name(list(clusters.values())))


def _numbers(view: View) -> list[str]:
    """Return the important neurons' numbers, for the axes."""
    return list(map(str, view.analysis.important))


def _draw_pinned(view: View, held: grid_axes.Zoom, colouring: str) -> None:
    """Show the grids of this and of the pinned setup; where their cells are the same, which ones both cover."""
    pinned = pins.open_pinned()
    if pinned is None:
        return
    common = overlap(view.table, pinned.view.table) if pins.same_cells(view, pinned.view) else None

    def draw(one: View, chosen: Selection, key: str) -> None:
        fixed, axes = (held.fixed, held.axes) if common is not None else ({}, default_axes(one.sizes))
        laid = lay_out(one.table, _numbers(one), axes, fixed, names_in(one))
        finding = grid_axes.finding(one, laid)
        place = parse_cell(chosen.cell, one.sizes)
        shared = None if common is None else common.first if key == "this" else common.second
        coloured = colouring if shared is None else colourings.SHARED
        drawn = figures.coverage_grid(
            laid,
            one.table,
            coloured,
            finding,
            class_names=one.test.class_names,
            shared=shared,
            reach=summarise(one).reach(filling.generated(one)),
            selected=None if place is None else laid.place(place),
            clickable=False,
            dark=layout.is_dark(),
        )
        read = grid_axes.reading(one, laid, coloured)
        size = figures.grid_size(laid, drawn)
        layout.grid_chart(f"grid-{key}", drawn, size, finding, read, one.line, name=key, setup=one.setup)

    pins.beside(view, draw)


def _default_cell(view: View, grid: Grid) -> tuple[int, ...]:
    """Return the selected test's cell, else one that only misclassified tests reach, else the fullest one drawn."""
    table = view.table
    if view.position is not None:
        return tuple(map(int, view.analysis.assignments[view.position]))
    drawn = np.flatnonzero(grid.tile >= 0)
    drawn = drawn if len(drawn) else np.arange(table.covered)
    lonely = np.intersect1d(drawn, view.errors_only)
    row = lonely[0] if len(lonely) else drawn[table.counts[drawn].argmax()]
    return tuple(map(int, table.cells[row]))
