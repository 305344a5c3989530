"""RQ6 on the page: what is chosen for a setup, what is retrained, and what is finished of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import streamlit as st

from idc_core.base.progress import Progress
from idc_core.experiments.rq6 import RQ6Settings, usual
from idc_core.suites import SUITES
from studio.jobs import suite_catalog
from studio.jobs.jobs import Waiting
from studio.jobs.results import View, idc_settings
from studio.state import visitor
from studio.state.choices import choose_one, choose_several
from studio.widgets import layout
from studio.widgets.retraining import RetrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from idc_core.datasets import Dataset
    from idc_core.experiments.retraining import RetrainingPlan
    from idc_core.experiments.retraining_results import Retraining
    from idc_core.suites import Suite

_MS, _ADDED, _SHARES, _SIZES = (2, 4, 6, 8, 10, 12), (2, 5, 10, 20), (2, 5, 10, 20), (0.05, 0.1, 0.2, 0.3)
_EPOCHS, _SEEDS = (1, 2, 3, 5, 10, 20), (2, 3, 5, 10)
_STARTS = {"trained": "its own weights", "scratch": "fresh weights"}
_V = TypeVar("_V", int, float, str)


@dataclass(frozen=True, eq=False, kw_only=True)
class RQ6Run(RetrainingRun):
    """RQ6 on the tests of a setup."""

    view: View
    settings: RQ6Settings
    tests: Dataset
    suite: Suite | None = None
    """What is added instead of inputs that raise IDC."""

    @cached_property
    def result(self) -> Retraining:
        """The networks finished as this run of the page began."""
        from idc_core.experiments.rq6 import rq6_results

        return rq6_results(self.view.model, self.view.train, self.settings, self.seeds, self.networks)


def rq6_run(view: View, settings: RQ6Settings, seeds: tuple[int, ...]) -> RQ6Run:
    """Return the run of a setup, on the tests that pass the filter; none of it starts by itself.

    Tests that the inputs of a suite to add were made of are left out.
    """
    from idc_core.experiments.rq6 import ADDITIONS, run_store

    suite = suite_catalog.open_kept(Waiting(1), settings.suite) if settings.suite else None
    rows = _measured(view, suite)
    tests = view.test if len(rows) == len(view.test) else view.test.only(rows)

    def prepare(report: Progress) -> RetrainingPlan:
        from idc_core.analysis.analysis import analyze
        from idc_core.experiments.rq6 import prepare_rq6

        learnt = analyze(
            view.model,
            view.train,
            tests,
            settings.layer,
            settings.m,
            traces=(view.train_traces, view.test_traces.only(rows)),
            on_progress=report,
            **settings.options,
        )
        given = None if suite is None else (suite.take(range(len(suite))), suite.targets)
        return prepare_rq6(view.model, view.train, tests, learnt, settings, given=given, on_progress=report)

    path = run_store(view.model, view.train, tests, settings).path
    return RQ6Run(
        path, tuple(ADDITIONS), seeds, prepare, starts=False, view=view, settings=settings, tests=tests, suite=suite
    )


def _measured(view: View, suite: Suite | None) -> NDArray[np.int64]:
    """Return the positions of the tests on which networks are measured."""
    from idc_core.experiments.rq6 import apart_from

    return view.chosen if suite is None else view.chosen[apart_from(suite, view.test)[view.chosen]]


def usual_settings(view: View) -> RQ6Settings:
    """Return the default settings for a setup."""
    neurons = view.train_traces.activations[view.setup.layer].shape[1]
    return usual(view.train, view.setup.layer, neurons)


def choose(view: View) -> RQ6Run:
    """Choose additions, training and tests; return what is finished with them."""
    return rq6_run(view, *_choose_settings(view))


def _choose_settings(view: View) -> tuple[RQ6Settings, tuple[int, ...]]:
    """Choose additions, training and tests."""
    start = replace(usual_settings(view), **idc_settings(view.setup).options)
    neurons = view.train_traces.activations[view.setup.layer].shape[1]
    ms = sorted({m for m in _MS if m <= neurons} | {start.m})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        suite = _choose_suite(view)
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
        suite=suite,
    )
    return chosen, tuple(range(seeds))


def _choose_suite(view: View) -> str:
    """Choose a saved suite that is added instead of inputs that raise IDC; empty for none, or where there is none."""
    from idc_core.suites import saved_suites

    fitting = {name: one.label for name, one in saved_suites(view.test, visitor.person()).items()}
    fitting.pop(view.setup.data, None)
    if not fitting:
        return ""
    usual = "Perturbed inputs that raise IDC"
    text = f"What is added to the training inputs: perturbed ones, or a suite that you saved. Default {usual}."
    name = choose_one(st.selectbox, "Add", {"": usual, **fitting}, "", "own-suite", width=260, help=text)
    if name and not len(_measured(view, suite_catalog.open_kept(Waiting(1), name))):
        st.warning("Every test is one that the suite was made of: none is left to measure. Choose another suite.")
        return ""
    return name


def _one_of(
    label: str, options: Sequence[_V], default: _V, key: str, what: str, written: Callable[[_V], str] = str
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
