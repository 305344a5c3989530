from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from tests.datasets.dataset_files import write_all


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Empty folders for IDC_DATA and IDC_HOME."""
    data, home = tmp_path / "data", tmp_path / "home"
    data.mkdir()
    home.mkdir()
    monkeypatch.setenv("IDC_DATA", str(data))
    monkeypatch.setenv("IDC_HOME", str(home))
    return data, home


@pytest.fixture(scope="session")
def small_files(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture
def small(small_files, tmp_path, monkeypatch):
    """Small whole files of every dataset in IDC_DATA, and an empty cache."""
    monkeypatch.setenv("IDC_DATA", str(small_files))
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    return small_files


@pytest.fixture
def server():
    """A server on this computer: `.files` by path, `.cut` bytes withheld, `.silent` says nothing, `.head` is sent."""
    state = SimpleNamespace(files={}, asked=[], cut=0, silent=False, head={}, released=Event())

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            state.asked.append(self.path)
            if state.silent:
                state.released.wait(30)
                return
            content = state.files.get(self.path.lstrip("/"))
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            for name, value in state.head.items():
                self.send_header(name, value)
            self.end_headers()
            if content is not None:
                self.wfile.write(content[: len(content) - state.cut])

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as http:
        state.url = f"http://127.0.0.1:{http.server_port}/"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield state
        state.released.set()
        http.shutdown()
        thread.join()
