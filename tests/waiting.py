"""Waiting for progress: a wait goes on as long as something is computed, and ends where nothing moves for long.

How long a step takes depends on what else the machine does, which says nothing about the code.
"""

import time
from collections.abc import Callable

import psutil

PIECE_S = 5.0
"""Seconds between two looks at what was computed meanwhile."""

STILL_S = 60.0
"""Seconds without any progress after which a wait ends."""

OURS, BROWSERS = 0.03, 0.2
"""Parts of one core that processes of Python take at least where they compute, and a browser where it draws.

Servers that wait take a thousandth, a browser that is asked again and again a tenth. Beside seven busy programs on two
cores, a worker that steps back behind the others still gets a twentieth.
"""


class Progress:
    """Tells whether this process and its children still compute, by the processor time that they have taken."""

    def __init__(self) -> None:
        # The first look comes where somebody has waited for long: it goes through all processes of the machine.
        self._taken: dict[tuple[int, bool], float] | None = None
        self._looked = self._moved = time.monotonic()

    def ended(self) -> bool:
        """Look again; return whether nothing was computed for long."""
        taken, now = _processor_times(), time.monotonic()
        if self._taken is None:
            self._taken, self._looked, self._moved = taken, now, now
            return False
        more = {True: 0.0, False: 0.0}
        for one, seconds in taken.items():
            more[one[1]] += max(0.0, seconds - self._taken.get(one, 0.0))
        passed = now - self._looked
        if more[True] > OURS * passed or more[False] > BROWSERS * passed:
            self._moved = now
        self._taken, self._looked = taken, now
        return now - self._moved > STILL_S


def wait_until(there: Callable[[], bool], pause: float = 0.2) -> bool:
    """Wait until something is there; return False where it is not and nothing is computed any more."""
    progress, looked = Progress(), time.monotonic()
    while not there():
        time.sleep(pause)
        if time.monotonic() - looked > PIECE_S:
            looked = time.monotonic()
            if progress.ended():
                return False
    return True


def _processor_times() -> dict[tuple[int, bool], float]:
    """Return the seconds of processor time by process: its number, and whether it is one of Python's."""
    here, found = psutil.Process(), {}
    for one in (here, *here.children(recursive=True)):
        try:
            times, ours = one.cpu_times(), one.name().lower().startswith(("python", "pytest", "ray", "streamlit"))
        except psutil.Error:  # it has just ended
            continue
        found[one.pid, ours] = times.user + times.system
    return found
