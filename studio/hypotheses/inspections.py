"""Inspections of the setup's network: hypotheses for its tests, and their scores while records are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError
from studio.jobs import tasks
from studio.jobs.jobs import JobKind, Waiting, shelf
from studio.jobs.results import View
from studio.jobs.runs import run_settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idc_core.datasets import Dataset
    from idc_core.inspection import Hypothesis, Inspection, Reading
    from idc_core.inspection.result import Grid
    from idc_core.inspection.single_records import RecordBehaviour

RECORDS = {"256": 256, "1024": 1024, "4096": 4096, "all": None}
"""How many records are read at most: name and number."""

ERRORS = {"never": None, "0.2": 0.2, "0.1": 0.1, "0.05": 0.05}
"""When reading may stop early: name and error."""

RATES = (1, 5, 10)
"""False-discovery rates in per cent."""

_USUAL_OF_SQL = ("characters", "words", "grammar")
_USUAL_OF_TEXT = ("labels", "symbols")

_TELL_S = 1.0
"""Seconds between two drawings of scores so far: drawing takes time from reading."""

SOURCE = "Source: T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019."

SHOWN_RECORDS = 256
"""Records on which a single unit is looked at."""

_UNFINISHED = 3
"""Inspections that can go on: their sums stay in memory, the blocks of probes on disk."""


@dataclass(frozen=True)
class InspectionSettings:
    """The chosen hypotheses, measures and layers.

    `words` are a person's own keywords, `masks` names and contents of their files; at most `most` records are read,
    fewer where every score is within `error` earlier.
    """

    families: tuple[str, ...]
    words: tuple[str, ...]
    measures: tuple[str, ...]
    layers: tuple[str, ...]
    most: int | None
    error: float | None
    masks: tuple[tuple[str, bytes], ...] = ()


@dataclass(eq=False)
class Measured:
    """An inspection of `records` records, finished (`whole`) or stopped."""

    found: Inspection
    view: View
    settings: InspectionSettings
    records: int
    whole: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What charts of it depend on."""
        return (self.settings, self.records, self.whole, self.view.test.fingerprint, self.view.chosen_key)

    def grid(self, measure: str, layer: str, rate: float) -> Grid:
        """Return one measure of one layer as a table of hypotheses by units."""
        return _grid((self.key, self.view.card.fingerprint), measure, layer, rate, self)


@st.cache_resource(max_entries=24, show_spinner=False)
def _grid(depends: Hashable, measure: str, layer: str, rate: float, _measured: Measured) -> Grid:
    """Make the table once: a page asks for it several times, and whenever it is drawn again."""
    from idc_core.inspection.result import grid

    return grid(_measured.found, measure, _measured.view.card.name, layer, rate)


def _offered(view: View) -> dict[str, tuple[Hypothesis, ...]]:
    """Return the hypotheses of every family that has any for the setup's tests."""
    from idc_core.inspection import FAMILIES

    return _read_families(view.test.fingerprint, tuple(FAMILIES), view.test)


@st.cache_resource(max_entries=8, show_spinner=False)
def _read_families(fingerprint: str, families: tuple[str, ...], _data: Dataset) -> dict[str, tuple[Hypothesis, ...]]:
    from idc_core.inspection import library

    every = {name: library(_data, [name]) for name in families}
    return {name: hypotheses for name, hypotheses in every.items() if hypotheses}


def family_menu(view: View) -> dict[str, str]:
    """Return the label of every family that has hypotheses for the setup's tests, with how many they are."""
    from idc_core.inspection import FAMILIES

    return {name: f"{FAMILIES[name].label} ({len(hypotheses)})" for name, hypotheses in _offered(view).items()}


def usual(view: View) -> list[str]:
    """Return the families that are measured unless others are chosen."""
    names = list(_offered(view))
    preferred = _USUAL_OF_SQL if "grammar" in names else _USUAL_OF_TEXT if "symbols" in names else names
    return [name for name in names if name in preferred]


def chosen_hypotheses(view: View, settings: InspectionSettings) -> tuple[Hypothesis, ...]:
    """Return the hypotheses of the chosen families, and the person's own, each name once."""
    from idc_core.inspection.families import keyword
    from idc_core.inspection.families.custom import mask_hypothesis

    every = [
        hypothesis for name, family in _offered(view).items() if name in settings.families for hypothesis in family
    ]
    every += [keyword(view.test, word) for word in settings.words]
    every += [mask_hypothesis(name, content, view.test) for name, content in settings.masks]
    return tuple({hypothesis.name: hypothesis for hypothesis in every}.values())


def fitting(view: View, settings: InspectionSettings) -> InspectionSettings:
    """Return the same settings for another setup: its own layer, and families that have hypotheses for its tests."""
    families = tuple(name for name in settings.families if name in _offered(view)) or tuple(usual(view))
    return replace(settings, families=families, words=(), masks=(), layers=(view.setup.layer,))


def measure(
    view: View, settings: InspectionSettings, tell: Callable[[Measured], None] | None = None
) -> Measured | None:
    """Inspect the setup's network; `tell` is called with the scores so far while more is read.

    Returns what was read until the person pressed Stop, if they did; None where that is too little for any score.
    """
    tests, hypotheses = tests_of(view), chosen_hypotheses(view, settings)
    most = min(settings.most or len(tests), len(tests))
    # Of fewer records first and of more afterwards it is the same inspection, which goes on.
    key = (view.card.fingerprint, tests.fingerprint, replace(settings, most=None))
    told, since = 0, time.monotonic()

    def work(report: Progress) -> Inspection:
        from idc_core.inspection import inspect

        return inspect(
            view.model,
            tests,
            hypotheses,
            settings.measures,
            settings.layers,
            error=settings.error,
            records=most,
            reading=_reading(key),
            on_progress=report,
            on_scores=partial(tasks.tell, key),
        )

    def so_far() -> Inspection | None:
        now: Inspection | None = shelf().told(key)
        return None if now is None or _read(now) > most else now

    def watch() -> None:
        nonlocal told, since
        now = so_far()
        if tell is None or now is None or _read(now) <= told or time.monotonic() - since < _TELL_S:
            return
        told = _read(now)
        tell(Measured(now, view, settings, told, False))
        since = time.monotonic()

    doing = f"comparing neurons with {len(hypotheses)} hypotheses on {most:,} tests"
    try:
        run = _told(view, settings, most)
        inspection = Waiting(1).get(
            JobKind("inspections", kept=12, is_long=True), (*key, most), doing, work, watch, settings=run
        )
    except CancelledError:
        left = so_far()
        return None if left is None else Measured(left, view, settings, _read(left), False)
    return Measured(inspection, view, settings, _read(inspection), True)


def _told(view: View, settings: InspectionSettings, most: int) -> dict[str, object] | None:
    """Return what a list of runs says of an inspection; no run with a person's own files, which no address holds."""
    if settings.masks:
        return None
    chosen = {"families": settings.families, "words": settings.words, "measures": settings.measures}
    return run_settings(view, **chosen, inspected=settings.layers, records=most, early=settings.error or "never")


def tests_of(view: View) -> Dataset:
    """Return the tests that pass the filter."""
    return view.test.only(view.chosen) if len(view.chosen) < len(view.test) else view.test


def records_of(view: View, settings: InspectionSettings) -> Dataset:
    """Return the tests that are read, as a data set of their own: those that `inspect` draws with the same seed."""
    return tests_of(view).sample(settings.most)


def _read(found: Inspection) -> int:
    return int(found.table["records"].max(initial=0))


_readings: dict[Hashable, Reading] = {}
"""What the newest few inspections of this process have read, to go on from; the newest last."""


def _reading(key: Hashable) -> Reading:
    """Return what an inspection has read; for the one thread that inspects."""
    from idc_core.inspection import Reading

    _readings[key] = _readings.pop(key) if key in _readings else Reading()
    for old in list(_readings)[:-_UNFINISHED]:
        _readings.pop(old).close()
    return _readings[key]


def look(view: View, layer: str, unit: int, hypothesis: Hypothesis, positions: NDArray[np.int64]) -> RecordBehaviour:
    """Return what a unit and a hypothesis do on some tests."""

    def work(report: Progress) -> RecordBehaviour:
        from idc_core.inspection.single_records import behaviour_on_records

        return behaviour_on_records(view.model, layer, unit, hypothesis, view.test, positions)

    key = (*view.key, layer, unit, hypothesis.name, tuple(positions.tolist()))
    return Waiting(1).get(JobKind("looks"), key, "looking at single tests", work)


def quoted(name: str) -> str:
    """Write a hypothesis's name in a sentence; one that quotes a symbol itself is quoted enough."""
    return name if "“" in name else f"“{name}”"
