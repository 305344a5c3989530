"""Work that outlives the script run that asked for it, and results that later runs find again.

A page asks for a result and waits with a progress bar. The work runs in a thread of its own, so that moving
a widget or changing the page loses nothing: the next run of the script finds the same job. A job that no page
has asked for during `GRACE_S` seconds stops by itself.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import streamlit as st

from idc_core.errors import CancelledError
from idc_core.files import sweep
from idc_core.progress import Progress

GRACE_S = 5.0
"""Seconds after which a job that nobody waits for is stopped."""

SILENT_S = 0.4
"""Seconds of work that show no progress bar: a bar that flashes by tells nothing."""

POLL_S = 0.15

_numbers = itertools.count()

STOPPED = "work-stopped"
"""Set in a session when its person pressed Stop."""

HALTED = "work-halted"
"""Set during the run that follows: it shows what is there, and begins nothing that would have to be waited for."""

PAUSED = "work-paused"
"""What a page does not go on with until it is asked to: it was stopped, and what was finished is looked at."""

KEPT = 24
"""Results kept of each kind where a job says nothing else."""


@dataclass(frozen=True)
class State:
    """How far a job is."""

    done: int
    total: int
    label: str


class Job:
    """One piece of work in a thread; it stops by itself when nobody waits for it."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[Progress], Any]) -> None:
        self.state = State(0, 0, "")
        self._wanted = time.monotonic()
        self._future: Future[Any] = pool.submit(work, self._report)

    def _report(self, done: int, total: int, label: str) -> bool:
        self.state = State(done, total, label)
        return time.monotonic() - self._wanted < GRACE_S

    @property
    def done(self) -> bool:
        """Whether the work ended with a result."""
        return self._future.done() and self._future.exception() is None

    @property
    def dead(self) -> bool:
        """Whether the work ended without a result."""
        return self._future.done() and self._future.exception() is not None

    def want(self) -> None:
        """Say that somebody still waits for the result."""
        self._wanted = time.monotonic()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; return whether the work has ended."""
        self.want()
        done = threading.Event()
        self._future.add_done_callback(lambda _: done.set())
        return done.wait(seconds)

    def result(self) -> Any:
        """Return what the work returned, or raise what it raised."""
        return self._future.result()


class Shelf:
    """Jobs by kind and key; of each kind the ones used last are kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: defaultdict[str, OrderedDict[Hashable, Job]] = defaultdict(OrderedDict)
        # One at a time: torch already uses the cores, and hooks on one model must not meet.
        self._engine = ThreadPoolExecutor(1, thread_name_prefix="engine")
        # Files are read beside it, and neurons clustered, on one core: neither needs a network.
        self._beside = {kind: ThreadPoolExecutor(1, thread_name_prefix=kind) for kind in ("data", "states")}

    def finished(self, kind: str, key: Hashable) -> Job | None:
        """Return the job of that kind and key if it has a result; start none."""
        with self._lock:
            job = self._jobs[kind].get(key)
            return job if job is not None and job.done else None

    def job(self, kind: str, key: Hashable, work: Callable[[Progress], Any], kept: int = KEPT) -> Job:
        """Return the job of that kind and key, starting it where there is none that ran or runs.

        Of its kind, the `kept` jobs used last stay on the shelf.
        """
        with self._lock:
            jobs = self._jobs[kind]
            if key not in jobs or jobs[key].dead:
                jobs[key] = Job(self._beside.get(kind, self._engine), work)
            jobs.move_to_end(key)
            while len(jobs) > kept:
                jobs.popitem(last=False)
            return jobs[key]


@st.cache_resource
def shelf() -> Shelf:
    """Return the one shelf that all sessions of this server share, once what killed runs left is gone."""
    sweep()
    return Shelf()


class Waiting:
    """A place on the page that shows the progress of several steps, one after the other."""

    def __init__(self, steps: int) -> None:
        self._place = st.empty()
        self._steps = steps
        self._step = 0
        self._begun: dict[tuple[str, Hashable], Job] = {}

    def begin(self, kind: str, key: Hashable, work: Callable[[Progress], Any], kept: int = KEPT) -> None:
        """Begin what `get` will ask for later, so that it goes on beside other work."""
        if not st.session_state.get(HALTED):
            self._begun[kind, key] = shelf().job(kind, key, work, kept)

    def get(
        self,
        kind: str,
        key: Hashable,
        doing: str,
        work: Callable[[Progress], Any],
        watch: Callable[[], None] | None = None,
        kept: int = KEPT,
    ) -> Any:
        """Return a result, from the shelf or by working; show progress while it takes long.

        `kind` names all results of this sort, of which `kept` stay on the shelf; `key` is everything that the result
        depends on; `doing` says for a person what is being done. `work` is called with a progress callback, in another
        thread: it must not use Streamlit. `watch` is called now and then while it takes long, to draw what is there so
        far. Raises CancelledError if the result is not there in the run that follows a stop.
        """
        self._step += 1
        if st.session_state.get(HALTED) and shelf().finished(kind, key) is None:
            raise CancelledError(f"Stopped while {doing}.")
        while True:
            # Work that was begun and has failed is not tried a second time.
            job = self._begun.pop((kind, key), None) or shelf().job(kind, key, work, kept)
            if not job.wait(SILENT_S):
                self._show(job, doing, watch)
            try:
                return job.result()
            except CancelledError:
                # It was stopping, because nobody had asked for it for a while, when this run asked again.
                continue

    def _show(self, job: Job, doing: str, watch: Callable[[], None] | None) -> None:
        with self._place.container():
            bar = st.progress(0.0)
            # A run can wait in several places, and twice for a job that was just stopping: no key comes twice.
            st.button("Stop", on_click=_stop, key=f"stop-{next(_numbers)}")
            ended = False
            while not ended:
                state = job.state
                share = min(1.0, state.done / state.total) if state.total else 0.0
                counted = f": {state.done:,} of {state.total:,}" if state.total > 1 else ""
                bar.progress(share, f"Step {self._step} of {self._steps}, {doing}{counted}")
                for begun in self._begun.values():
                    begun.want()
                if watch is not None:
                    watch()
                ended = job.wait(POLL_S)
        self._place.empty()


def go_on() -> None:
    """Go on with what was stopped; for callbacks."""
    st.session_state.pop(PAUSED, None)


def _stop() -> None:
    """Stop waiting; the job itself stops when no other session waits for it."""
    st.session_state[STOPPED] = True
