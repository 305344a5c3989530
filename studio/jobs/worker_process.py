"""The process of a worker: does one task after the other, as `studio.jobs.workers` sends them."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import pickle
import queue
import sys
import threading
import time
import traceback
from collections import OrderedDict, defaultdict
from collections.abc import Hashable
from contextlib import suppress
from typing import BinaryIO

from idc_core import store
from idc_core.errors import DataError, IdcError
from studio.jobs import cluster
from studio.jobs.sending import Named, packed, unpacked
from studio.jobs.tasks import DiffersError, RemovedError, Task

_log = logging.getLogger("idc_core")

_Asked = tuple[int, bytes, bool]
"""Number and content of a task, and whether its whole result is sent."""

_HELD = 4
"""Opened results of each kind that stay in memory."""

_PAUSE_S = 0.05
"""Seconds between two messages on how far the work is."""

_TOLD_S = 0.25
"""The same of what there is of a result so far."""

_LATER = ("scipy.special", "scipy.ndimage", "scipy.spatial", "scipy.optimize", "scipy.stats")
"""What work of some pages needs that takes long to load, in pieces."""

_QUIET_S = 0.5
"""Seconds without work before another library is loaded."""

_GENTLY = 5
"""How far work steps back behind the pages where the cores do not suffice, as `nice` counts."""


def main() -> None:
    """Do what comes over standard input until it ends, as it does with the server; in between, load libraries."""
    commands, answers = _pipes()
    with suppress(AttributeError, OSError):  # not on Windows
        os.nice(_GENTLY)
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # it misses its server, which is not needed here
    work: queue.SimpleQueue[_Asked] = queue.SimpleQueue()
    process = _Process(answers)
    threading.Thread(target=_listen, args=(commands, work, process), daemon=True).start()
    from studio.jobs.results import prepare_process

    prepare_process()
    gc.enable()
    process.say("ready", time.time() - float(sys.argv[2]))
    for name in _LATER:
        while (task := _soon(work)) is not None:
            process.do(*task)
        importlib.import_module(name)
    while True:
        process.do(*work.get())


def _soon(work: queue.SimpleQueue[_Asked]) -> _Asked | None:
    """Return work that comes before another library is to be loaded."""
    with suppress(queue.Empty):
        return work.get(timeout=_QUIET_S)
    return None


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return where commands come from and answers go; nothing else may write there."""
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return commands, answers


def _listen(commands: BinaryIO, work: queue.SimpleQueue[_Asked], process: _Process) -> None:
    """Take commands as they come: work in its order, a stop at once."""
    while True:
        try:
            kind, number, *content = pickle.load(commands)  # noqa: S301 (what our own server says)
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)  # the server has gone, and whoever waited with it
        if kind == "stop":
            process.stopped = number
        else:
            work.put((number, *content))


class _Process:
    """What is open in this process, and the task that it does; `stopped` is the number of one that shall end."""

    def __init__(self, answers: BinaryIO) -> None:
        self.stopped = 0
        self._number = 0
        self._answers, self._writing = answers, threading.Lock()
        self._said = 0.0
        self._told: tuple[float, tuple[Hashable, object] | None] = 0.0, None
        self._open: defaultdict[str, OrderedDict[Hashable, object]] = defaultdict(OrderedDict)

    def do(self, number: int, content: bytes, whole: bool) -> None:
        """Do a task and answer, with the `whole` result even where it is kept."""
        self._number = number
        problems: list[DataError] = []
        opened: dict[int, tuple[int, object]] = {}
        try:
            cluster.follow()
            task: Task = unpacked(content, lambda name: self._opened(name, opened))
            value = task.run(self._report, self._tell, problems.append)
            answer = self._answer(task, value, problems, opened, whole)
        except BaseException as error:  # the one who asked gets it
            answer = ("failed", _failure(error))
        if (left := self._told[1]) is not None:
            self.say("told", *left)
        self._told = 0.0, None
        self.say(*answer)

    def _answer(
        self, task: Task, value: object, problems: list[DataError], opened: dict[int, tuple[int, object]], whole: bool
    ) -> tuple[object, ...]:
        """Say where the result is kept, or give it."""
        if not whole and task.is_kept and not problems:
            path = store.place(task.kind, task.key)
            if path.exists():
                return "kept", path
        given = packed(value, lambda part: opened.get(id(part), (None,))[0])
        return ("problem", (given, problems[0])) if problems else ("done", given)

    def _opened(self, name: tuple[int, Named], opened: dict[int, tuple[int, object]]) -> object:
        """Open what stands for a result, or find it open."""
        number, named = name
        held = self._open[named.kind]
        if named.key not in held:
            held[named.key] = _read(named)
        held.move_to_end(named.key)
        while len(held) > _HELD:
            held.popitem(last=False)
        value = held[named.key]
        opened[id(value)] = number, value
        return value

    def _report(self, done: int, total: int, label: str) -> bool:
        if time.monotonic() - self._said >= _PAUSE_S:
            self.say("progress", done, total, label)
            self._said = time.monotonic()
        return self.stopped != self._number

    def _tell(self, key: Hashable, value: object) -> None:
        last, _ = self._told
        if time.monotonic() - last < _TOLD_S:
            self._told = last, (key, value)
        else:
            self._told = time.monotonic(), None
            self.say("told", key, value)

    def say(self, *message: object) -> None:
        """Tell the server."""
        with self._writing:
            pickle.dump(message, self._answers)
            self._answers.flush()


def _read(one: Named) -> object:
    if one.work is not None:
        try:
            value = one.work(lambda done, total, label: None)
        except IdcError as error:
            raise DiffersError("A worker cannot open what the server has.") from error
        if getattr(value, "fingerprint", "") != one.fingerprint:
            raise DiffersError("A worker reads other data than the server did.")
        return value
    value = store.find(store.place(one.kind, one.key))
    if value is store.MISSING:
        raise RemovedError("A result that this work needs was removed to make room.")
    return value


def _failure(error: BaseException) -> bytes:
    """Write what went wrong; a mistake of ours with the place where it happened."""
    if not isinstance(error, IdcError):
        error.add_note("".join(traceback.format_exception(error)))
        _log.error("Work failed in a worker", exc_info=error)
    try:
        return packed(error)
    except Exception:  # some libraries' errors hold what cannot be sent
        return packed(RuntimeError(f"{type(error).__name__}: {error}"))
