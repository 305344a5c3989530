"""Retraining in the background: one network after the other, kept on disk, stopped and continued."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from idc_core.base.progress import Progress, said
from idc_core.errors import CancelledError, IdcError
from studio.jobs.jobs import Job, JobKind, Waiting, shelf
from studio.text import literal, lower

if TYPE_CHECKING:
    from idc_core.experiments.retraining import RetrainingPlan
    from idc_core.experiments.retraining_results import RetrainedNetwork

# Both are kept as files of their own while they go on; tests hold inputs that a function picks.
_TESTS = JobKind("retrained-tests", kept=2, is_long=True, lives="server")
_NETWORK = JobKind("retraining", kept=64, is_long=True, lives="server")

_Measured = TypeVar("_Measured")

_POLL_S = 1.0

_TELLING_S = 20.0
"""Seconds of training after which its pace tells how long the rest takes: networks begin with loading."""

_CURRENT, _FAILED, _BEGAN = "retraining-job", "retraining-failed", "retraining-began"
"""The job that this session waits for, why one failed, and when it began with how many left: in the session."""


@dataclass(frozen=True, eq=False)
class RetrainingRun:
    """Networks to retrain, one per addition and seed, and those that are finished."""

    path: Path
    """Folder of the finished networks; its name follows from everything they depend on."""
    additions: tuple[str, ...]
    seeds: tuple[int, ...]
    prepare: Callable[[Progress], RetrainingPlan]
    """Makes additions and tests, in another thread."""
    starts: bool = True
    """Whether it starts without a click."""

    @property
    def networks(self) -> dict[tuple[str, int], RetrainedNetwork]:
        """The finished networks."""
        retrained = {(name, seed): self._network(name, seed) for seed in self.seeds for name in self.additions}
        return {key: network for key, network in retrained.items() if network is not None}

    @property
    def left(self) -> list[tuple[str, int]]:
        """The networks that are not finished: all additions of a seed before the next seed."""
        finished = self.networks
        return [(name, seed) for seed in self.seeds for name in self.additions if (name, seed) not in finished]

    @property
    def total(self) -> int:
        """Number of networks."""
        return len(self.additions) * len(self.seeds)

    @property
    def going(self) -> bool:
        """Whether this session wants the run to go on."""
        return bool(st.session_state.get(self.flag, self.starts))

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that the run depends on beside seeds."""
        return (self.path.name,)

    @property
    def flag(self) -> str:
        """Key of `going` in the session."""
        return f"retraining-{self.path.name}"

    def go(self, on: bool) -> None:
        """Start, stop or continue; for callbacks."""
        st.session_state[self.flag] = on
        for old in (_FAILED, _BEGAN):
            st.session_state.pop(old, None)

    def advance(self) -> Job[object] | None:
        """Return the job that is awaited now; None where everything is finished. Raises the error of a failed one."""
        for _ in range(3):  # preparation, the next network, and one that was stopping as it was asked for again
            job = self._current()
            if job is None or not job.done:
                return job
        return self._current()

    def measured(self, kind: JobKind, work: Callable[[RetrainingPlan, Progress], _Measured]) -> _Measured:
        """Return what `work` measures with the plan once everything is finished, or read it again; show progress."""
        finished = shelf().finished(_TESTS, self.key)
        prepared = None if finished is None else finished.result()

        def measuring(report: Progress) -> _Measured:
            return work(self.prepare(report) if prepared is None else prepared, report)

        return Waiting(1).get(kind, (*self.key, self.seeds, "measured"), "measuring the retrained networks", measuring)

    def _current(self) -> Job[object] | None:
        left = self.left
        if not left:
            return None
        prepared = shelf().finished(_TESTS, self.key)
        if prepared is None:
            return self._job(_TESTS, self.key, lambda: self.prepare)
        name, seed = left[0]
        key = (*self.key, name, seed)
        return self._job(_NETWORK, key, lambda: _one_network(prepared.result(), name, seed))

    def _job(
        self, kind: JobKind, key: tuple[object, ...], work: Callable[[], Callable[[Progress], object]]
    ) -> Job[object]:
        """Return a job, started unless it runs; one that failed is not tried again and again."""
        held: tuple[object, Job[object]] | None = st.session_state.get(_CURRENT)
        if held is not None and held[0] == key and held[1].dead:
            with suppress(CancelledError):  # nobody had waited for it for a while: it is started again
                held[1].result()
        job = shelf().job(kind, key, work())
        job.want()
        st.session_state[_CURRENT] = (key, job)
        return job

    def _network(self, name: str, seed: int) -> RetrainedNetwork | None:
        file = self.path / f"{name}-{seed}.npz"
        return _read(file, file.stat().st_mtime_ns) if file.is_file() else None


def _one_network(plan: RetrainingPlan, name: str, seed: int) -> Callable[[Progress], int]:
    """Return the work of one network, which ends on disk."""

    def work(report: Progress) -> int:
        retrained = plan.run((seed,), (name,), on_progress=report)
        if not retrained.complete:
            raise CancelledError(f"Stopped while retraining with {name}, seed {seed}.")
        return len(retrained.networks)

    return work


@st.cache_resource(max_entries=48, show_spinner=False)
def _read(file: Path, changed: int) -> RetrainedNetwork | None:
    """Read a network once; None where the file is damaged."""
    from idc_core.experiments.retraining_results import RetrainedNetwork
    from idc_core.store.cache import ArrayFolder

    held = ArrayFolder(file.parent).get(file.stem)
    return None if held is None else RetrainedNetwork.of(held)


def watch(run: RetrainingRun) -> None:
    """Show the run's progress, with buttons that stop and continue it; every network finished redraws the page."""
    going = run.going and bool(run.left) and _FAILED not in st.session_state
    st.fragment(run_every=_POLL_S if going else None)(_watch)(run, len(run.left), run.going)


def _watch(run: RetrainingRun, before: int, going: bool) -> None:
    left = run.left
    if len(left) < before or run.going != going:  # the page says how far it is, and whether it goes on
        st.rerun()
    if not left:
        return
    done = run.total - len(left)
    if problem := st.session_state.get(_FAILED):
        st.error(problem)
    if not run.going:
        if done:
            st.progress(done / run.total, f"{done} of {run.total} networks are retrained and kept")
        label = "Continue" if done else "Start"
        st.button(
            label,
            on_click=run.go,
            args=(True,),
            key="retraining-continue",
            type="primary",
            help="Retrain one network after the other. Finished networks are kept.",
        )
        return
    try:
        job = run.advance()
    except IdcError as error:
        st.session_state[_FAILED] = literal(error)
        st.session_state[run.flag] = False
        st.rerun()
    if job is None:  # the last one was finished just now: all of them are drawn
        st.rerun()
    state = job.state
    share = min(1.0, state.done / state.total) if state.total else 0.0
    doing = state.label or "waiting for other work"
    progress = f"{done} of {run.total} networks are retrained{_time_left(run, len(left), share)}; {lower(doing)}"
    st.progress((done + share) / run.total, progress)
    st.button("Stop", on_click=run.go, args=(False,), key="retraining-stop")


def _time_left(run: RetrainingRun, left: int, share: float) -> str:
    """Say about how long the rest takes, going by what was trained since the first one began."""
    if shelf().finished(_TESTS, run.key) is None:
        return ""
    began, first = st.session_state.setdefault(_BEGAN, {}).setdefault(run.flag, (time.monotonic(), left - share))
    spent, trained = time.monotonic() - began, first - left + share
    return said(0, 0, spent / trained * (left - share) if trained > 0 and spent >= _TELLING_S else None)
