"""Class errors: which classes the network confuses, by labels and without, and between which it seems biased."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.errors import CancelledError, IdcError
from studio.classes import class_bias, class_pair, controls, matrix, retraining, suspected_pairs
from studio.classes.class_errors import current_pair
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.needs import classes
from studio.shell.pages import PageEntry
from studio.text import literal

PAGE = PageEntry(
    "Class errors",
    ":material/balance:",
    "Which classes does it confuse, and for whom is it unfair?",
    "Confusion matrix, recall, precision; pairs with similar activations, bias, your own predictions, groups.",
    place=80,
    tabs={"matrix": "Confusion matrix", "pairs": "Pairs", "pair": "One pair", "bias": "Bias", "remedy": "Remedy"},
    controls={"pair-shown": "pair", "third": "bias", "pairs-shown": "pairs", "pair": "pairs"},
    needs=(
        classes(
            "This network predicts a number: it has no classes to confuse.",
            "coverage",
            "Choose a classifier in the sidebar, or load predictions of one above.",
        ),
    ),
    selects=("pair", "matrix"),
    opens=("class-errors",),
)

_view = current_view()
_finding = st.empty()
try:
    _looked, _settings = controls.choose(_view, _finding)
except CancelledError:
    st.stop()
except IdcError as error:
    st.warning(literal(error))
    st.stop()
suspected_pairs.tell(_looked, _finding)
_pair = current_pair(_looked)
tabs.draw(
    "classes",
    {
        "matrix": partial(matrix.draw, _view, _looked),
        "pairs": partial(suspected_pairs.draw, _view, _looked, _settings, _pair),
        "pair": partial(class_pair.draw, _view, _looked),
        "bias": partial(class_bias.draw, _view, _looked, _settings),
        "remedy": partial(retraining.draw, _view, _looked),
    },
)
