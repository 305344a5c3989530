"""Coverage: the grid of combinations, what is in a cell, how coverage grows with the tests, the smallest subset."""

import pandas as pd
import streamlit as st

from idc_core.coverage.growth import growth
from idc_core.figures.coverage import growth_curve
from studio.coverage import cell_details
from studio.coverage.grid_chart import choose_colouring, draw_grid, draw_pinned, sentence
from studio.shell.frame import current_view
from studio.text import cell_name, count, plural
from studio.widgets import cell_search, grid_axes, layout

view = current_view()
table = view.table
st.markdown(sentence(view))

st.header("The grid of combinations", anchor=False)
held = grid_axes.read_zoom(view)
colouring = choose_colouring(view, held)
grid_axes.controls(view, held)
grid_axes.crumbs(view, held)
grid, cell = draw_grid(view, held, colouring)

cell_search.draw(view, cell)

st.header("Covered cells", anchor=False)
cell_details.covered_cells(view, grid)

st.header("Coverage against the number of tests", anchor=False)
grown = growth(view.analysis.codes[view.chosen])
title = (
    f"The first {plural(grown.half, 'test')} reach half of the {plural(table.covered, 'covered cell')}; "
    f"the best {count(-(-table.covered // 2))} would be enough"
)
layout.chart(
    view,
    "growth",
    lambda dark: growth_curve(grown, table.total, title, dark=dark),
    alt=title,
    read="Each curve is one order of the tests. A curve that still rises at its end means that more tests would reach "
    f"more cells. The band is the range of {grown.orders} shuffled orders (seed {grown.seed}); the greedy order takes "
    "the test that adds most, at most one cell per test.",
)

st.header("The smallest set of tests with the same coverage", anchor=False)
cell_details.smallest(view)
draw_pinned(view, held, colouring)

layout.computed(
    view,
    "Each test falls into one cell: the combination of the clusters that the activations of the m important "
    "neurons fall into. Importance-driven coverage (IDC) is the share of all cells that hold at least one test.",
    "The smallest set takes one test per cell, the closest to the cell's centroids. Distances are Euclidean, each "
    "neuron in units of its standard deviation over the training inputs.",
)
covered = pd.DataFrame(
    {
        "cell": [cell_name(one) for one in table.cells.tolist()],
        "tests": table.counts,
        "misclassified": table.wrong,
        **{f"class_{name}": table.by_class[:, i] for i, name in enumerate(view.test.class_names)},
    }
)
curve = pd.DataFrame(
    {
        "tests": grown.tests,
        "given_order": grown.given,
        "shuffled_mean": grown.mean,
        "shuffled_low": grown.low,
        "shuffled_high": grown.high,
        "greedy_order": grown.greedy,
    }
)
layout.take_away({"covered-cells": covered, "coverage-growth": curve})
