"""What is done to inputs in front of a network, as a person changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import IdcError
from studio.library.preparing import control_key
from studio.library.work import Asked, ask
from studio.state import visitor
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.library import Entry

_REFUSED = "library-scaling-refused"
_ORDERS = {"RGB": "red, green, blue", "BGR": "blue, green, red"}
_LAYOUTS = {"first": "channels first", "last": "channels last", "flat": "laid out flat"}
_FACTORS = {1.0: "0..1", 255.0: "0..255"}


def choose_scaling(entry: Entry) -> None:
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
            st.form_submit_button("Use this scaling", on_click=_take, args=(entry,))
        if refusal := st.session_state.pop(_REFUSED, ""):
            st.error(refusal)


def _take(entry: Entry) -> None:
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
