"""How long work tells its caller how far it is, and how the caller stops it."""

import time
from collections.abc import Callable

from idc_core.errors import CancelledError

Progress = Callable[[int, int, str], bool | None]
"""Called with (done, total, label); returning False stops the work, anything else continues."""


_TELLING_S = 3.0
"""Seconds of work after which its pace tells how long the rest takes."""


class Pace:
    """How fast a part of some work goes on: told of each report, it says how long the rest of that part takes."""

    def __init__(self) -> None:
        self._begun, self._first = time.monotonic(), 0
        self._done, self._part = 0, (0, "")

    def note(self, done: int, total: int, label: str) -> None:
        """Take in a report; another total, or label before its brackets, begins another part."""
        part = total, label.partition(" (")[0]
        if part != self._part or done < self._done:
            self._begun, self._first = time.monotonic(), done
        self._done, self._part = done, part

    @property
    def left_s(self) -> float | None:
        """Seconds that the present part still takes at its pace so far; None where it is too early to tell."""
        spent, steps = time.monotonic() - self._begun, self._done - self._first
        return spent / steps * (self._part[0] - self._done) if spent >= _TELLING_S and steps > 0 else None


def duration(seconds: float) -> str:
    """Write how long something takes, as roughly as it is known."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 100:
        return f"about {10 * round(seconds / 10)} s"
    return f"about {round(seconds / 60)} min" if seconds < 100 * 60 else f"about {round(seconds / 3600)} h"


def said(done: int, total: int, left_s: float | None) -> str:
    """Write behind the name of some work how far it is and how long it still takes, as far as that is known."""
    counted = f": {done:,} of {total:,}" if total > 1 else ""
    return counted if left_s is None else f"{counted}, {duration(left_s)} left"


def report(on_progress: Progress | None, done: int, total: int, label: str) -> None:
    """Tell the caller how far the work is.

    `on_progress`: the caller's callback; None is silent.
    """
    if on_progress is not None and on_progress(done, total, label) is False:
        raise CancelledError(f"Stopped on request during {label!r}, after {done} of {total} steps.")


def part_of(on_progress: Progress | None, before: int, everything: int) -> Progress | None:
    """Return the callback of a part of some work: it counts the steps of all of it, of which `before` are done."""
    if on_progress is None:
        return None
    return lambda done, total, label: on_progress(before + done, everything, label)
