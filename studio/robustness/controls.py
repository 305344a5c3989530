"""The controls of retraining: additions, training, and the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from idc_core.experiments.rq6 import RQ6Settings, usual
from idc_core.suites import SUITES
from studio.jobs.results import View, idc_settings
from studio.state.choices import choose_one, choose_several
from studio.widgets import layout

_MS, _ADDED, _SHARES, _SIZES = (2, 4, 6, 8, 10, 12), (2, 5, 10, 20), (2, 5, 10, 20), (0.05, 0.1, 0.2, 0.3)
_EPOCHS, _SEEDS = (1, 2, 3, 5, 10, 20), (2, 3, 5, 10)
_STARTS = {"trained": "its own weights", "scratch": "fresh weights"}

_V = TypeVar("_V", int, float, str)


def usual_settings(view: View) -> RQ6Settings:
    """Return the default settings for a setup."""
    neurons = view.train_traces.activations[view.setup.layer].shape[1]
    return usual(view.train, view.setup.layer, neurons)


def choose(view: View) -> tuple[RQ6Settings, tuple[int, ...]]:
    """Choose additions, training and tests."""
    start = replace(usual_settings(view), **idc_settings(view.setup).options)
    neurons = view.train_traces.activations[view.setup.layer].shape[1]
    ms = sorted({m for m in _MS if m <= neurons} | {start.m})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        epochs = _one_of("Epochs", _EPOCHS, start.epochs, "epochs", "Passes over the training inputs")
        seeds = _one_of("Seeds", _SEEDS, 5, "seeds", "Repetitions with other random choices")
        with layout.settings("added", "combined", "perturbed-by", "noisy-pixels", "attack-size", "begin"):
            share = "Share of the training inputs; fewer where not as many raise IDC"
            added = _one_of("Inputs added (%)", _ADDED, round(100 * start.added), "added", share)
            m = _one_of(
                "Important neurons (m)", ms, start.m, "combined", "Neurons whose cells decide which inputs raise IDC"
            )
            kinds = choose_several(
                partial(st.pills, selection_mode="multi"),
                "Perturbations of training inputs",
                {name: kind.label for name, kind in SUITES.items() if kind.family in ("noise", "transform")},
                start.kinds,
                "perturbed-by",
                help="Perturbations that make the candidates. Default Random noise and Relevance-guided noise.",
            )
            noisy = "Share of a picture's pixels with noise, in additions and tests"
            share_noisy = _one_of("Pixels with noise (%)", _SHARES, round(100 * start.share), "noisy-pixels", noisy)
            size = "Largest change of a pixel by FGSM and BIM, as a share of its range"
            epsilon = _one_of("Size of attacks (epsilon)", _SIZES, start.epsilon, "attack-size", size)
            begin = _one_of(
                "Initial weights",
                tuple(_STARTS),
                "trained",
                "begin",
                "Weights that training starts from",
                _STARTS.__getitem__,
            )
    chosen = replace(
        start,
        m=m,
        kinds=tuple(kinds) or start.kinds,
        share=share_noisy / 100,
        added=added / 100,
        epsilon=epsilon,
        epochs=epochs,
        start="scratch" if begin == "scratch" else "trained",
    )
    return chosen, tuple(range(seeds))


def _one_of(
    label: str, options: Sequence[_V], default: _V, key: str, what: str, written: Callable[[Any], str] = str
) -> _V:
    """Choose one of a few values."""
    ends = "" if isinstance(default, str) else f" {written(options[0])} to {written(options[-1])},"
    return choose_one(
        st.segmented_control,
        label,
        {option: written(option) for option in options},
        default,
        key,
        required=True,
        help=f"{what};{ends} default {written(default)}.",
    )
