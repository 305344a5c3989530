"""Coverage: the grid of combinations, how it grows with the tests, the smallest set of tests, and empty cells."""

import streamlit as st

from studio.coverage import cell_details, empty_cells, growth_chart, smallest_set
from studio.coverage.grid_chart import choose_colouring, draw_grid, draw_pinned, only_selected, sentence
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.widgets import grid_axes, layout

PAGE = PageEntry(
    "Coverage",
    ":material/grid_on:",
    "Which combinations of clusters do the tests reach?",
    "The grid of combinations, its growth with the tests, the smallest set of tests, and empty cells to fill.",
    place=80,
    tabs={"grid": "Grid", "growth": "Growth and what is left", "smallest": "Smallest set", "fill": "Fill the grid"},
    controls={
        "make": "fill",
        "make-epsilon": "fill",
        "make-seeds": "fill",
        "prefer": "smallest",
        "colour": "grid",
        "zoom": "grid",
        "rows": "grid",
        "columns": "grid",
    },
    opens=("analysis",),
)

view = current_view()
st.markdown(sentence(view))

DISTANCE = "Distances are Euclidean, each neuron in units of its standard deviation over the training inputs."


def draw_cells() -> None:
    """Show the grid, what is in a cell, and, folded away, all covered cells."""
    held = grid_axes.read_zoom(view)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        colouring = choose_colouring(view)
        grid_axes.controls(view, held)
        only_selected(view, held)
    grid_axes.crumbs(view, held)
    grid, cell = draw_grid(view, held, colouring)
    cell_details.draw_texts(view, cell)
    cell_details.covered_cells(view, grid)
    draw_pinned(view, held, colouring)
    layout.computed(
        view,
        "Each test falls into one cell: the combination of the clusters that the activations of the m important "
        "neurons fall into. Importance-driven coverage (IDC) is the share of all cells that hold at least one test.",
    )


def draw_growth() -> None:
    """Show how coverage grows with the tests, and in which clusters cells are left."""
    growth_chart.draw_growth(view)
    growth_chart.draw_left(view)
    layout.computed(view, "Every order of the tests is passed once; a cell counts from its first test on.")


def draw_smallest() -> None:
    """Show the smallest set of tests with the same coverage."""
    smallest_set.draw(view)
    layout.computed(view, f"The set takes one test per cell, the closest to the cell's centroids. {DISTANCE}")


def draw_empty() -> None:
    """Show which cells could be filled next, and with what."""
    empty_cells.draw(view)
    layout.computed(view, f"Inputs are made by changing the tests closest to the cell until they lie in it. {DISTANCE}")


tabs.draw("coverage", {"grid": draw_cells, "growth": draw_growth, "smallest": draw_smallest, "fill": draw_empty})
