"""Processes that do the work of pages, so that one session's training does not slow the pages of the others.

A worker is started when work first needs it. It gets its work over its standard input, and opens networks and data by
name; what it makes goes into the store, where this process reads it, or over its standard output where it is not kept.
"""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from idc_core import store
from idc_core.base.config import config
from idc_core.base.progress import Progress
from idc_core.errors import DataError, IdcError
from studio.jobs.sending import Named, packed, unpacked
from studio.jobs.tasks import DiffersError, RemovedError, Task, Tell

_log = logging.getLogger("idc_core")

_MOST = 4
"""Workers at most unless the config file says otherwise: each takes a few hundred megabytes."""

_START_S, _MOST_START_S = 2.0, 20.0
"""Seconds that a worker takes to start, as long as none has said how long it took, and at most."""

_START = (
    "import gc, sys; gc.disable(); sys.path.insert(0, sys.argv[1]); from studio.jobs.worker_process import main; main()"
)
"""Garbage is looked for once libraries are loaded: among what they make there is none, and it takes a fifth longer."""

_ROOT = Path(__file__).parents[2]
_here = threading.Event()


class WorkerError(IdcError):
    """A worker ended without a result."""


def work_here() -> None:
    """Have no workers: networks and data of a running program are in no other process."""
    _here.set()


def alone() -> bool:
    """Return whether networks and data of this process are in no other."""
    return _here.is_set()


def number() -> int:
    """Return how many worker processes the server has: `workers` of the config file, by default one per core."""
    if alone():
        return 0
    count = config().workers
    return max(1, min(os.cpu_count() or 1, _MOST)) if count is None else count


class Worker:
    """One worker process; another one takes its place when it has died.

    `named` returns the results that it opens by itself, so that they are not copied, with what it is told of each.
    `start_s` is how many seconds the last process took to start.
    """

    def __init__(self, named: Callable[[], list[tuple[object, Named]]]) -> None:
        self._named = named
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._number = 0
        self.start_s = _START_S

    @property
    def runs(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> subprocess.Popen[bytes]:
        """Return the process, starting it where it does not run."""
        with self._starting:
            if self._process is None or not self.runs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START, str(_ROOT), str(time.time())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            return self._process

    def end(self) -> None:
        """End the process; what it does is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __call__(self, task: Task, report: Progress, tell: Tell, on_problem: Callable[[DataError], None]) -> object:
        """Have a task done there; here, as the log says, where it cannot be sent or what it needs is another there."""
        try:
            return self._sent(task, report, tell, on_problem, copied=False)
        except RemovedError:
            return self._sent(task, report, tell, on_problem, copied=True)

    def _sent(
        self, task: Task, report: Progress, tell: Tell, on_problem: Callable[[DataError], None], *, copied: bool
    ) -> object:
        """Send a task and wait for its result; what is kept is `copied` both ways, or each process reads it."""
        named = self._named()
        places = {id(value): place for place, (value, _) in enumerate(named)}

        def name(value: object) -> tuple[int, Named] | None:
            place = places.get(id(value))
            if place is None:
                return None
            result = named[place][1]
            # What could not be kept is copied.
            readable = result.work or (not copied and store.place(result.kind, result.key).exists())
            return (place, result) if readable else None

        try:
            content = packed(task, name)
        except (TypeError, ValueError, AttributeError, pickle.PicklingError):
            _log.warning("Work of kind %s cannot be sent to a worker and is done here", task.kind, exc_info=True)
            return task.run(report, tell, on_problem)
        process = self.start()
        self._number += 1
        try:
            _write(process, ("work", self._number, content, copied))
            kind, answer = self._until_done(process, report, tell)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise self._died(process) from error
        if kind == "kept":
            value = store.find(answer)
            if value is store.MISSING:
                raise RemovedError("A result was removed to make room before it was read.")
            return value
        if kind == "problem":
            on_problem(answer[1])
            answer = answer[0]
        value = unpacked(answer, lambda place: named[place][0])
        if kind == "failed" and isinstance(value, DiffersError):
            _log.warning("Work of kind %s is done by the server: %s", task.kind, value)
            return task.run(report, tell, on_problem)
        if kind == "failed":
            raise value
        return value

    def _until_done(self, process: subprocess.Popen[bytes], report: Progress, tell: Tell) -> tuple[str, Any]:
        """Pass on what the worker says until it is done."""
        assert process.stdout is not None
        while True:
            kind, *words = pickle.load(process.stdout)  # noqa: S301 (what our own process says)
            if kind == "progress":
                if report(*words) is False:
                    _write(process, ("stop", self._number))
            elif kind == "ready":
                self.start_s = min(words[0], _MOST_START_S)  # the computer's clock may have been set meanwhile
            elif kind == "told":
                tell(*words)
            else:
                return kind, words[0]

    def _died(self, process: subprocess.Popen[bytes]) -> WorkerError:
        process.kill()
        status = process.wait()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return WorkerError(
            f"The process that computed this ended without a result ({how}); memory may have run out. Ask again, with "
            "fewer or smaller inputs if it happens again."
        )


def is_ready(place: object) -> bool:
    """Return whether a place of work needs no start: a worker that runs, or this process."""
    return not isinstance(place, Worker) or place.runs


def start_s(some: Sequence[Worker]) -> float:
    """Return how many seconds a worker takes to start."""
    return max((worker.start_s for worker in some), default=0.0)


def _write(process: subprocess.Popen[bytes], message: tuple[object, ...]) -> None:
    assert process.stdin is not None
    pickle.dump(message, process.stdin)
    process.stdin.flush()
