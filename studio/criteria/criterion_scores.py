"""What every criterion says of a bench's tests: parameters from the address, one job a criterion."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from idc_core.coverage import CRITERIA
from idc_core.coverage.agreement import Reading, compare, random_subsets, read, read_profiles, rows
from idc_core.coverage.prioritisation import UNCERTAINTIES, Finding, Order, find_mistakes, orders_by
from idc_core.coverage.registry import PAIRWISE
from idc_core.errors import CancelledError, IdcError
from idc_core.progress import Progress
from studio.criteria import compared_suites
from studio.criteria.compared_suites import Other
from studio.engine.jobs import Waiting
from studio.engine.results import View

OF_CLASSES = ("dsc",)
"""Criteria that compare a test with other classes, which tests answered with a number do not have."""

MANY_PAIRS = 20_000_000
"""Pairs of a test and a training input beyond which the slow criteria wait until they are chosen."""

UNITS = {"tknp": "patterns", "cc": "clusters", "nlc": "activation\u00b2"}
"""Units of the scores that are no share."""

Settings = dict[str, Any]


@dataclass(frozen=True)
class Parameter:
    """A parameter that the page offers.

    Attributes
    ----------
    criteria : tuple of str
        Whose it is.
    name, label, help : str
        Name in their constructor; the name for a person; what it does, without range and default.
    low, high, step : float
        Range of a number; unused where there are options.
    options : tuple of str
        What can be chosen instead of a number.
    """

    criteria: tuple[str, ...]
    name: str
    label: str
    help: str
    low: float = 0
    high: float = 0
    step: float = 1
    options: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name of the control and in the address."""
        return f"{'-'.join(self.criteria)}-{self.name}"

    @property
    def default(self) -> Any:
        """What the criteria take by themselves."""
        return CRITERIA[self.criteria[0]].card.defaults[self.name]

    def draw(self) -> Any:
        """Draw the control and return what is chosen."""
        if self.options:
            text = f"{self.help} Default {self.default}."
            return st.selectbox(
                self.label, self.options, self.options.index(self.default), key=self.key, bind="query-params", help=text
            )
        kind = type(self.default)
        text = f"{self.help} From {self.low:g} to {self.high:g}; default {self.default:g}."
        return st.number_input(
            self.label,
            kind(self.low),
            kind(self.high),
            self.default,
            kind(self.step),
            key=self.key,
            bind="query-params",
            help=text,
        )


PARAMETERS = (
    Parameter(("nc",), "threshold", "NC: threshold", "An activation above it counts as active.", 0, 20, 0.05),
    Parameter(
        ("nc",),
        "scale",
        "NC: what is compared",
        options=("none", "layer"),
        help="The activation itself (none), or scaled for each input to 0..1 over its layer (layer).",
    ),
    Parameter(("tknc",), "k", "TKNC: neurons k", "The k most active neurons count.", 1, 20),
    Parameter(("tknp",), "k", "TKNP: neurons k", "A pattern is the set of the k most active neurons.", 1, 20),
    Parameter(("kmnc",), "k", "KMNC: sections k", "Into how many sections a neuron's range is cut.", 2, 10_000, 100),
    Parameter(
        ("nbc",), "margin", "NBC: margin", "By how many standard deviations a neuron's range is widened.", 0, 5, 0.5
    ),
    Parameter(
        ("snac",), "margin", "SNAC: margin", "By how many standard deviations a neuron's range is widened.", 0, 5, 0.5
    ),
    Parameter(("lsc",), "upper", "LSC: upper bound", "Surprise above it, in nats, is in no bucket.", 10, 10_000, 100),
    Parameter(
        ("dsc",), "upper", "DSC: upper bound", "Surprise above it, a ratio of distances, is in no bucket.", 0.5, 20, 0.5
    ),
    Parameter(
        ("mdsc",),
        "upper",
        "MDSC: upper bound",
        "Surprise above it, in standard deviations, is in no bucket.",
        5,
        1000,
        10,
    ),
    Parameter(
        ("lsc", "dsc", "mdsc"),
        "buckets",
        "LSC, DSC, MDSC: buckets",
        "Into how many buckets surprise is cut.",
        10,
        10_000,
        100,
    ),
    Parameter(
        ("nlc",),
        "divide",
        "NLC: divided by",
        options=("neurons", "pairs", "nothing"),
        help="What the norm of a layer's covariance is divided by: its neurons, their pairs, or nothing.",
    ),
    Parameter(
        ("cc",),
        "threshold",
        "CC: threshold",
        "Squared distance of activations at which a new cluster begins.",
        0,
        10_000,
        5,
    ),
)
"""The parameters that can be changed; their defaults are the criteria's own."""


def settings_of(values: dict[str, Any]) -> dict[str, Settings]:
    """Return the settings of every criterion from the values of the controls, by their keys."""
    found: dict[str, Settings] = {name: {} for name in CRITERIA}
    for parameter in PARAMETERS:
        for name in parameter.criteria:
            found[name][parameter.name] = values[parameter.key]
    return found


def usual(view: View) -> list[str]:
    """Return the criteria that are measured without being asked for."""
    return [name for name in CRITERIA if name not in (*slow(view), *misfits(view))]


def slow(view: View) -> tuple[str, ...]:
    """Return the criteria that take seconds on this bench."""
    return tuple(PAIRWISE) if len(view.train) * len(view.chosen) > MANY_PAIRS else ()


def misfits(view: View) -> tuple[str, ...]:
    """Return the criteria that have no meaning on this bench."""
    return () if view.is_classifier else OF_CLASSES


@dataclass(frozen=True, eq=False)
class Measured:
    """What the criteria say of a bench.

    Attributes
    ----------
    readings : dict of str to Reading
        By criterion; `scores` holds the other suites too.
    orders : list of Order
        Of the chosen tests, uncertainties last.
    suites : dict of str to int
        Numbers of tests, by name of the suite: parts first.
    sizes : ndarray of int64
        Sizes of the growing subsets.
    problems : list of str
        A sentence for each criterion or suite that is left out.
    key : hashable
        What all of it depends on.
    """

    readings: dict[str, Reading]
    orders: list[Order]
    suites: dict[str, int]
    sizes: Any
    problems: list[str]
    key: Hashable


def measure(view: View, names: Sequence[str], settings: dict[str, Settings], others: Sequence[Other]) -> Measured:
    """Ask criteria about a bench's tests, its parts and other suites; show progress while it takes long.

    Parameters
    ----------
    view : View
        The bench.
    names : sequence of str
        Keys of `CRITERIA`.
    settings : dict
        Their settings, by name.
    others : sequence of Other
        Suites beside the parts of the tests.

    Returns
    -------
    Measured
        Without what was not finished, where the person pressed Stop.
    """
    waiting = Waiting(len(names) * (1 + len(others)) + 3 * len(others))
    held = compared_suites.parts(view)
    readings: dict[str, Reading] = {}
    orders: list[Order] = []
    problems: list[str] = []
    counts = {name: len(positions) for name, positions in held.items()}
    try:
        for name in names:
            answer = _read(waiting, view, name, settings[name])
            if isinstance(answer, str):
                problems.append(answer)
            else:
                readings[name], own = answer
                orders += own
        for other in others:
            _add(waiting, view, other, settings, readings, counts, problems)
    except CancelledError:
        left = [CRITERIA[name].card.label for name in names if name not in readings]
        problems.append(f"Stopped before it was finished{': ' + ', '.join(left) if left else ''}.")
    scores = view.test_traces.scores[view.chosen]
    orders += orders_by({}, scores if view.is_classifier else None)
    subsets = _subsets(view)
    key = (_bench(view), tuple(readings), repr(settings), tuple(counts.items()))
    return Measured(readings, orders, counts, subsets.sizes, problems, key)


def _subsets(view: View) -> Any:
    return random_subsets(len(view.chosen))


def _bench(view: View) -> tuple[Hashable, ...]:
    return (*view.key, view.bench.layer, view.bench.classes)


def _depends(view: View, name: str, settings: Settings) -> tuple[Hashable, ...]:
    """Return what the reading of a criterion depends on beyond the bench's inputs."""
    own: tuple[Hashable, ...] = tuple(settings.items())
    if name == "idc":
        own = (view.analysis.m, *view.analysis.settings.items())
    return (*_bench(view), name, *own)


def _read(waiting: Waiting, view: View, name: str, settings: Settings) -> tuple[Reading, list[Order]] | str:
    layer, label = view.bench.layer, CRITERIA[name].card.label

    def work(report: Progress) -> tuple[Reading, list[Order]] | str:
        held, subsets = compared_suites.parts(view), _subsets(view)
        tests = rows(view.test_traces, view.chosen)
        if name == "idc":
            profiles = view.analysis.cell_profiles(tests.activations[layer])
            reading = read_profiles(profiles, held, subsets)
        else:
            try:
                one = CRITERIA[name](view.model, layer, **settings)
                (reading,) = read([one], view.train_traces, tests, held, subsets, on_progress=report)
            except CancelledError:
                raise
            except IdcError as error:
                # Kept like a result: it would be the same the next time.
                return f"{label} is left out. {error}"
        return reading, orders_by({name: reading.profiles})

    found: tuple[Reading, list[Order]] | str = waiting.get(
        "criteria", _depends(view, name, settings), f"measuring {label}", work, kept=48
    )
    return found


def _add(
    waiting: Waiting,
    view: View,
    other: Other,
    settings: dict[str, Settings],
    readings: dict[str, Reading],
    counts: dict[str, int],
    problems: list[str],
) -> None:
    """Add the scores of another suite to the readings."""
    try:
        fingerprint, traces = other.open(waiting, view)
    except CancelledError:
        raise
    except IdcError as error:
        problems.append(f"{other.label} is left out. {error}")
        return
    if not len(traces.scores):
        problems.append(f"{other.label} has no test of class {view.class_label}, so it is left out.")
        return
    layer = view.bench.layer

    def score(name: str) -> float:
        def work(report: Progress) -> float:
            if name == "idc":
                return view.analysis.cell_profiles(traces.activations[layer]).coverage()
            one = {name: CRITERIA[name](view.model, layer, **settings[name])}
            found = compare(one, view.train_traces, {other.name: traces}, on_progress=report)
            return float(found.scores[0, 0])

        key = (*_depends(view, name, settings[name]), other.name, fingerprint)
        label = f"measuring {CRITERIA[name].card.label} of {other.label}"
        value: float = waiting.get("scores", key, label, work, kept=192)
        return value

    for name, reading in readings.items():
        readings[name] = replace(reading, scores={**reading.scores, other.name: score(name)})
    counts[other.name] = len(traces.scores)


def mistakes(view: View, measured: Measured) -> Finding | None:
    """Return how early every order meets the misclassified tests; None where none is, or nothing is right or wrong."""
    if view.correct is None or view.correct[view.chosen].all():
        return None
    return find_mistakes(measured.orders, ~view.correct[view.chosen])


def is_share(reading: Reading) -> bool:
    """Whether a score is a share of the targets."""
    return bool(reading.profiles.total)


def written(reading: Reading, score: float) -> str:
    """Write a score in its criterion's unit."""
    from studio.widgets.text import percent

    if np.isnan(score):
        return ""
    if is_share(reading):
        return percent(score)
    return f"{score:,.0f}" if score == round(score) else f"{score:.3g}"


def order_label(order: Order) -> str:
    """Name an order for a person."""
    if order.by == "uncertainty":
        return UNCERTAINTIES[order.name].label
    short = order.name.upper()
    if order.by == "additional":
        return f"{short}, most new coverage"
    return f"{short}, largest gain" if order.name == "nlc" else f"{short}, most surprising"
