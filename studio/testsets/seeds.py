"""What suites add with several seeds, and findings of it: beside what as many natural inputs would add."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError
from idc_core.evidence.additions import addition
from idc_core.evidence.finding import Finding
from idc_core.suites import SUITES
from studio.jobs import suite_addresses, suite_catalog
from studio.jobs.jobs import HALTED, JobKind, Waiting, shelf
from studio.testsets.suite_comparison import ComparedSuites
from studio.text import count, lower, plural

if TYPE_CHECKING:
    from idc_core.suites.seeds import SeedGains

SEEDS = 10
"""How often a suite is made that depends on a seed."""

_KIND = JobKind("seed-gains", kept=48)

_QUICK = 30_000_000
"""Values of all inputs of the further seeds up to which they are made without a click: seconds on small networks."""

_ASKED = "ten-seeds-asked"
"""In the session: the suites that were asked for with further seeds."""

Gains = Mapping[int, "SeedGains"]
"""What the suites add with further seeds, by their place."""


def begin(found: ComparedSuites) -> Callable[[], Gains]:
    """Begin to make suites that depend on a seed with further ones; return what waits for the cells that they add.

    What takes long waits for a click.
    """
    jobs = {}
    for place in found.additions:
        names = _other_seeds(found.options[place].name)
        if names:
            jobs[place] = _job(found, place, names)
    values = sum(found.results[place].extra for place in jobs) * (SEEDS - 1) * int(found.view.test.inputs[0].size)
    ready = all(shelf().finished(_KIND, key) for key, _ in jobs.values())
    wanted = tuple(key for key, _ in jobs.values())
    if st.session_state.get(HALTED):
        st.session_state.pop(_ASKED, None)
    if not ready and (st.session_state.get(HALTED) or not (values <= _QUICK or _asked(wanted))):
        return dict
    waiting = Waiting(len(jobs))
    for key, work in jobs.values():
        waiting.begin(_KIND, key, work)

    def wait() -> Gains:
        gains = {}
        for place, (key, work) in jobs.items():
            doing = f"making {lower(found.options[place].label)} with other seeds"
            try:
                gains[place] = waiting.get(_KIND, key, doing, work)
            except CancelledError:
                break
        return gains

    return wait


def _asked(wanted: tuple[Hashable, ...]) -> bool:
    """Offer to make these suites with other seeds; return whether that was asked for, now or before."""
    if st.session_state.get(_ASKED) == wanted:
        return True
    place = st.empty()
    asked = place.button(
        f"Measure {SEEDS} seeds",
        key="ten-seeds",
        help=f"Makes every suite that depends on a seed {SEEDS - 1} times more, with other seeds. Can be stopped.",
    )
    if asked:
        st.session_state[_ASKED] = wanted
        place.empty()
    return asked


def _other_seeds(name: str) -> list[str]:
    """Return the names of the same suite with other seeds; none where it does not depend on one or takes long."""
    recipes = [suite_addresses.parse(part) for part in suite_addresses.split(name)]
    kinds = [SUITES.get(recipe.base) for recipe in recipes]
    quick = all(kind is not None and kind.random and kind.family != "attack" for kind in kinds)
    if not quick or any(recipe.is_part for recipe in recipes):
        return []

    def moved(by: int) -> str:
        seeds = [(recipe.seed + by) % (suite_addresses.MOST_SEED + 1) for recipe in recipes]
        return suite_addresses.TOGETHER.join(
            replace(recipe, seed=seed).text for recipe, seed in zip(recipes, seeds, strict=True)
        )

    return [moved(by) for by in range(1, SEEDS)]


def _job(
    found: ComparedSuites, place: int, names: list[str]
) -> tuple[tuple[object, ...], Callable[[Progress], SeedGains]]:
    """Return the key and the work of the other seeds of a suite."""
    view, base, ms, learnt = found.view, found.suites[0], found.comparison.ms, found.learnt
    known, option, waiting = found.of_tests, found.options[place], Waiting(1)
    suites = [suite_catalog.open_suite(waiting, view, name, {name: replace(option, name=name)}) for name in names]

    def work(report: Progress) -> SeedGains:
        from idc_core.suites.seeds import gains_by_seed

        return gains_by_seed(view.model, base, suites, learnt, ms, known=known, on_progress=report)

    return (*view.key, view.setup, tuple(suite.fingerprint for suite in suites), ms), work


def counts(found: ComparedSuites, m: int) -> tuple[NDArray[np.int64], int]:
    """Return how many original tests each reached cell holds, and how many cells there are."""
    cells = found.results[0].cells[m]
    return np.unique(cells.codes, return_counts=True)[1], cells.total


def added(found: ComparedSuites, gains: Gains, place: int, m: int) -> list[int]:
    """Return how many cells a suite adds with each seed."""
    own = len(found.results[place].cells[m].added)
    further = gains[place].added[:, found.comparison.ms.index(m)].tolist() if place in gains else []
    return [own, *further]


def accuracy(found: ComparedSuites, gains: Gains, place: int) -> float | None:
    """Return the accuracy on the inputs that a suite adds, over its seeds; None where it is not defined."""
    own = found.results[place].extra_accuracy
    if own is None or not found.judged(place):
        return None
    return float(np.mean([own, *(gains[place].quality if place in gains else [])]))


def findings(found: ComparedSuites, gains: Gains, m: int, looks: int = 0) -> dict[int, Finding]:
    """Return what each addition adds beside natural inputs, by its place, most first."""
    places = [place for place in found.additions if found.results[place].extra]
    made = {place: _finding(found, gains, place, m, looks or len(places)) for place in places}
    return dict(sorted(made.items(), key=lambda item: -item[1].number))


def _finding(found: ComparedSuites, gains: Gains, place: int, m: int, looks: int) -> Finding:
    """Return what one addition adds, beside natural inputs."""
    result, numbers = found.results[place], added(found, gains, place, m)
    label = lower(found.options[place].label)
    several = f"; mean of {len(numbers)} seeds, {count(min(numbers))} to {count(max(numbers))}"
    several = several if min(numbers) < max(numbers) else f"; {len(numbers)} seeds"
    who = f"{label} ({plural(result.extra, 'input')}{several if len(numbers) > 1 else ''})"
    where = (("suite", found.options[place].name),)
    claim = f"New cells at m = {m} from {who}"
    return addition(claim, numbers, *counts(found, m), result.extra, looks=looks, where=where)
