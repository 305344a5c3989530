"""The networks that come with the project: a table of them, and the card of the one that is selected."""

from __future__ import annotations

from functools import cache

import pandas as pd
import streamlit as st

from idc_core.models.registry import MODELS, shipped_card
from studio.jobs.overview import snapshot
from studio.shell.pages import go_to
from studio.state.selection import picked_row, select
from studio.state.setup import default_setup
from studio.text import count, literal, percent
from studio.widgets.headlines import label

_TABLE, _SHOWN = "library-shipped", "library-shipped-shown"
"""Key of the table, and in the session: the network whose card is shown."""


def draw() -> None:
    """List the networks; a selected row shows its card."""
    st.header("Shipped networks", anchor=False)
    table = _table()
    st.dataframe(
        table.drop(columns="name"),
        key=_TABLE,
        hide_index=True,
        height="content",
        on_select=lambda: _show(table),
        selection_mode="single-row",
        column_config={"IDC": st.column_config.TextColumn(help="At the default layer, with six important neurons.")},
    )
    if name := st.session_state.get(_SHOWN):
        with st.container(border=True):
            _draw_card(name)


def _show(table: pd.DataFrame) -> None:
    row = picked_row(_TABLE, len(table))
    st.session_state[_SHOWN] = "" if row is None else str(table["name"][row])


@cache
def _table() -> pd.DataFrame:
    """Return a row per network, from the files that come with them."""
    rows = []
    for name, entry in MODELS.items():
        if entry.edition:
            continue
        made = snapshot(default_setup(name))
        result = None if made is None else made.result
        rows.append(
            {
                "name": name,
                "network": entry.label,
                "tests": "" if result is None else count(result.tests),
                "parameters": count(entry.parameters or 0),
                "accuracy": "" if result is None or result.accuracy is None else percent(result.accuracy),
                "IDC": "" if result is None else percent(result.table.covered / result.table.total),
            }
        )
    return pd.DataFrame(rows)


def _draw_card(name: str) -> None:
    """Draw what there is to know of a network, and open it."""
    entry, card = MODELS[name], shipped_card(name)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(label(entry.label))
        st.button("Open in the studio", key="library-open-shipped", on_click=_open, args=(name,))
    facts = {"What": entry.help, "Source": entry.citation}
    if card is not None:
        facts |= {"Data": card.split, "Training": str(card.recipe.get("note", "")), "Licence": card.licence}
    for what, said in facts.items():
        if said:
            st.caption(f"{what}: {literal(said)}")


def _open(name: str) -> None:
    select(model=name, data=None, layer=None, classes=None)
    go_to("overview")
