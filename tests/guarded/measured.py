"""What programs that read hostile files share: how much memory they have held, and an end where a call waits."""

import signal
from contextlib import contextmanager
from pathlib import Path


class Hang(BaseException):
    """A call waits."""


def peak():
    """Most bytes of memory that this process has held; `getrusage` counts what its parent held, too."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) << 10


@contextmanager
def no_longer_than(seconds):
    """Raise `Hang` in a block that has not ended after so many seconds."""

    def hang(*_):
        raise Hang

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
