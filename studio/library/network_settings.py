"""What is done to inputs in front of a network, and which of its scores are explained, as a person changes them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import IdcError
from idc_core.lrp.explained import EXPLAINED, LAYOUTS, checked, said_of
from studio.jobs.jobs import JobKind, Waiting
from studio.library.preparing import control_key
from studio.library.work import Asked, ask, refuse
from studio.state import visitor
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.library import Entry
    from idc_core.models.formats import Interface

_INTERFACE = JobKind("library-interface", is_long=True, lives="server")

_HOLD_REFUSED = "library-hold-refused"
_REFUSED = "library-scaling-refused"
_ORDERS = {"RGB": "red, green, blue", "BGR": "blue, green, red"}
_LAYOUTS = {"first": "channels first", "last": "channels last", "flat": "laid out flat", "rows": "no channel"}
_FACTORS = {1.0: "0..1", 255.0: "0..255"}

_ONE = "token-"
"""Beginning of the names of single tokens."""
_SCORES = "the scores that it returns"
_TOLD = "told by a batch of two"


def choose_settings(entry: Entry) -> None:
    """Draw the settings, closed; a change is tried on the network's data, where these are chosen, and checked."""
    _choose_scaling(entry)
    _choose_explained(entry, 3 in _interface(entry).output_axes or bool(entry.network_settings.output_layout))
    choose_held(entry)


def _choose_scaling(entry: Entry) -> None:
    """Draw the settings, closed; a change is tried on the network's data, where these are chosen, and checked."""
    from idc_core.models.scaling import Scaling

    now = entry.scaling or Scaling()
    with st.expander(f"Scaling of inputs: {now.said or 'none'}"):
        with st.form(f"library-scaling-{entry.id}", border=False):
            one, two, three = st.columns(3, gap="medium")
            factors = sorted({*_FACTORS, now.factor})
            one.selectbox(
                "Pixels in training",
                factors,
                index=factors.index(now.factor),
                format_func=lambda factor: _FACTORS.get(factor, f"0..{factor:g}"),
                key=control_key(entry, "factor"),
                help="Range of pixels that the network was trained on. Default 0..1.",
            )
            one.selectbox(
                "Order of channels",
                list(_ORDERS),
                index=list(_ORDERS).index(now.order),
                format_func=_ORDERS.__getitem__,
                key=control_key(entry, "order"),
                help="Of colour pictures, as the network takes them. Default red, green, blue.",
            )
            for name, what, usual in (("mean", "Mean", "0"), ("deviation", "Standard deviation", "1")):
                two.text_input(
                    f"{what} per channel",
                    " ".join(f"{value:g}" for value in getattr(now, name)),
                    key=control_key(entry, name),
                    help=f"One number, or one per channel, in the range of the pixels in training. Default {usual}.",
                )
            three.selectbox(
                "Place of channels",
                list(_LAYOUTS),
                index=list(_LAYOUTS).index(now.layout),
                format_func=_LAYOUTS.__getitem__,
                key=control_key(entry, "layout"),
                help="Channels last is usual in Keras and TensorFlow. Default channels first.",
            )
            st.form_submit_button("Use this scaling", on_click=_take_scaling, args=(entry,))
        if refusal := st.session_state.pop(_REFUSED, ""):
            st.error(refusal)


def _take_scaling(entry: Entry) -> None:
    from idc_core import library
    from idc_core.models.scaling import Scaling

    given = {
        name: st.session_state[control_key(entry, name)] for name in ("factor", "order", "layout", "mean", "deviation")
    }
    try:
        for name in ("mean", "deviation"):
            given[name] = tuple(float(part) for part in given[name].replace(",", " ").split())
        scaling = Scaling(**given)
        settings = replace(entry.network_settings, scaling=scaling.to_json() if scaling != Scaling() else None)
        if not settings.data:
            library.replaced(library.ENTRIES.own(entry.id, visitor.owner()), network_settings=settings)
    except IdcError as error:
        st.session_state[_REFUSED] = literal(error)
    except ValueError:
        st.session_state[_REFUSED] = (
            "Mean and deviation must be numbers with spaces between them, as 0.485 0.456 0.406."
        )
    else:
        if settings.data:
            ask(Asked(entry.id, f"checking {entry.label}", network=settings, check=True))


def _choose_explained(entry: Entry, has_steps: bool) -> None:
    """Draw the choice, closed, with a layout where it `has_steps`; a change is tried on the data, if there are any."""
    now, _, axes = entry.network_settings.explain.partition(":")
    options = {
        "": _SCORES,
        **{name: explained.said for name, explained in EXPLAINED.items()},
        _ONE: "the scores of one token",
    }
    chosen, number = (_ONE, int(now.removeprefix(_ONE))) if now.startswith(_ONE) else (now, 0)
    with (
        st.expander(f"Explained: {said_of(entry.network_settings.explain) if now else _SCORES}"),
        st.form(f"library-explained-{entry.id}", border=False),
    ):
        with st.container(horizontal=True):
            st.selectbox(
                "What is explained",
                list(options),
                index=list(options).index(chosen),
                format_func=options.__getitem__,
                key=control_key(entry, "explained"),
                width=420,
                help="Of a network with several rows of scores per input: segmentation, detection, one row per token. "
                f"Default {_SCORES}.",
            )
            st.number_input(
                "Number of the token",
                0,
                999_999,
                number,
                key=control_key(entry, "token"),
                width=180,
                help="Counted from 0; where one token is explained. Default 0.",
            )
            st.text_input(
                "Axes of the output",
                axes,
                key=control_key(entry, "axes"),
                placeholder="found, where only one fits",
                width=260,
                help="Where boxes or pixels are explained: which axis they are on, and what stands beside the classes, "
                "such as 4+classes,boxes (YOLO 8), boxes,5+classes (YOLO 5) or boxes,classes+1 (DETR). Default those "
                "that fit the number of classes, if only one does.",
            )
        with st.container(horizontal=True):
            st.text_input(
                "Output",
                entry.network_settings.output,
                key=control_key(entry, "output"),
                placeholder="the likeliest one",
                width=260,
                help="Name or number of the output that holds the scores, of a network with several. Default the one "
                "whose width and last operation are those of scores.",
            )
            st.text_input(
                "Names of the outputs",
                ", ".join(entry.network_settings.output_names),
                key=control_key(entry, "output_names"),
                placeholder="as the file says",
                width=420,
                help="What the outputs are called in the data, in their order, with commas between them. Default the "
                "names in the network's file, else the order of the data's classes.",
            )
            if has_steps:
                _choose_layout(entry)
        st.form_submit_button("Explain these scores", on_click=_take_explained, args=(entry,))


def _choose_layout(entry: Entry) -> None:
    options = ["", *LAYOUTS]
    st.selectbox(
        "Layout of the output",
        options,
        index=options.index(entry.network_settings.output_layout),
        format_func=lambda layout: layout or _TOLD,
        key=control_key(entry, "output_layout"),
        width=260,
        help="Of scores with three axes: time-first where they are (time, inputs, classes), batch-first where not. "
        f"Default {_TOLD}.",
    )


def _interface(entry: Entry) -> Interface:
    """Return what the network's file says of its inputs and outputs; nothing while it is stopped, or cannot be read."""
    from idc_core import library
    from idc_core.models.formats import Interface

    key = entry.stamp, entry.content or entry.source
    try:
        return Waiting(1).get(_INTERFACE, key, "looking at inputs", lambda report: library.interface(entry))
    except IdcError:  # told where it is read
        return Interface()


def choose_held(entry: Entry) -> None:
    """Draw which inputs of several are held at a number, closed; a change is read, or tried on the network's data."""
    inputs = _interface(entry).inputs
    if len(inputs) < 2:
        return
    held = entry.network_settings.held.items()
    now = ", ".join(f"{name}={str(number).removesuffix('.0')}" for name, number in held)
    with st.expander(f"Inputs held at a number: {literal(now) or 'none'}"):
        with st.form(f"library-hold-{entry.id}", border=False):
            st.text_input(
                "Inputs held at a number",
                now,
                key=control_key(entry, "hold"),
                placeholder="NAME=X, NAME=X",
                help=f"Inputs that are held at a number, such as state=0, with commas between them: the network takes "
                f"the one that is left of {literal(', '.join(inputs)[:400])}. Default none.",
            )
            st.form_submit_button("Hold these inputs", on_click=_take_held, args=(entry,))
        if refusal := st.session_state.pop(_HOLD_REFUSED, ""):
            st.error(refusal)


def _take_held(entry: Entry) -> None:
    from idc_core.opening.files import held_at

    given = st.session_state[control_key(entry, "hold")].split(",")
    try:
        settings = replace(entry.network_settings, held=held_at(one for one in given if one.strip()))
    except IdcError as error:
        st.session_state[_HOLD_REFUSED] = literal(error)
        return
    if entry.facts is not None and settings.data:
        ask(Asked(entry.id, f"checking {entry.label}", network=settings, check=True))
    else:
        ask(Asked(entry.id, f"reading {entry.label}", read=True, network=settings))


def _take_explained(entry: Entry) -> None:
    from idc_core import library

    chosen = st.session_state[control_key(entry, "explained")]
    explain = f"{_ONE}{st.session_state[control_key(entry, 'token')]}" if chosen == _ONE else chosen
    axes = st.session_state[control_key(entry, "axes")].replace(" ", "")
    if axes and chosen in EXPLAINED and EXPLAINED[chosen].of != "tokens":
        explain = f"{chosen}:{axes}"
    try:
        if explain:
            checked(explain)
    except IdcError as error:
        refuse(entry.id, literal(error))
        return
    refuse(entry.id, "")
    output = st.session_state[control_key(entry, "output")].strip()
    names = st.session_state[control_key(entry, "output_names")].split(",")
    called = tuple(name.strip() for name in names if name.strip())
    settings = replace(entry.network_settings, explain=explain, output=output, output_names=called)
    layout = st.session_state.get(control_key(entry, "output_layout"), settings.output_layout)  # it is not always drawn
    settings = replace(settings, output_layout=layout)
    if settings.data:
        ask(Asked(entry.id, f"checking {entry.label}", network=settings, check=True))
    else:
        library.replaced(entry, network_settings=settings)
