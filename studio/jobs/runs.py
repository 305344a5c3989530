"""What makes a page's result a run: its settings by name, and the address that opens it again; what kept runs say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import streamlit as st

from idc_core.runs import find_runs, settings_of
from studio.jobs.results import View
from studio.state import visitor
from studio.state.address import PASSING, joined
from studio.state.selection import Selection
from studio.state.setup import DEFAULT

if TYPE_CHECKING:
    from idc_core.report.neuron_cards import Best

ADDRESS = "address"
"""The setting that holds what the address says of a run that a page made: a query string; empty where no page can."""

_FRESH_S = 30
"""Seconds for which what is kept of hypotheses is not looked for again."""

_PASSING = (*vars(Selection()), *PASSING, "tab")
"""Parts of an address that say where a reader looks, not what is computed."""


def run_settings(view: View, **more: Any) -> dict[str, object]:
    """Return the settings of a run of a setup; `more` says what else it depends on, by name, as plain values.

    For the thread of the script: the address is that of the page, with the setup of the view.
    """
    setup = view.setup
    unusual: dict[str, object] = {**setup.unusual, **({"classes": setup.classes} if setup.classes else {})}
    page = {name: ",".join(st.query_params.get_all(name)) for name in st.query_params if name not in _PASSING}
    whole = {"model": setup.model, "data": setup.data, "layer": setup.layer, "m": setup.m}
    own = {name: joined(value) if isinstance(value, tuple) else value for name, value in unusual.items()}
    kept = {name: value for name, value in page.items() if name not in vars(DEFAULT)}
    texts = {**whole, **own, **dict(sorted(kept.items()))}
    address = urlencode({name: value for name, value in texts.items() if value != ""})
    settings = {**unusual, **more, ADDRESS: address}
    return settings_of(view.card, view.train, view.test, setup.layer, view.analysis.m, **settings)


def find_hypotheses(view: View) -> Best | None:
    """Return the best hypotheses of the layer's neurons by the newest inspection that is kept; None where none is.

    What is kept is asked for again after `_FRESH_S`, or at once where there was none.
    """
    key = view.card.fingerprint, view.test.fingerprint, visitor.owner(), view.setup.layer
    found = _best(key, view)
    if found is None:
        _best.clear(key)
    return found


@st.cache_data(ttl=_FRESH_S, show_spinner=False)
def _best(key: tuple[str, ...], _view: View) -> Best | None:
    from idc_core.report.neuron_cards import best_hypotheses

    runs = find_runs("inspections", _view.card.name, owner=visitor.person() or "", sees=visitor.may_see())
    return best_hypotheses(_view, runs, _view.card.fingerprint)
