"""Overview: the result at a glance, and where to look next."""

import pandas as pd
import streamlit as st

from studio.engine.overview import summarise
from studio.engine.results import View
from studio.overview.result import draw_side, findings, headline, numbers, small_grid
from studio.shell import pins
from studio.shell.frame import current_result, default_line
from studio.shell.pages import PAGES
from studio.text import cell_name
from studio.widgets.layout import explain, take_away

NEXT = {
    "learn": "Learn: the method on a network of ten neurons",
    "coverage": "Coverage: click an empty cell to see the closest tests",
    "relevance": "Relevance: which part of the input decided when the network was wrong",
    "layers": "Layers: where in the network the tests are weaker",
}
"""Where to go from here, by page."""

shown = current_result()
if isinstance(shown, View):
    result, line = summarise(shown), shown.line
else:
    result, line = shown, default_line(shown)
st.markdown(
    "IDC Studio shows which behaviour of a neural network its tests do not cover. It finds the neurons that decide, "
    "splits the activations of each into clusters, and shows which combinations of clusters the tests reach."
)
st.markdown(headline(result))
numbers(result)
small_grid(result, line)

for heading, links in (("Findings", findings(result)), ("Where to go next", NEXT)):
    st.header(heading, anchor=False)
    if links is NEXT:
        st.markdown("Choose a network, tests, a layer or more neurons in the sidebar. Every page follows.")
    for name, sentence in links.items():
        st.page_link(PAGES[name].file, label=sentence, icon=PAGES[name].icon, help=PAGES[name].help)
if isinstance(shown, View):
    pins.beside(shown, draw_side)
explain(
    "The important neurons of a layer are those with the largest relevance, summed over the network's training inputs. "
    "The activations of each over the training inputs are split into clusters. A cell is one cluster of every "
    "important neuron. IDC is the share of cells that contain a test. The pages under **Explore** show every step.",
    "Source: Gerasimou, Eniser, Sen, Cakan, Importance-Driven Deep Learning System Testing, ICSE 2020.",
)
cells = pd.DataFrame(
    {
        "cell": [cell_name(cell) for cell in result.table.cells],
        "tests": result.table.counts,
        "misclassified": result.table.wrong,
    }
)
take_away({"covered-cells": cells})
