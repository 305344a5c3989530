"""How long work tells its caller how far it is, and how the caller stops it."""

from collections.abc import Callable

from idc_core.errors import CancelledError

Progress = Callable[[int, int, str], bool | None]
"""Called with (done, total, label); returning False stops the work, anything else continues."""


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
