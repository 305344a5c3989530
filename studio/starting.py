"""What the server does as it starts: libraries are loaded before a page needs them, and what is sent is not held back.

It also looks for garbage seldom, during which all sessions wait.

Of a page's first run, most of the time was spent on loading libraries. What the first page shows comes first, the rest
between pages: two threads share one interpreter, and a page that is drawn meanwhile takes several times as long.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from streamlit.runtime.pages_manager import PagesManager

from idc_core.errors import IdcError

_FIRST = ("studio.shell.frame", "pandas", "plotly.graph_objects")
"""What the Overview needs."""

_WORK = "studio.jobs.results"
"""What starts the process that does the work of pages: it loads torch while the first page is drawn."""

_LATER = ("torch", "scipy.optimize", "scipy.stats", "duckdb")
"""What other pages need that takes long to load, in pieces; most of them the first one."""

_QUIET_S = 0.3
"""Seconds without a page being drawn before another library is loaded."""

_ALONE_S = 3.0
"""Seconds that the first visitor has to come before other libraries are loaded than the first page needs."""

shown = threading.Event()
"""Set once a page was drawn."""

_OFTEN = 50_000
"""New objects after which Python looks for garbage; libraries make hundreds of thousands that stay."""
_modules = [0]


class _Pages:
    """How many pages are drawn now, and when the last one was finished."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now, self._ended = 0, 0.0

    def __enter__(self) -> None:
        _settle_garbage()
        with self._lock:
            self._now += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._now, self._ended = self._now - 1, time.monotonic()

    def wait(self) -> None:
        """Wait until no page has been drawn for a while."""
        while (left := _QUIET_S if self._now else self._ended + _QUIET_S - time.monotonic()) > 0:
            time.sleep(left)


pages = _Pages()
"""Entered for as long as a page is drawn."""


@asynccontextmanager
async def prepared(app: object) -> AsyncIterator[None]:
    """Load the libraries while the server waits for its first visitor."""
    for thing in gc.get_objects():  # Streamlit keeps the socket that it listens on to itself
        if isinstance(thing, socket.socket) and thing.fileno() >= 0 and _listens(thing):
            send_at_once(thing)
    # All pages go through the front door. Streamlit would open the files of a folder named "pages" directly until one
    # has: with all that they load, before anything is drawn.
    PagesManager.uses_pages_directory = False
    threading.Thread(target=_load, name="libraries", daemon=True).start()
    yield


def send_at_once(listening: socket.socket) -> None:
    """Let connections that come in on a socket send small messages at once.

    A page is dozens of them. By default, the system holds each back until the one before is confirmed, which takes a
    browser up to 40 ms; asyncio switches that off, but not for sockets that were made without naming their protocol.
    """
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _listens(one: socket.socket) -> bool:
    internet = one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM
    return internet and bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _load() -> None:
    for name in _FIRST:
        importlib.import_module(name)
    with suppress(IdcError):  # the page tells that the home folder cannot be used
        importlib.import_module(_WORK).prepare_first_visit()
    shown.wait(_ALONE_S)
    import studio

    parts = (module.name for module in pkgutil.walk_packages(studio.__path__, "studio."))
    for name in (*_LATER, *(part for part in parts if not part.endswith("__main__"))):
        pages.wait()
        importlib.import_module(name)


def _settle_garbage() -> None:
    """Have garbage looked for seldom, and never among what libraries made while they loaded; at each run of a page."""
    if len(sys.modules) > _modules[0]:
        _modules[0] = len(sys.modules)
        gc.set_threshold(_OFTEN)
        gc.freeze()
