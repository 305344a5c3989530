"""The browser's Back button: it leads to what was chosen before, not through the steps of a slider."""

from __future__ import annotations

import streamlit as st

from studio.shell import pins, presenting, tabs, tour
from studio.shell.pages import PAGES
from studio.state.selection import Selection
from studio.state.setup import DEFAULT
from studio.widgets.charts import ASSETS

_steps = st.components.v2.component("idc_history", js=(ASSETS / "history" / "steps.js").read_text(encoding="utf-8"))


def _choices() -> list[str]:
    """Return the names in the address whose change is a step in the browser's history, as a change of page is."""
    setup = [name for name in vars(DEFAULT) if name != "m"]
    frame = [tabs.TAB, tour.STEP, pins.PIN, presenting.PRESENT]
    return [*setup, *vars(Selection()), *frame, *(name for page in PAGES.values() for name in page.selects)]


def keep_choices() -> None:
    """Make choices alone steps in the browser's history; other changes of the address replace the one before."""
    _steps(key="history", data={"names": _choices()})
