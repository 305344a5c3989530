"""Layers: coverage of every layer, for several numbers of important neurons and several test sets."""

from functools import partial

import streamlit as st

from idc_core.errors import IdcError
from studio.layers.layer_sweep import counted, open_suites, open_sweep
from studio.layers.network_view import draw_network
from studio.layers.sweep_view import choose, draw, draw_partly, draw_pinned, draw_table, sentence, tabulate
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.text import literal, plural
from studio.widgets import layout

PAGE = PageEntry(
    "Layers",
    ":material/layers:",
    "Where in the network are the tests weak?",
    "Coverage of every layer, for several m and test sets. Click a square to open it.",
    place=90,
    tabs={"coverage": "Coverage of every layer", "network": "Drawing of the network"},
)

view = current_view()
finding = st.empty()
suites, ms = choose(view)
opened, problems = open_suites(view, suites)
for problem in problems:
    st.warning(problem)
so_far = st.empty()
try:
    sweep = open_sweep(view, opened, ms, partial(draw_partly, so_far, view))
except IdcError as error:
    st.error(literal(error))
    st.stop()
table = tabulate(sweep, {name: len(counted(view, test)) for name, test in opened.items()})
so_far.empty()
finding.markdown(sentence(view, sweep))
if len(sweep.cells) < len(sweep.suites) * len(sweep.layers) * len(sweep.ms):
    done = plural(len({cell.layer for cell in sweep.cells}), "layer")
    st.caption(f"Finished before the stop: {done} of {len(sweep.layers)}.")


def draw_coverage() -> None:
    """Show IDC of every layer and m."""
    draw(sweep, view, "sweep", clickable=True, table=table)
    draw_table(view, sweep, table)
    draw_pinned(view, sweep)
    say_computed()


def draw_drawing() -> None:
    """Show the network itself."""
    draw_network(view, sweep)
    say_computed()


def say_computed() -> None:
    """Say how the layers were measured."""
    layout.computed(
        view,
        f"One pass over the {len(view.train):,} training inputs gives relevance and activations of all layers, one "
        "pass over each test set its activations. The important neurons of a small m are the first ones of a larger "
        "m; the clusters of each neuron are computed once. Every number equals that of the Coverage page for the layer "
        "and m.",
        "As in the paper's Table 5, IDC falls as m grows: every further neuron multiplies the number of combinations, "
        "and each test reaches only one of them. A neuron with a constant activation has one cluster and adds none.",
    )


if sweep.cells:
    tabs.draw("layers", {"coverage": draw_coverage, "network": draw_drawing})
