"""The controls of the Class errors page: what counts, how strictly, your own predictions and groups, and the pair."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.confusion.evidence import Evidence
from idc_core.confusion.report import Kind
from idc_core.errors import IdcError
from idc_core.runs import CLASS_ERRORS, ErrorSettings
from studio.classes import class_errors
from studio.classes.class_errors import Looked
from studio.jobs.results import View
from studio.shell.pages import stop_if_unmet
from studio.state import address
from studio.state.choices import choose_one
from studio.text import literal
from studio.widgets import layout

_CONTROLS = [(one, asked) for one in CLASS_ERRORS if one.key and (asked := one.parameter)]

_LAYERS, _GROUPS = "counted", "groups"
"""Names in the address: the layers whose neurons count, and groups of classes."""

_KINDS: dict[Kind, str] = {"type2": "additional (type 2)", "type1": "instead (type 1)"}
"""Error types of several labels."""

_MOST_UPLOAD = 20  # megabytes


def choose(view: View, finding: DeltaGenerator) -> tuple[Looked, ErrorSettings]:
    """Draw what all tabs depend on; return what the tests, or a person's own predictions, show with it."""
    row = st.container(horizontal=True)
    with row.popover("Custom predictions, and groups of classes", key="own"):
        groups = _choose_own()
    try:
        own = class_errors.read_own()
    except IdcError as error:
        st.warning(literal(error))
        own = None
    if own is not None and own.notes:
        st.caption(literal(f"Read from the file: {'; '.join(own.notes)}."))
    if own is None:
        stop_if_unmet("classes", view.setup, finding)
    with row:
        settings = _choose_settings(view, own, groups)
    return class_errors.look(view, settings, own), settings


def _choose_own() -> str:
    """Offer to load a person's own predictions, and to join classes; return the groups as the person wrote them."""
    st.file_uploader(
        "Custom predictions (npz, csv)",
        ["npz", "csv"],
        key=class_errors.PREDICTIONS,
        max_upload_size=_MOST_UPLOAD,
        help="An npz file or CSV table of any classifier, also with several labels per input, shown instead of the "
        "setup's network. Format: see below. Default none.",
    )
    st.toggle(
        "Activations are already scaled to 0..1",
        key=class_errors.SCALED,
        help="Off: each input's activations are scaled by the minimum and maximum of their layer. Default off.",
    )
    st.caption(
        "npz: `activations` (inputs, neurons) with `predicted`, or `probability` (neurons, classes); optional `true`, "
        "`class_names`, `layer_sizes`. Labels: class numbers (inputs,) or zeros and ones (inputs, classes). CSV: a "
        "column `predicted`, optionally `true`, all others activations; or one column per class and one row per neuron."
    )
    st.session_state[_GROUPS] = address.read(_GROUPS)
    text: str = st.text_area(
        "Groups of classes",
        key=_GROUPS,
        height=80,
        placeholder="pets: cat, dog\nvehicles: car, truck",
        on_change=lambda: address.keep(_GROUPS, "; ".join(st.session_state[_GROUPS].splitlines())),
        help="Classes joined into one, one group per line as name: class, class; for example two groups of people that "
        "the network must treat alike. Default none.",
    )
    return text


def _choose_settings(view: View, own: Evidence | None, groups: str) -> ErrorSettings:
    """Choose the layers whose neurons count, thresholds and forms; all but layers are counted again at once."""
    with layout.settings(_LAYERS, *(control.key for control, _ in _CONTROLS), "kind"):
        layers = _choose_layers(view) if own is None else ()
        return _choose_numbers(layers, groups, own is not None and own.several_labels)


def _choose_layers(view: View) -> tuple[str, ...]:
    """Choose the layers whose neurons count; all convolutions and linear layers unless chosen."""
    from idc_core.confusion import countable_layers

    offered = countable_layers(view.model)
    names = address.read(_LAYERS).split(",")
    st.session_state[_LAYERS] = [name for name in offered if name in names] or list(offered)
    chosen = st.pills(
        "Layers whose neurons count",
        offered,
        selection_mode="multi",
        format_func=literal,
        key=_LAYERS,
        on_change=lambda: _keep_layers(offered),
        help="Convolutions and linear layers, before their activation function. Another choice takes one more pass "
        f"over the tests. Default all: {literal(', '.join(offered))}.",
    )
    return tuple(name for name in offered if name in chosen) or offered


def _keep_layers(offered: tuple[str, ...]) -> None:
    """Keep the chosen layers; all of them are the default, which the address does not hold."""
    chosen = st.session_state[_LAYERS]
    address.keep(_LAYERS, "" if len(chosen) == len(offered) else ",".join(chosen))


def _choose_numbers(layers: tuple[str, ...], groups: str, several: bool) -> ErrorSettings:
    """Choose thresholds and forms."""
    chosen = {
        control.name: layout.ask(st.slider, parameter, control.key, control.slider) for control, parameter in _CONTROLS
    }
    kind: Kind | None = None
    if several:
        kind = choose_one(
            st.segmented_control,
            "True errors",
            _KINDS,
            "type2",
            "kind",
            required=True,
            help="True confusion with several labels: a class predicted in addition to, or instead of, the true "
            "one. Default additional (type 2).",
        )
    return ErrorSettings(layers=layers, groups=groups, kind=kind, **chosen)


def choose_pair(looked: Looked) -> tuple[int, int]:
    """Choose the pair by the names of its classes."""
    pair = class_errors.current_pair(looked)
    st.session_state["pair-first"], st.session_state["pair-second"] = pair
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        for key, label in (("pair-first", "First class"), ("pair-second", "Second class")):
            st.selectbox(
                label,
                looked.known,
                format_func=lambda number: looked.names[number],
                key=key,
                width=220,
                on_change=_take_pair,
                help="One of the two classes shown below; type to search. Default the most suspected pair.",
            )
    return pair


def _take_pair() -> None:
    first, second = st.session_state["pair-first"], st.session_state["pair-second"]
    if first != second:
        class_errors.keep_pair(first, second)
