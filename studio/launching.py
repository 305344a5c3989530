"""`idc.launch`: the dashboard in a person's own process, on the networks and data that they hold there."""

from __future__ import annotations

import html
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from idc_core.base.files import SHIPPED
from idc_core.errors import SetupError
from idc_core.opening.live import enter_live
from studio import unforeseen
from studio.starting import send_at_once

if TYPE_CHECKING:
    from torch.nn import Module

    from idc_core.lrp.explained import Explain

_ADDRESS = "127.0.0.1"
_STARTED_S, _STOPPED_S, _ASKED_S = 60.0, 15.0, 0.05
"""Seconds to wait for the server's start and end, and between two looks."""

_LOCK = threading.Lock()


@dataclass(frozen=True)
class Dashboard:
    """The dashboard, open on one network. In a notebook it is shown as a frame.

    Attributes
    ----------
    url : str
        Address of the network's pages, for a browser on this computer.
    """

    url: str

    def wait(self) -> None:
        """Wait until the dashboard is stopped; Ctrl-C stops it. For scripts, which would end otherwise."""
        try:
            while (thread := _SERVER.thread) is not None and thread.is_alive():
                thread.join(0.5)
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """Stop the dashboard, for all networks that it shows. Nothing happens where it has been stopped."""
        with _LOCK:
            _SERVER.stop()

    def _repr_html_(self) -> str:
        return f'<iframe src="{html.escape(self.url)}" width="100%" height="900" style="border:0"></iframe>'


def launch(
    model: Module,
    train: object,
    test: object = None,
    *,
    name: str = "",
    layer: str = "",
    class_names: Sequence[str] = (),
    explain: Explain | None = None,
) -> Dashboard:
    """Open the dashboard on a network and data of this process, from a script or a notebook.

    The server runs beside the calling code, on a free port that only this computer can reach. It is started by the
    first call; later ones add their network to it. The network is copied: call again to see it after more training.

    >>> dashboard = idc.launch(model, train=(x_train, y_train), test=(x_test, y_test))
    >>> dashboard.url

    Parameters
    ----------
    model : Module
        Returns scores (n, classes) before any softmax, or one number per input; of other shapes see `explain`.
    train, test : (inputs, targets), torch Dataset, Dataset or str
        What neurons and clusters are learnt from, and the tests: as `read` of a setup file returns them, or the name
        or path of a data set. `test` may be left out where `train` names one.
    name : str
        By default "model", "model-2" and so on; the same network keeps its name.
    layer : str
        Opened first; by default the last hidden layer with weights.
    class_names : sequence of str
        Names by class index.
    explain : str or callable, optional
        Which scores are meant where the network returns more than one row of them per input, as of segmentation:
        "mean-pixels", "last-token" or others of `idc_core.lrp.explained.explaining`, or a function.

    Returns
    -------
    Dashboard
        With `url`, `wait()` and `stop()`.

    Raises
    ------
    ModelError, DataError
        If network and data are not what is expected, or do not fit each other.
    SetupError
        If the server does not start, or Streamlit runs in this process already.
    """
    with _LOCK:
        entry = enter_live(model, train, test, name=name, layer=layer, class_names=class_names, explain=explain)
        return Dashboard(f"{_SERVER.start()}/?{urlencode({'model': entry.name})}")


class _Server:
    """The one server of this process: Streamlit has one app per process."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self._server: Any = None
        self._address = ""

    def start(self) -> str:
        """Return the server's address, starting it where it does not run."""
        if self.thread is not None and self.thread.is_alive():
            return self._address
        import streamlit as st
        import uvicorn
        from streamlit import config as settings
        from streamlit.runtime import Runtime

        from studio.jobs import workers
        from studio.jobs.jobs import shelf

        if Runtime.exists():
            raise SetupError(
                "A Streamlit app runs in this process already, and there can be one only; call idc.launch from a "
                "script or notebook of its own."
            )
        workers.work_here()
        shelf.clear()  # one that was used before may have workers
        listening = socket.create_server((_ADDRESS, 0))
        send_at_once(listening)
        app = st.App(SHIPPED / "app.py", on_script_error=unforeseen.show)
        # Read anew, now with the studio's own: a program that has asked Streamlit for a setting has read others. The
        # address is no setting here, and pages tell by it whether other computers reach them.
        settings.get_config_options(force_reparse=True, options_from_flags={"server.address": _ADDRESS})
        config = uvicorn.Config(
            app, log_config=None, log_level="warning", access_log=False, timeout_graceful_shutdown=1, lifespan="on"
        )
        self._server = uvicorn.Server(config)
        self._address = f"http://{_ADDRESS}:{listening.getsockname()[1]}"
        self.thread = threading.Thread(target=self._run, args=(listening,), name="idc-launch", daemon=True)
        self.thread.start()
        waited = threading.Event()
        for _ in range(round(_STARTED_S / _ASKED_S)):
            if self._server.started or not self.thread.is_alive():
                break
            waited.wait(_ASKED_S)
        if not self._server.started:
            self.stop()
            raise SetupError(f"The dashboard did not start within {_STARTED_S:.0f} s; the log says why.")
        return self._address

    def _run(self, found: socket.socket) -> None:
        with found:
            self._server.run(sockets=[found])

    def stop(self) -> None:
        """Stop the server and the work of its pages."""
        if self.thread is None:
            return
        from streamlit.runtime import Runtime

        from studio.jobs.jobs import shelf

        self._server.should_exit = True
        self.thread.join(_STOPPED_S)
        shelf().abandon()
        self.thread = None
        # Streamlit never lets go of the app that ran, and refuses a second one.
        Runtime._instance = None


_SERVER = _Server()
# At its end the interpreter waits for pools of threads before it calls what `atexit` knows: for this server's work, as
# long as a page asks for it. This is how the pools themselves are told.
threading._register_atexit(_SERVER.stop)  # type: ignore[attr-defined]
