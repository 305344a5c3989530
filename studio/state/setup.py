"""The setup: network, tests, layer, number of neurons, clusters, and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from idc_core import limits
from studio.state import address
from studio.state.selection import select

if TYPE_CHECKING:
    from idc_core.models import ModelEntry

MOST_NEURONS = 12

M = replace(limits.M, high=MOST_NEURONS)
"""The number of important neurons, as far as the studio shows it."""

CLUSTER_COUNTS = ("auto", "2", "3", "4", "5", "6", "7", "8")
"""How many clusters a neuron has: as many as its silhouette says, or so many."""

ZEROS = ("kept", "dropped")
"""Whether activations of exactly zero are clustered."""


@dataclass(frozen=True)
class Setup:
    """What the person chose; `classes` names the true classes whose tests are looked at, or is empty for all.

    The layer may have fewer than `m` neurons; `k` is one of `CLUSTER_COUNTS`, `zeros` of `ZEROS`.
    """

    model: str
    data: str
    layer: str
    m: int
    classes: tuple[str, ...]
    k: str = "auto"
    zeros: str = "kept"
    clustering: str = "k-means"

    @property
    def texts(self) -> dict[str, str]:
        """Every part as the address writes it; empty where it is what the studio opens on."""
        from idc_core.models import MODELS

        entry = MODELS[self.model]
        usual = {**vars(DEFAULT), "data": entry.dataset, "layer": entry.default_layer}
        texts = {name: value if isinstance(value, tuple) else (str(value),) for name, value in vars(self).items()}
        return {name: "" if getattr(self, name) == usual[name] else ",".join(text) for name, text in texts.items()}

    @property
    def line(self) -> str:
        """The setup in one line."""
        from idc_core.models import MODELS

        return setup_line(MODELS[self.model].label.partition(" on ")[0], self, self.m)


DEFAULT = Setup("lenet5-digits", "digits", "fc2", 6, ())
"""What the studio opens on."""


def setup_line(network: str, setup: Setup, m: int) -> str:
    """Write a setup in one line, what is as usual left out."""
    parts = [network, setup.data, f"layer {setup.layer}", f"m = {m}"]
    if setup.k != DEFAULT.k:
        parts.append(f"k = {setup.k}")
    if setup.zeros != DEFAULT.zeros:
        parts.append("zeros dropped")
    if setup.clustering != DEFAULT.clustering:
        parts.append(setup.clustering)
    return " · ".join(parts)


def untouched() -> bool:
    """Whether everything is as the studio opens, told without loading the registries."""
    return not any(address.read(name) for name in vars(DEFAULT))


def parse(texts: Mapping[str, str]) -> Setup:
    """Read a setup from what an address says: the texts of every part, by its name in `Setup`.

    What is missing, or not there to be chosen, is as the studio opens. Networks and data sets are known by their names
    and by their labels.
    """
    from idc_core.clustering.methods import CLUSTERINGS
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    model = _find(texts.get("model", ""), {name: entry.label for name, entry in MODELS.items()}, DEFAULT.model)
    entry = MODELS[model]
    fitting = fitting_data(entry)
    names = entry.layers
    layer = texts.get("layer", "")
    m = M.said(texts.get("m", ""))
    data = _find(texts.get("data", ""), {name: DATASETS[name].label for name in fitting}, entry.dataset)
    wanted = texts.get("classes", "").split(",")
    k, zeros, clustering = (texts.get(name, "") for name in ("k", "zeros", "clustering"))
    way = CLUSTERINGS.get(clustering, CLUSTERINGS[DEFAULT.clustering])
    return Setup(
        model=model,
        data=data,
        layer=layer if layer in names else entry.default_layer,
        m=DEFAULT.m if m is None else int(m),
        classes=tuple(name for name in DATASETS[data].class_names if name in wanted),
        k=k if k in CLUSTER_COUNTS and way.takes_k else DEFAULT.k,
        zeros=zeros if zeros in ZEROS else DEFAULT.zeros,
        clustering=way.name,
    )


def _find(text: str, labels: Mapping[str, str], default: str) -> str:
    return next((name for name, label in labels.items() if text in (name, label)), default)


def chosen() -> Setup:
    """Return what is chosen, and make the address say it."""
    setup = parse({name: address.read(name) for name in vars(DEFAULT)})
    for name, text in setup.texts.items():
        address.keep(name, text)
    return setup


def choose() -> Setup:
    """Draw the setup in the sidebar and return what is chosen; every choice is part of the page's address."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    setup = chosen()
    entry = MODELS[setup.model]
    with st.sidebar:
        _choice(
            "model",
            "Network",
            list(MODELS),
            setup.model,
            {name: one.label for name, one in MODELS.items()},
            "The network under test. Its important neurons and clusters come from its own training data. Default "
            f"{MODELS[DEFAULT.model].label}.",
        )
        _choice(
            "data",
            "Tests",
            fitting_data(entry),
            setup.data,
            {name: one.label for name, one in DATASETS.items()},
            "Test set whose coverage is measured. Only sets that fit the network are listed. Default for this "
            f"network: {DATASETS[entry.dataset].label}.",
        )
        layers = entry.layers
        _choice(
            "layer",
            "Layer",
            layers,
            setup.layer,
            {name: name for name in layers},
            f"Layer whose neurons are examined, in the order from input to output. "
            f"Default for this network: {entry.default_layer}.",
        )
        st.session_state["m"] = setup.m
        st.slider(
            "Number of important neurons (m)",
            1,
            MOST_NEURONS,
            key="m",
            on_change=_take,
            args=("m",),
            help="Neurons whose clusters are combined. Every further neuron multiplies the number of cells. "
            f"From 1 to {MOST_NEURONS}; default {DEFAULT.m}.",
        )
        if not DATASETS[setup.data].class_names:
            st.caption("These tests have no classes: the target is a number.")
            return setup
        st.session_state["classes"] = list(setup.classes)
        st.multiselect(
            "Classes",
            DATASETS[setup.data].class_names,
            key="classes",
            on_change=_take,
            args=("classes",),
            placeholder="All classes",
            help="Use only tests of these true classes. Neurons and clusters stay the same. Default all.",
        )
    return setup


def _choice(name: str, label: str, options: Sequence[str], value: str, labels: Mapping[str, str], help: str) -> None:
    """Draw a select box whose value the address keeps."""
    st.session_state[name] = value
    st.selectbox(
        label, list(options), format_func=labels.__getitem__, key=name, on_change=_take, args=(name,), help=help
    )


def _take(name: str) -> None:
    """Keep what was chosen in the sidebar."""
    select(**{name: st.session_state[name]})


def fitting_data(model: ModelEntry) -> list[str]:
    """Return the names of the data sets that a network can take, its own included."""
    from idc_core.datasets import DATASETS

    own = DATASETS[model.dataset]
    wanted = (own.input_shape, own.task, len(own.class_names))
    return [name for name, data in DATASETS.items() if (data.input_shape, data.task, len(data.class_names)) == wanted]
