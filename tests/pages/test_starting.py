"""What the server does as it starts."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from streamlit.runtime.pages_manager import PagesManager

from idc_core import store
from studio import starting
from studio.jobs import results


def test_connections_send_at_once_also_where_the_socket_names_no_protocol(monkeypatch):
    """Streamlit makes its socket so, and asyncio then leaves the system's delay on."""
    monkeypatch.setattr(starting, "_load", lambda: None)

    async def begin() -> None:
        async with starting.prepared(None):
            pass

    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as other:
        assert not listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        with ThreadPoolExecutor(1) as apart:  # a driven browser leaves its loop in the tests' own thread
            apart.submit(asyncio.run, begin()).result()
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not other.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_other_libraries_wait_for_the_first_page(monkeypatch):
    loaded: list[str] = []

    def load(name: str) -> SimpleNamespace:
        loaded.append(name)
        return SimpleNamespace(prepare_first_visit=lambda: loaded.append("a worker"))

    monkeypatch.setattr(starting.importlib, "import_module", load)
    monkeypatch.setattr(starting.shown, "wait", lambda seconds: loaded.append("a page"))
    monkeypatch.setattr(starting, "_QUIET_S", 0)
    starting._load()
    place = loaded.index("a page")
    assert tuple(loaded[:place]) == (*starting._FIRST, starting._WORK, "a worker")
    assert {*starting._LATER, "studio.relevance.one_test"} <= set(loaded[place:])
    assert not [name for name in loaded if name.endswith("__main__")]  # they are commands


def test_other_libraries_are_loaded_between_pages(monkeypatch):
    monkeypatch.setattr(starting, "_QUIET_S", 0.01)
    pages, loaded = starting._Pages(), threading.Event()

    def load() -> None:
        pages.wait()
        loaded.set()

    with pages, pages:
        thread = threading.Thread(target=load)
        thread.start()
        assert not loaded.wait(0.1)
    thread.join(20)
    assert loaded.is_set()


def test_a_worker_is_started_before_there_is_work_only_where_nothing_is_kept(monkeypatch, tmp_path):
    started: list[str] = []
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    monkeypatch.setattr(results, "shelf", lambda: SimpleNamespace(prepare=lambda: started.append("a worker")))
    results.prepare_first_visit()
    assert started == ["a worker"]
    store.kept("trace", "one", lambda: 1)
    results.prepare_first_visit()
    assert started == ["a worker"]


def test_pages_go_through_the_front_door_from_the_start(monkeypatch):
    monkeypatch.setattr(starting, "_load", lambda: None)
    monkeypatch.setattr(PagesManager, "uses_pages_directory", None)

    async def start():
        async with starting.prepared(None):
            return PagesManager.uses_pages_directory

    assert asyncio.run(start()) is False
