"""Neurons: which of a layer's neurons decide by any measure, the tests that activate one, and whether they decide."""

from functools import partial

import streamlit as st

from studio.neurons import cards, neuron, ranking_charts, rankings, trials
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.widgets.layout import lead

PAGE = PageEntry(
    "Neurons",
    ":material/hub:",
    "Which neurons decide, and do they really?",
    "A card per neuron: tests in which it matters, activations, classes; rankings, and the effect of silencing.",
    place=40,
    tabs={
        "cards": "Cards",
        "ranking": "Ranking",
        "neuron": "One neuron",
        "decide": "Do they decide?",
        "agreement": "Do measures agree?",
    },
    controls={
        "card-shown": "cards",
        "card-by": "cards",
        "card-order": "cards",
        "card-class": "cards",
        "card-part": "cards",
        "card-page": "cards",
        "ranked-beside": "ranking",
        "tried": "decide",
        "changed": "decide",
        "scaled": "decide",
        "compared": "agreement",
        "agreement-classes": "agreement",
    },
)

_view = current_view()
st.markdown(lead(ranking_charts.important(_view), ranking_charts.carried(_view)))
_found = rankings.ranked(_view)
_first = ranking_charts.choose_first(_view, _found)
tabs.draw(
    "neurons",
    {
        "cards": partial(cards.draw, _view, _found, _first),
        "ranking": partial(ranking_charts.draw_ranking, _view, _found, _first),
        "neuron": partial(neuron.draw, _view, _first),
        "decide": partial(trials.draw, _view, _first),
        "agreement": partial(ranking_charts.draw_agreement, _view, _found, _first),
    },
)
