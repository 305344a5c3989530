"""Values that outlive the page they were chosen on: kept in the session, and in the address of every page.

Streamlit empties the address at a change of page, and binds to it only widgets that the page draws. What holds on
all pages is therefore read from here and written back at every run, so that a copied address is always whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from idc_core.base.parameters import Parameter

KEPT = "kept-"

STORY, SLIDE = "story", "slide"
"""Names in the address: the story that is played, and which of its slides, from 1 on."""

PASSING = ("device", "pin", STORY, SLIDE, "tour")
"""Parts of an address that say how a reader looks, not at what."""

_PAGE = "page-shown"

_LONGEST = 8_000
"""Characters of a value at most; browsers and servers cut longer addresses."""

_POSITION = Parameter("number", "Number", "Of a test, neuron, class or input.", 0, 0, 999_999_999)


def read(name: str) -> str:
    """Return what the address says under a name, else what the session kept; empty where neither says anything.

    Of an address that the reader went back to, nothing else counts: what it does not say was not chosen then. Neither
    does anything else of a control of this page that Streamlit binds to the address, which holds no defaults.
    """
    values = st.query_params.get_all(name)
    says_all = bool(values) or went_back() or _is_bound(name)
    value = clean(",".join(values)) if says_all else str(st.session_state.get(KEPT + name, ""))
    _keep(name, value, values)
    return value


def went_back() -> bool:
    """Whether the page is run because the reader went back or forth in the browser's history."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def _is_bound(name: str, now: bool = False) -> bool:
    """Whether a control that this page drew in its last run, or `now`, holds what the address says under a name."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return False
    with context.session_state.query_params() as parameters:
        control = parameters.get_binding_for_param(name)
    return control is not None and (not now or control.widget_id in context.shared.widget_ids_this_run)


def keep_drawn() -> None:
    """Keep what the controls that Streamlit binds to the address hold, once a page has drawn them."""
    for name in [str(key).removeprefix(KEPT) for key in st.session_state if str(key).startswith(KEPT)]:
        if _is_bound(name, now=True):
            st.session_state[KEPT + name] = clean(",".join(st.query_params.get_all(name)))


def is_new(name: str) -> bool:
    """Whether the address says something under a name that the session did not keep: it was typed, copied or linked."""
    values = st.query_params.get_all(name)
    return bool(values) and clean(",".join(values)) != st.session_state.get(KEPT + name, "")


def is_held(name: str) -> bool:
    """Whether the session keeps what the address says under a name."""
    return KEPT + name in st.session_state


def arrive(page: str) -> None:
    """Note which page is shown."""
    st.session_state[_PAGE] = page


def here() -> tuple[str, dict[str, str]]:
    """Return the page that is shown, and what its address says of what is to be seen there; for callbacks."""
    said = {name: ",".join(st.query_params.get_all(name)) for name in st.query_params if name not in PASSING}
    return str(st.session_state.get(_PAGE, "")), said


def replace(values: Mapping[str, str]) -> None:
    """Keep these values and no others, as in a new window with their address."""
    for name in [str(name) for name in st.session_state if str(name).startswith(KEPT)]:
        del st.session_state[name]
    for name, value in values.items():
        keep(name, clean(value))


def clean(text: str) -> str:
    """Return a value that came with an address; empty where it is too long, or holds what no address of ours does."""
    return "" if len(text) > _LONGEST or "\0" in text else text.encode(errors="replace").decode()


def joined(names: Iterable[str]) -> str:
    """Return names as one value of an address: with commas between them, those within a name behind a backslash."""
    return ",".join(name.replace(",", "\\,") for name in names)


def parted(text: str) -> list[str]:
    """Return the names that a value of an address holds."""
    return [name.replace("\\,", ",") for name in re.split(r"(?<!\\),", text)]


def position(text: str) -> int | None:
    """Return the number that a text says, in digits 0 to 9; None where it says none of at least 0."""
    number = _POSITION.said(text)
    return None if number is None else int(number)


def keep(name: str, value: str) -> None:
    """Keep a value in the session and in the address; an empty one is taken out of the address."""
    _keep(name, value, st.query_params.get_all(name))


def _keep(name: str, value: str, said: list[str]) -> None:
    """Keep a value; the address, which says this much under its name so far, is written where it says another one."""
    st.session_state[KEPT + name] = value
    if value and said != [value]:
        st.query_params[name] = value
    elif said and not value:
        st.query_params.pop(name, None)
