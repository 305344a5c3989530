"""Class errors: which classes the network seems to confuse, and between which it seems biased, without labels."""

from __future__ import annotations

from functools import partial

import streamlit as st

from idc_core.errors import CancelledError, IdcError
from studio.classes import class_bias, class_pair, controls, effectiveness, retraining, suspected_pairs
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
    "Pairs of classes with similar activations, compared with the labels; bias, your own predictions, groups.",
    place=150,
    tabs={"pairs": "Pairs", "pair": "One pair", "bias": "Bias", "cost": "Cost-effectiveness", "remedy": "Remedy"},
    controls={"pair-shown": "pair", "third": "bias"},
    needs=(
        classes(
            "This network predicts a number: it has no classes to confuse.",
            "coverage",
            "Choose a classifier in the sidebar, or load predictions of one above.",
        ),
    ),
    selects=("pair",),
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
        "pairs": partial(suspected_pairs.draw, _view, _looked, _settings, _pair),
        "pair": partial(class_pair.draw, _view, _looked),
        "bias": partial(class_bias.draw, _view, _looked, _settings),
        "cost": partial(effectiveness.draw, _view, _looked),
        "remedy": partial(retraining.draw, _view, _looked),
    },
)
