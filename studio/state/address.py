"""Values that outlive the page they were chosen on: kept in the session, and in the address of every page.

Streamlit empties the address at a change of page, and binds to it only widgets that the page draws. What holds on
all pages is therefore read from here and written back at every run, so that a copied address is always whole.
"""

from __future__ import annotations

import streamlit as st

from idc_core.parameters import Parameter

KEPT = "kept-"

LONGEST = 8_000
"""Characters of a value at most; browsers and servers cut longer addresses."""

_POSITION = Parameter("number", "Number", "Of a test, neuron, class or input.", 0, 0, 999_999_999)


def read(name: str) -> str:
    """Return what the address says under a name, else what the session kept; empty where neither says anything."""
    said = st.query_params.get_all(name)
    value = clean(",".join(said)) if said else str(st.session_state.get(KEPT + name, ""))
    keep(name, value)
    return value


def clean(text: str) -> str:
    """Return a value that came with an address; empty where it is too long, or holds what no address of ours does."""
    return "" if len(text) > LONGEST or "\0" in text else text.encode(errors="replace").decode()


def position(text: str) -> int | None:
    """Return the number that a text says, in digits 0 to 9; None where it says none of at least 0."""
    found = _POSITION.said(text)
    return None if found is None else int(found)


def keep(name: str, value: str) -> None:
    """Keep a value in the session and in the address; an empty one is taken out of the address."""
    st.session_state[KEPT + name] = value
    if not value:
        st.query_params.pop(name, None)
    elif st.query_params.get_all(name) != [value]:
        st.query_params[name] = value
