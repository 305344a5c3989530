"""A run of retraining on the page: unit after unit in the background, kept on disk, stopped and continued."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from idc_core.errors import CancelledError, IdcError
from idc_core.experiments.retraining_results import Retraining, Unit
from idc_core.progress import Progress
from studio.engine.jobs import Job, shelf
from studio.engine.results import View
from studio.widgets.text import lower

if TYPE_CHECKING:
    from idc_core.datasets import Dataset
    from idc_core.experiments.candidates import Settings
    from idc_core.experiments.rq6 import RQ6

LIGHT = 5_000_000
"""Values of all training inputs together up to which the page begins by itself; MNIST has 47 million."""

POLL_S = 1.0

CURRENT, FAILED = "retraining-job", "retraining-failed"
"""The unit that this session waits for, and why one failed: in the session."""


@dataclass(frozen=True, eq=False)
class Run:
    """What is retrained, and what is finished of it.

    Attributes
    ----------
    view : View
    settings : Settings
    seeds : tuple of int
    """

    view: View
    settings: Settings
    seeds: tuple[int, ...]

    @cached_property
    def tests(self) -> Dataset:
        """The tests that are looked at: those of the chosen classes."""
        view = self.view
        return view.test if len(view.chosen) == len(view.test) else view.test.only(view.chosen)

    @cached_property
    def path(self) -> Path:
        """Folder of the finished units; its name follows from everything they depend on."""
        from idc_core.experiments.rq6 import run_store

        return run_store(self.view.model, self.view.train, self.tests, self.settings).path

    @cached_property
    def result(self) -> Retraining:
        """What is finished as this run of the page began."""
        from idc_core.experiments.rq6 import gathered

        return gathered(self.view.model, self.view.train, self.settings, self.seeds, self._units())

    @property
    def left(self) -> list[tuple[str, int]]:
        """Units that are not finished: all additions of a seed before the next seed."""
        from idc_core.experiments.rq6 import ADDITIONS

        return [(name, seed) for seed in self.seeds for name in ADDITIONS if self._unit(name, seed) is None]

    @property
    def total(self) -> int:
        """How many units there are."""
        return len(self.result.additions) * len(self.seeds)

    @property
    def is_light(self) -> bool:
        """Whether the page begins by itself."""
        return self.view.train.inputs.size <= LIGHT

    @property
    def going(self) -> bool:
        """Whether this session wants the run to go on."""
        return bool(st.session_state.get(self._flag, self.is_light))

    def go(self, on: bool) -> None:
        """Begin, stop or continue; for callbacks."""
        st.session_state[self._flag] = on
        st.session_state.pop(FAILED, None)

    def advance(self) -> Job | None:
        """Go on: return the job that is waited for now; None where everything is finished.

        Raises
        ------
        IdcError
            If it failed.
        """
        for _ in range(3):  # preparation, the next unit, and one that was stopping as it was asked for again
            job = self._current()
            if job is None or not job.done:
                return job
        return self._current()

    def _current(self) -> Job | None:
        left = self.left
        if not left:
            return None
        prepared = shelf().finished("retrained-tests", self._key)
        if prepared is None:
            return self._job("retrained-tests", self._key, self._preparing, kept=2)
        name, seed = left[0]
        key = (*self._key, name, seed)
        return self._job("retraining", key, lambda: unit_work(prepared.result(), name, seed), kept=64)

    def _job(
        self, kind: str, key: tuple[object, ...], work: Callable[[], Callable[[Progress], object]], kept: int
    ) -> Job:
        """Return a job, begun unless it runs; one that failed is not tried again and again."""
        held: tuple[object, Job] | None = st.session_state.get(CURRENT)
        if held is not None and held[0] == key and held[1].dead:
            with suppress(CancelledError):  # nobody had waited for it for a while: it is begun again
                held[1].result()
        job = shelf().job(kind, key, work(), kept)
        job.want()
        st.session_state[CURRENT] = (key, job)
        return job

    def _preparing(self) -> Callable[[Progress], RQ6]:
        view, settings, tests = self.view, self.settings, self.tests

        def work(report: Progress) -> RQ6:
            from idc_core.analysis.analysis import analyze
            from idc_core.experiments.rq6 import RQ6

            traces = (view.train_traces, view.test_traces.only(view.chosen))
            learnt = analyze(
                view.model,
                view.train,
                tests,
                settings.layer,
                settings.m,
                traces=traces,
                on_progress=report,
                **settings.clustered,
            )
            return RQ6.prepare(view.model, view.train, tests, learnt, settings, on_progress=report)

        return work

    def _units(self) -> dict[tuple[str, int], Unit]:
        from idc_core.experiments.rq6 import ADDITIONS

        found = {(name, seed): self._unit(name, seed) for seed in self.seeds for name in ADDITIONS}
        return {key: unit for key, unit in found.items() if unit is not None}

    def _unit(self, name: str, seed: int) -> Unit | None:
        file = self.path / f"{name}-{seed}.npz"
        return _read(file, file.stat().st_mtime_ns) if file.is_file() else None

    @property
    def _key(self) -> tuple[object, ...]:
        return (self.path.name,)

    @property
    def _flag(self) -> str:
        return f"retraining-{self.path.name}"


def unit_work(ready: RQ6, name: str, seed: int) -> Callable[[Progress], int]:
    """Return the work of one unit, which ends on disk."""

    def work(report: Progress) -> int:
        found = ready.run((seed,), (name,), on_progress=report)
        if not found.complete:
            raise CancelledError(f"Stopped while retraining with {name}, seed {seed}.")
        return len(found.units)

    return work


@st.cache_resource(max_entries=48, show_spinner=False)
def _read(file: Path, changed: int) -> Unit | None:
    """Read a unit once; None where the file is damaged."""
    from idc_core.cache import UnitFolder

    held = UnitFolder(file.parent).get(file.stem)
    return None if held is None else Unit.of(held)


def watch(run: Run) -> None:
    """Show how far the run is, with buttons that stop and continue it; the page is drawn anew with every unit."""
    going = run.going and bool(run.left) and FAILED not in st.session_state
    st.fragment(run_every=POLL_S if going else None)(_watch)(run, len(run.left))


def _watch(run: Run, before: int) -> None:
    left = run.left
    if len(left) < before:
        st.rerun()
    if not left:
        return
    done = run.total - len(left)
    if problem := st.session_state.get(FAILED):
        st.error(problem)
    if not run.going:
        st.progress(done / run.total, f"{done} of {run.total} networks are retrained; what is finished is kept")
        st.button("Continue" if done else "Retrain here", on_click=run.go, args=(True,), key="retraining-continue")
        return
    try:
        job = run.advance()
    except IdcError as error:
        st.session_state[FAILED] = str(error)
        st.session_state[run._flag] = False
        st.rerun()
    if job is None:  # the last one was finished just now: all of them are drawn
        st.rerun()
    state = job.state
    share = min(1.0, state.done / state.total) if state.total else 0.0
    said = state.label or "waiting for other work"
    st.progress((done + share) / run.total, f"{done} of {run.total} networks are retrained; {lower(said)}")
    st.button("Stop", on_click=run.go, args=(False,), key="retraining-stop")
