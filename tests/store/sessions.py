"""Sessions against a server over Streamlit's own protocol, without a browser."""

import asyncio
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import websockets
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

ROOT = Path(__file__).parents[2]
LONGEST_S = 120


@contextmanager
def server(port: int, log: Path, *options: str) -> Iterator[subprocess.Popen]:
    """Start a server of this project, with what it says in a file, and end it."""
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--server.fileWatcherType=none", *options], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(20)


class Session:
    """One visitor; `errors` are the exceptions and messages of failure that the pages showed."""

    def __init__(self, port: int, origin: str = "") -> None:
        self.errors: list[str] = []
        self._opening = websockets.connect(
            f"ws://127.0.0.1:{port}/_stcore/stream",
            max_size=None,
            origin=origin or f"http://127.0.0.1:{port}",
            subprotocols=["streamlit"],
            ping_interval=None,  # pings draw from Python's generator; `visit` ends where nothing comes
        )

    async def __aenter__(self) -> "Session":
        self._connection = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._opening.__aexit__(*raised)

    async def visit(self, page: str, query: str) -> list[str]:
        """Open a page and wait until its script has ended; return its texts."""
        ask = BackMsg()
        ask.rerun_script.page_name, ask.rerun_script.query_string = page, query
        await self._connection.send(ask.SerializeToString())
        texts = []
        while True:
            message = ForwardMsg()
            message.ParseFromString(await asyncio.wait_for(self._connection.recv(), LONGEST_S))
            kind = message.WhichOneof("type")
            if kind == "script_finished":
                return texts
            if kind != "delta" or message.delta.WhichOneof("type") != "new_element":
                continue
            element = message.delta.new_element
            if element.WhichOneof("type") == "exception":
                self.errors.append(f"{page}?{query}: {element.exception.type}: {element.exception.message}")
            elif element.WhichOneof("type") == "alert" and element.alert.format == Alert.ERROR:
                self.errors.append(f"{page}?{query}: {element.alert.body}")
            elif element.WhichOneof("type") == "markdown":
                texts.append(element.markdown.body)


def free_ports(number: int) -> list[int]:
    """Return ports of this computer that nobody listens on."""
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in free]
    for one in free:
        one.close()
    return ports
