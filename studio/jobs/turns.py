"""Fair order: work that waits is taken in turn from the sessions that ask, and long work never takes every place."""

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
    """

    def __init__(self, places: Sequence[_Place], most_long: int) -> None:
        self._free = list(places)
        self._long_left = most_long
        self._lock = threading.Lock()
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
            chosen = self._next()
            if chosen is None:
                return
            place = self._free.pop()
            self._long_left -= chosen.long
        try:
            end = partial(chosen.future.set_result, chosen.work(place))
        except BaseException as error:  # whoever asks for the result gets it
            end = partial(chosen.future.set_exception, error)
        with self._lock:
            self._free.append(place)
            self._long_left += chosen.long
        end()
        if chosen.long:  # other long work may have been passed over
            with suppress(RuntimeError):  # the interpreter ends
                self._pool.submit(self._serve)

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
