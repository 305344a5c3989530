"""What makes a page's result a run: its settings by name, and the address that opens it again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from idc_core.runs import settings_of
from studio.jobs.results import View
from studio.state.address import PASSING
from studio.state.selection import Selection
from studio.state.setup import DEFAULT

ADDRESS = "address"
"""The setting that holds what the address says of a run that a page made: a query string; empty where no page can."""

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
    own = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in unusual.items()}
    kept = {name: value for name, value in page.items() if name not in vars(DEFAULT)}
    texts = {**whole, **own, **dict(sorted(kept.items()))}
    address = urlencode({name: value for name, value in texts.items() if value != ""})
    settings = {**unusual, **more, ADDRESS: address}
    return settings_of(view.card, view.train, view.test, setup.layer, view.analysis.m, **settings)
