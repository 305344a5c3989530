"""Fair order: work that waits is taken in turn from the sessions that ask, and long work never takes every place.

A place that is not ready yet, as a process that does not run, is used only where the others do not suffice.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

_Place = TypeVar("_Place")


@dataclass(eq=False)
class _Waiting(Generic[_Place]):
    """Work that waits, and the session that asked for it."""

    session: str
    long: bool
    work: Callable[[_Place], object]
    future: Future[object] = field(default_factory=Future)


class Turns(Generic[_Place]):
    """A few places at which work is done; who waits for one is served in turn.

    Parameters
    ----------
    places : sequence
        What work is called with, one at a time each; those given last are used first.
    most_long : int
        Places that long work takes at most.
    is_ready : callable
        Whether a place can do work at once; by default each can.
    patience : callable
        Seconds that work waits for a place that is ready before it takes another: as long as the other takes to start.
    """

    def __init__(
        self,
        places: Sequence[_Place],
        most_long: int,
        is_ready: Callable[[_Place], bool] = lambda place: True,
        patience: Callable[[], float] = float,
    ) -> None:
        self._free = list(places)
        self._count, self._is_ready, self._patience = len(places), is_ready, patience
        self._long_left, self._most_long = most_long, most_long
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._waiting: dict[str, deque[_Waiting[_Place]]] = {}  # by session, whose turn is next first
        self._held: Counter[str] = Counter()
        self._pool = ThreadPoolExecutor(len(places), thread_name_prefix="engine")

    def submit(self, session: str, long: bool, work: Callable[[_Place], object]) -> Future[object]:
        """Have some work done for a session when it is its turn."""
        waiting = _Waiting(session, long, work)
        with self._lock:
            self._waiting.setdefault(session, deque()).append(waiting)
            self._held[session] += 1
        waiting.future.add_done_callback(lambda _: self._ended(session))
        self._pool.submit(self._serve)
        return waiting.future

    def held(self, session: str) -> int:
        """Return how much work of a session waits or is done."""
        return self._held[session]

    def _ended(self, session: str) -> None:
        with self._lock:
            self._held[session] -= 1
            if not self._held[session]:
                del self._held[session]

    def _serve(self) -> None:
        """Do what is next; nothing where all that waits is long and enough of that is done."""
        with self._lock:
            self._freed.wait_for(self._should_begin, self._patience())
            chosen = self._next()
            if chosen is None:
                return
            place = next(filter(self._is_ready, reversed(self._free)), self._free[-1])
            self._free.remove(place)
            self._long_left -= chosen.long
        try:
            end = partial(chosen.future.set_result, chosen.work(place))
        except BaseException as error:  # whoever asks for the result gets it
            end = partial(chosen.future.set_exception, error)
        with self._lock:
            self._free.append(place)
            self._long_left += chosen.long
            self._freed.notify()
        end()
        if chosen.long:  # other long work may have been passed over
            with suppress(RuntimeError):  # the interpreter ends
                self._pool.submit(self._serve)

    def _should_begin(self) -> bool:
        """Whether a place is ready, or none of those that work is soon free."""
        all_idle, long = len(self._free) == self._count, self._long_left < self._most_long
        return all_idle or long or any(map(self._is_ready, self._free))

    def _next(self) -> _Waiting[_Place] | None:
        """Take the first work that may begin from the session whose turn it is, which then comes last."""
        for session, queue in list(self._waiting.items()):
            for work in list(queue):
                if work.long and not self._long_left and not work.future.cancelled():
                    continue
                queue.remove(work)
                if not queue:
                    del self._waiting[session]
                if work.future.set_running_or_notify_cancel():
                    if queue:
                        self._waiting[session] = self._waiting.pop(session)
                    return work
        return None
