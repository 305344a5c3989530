"""Tests, neurons, clusters and cells that an address or the search asked for: those that are not there are said."""

from __future__ import annotations

import streamlit as st

from studio.jobs.results import View
from studio.jobs.wording import tests_name
from studio.state import address
from studio.state.selection import Selection, select
from studio.text import count, parse_cell, plural, quoted, said_of_cell

_ASKED, _REFUSED = "selection-asked", "selection-refused"
"""In the session: parts of the selection to look at once results are there; the page and sentences of those refused."""


def arrive() -> None:
    """Note which parts of the selection an address brought, before it is read."""
    ask_for(*(name for name in vars(Selection()) if address.is_new(name)))


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
