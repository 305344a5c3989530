"""Coverage: the grid of combinations, how it grows with the tests, the smallest set of tests, and empty cells."""

from functools import partial

import streamlit as st

from studio.coverage import grid_chart, growth_chart, mistakes, smallest_set, work_list
from studio.jobs.overview import summarise
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.widgets.headlines import reached

PAGE = PageEntry(
    "Coverage",
    ":material/grid_on:",
    "Which combinations of clusters do the tests reach?",
    "The grid of combinations, its growth with the tests, the smallest set of tests, and empty cells to fill.",
    place=60,
    tabs={
        "grid": "Grid",
        "growth": "Growth and what is left",
        "smallest": "Smallest set",
        "fill": "Fill the grid",
        "mistakes": "Mistakes",
    },
    controls={
        "fill-all": "fill",
        "gaps-by": "fill",
        "gaps-decided": "fill",
        "gaps-reached": "fill",
        "make": "fill",
        "make-epsilon": "fill",
        "make-seeds": "fill",
        "prefer": "smallest",
        "colour": "grid",
        "pictures": "grid",
        "zoom": "grid",
        "rows": "grid",
        "columns": "grid",
    },
    opens=("analysis",),
)

_view = current_view()
st.markdown(reached(summarise(_view)))
tabs.draw(
    "coverage",
    {
        "grid": partial(grid_chart.draw, _view),
        "growth": partial(growth_chart.draw, _view),
        "smallest": partial(smallest_set.draw, _view),
        "fill": partial(work_list.draw, _view),
        "mistakes": partial(mistakes.draw, _view),
    },
)
