"""The setup in the sidebar: select boxes for network, tests and layer, a slider for the number of neurons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from idc_core.lrp.layer_parts import CLASS, HEADS, LAST, SIGN, split_layer
from studio.state import allowed, visitor
from studio.state.setup import DEFAULT, MOST_NEURONS, Setup, chosen, fitting_data, most_neurons, neurons_allowed, take
from studio.text import literal

if TYPE_CHECKING:
    from idc_core.models import ModelEntry

_PARTS_HELP = (
    f"Behind {SIGN}: {CLASS}, the features of the class token; {LAST}, of the last token; {HEADS}, one neuron per "
    "attention head. "
)


def choose() -> tuple[Setup, DeltaGenerator]:
    """Draw the setup in the sidebar; return what is chosen, and the place below the tests for what narrows them.

    Every choice is part of the page's address.
    """
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    setup = chosen()
    entry = MODELS[setup.model]
    seen = visitor.models()
    networks = _networks(seen)
    with st.sidebar:
        draw_part(
            "model",
            "Network",
            list(networks),
            setup.model,
            networks,
            "The network under test, behind its data; write to search. Its important neurons and clusters come from "
            f"its own training data. Default {literal(networks.get(DEFAULT.model, MODELS[DEFAULT.model].label))}.",
        )
        draw_part(
            "data",
            "Tests",
            fitting_data(entry),
            setup.data,
            {name: option.label for name, option in dict(DATASETS).items()},
            "Test set whose coverage is measured: data sets and your saved suites that fit the network. Default for "
            f"this network: {literal(DATASETS[entry.dataset].label)}.",
        )
        below_tests = st.container()
        # A part of a layer that is not listed can be asked for by the address.
        layers = list(dict.fromkeys((*entry.layers, setup.layer)))
        parts = any(split_layer(name)[1] for name in layers)
        draw_part(
            "layer",
            "Layer",
            layers,
            setup.layer,
            {name: name for name in layers},
            "Layer whose neurons are examined, in the order from input to output. "
            + (_PARTS_HELP if parts else "")
            + f"Default for this network: {literal(entry.default_layer)}.",
        )
        st.session_state["m"] = setup.m
        st.slider(
            "Number of important neurons (m)",
            1,
            most_neurons(),
            key="m",
            on_change=take,
            args=("m",),
            help="Neurons whose clusters are combined. Every further neuron multiplies the number of cells. "
            f"From 1 to {neurons_allowed()}; default {DEFAULT.m}.",
        )
        if setup.m == most_neurons() < MOST_NEURONS:
            st.caption(f"More than {setup.m} are not allowed ({allowed.named('m')}).")
    return setup, below_tests


def _networks(seen: Mapping[str, ModelEntry]) -> dict[str, str]:
    """Return the labels of networks, ordered by their data sets: the project's own begin with the data."""
    from idc_core.datasets import DATASETS

    places = {name: place for place, name in enumerate(DATASETS)}
    labels = {}
    for name in sorted(seen, key=lambda name: places.get(seen[name].dataset, len(places))):
        entry = seen[name]
        network, _, data = entry.label.partition(" on ")
        labels[name] = entry.label if entry.edition else f"{data or DATASETS[entry.dataset].label}: {network}"
    return labels


def draw_part(
    name: str, label: str, options: Sequence[str], value: str, labels: Mapping[str, str], help: str, **how: Any
) -> None:
    """Draw a select box of a part of the setup, which the address keeps."""
    st.session_state[name] = value
    st.selectbox(
        label, list(options), format_func=labels.__getitem__, key=name, on_change=take, args=(name,), help=help, **how
    )
