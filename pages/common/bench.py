"""The bench in the sidebar: which network, which tests, which layer, how many neurons, which classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from idc_core.datasets import DatasetEntry
    from idc_core.models import ModelEntry

MOST_NEURONS = 12


@dataclass(frozen=True)
class Bench:
    """What the person chose.

    Attributes
    ----------
    model, data : str
        Names in the registries.
    layer : str
        Layer whose neurons are examined.
    m : int
        Number of important neurons; the layer may have fewer.
    classes : tuple of str
        Names of the true classes whose tests are looked at; empty for all.
    """

    model: str
    data: str
    layer: str
    m: int
    classes: tuple[str, ...]


DEFAULT = Bench("lenet5-digits", "digits", "fc2", 6, ())
"""What the studio opens on."""

TOUCHED = "touched-bench"
"""Set where the sidebar turned out not to hold the default bench."""

LOST = "lost-bench"
"""What a change of page lost and the next run puts back."""

KEPT = "kept-bench"
"""The page that was last shown in this session, and what was chosen there, by the key of its widget."""


def untouched() -> bool:
    """Whether everything is as the studio opens, as far as can be told before the sidebar is drawn."""
    if st.session_state.pop(TOUCHED, False) or LOST in st.session_state:
        return False
    chosen = st.query_params.to_dict()
    chosen |= {key: st.session_state[key] for key in vars(DEFAULT) if key in st.session_state}
    defaults = {**vars(DEFAULT), "classes": []}
    return all(chosen.get(key, default) == default for key, default in defaults.items())


def confirm_untouched(page: str) -> None:
    """Draw the sidebar after the default result, and begin anew where something else was chosen after all."""
    if choose(page) != DEFAULT:
        st.session_state[TOUCHED] = True
        st.rerun()


def choose(page: str) -> Bench:
    """Draw the sidebar on a page and return what is chosen; every choice is part of the page's address."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    for key, value in st.session_state.pop(LOST, {}).items():
        st.session_state[key] = value
    with st.sidebar:
        model = st.selectbox(
            "Network",
            list(MODELS),
            index=list(MODELS).index(DEFAULT.model),
            format_func=lambda name: MODELS[name].label,
            key="model",
            bind="query-params",
            help="The network under test. Its neurons and clusters are learnt from its own training data.",
        )
        entry = MODELS[model]
        fitting = fitting_data(entry)
        data = st.selectbox(
            "Tests",
            fitting,
            index=fitting.index(entry.dataset),
            format_func=lambda name: DATASETS[name].label,
            key="data",
            bind="query-params",
            help="The test set whose coverage is measured; only sets that fit the network are listed.",
        )
        layers = list(layer_names(model))
        layer = st.selectbox(
            "Layer",
            layers,
            index=layers.index(entry.default_layer),
            key="layer",
            bind="query-params",
            help="The layer whose neurons are examined, in the order in which the input passes through.",
        )
        m = st.slider(
            "Important neurons m",
            1,
            MOST_NEURONS,
            DEFAULT.m,
            key="m",
            bind="query-params",
            help="How many neurons are combined. Every further neuron multiplies the number of combinations.",
        )
        classes = _choose_classes(DATASETS[data])
    _keep(page, {"model": model, "data": data, "layer": layer, "m": m, "classes": list(classes)})
    return Bench(model, data, layer, m, classes)


def _keep(page: str, chosen: dict[str, Any]) -> None:
    """Carry over to another page what was chosen.

    Streamlit does so by itself, except that a value which came with an address, rather than from a click, is
    replaced by the default at the first change of page. Then the values are put back and the page begins anew.
    """
    last, before = st.session_state.get(KEPT, (page, chosen))
    lost = {} if last == page else {k: v for k, v in before.items() if chosen[k] != v and k not in st.query_params}
    st.session_state[KEPT] = (page, {**chosen, **lost})
    if lost:
        st.session_state[LOST] = lost
        st.rerun()


def _choose_classes(entry: DatasetEntry) -> tuple[str, ...]:
    if not entry.class_names:
        st.caption("These tests have no classes: their answer is a number.")
        return ()
    chosen = st.multiselect(
        "Classes",
        entry.class_names,
        key="classes",
        bind="query-params",
        placeholder="All classes",
        help="Look only at tests whose true class is one of these. Neurons and clusters stay the same.",
    )
    return tuple(name for name in entry.class_names if name in chosen)


def fitting_data(model: ModelEntry) -> list[str]:
    """Return the names of the data sets that a network can take, its own included."""
    from idc_core.datasets import DATASETS

    own = DATASETS[model.dataset]
    wanted = (own.input_shape, own.task, len(own.class_names))
    return [name for name, data in DATASETS.items() if (data.input_shape, data.task, len(data.class_names)) == wanted]


@st.cache_data(max_entries=64)
def layer_names(model: str) -> tuple[str, ...]:
    """Return the layers of a network in forward order."""
    from idc_core.models import MODELS

    return MODELS[model].build().layers
