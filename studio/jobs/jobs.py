"""Work that outlives the script run that asked for it, and results that later runs find again, also after a restart.

A page asks for a result and waits with a progress bar. The work runs in a thread of its own, so that moving
a widget or changing the page loses nothing: the next run of the script finds the same job. A job that no page
has asked for during `_GRACE_S` seconds stops by itself.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from idc_core import store
from idc_core.base.progress import Pace, Progress, said
from idc_core.base.registry import own_code
from idc_core.errors import CancelledError, DataError
from studio.jobs import workers
from studio.jobs.sending import Named
from studio.jobs.tasks import Task, Tell
from studio.jobs.turns import Turns
from studio.jobs.workers import Worker
from studio.state import allowed
from studio.state.setup import SAVED
from studio.text import literal

_GRACE_S = 5.0
"""Seconds after which a job that nobody waits for is stopped."""

SILENT_S = 0.4
"""Seconds of work that show no progress bar: a bar that flashes by tells nothing."""

_POLL_S = 0.15

_numbers = itertools.count()

STOPPED = "work-stopped"
"""Set in a session when its person pressed Stop."""

HALTED = "work-halted"
"""Set during the run that follows: it shows what is there, and begins nothing that would have to be waited for."""

PAUSED = "work-paused"
"""What a page does not go on with until it is asked to: it was stopped, and what was finished is looked at."""

_TOLD = 12
"""Results so far, of work that goes on or was stopped, that are held."""

_PLAIN = (type(None), bool, int, float, str, tuple)
"""Results that are copied to a worker: they are small."""

_Result = TypeVar("_Result")

_Place = Callable[[Task, Progress, Tell, Callable[[DataError], None]], object]
"""What does a task: a worker, or this process."""


@dataclass(frozen=True)
class JobKind:
    """What holds of all jobs of a kind, said where they are asked for; the `kept` results used last are held in memory.

    Work `is_long` if it can take minutes: it never takes all engines. It `is_light` if it runs no network and takes one
    core at most: where there are no other processes, it goes on beside what does. Results live in a file on ``disk``,
    in the ``server`` alone, or ``here``, where the work changes or fills this process so that no other can do it;
    ``everywhere`` says that each process does it for itself, as it reads files and the networks in them.
    """

    name: str
    kept: int = 24
    is_long: bool = False
    is_light: bool = False
    lives: Literal["disk", "server", "here", "everywhere"] = "disk"


class _Coded(NamedTuple):
    """A key that names entries of a person's own, with the code that these have now."""

    key: Hashable
    code: str


def _held_by(key: Hashable) -> Hashable:
    """Return what a job is held by in memory: as on disk, a name with other code is another result."""
    code = own_code(repr(key))
    return _Coded(key, code) if code else key


@dataclass(frozen=True)
class _State:
    """How far a job is."""

    done: int
    total: int
    label: str

    @property
    def part(self) -> str:
        """The part of the work: the label without the brackets at its end, in which numbers change on the way."""
        return self.label.partition(" (")[0]


class Job(Generic[_Result]):
    """One piece of work that was begun; it stops by itself when nobody waits for it.

    `begin` is called with a progress callback. Another process does the same `work` where it can.
    """

    def __init__(
        self, begin: Callable[[Progress], Future[_Result]], work: Callable[[Progress], _Result] | None = None
    ) -> None:
        self.work = work
        self.state = _State(0, 0, "")
        self._pace = Pace()
        self._wanted = time.monotonic()
        self._future = begin(self._report)
        self._ended = threading.Event()
        self._future.add_done_callback(lambda _: self._ended.set())

    def _report(self, done: int, total: int, label: str) -> bool:
        self.state = _State(done, total, label)
        self._pace.note(done, total, label)
        return time.monotonic() - self._wanted < _GRACE_S

    @property
    def left_s(self) -> float | None:
        """Seconds that the present part of the work will still take at its pace so far; None if that is too early."""
        return self._pace.left_s

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

    def abandon(self) -> bool:
        """Let the work stop at its next report; return whether it had not begun, and never will."""
        self._wanted = -math.inf
        return self._future.cancel()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; return whether the work has ended."""
        self.want()
        return self._ended.wait(seconds)

    def result(self) -> _Result:
        """Return what the work returned, or raise what it raised."""
        return self._future.result()


class Shelf:
    """Jobs by kind and key; of each kind the ones used last are held, and what they gave is kept on disk.

    `problem` is a sentence where a result could not be kept, else empty.
    """

    def __init__(self, processes: int = 0) -> None:
        self.problem = ""
        self._lock = threading.Lock()
        self._jobs: defaultdict[str, OrderedDict[Hashable, Job[Any]]] = defaultdict(OrderedDict)
        self._kinds: dict[str, JobKind] = {}
        self._told: OrderedDict[Hashable, object] = OrderedDict()
        self._workers = [Worker(self._named) for _ in range(processes)]
        # Without processes one at a time: torch already uses the cores, and hooks on one model must not meet.
        places: list[_Place] = [*self._workers] or [Task.run]
        self._engine = Turns(places, max(1, processes - 1), workers.is_ready, lambda: workers.start_s(self._workers))
        self._beside: dict[str, ThreadPoolExecutor] = {}
        # What is kept waits for no work of others.
        self._reading = ThreadPoolExecutor(2, thread_name_prefix="reading")
        if processes:
            # Before the interpreter waits for its threads, which wait for the workers.
            threading._register_atexit(self.end)  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[Callable[[], Shelf], tuple[()]]:
        """Send no shelf to another process: it has its own."""
        return _here, ()

    def prepare(self, count: int = 1) -> bool:
        """Start workers before there is work, those that get it first; return whether there are any."""
        for worker in self._workers[-count:]:
            worker.start()
        return bool(self._workers)

    def end(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.end()

    def told(self, key: Hashable) -> Any:
        """Return what some work told last of its result so far, by the key it told; None where nothing was told."""
        return self._told.get(key)

    def tell(self, key: Hashable, value: object) -> None:
        """Hold what there is of a result so far."""
        with self._lock:
            self._told[key] = value
            self._told.move_to_end(key)
            while len(self._told) > _TOLD:
                self._told.popitem(last=False)

    def finished(self, kind: JobKind, key: Hashable) -> Job[Any] | None:
        """Return the job of that kind and key if it has a result, in memory or on disk; start no work."""
        held = _held_by(key)
        with self._lock:
            job = self._jobs[kind.name].get(held)
        if job is not None or kind.lives != "disk":
            return job if job is not None and job.done else None
        kept = store.find(store.place(kind.name, key))
        if kept is store.MISSING:
            return None
        with self._lock:
            self._kinds[kind.name] = kind
            jobs = self._jobs[kind.name]
            job = jobs.setdefault(held, Job(lambda report: self._reading.submit(lambda: kept)))
            _forget_oldest(jobs, held, kind.kept)
        job.wait(SILENT_S)
        return job

    def job(
        self,
        kind: JobKind,
        key: Hashable,
        work: Callable[[Progress], _Result],
        settings: dict[str, object] | None = None,
        since: float | None = None,
    ) -> Job[_Result]:
        """Return the job of that kind and key, starting it where there is none that ran or runs.

        With `settings` its result is a run, for which somebody has waited `since` then.
        """
        held = _held_by(key)
        with self._lock:
            self._kinds[kind.name] = kind
            jobs = self._jobs[kind.name]
            if held not in jobs or jobs[held].dead:
                jobs[held] = self._begun(kind, Task(kind.name, key, work, kind.lives == "disk", settings, since))
            _forget_oldest(jobs, held, kind.kept)
            return jobs[held]

    def _begun(self, kind: JobKind, task: Task) -> Job[object]:
        """Begin to work, or to read what is kept."""
        session = _session()

        def make(report: Progress) -> Future[object]:
            if kind.lives in ("here", "everywhere") if self._workers else kind.is_light:
                beside = self._beside.setdefault(kind.name, ThreadPoolExecutor(1, thread_name_prefix=kind.name))
                return beside.submit(task.run, report, self.tell, self._note)
            pieces = self._engine.held(session) + 1
            what = f"This would be piece of work {pieces} of this session that waits or runs"
            allowed.check("jobs", pieces, what, "Wait until others are done, or stop them.")
            return self._engine.submit(session, kind.is_long, lambda place: place(task, report, self.tell, self._note))

        if kind.lives != "disk":
            # What other work does is not held: it would hold the setup that it was asked for on.
            return Job(make, task.work if kind.lives == "everywhere" else None)
        path = store.place(kind.name, task.key)

        def find(report: Progress) -> object:
            kept = store.find(path)
            return make(report).result() if kept is store.MISSING else kept

        return Job(lambda report: self._reading.submit(find, report)) if path.exists() else Job(make)

    def may_begin(self) -> bool:
        """Whether this session may have work begun before it waits for it, and still have some that it waits for."""
        most = allowed.most("jobs")
        return most is None or self._engine.held(_session()) + 1 < most

    def _note(self, problem: DataError) -> None:
        self.problem = str(problem)

    def _named(self) -> list[tuple[object, Named]]:
        """Return the results that a worker can open by itself, with what it is told of each; saved suites it cannot."""
        with self._lock:
            held = [
                (self._kinds[name], held.key if isinstance(held, _Coded) else held, job)
                for name, jobs in self._jobs.items()
                for held, job in jobs.items()
                if job.done
            ]
        readable = []
        for kind, key, job in held:
            value = job.result()
            if kind.lives == "everywhere" and not (isinstance(key, tuple) and str(key[0]).startswith(SAVED)):
                readable.append((value, Named(kind.name, key, job.work, getattr(value, "fingerprint", ""))))
            elif kind.lives == "disk" and not isinstance(value, _PLAIN):
                readable.append((value, Named(kind.name, key)))
        return readable

    def abandon(self) -> None:
        """Let all work stop that is not done, as when nobody waits for it any more."""
        with self._lock:
            for jobs in self._jobs.values():
                for key, job in list(jobs.items()):
                    if job.abandon():
                        del jobs[key]


def _forget_oldest(jobs: OrderedDict[Hashable, Job[Any]], key: Hashable, kept: int) -> None:
    """Keep as many jobs of a kind, those asked for last; the one of this key was now."""
    jobs.move_to_end(key)
    while len(jobs) > kept:
        jobs.popitem(last=False)


@st.cache_resource(show_spinner=False)
def shelf() -> Shelf:
    """Return the one shelf that all sessions of this server share, once what killed runs left is gone."""
    store.clean()
    return Shelf(workers.number())


def _here() -> Shelf:
    return shelf()


def _session() -> str:
    """Return which session asks; empty outside of any."""
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else context.session_id


class Waiting:
    """A place on the page that shows the progress of several steps, one after the other."""

    def __init__(self, steps: int) -> None:
        self._place = st.empty()
        self._steps = steps
        self._step = 0
        self._since = time.time()
        self._begun: dict[tuple[JobKind, Hashable], Job[Any]] = {}

    def begin(self, kind: JobKind, key: Hashable, work: Callable[[Progress], object]) -> None:
        """Begin what `get` will ask for later, so that it goes on beside other work, if the session may have more."""
        if not st.session_state.get(HALTED) and shelf().may_begin():
            self._begun[kind, key] = shelf().job(kind, key, work)

    def get(
        self,
        kind: JobKind,
        key: Hashable,
        doing: str,
        work: Callable[[Progress], _Result],
        watch: Callable[[], None] | None = None,
        settings: dict[str, object] | None = None,
    ) -> _Result:
        """Return a result, from the shelf or by working; show progress while it takes long.

        `key` is everything that the result depends on; `doing` says for a person what is being done. `work` is called
        with a progress callback, in another thread: it must not use Streamlit. `watch` is called now and then while it
        takes long, to draw what is there so far. With `settings`, by name, the result is a run. Raises CancelledError
        if the result is not there in the run that follows a stop.
        """
        self._step += 1
        if st.session_state.get(HALTED) and shelf().finished(kind, key) is None:
            raise CancelledError(f"Stopped while {doing}.")
        while True:
            # Work that was begun and has failed is not tried a second time.
            begun: Job[_Result] | None = self._begun.pop((kind, key), None)
            job = begun or shelf().job(kind, key, work, settings, self._since)
            if not job.wait(SILENT_S):
                self._show(job, doing, watch)
            try:
                return job.result()
            except CancelledError:
                # It was stopping, because nobody had asked for it for a while, when this run asked again.
                continue

    def _show(self, job: Job[_Result], doing: str, watch: Callable[[], None] | None) -> None:
        with self._place.container():
            bar = st.progress(0.0)
            # A run can wait in several places, and twice for a job that was just stopping: no key comes twice.
            st.button("Stop", on_click=_stop, key=f"stop-{next(_numbers)}")
            ended = False
            while not ended:
                state = job.state
                share = min(1.0, state.done / state.total) if state.total else 0.0
                far, each = said(state.done, state.total, job.left_s), state.label.removeprefix(state.part)
                bar.progress(share, literal(f"Step {self._step} of {self._steps}, {doing}{far}{each}"))
                for begun in self._begun.values():
                    begun.want()
                if watch is not None:
                    watch()
                ended = job.wait(_POLL_S)
        self._place.empty()


def go_on() -> None:
    """Go on with what was stopped; for callbacks."""
    st.session_state.pop(PAUSED, None)


def _stop() -> None:
    """Stop waiting; the job itself stops when no other session waits for it."""
    st.session_state[STOPPED] = True
