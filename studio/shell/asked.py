"""What an address or the search asked for in vain is said: tests, neurons, clusters and cells, and controls' values."""

from __future__ import annotations

import math

import streamlit as st

from studio.jobs.results import View
from studio.jobs.wording import tests_name
from studio.state import address
from studio.state.selection import Selection, select
from studio.state.setup import DEFAULT
from studio.text import count, literal, parse_cell, plural, quoted, said_of_cell

_ASKED, _REFUSED = "selection-asked", "selection-refused"
"""In the session: parts of the selection to look at once results are there; the page and sentences of those refused."""

_KNOWN, _BROUGHT = "address-known", "address-brought"
"""In the session: what the address said as the page was last drawn; the page, and what an address brought to it that no
control has taken yet."""


def arrive(page: str) -> None:
    """Note what an address brought, before it is read: parts of the selection, and values of controls."""
    ask_for(*(name for name in vars(Selection()) if address.is_new(name)))
    said, known = _said(), st.session_state.get(_KNOWN, {})
    where, brought = st.session_state.get(_BROUGHT, ("", {}))
    new = {name: texts for name, texts in said.items() if known.get(name) != texts}
    st.session_state[_BROUGHT] = page, {**(brought if where == page else {}), **new}
    # What the studio keeps itself it would write back, and judges.
    beyond = [name for name, texts in new.items() if any(map(_is_beyond, texts)) and not address.is_held(name)]
    for name in beyond:
        st.query_params.pop(name)
    if beyond:
        st.rerun()  # Streamlit's fields of whole numbers fail on them


def ask_for(*names: str) -> None:
    """Have parts of the selection looked at once the results of the setup are there."""
    st.session_state.setdefault(_ASKED, set()).update(names)


def refused(page: str, view: View) -> list[str]:
    """Return in sentences what was asked for in vain and is not selected, as long as its page is kept."""
    asked = st.session_state.pop(_ASKED, set())
    found = {name: said for name in vars(Selection()) if name in asked and (said := _refusal(view, name))}
    if found:
        st.session_state[_REFUSED] = page, found
        select(**dict.fromkeys(found))
        st.rerun()  # the sidebar has named it
    where, said = st.session_state.get(_REFUSED, ("", {}))
    return [sentence for name, sentence in said.items() if where == page and not address.read(name)]


def not_taken() -> list[str]:
    """Return in sentences which values controls did not take that an address brought, once the page is drawn.

    Streamlit binds a control to the address by its name, and falls back to the default without a word.
    """
    _, brought = st.session_state[_BROUGHT]
    # Setups and selections are judged where they are read, and names that the session keeps by menus that offer them.
    judged = {*vars(DEFAULT), *vars(Selection()), *address.PASSING}
    drawn = [
        name
        for name in brought
        if name in st.session_state
        and name not in judged
        and (not address.is_held(name) or isinstance(st.session_state[name], int | float))
    ]
    asked = {name: brought.pop(name) for name in drawn}
    st.session_state[_KNOWN] = _said()
    return [
        f"The address says {literal(quoted(','.join(texts)))} for \u201c{literal(name)}\u201d, which cannot be: it is "
        f"{literal(','.join(_written(value)) or 'empty')}."
        for name, texts in asked.items()
        if isinstance(value := st.session_state[name], _VALUES) and not _is_taken(texts, value)
    ]


_VALUES = (bool, int, float, str, list, tuple)
"""What the values of controls are that an address can hold."""


def _is_beyond(text: str) -> bool:
    """Whether a text is a number beyond all floats."""
    try:
        return math.isinf(float(text)) and any(map(str.isdigit, text))
    except ValueError:
        return False


def _said() -> dict[str, list[str]]:
    return {name: list(map(address.clean, st.query_params.get_all(name))) for name in st.query_params}


def _written(value: object) -> list[str]:
    """Write the value of a control as an address holds it."""
    if isinstance(value, list | tuple):
        return list(map(str, value))
    return [str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)]


def _is_taken(texts: list[str], value: object) -> bool:
    """Whether the value of a control is what an address said."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    # Of several texts, a control of one value reads the last.
    said = texts if isinstance(value, list | tuple) else texts[-1:]
    return len(said) == len(values) and all(_is_equal(text, one) for text, one in zip(said, values, strict=True))


def _is_equal(text: str, value: object) -> bool:
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if not isinstance(value, int | float):
        return text == str(value)
    try:
        return float(text) == value
    except ValueError:
        return False


def _refusal(view: View, name: str) -> str:
    """Say that a part of the selection is not there; empty where it is, or nothing is selected."""
    text = address.read(name)
    return _REFUSALS[name](view, text) if text else ""


def _of_input(view: View, text: str) -> str:
    ids = view.test.ids
    if address.position(text) in ids:
        return ""
    return (
        f"There is no test {quoted(text)}: the {plural(len(ids), 'test')} of {tests_name(view.test)} are "
        f"numbered from {ids.min()} to {ids.max()}. No test is selected."
    )


def _of_neuron(view: View, text: str) -> str:
    number, neurons = address.position(text), len(view.analysis.importance)
    if number is not None and number < neurons:
        return ""
    return (
        f"Layer {view.setup.layer} has no neuron {quoted(text)}: its {plural(neurons, 'neuron')} are numbered "
        f"from 0 to {count(neurons - 1)}. No neuron is selected."
    )


def _of_cluster(view: View, text: str) -> str:
    neuron, important = address.position(address.read("neuron")), view.analysis.important.tolist()
    number = address.position(text)
    if neuron not in important:
        return ""  # clusters are known of the important neurons alone; another m may make this one of them
    clusters = view.sizes[important.index(neuron)]
    if number is not None and number < clusters:
        return ""
    return (
        f"Neuron {neuron} has no cluster {quoted(text)}: its {plural(clusters, 'cluster')} are numbered from 0 to "
        f"{clusters - 1}. No cluster is selected."
    )


def _of_cell(view: View, text: str) -> str:
    return "" if parse_cell(text, view.sizes) else f"{said_of_cell(text, view.sizes)} No cell is selected."


_REFUSALS = {"input": _of_input, "neuron": _of_neuron, "cluster": _of_cluster, "cell": _of_cell}
"""What says that a part of the selection is not there, by its name."""
