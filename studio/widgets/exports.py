"""Names of files that are taken away: what each holds, of which setup, and of which day."""

from __future__ import annotations

import re
from datetime import date

import streamlit as st

from studio.state.setup import Setup

_SETUP, _LINE = "exports-setup", "exports-line"
"""In the session: the setup that the page shows as files are named, and as people read it."""


def name_after(setup: Setup | None, line: str = "") -> None:
    """Say of which setup the page shows results; None where it shows none."""
    st.session_state[_SETUP] = _written(setup)
    st.session_state[_LINE] = line


def stem(what: str, setup: Setup | None = None) -> str:
    """Name files by what they hold, a setup, by default the page's, and the day, without an ending.

    ``idc-grid_lenet5-digits_digits_fc2_m6_2026-01-31``: what it is, network, tests, layer, m, options that are not as
    usual, and date.
    """
    of = st.session_state.get(_SETUP, "") if setup is None else _written(setup)
    return "_".join(part for part in (f"idc-{what}", of, date.today().isoformat()) if part)


def named(file: str, setup: Setup | None = None) -> str:
    """Name a file such as ``grid.csv`` as `stem` does."""
    what, _, ending = file.rpartition(".")
    return f"{stem(what, setup)}.{ending}"


def origin(line: str = "") -> str:
    """Return a setup's `line`, by default the page's, and the day in one line, for files that have room for it."""
    of = line or st.session_state.get(_LINE, "")
    return " · ".join(part for part in (of, date.today().isoformat()) if part)


def _written(setup: Setup | None) -> str:
    if setup is None:
        return ""
    parts = (setup.model, setup.data, setup.layer, f"m{setup.m}", *setup.unusual.values())
    filtered = ("filtered",) if setup.filter_words else ()
    return "_".join(re.sub(r"[^\w.-]+", "-", part) for part in (*parts, *filtered))
