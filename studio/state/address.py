"""Values that outlive the page they were chosen on: kept in the session, and in the address of every page.

Streamlit empties the address at a change of page, and binds to it only widgets that the page draws. What holds on
all pages is therefore read from here and written back at every run, so that a copied address is always whole.
"""

from __future__ import annotations

import streamlit as st

KEPT = "kept-"


def read(name: str) -> str:
    """Return what the address says under a name, else what the session kept; empty where neither says anything."""
    said = st.query_params.get_all(name)
    value = ",".join(said) if said else str(st.session_state.get(KEPT + name, ""))
    keep(name, value)
    return value


def keep(name: str, value: str) -> None:
    """Keep a value in the session and in the address; an empty one is taken out of the address."""
    st.session_state[KEPT + name] = value
    if not value:
        st.query_params.pop(name, None)
    elif st.query_params.get_all(name) != [value]:
        st.query_params[name] = value
