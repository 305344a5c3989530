"""`studio`: open the dashboard, with the networks and data of setup files and of other files."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlencode

from idc_core.base.files import SHIPPED
from idc_core.base.parameters import Parameter
from idc_core.cli.arguments import Distinct, FileToOpen, Number
from idc_core.cli.console import Subparsers
from idc_core.errors import SettingError

_ADDRESS = "127.0.0.1"
_PORT = Parameter("port", "Port", "Port of this computer that the dashboard is opened on.", 8501, 1, 65535)


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `studio`."""
    parser = subparsers.add_parser(
        "studio",
        help="open the dashboard, with your own networks and data",
        description="Opens the dashboard in the browser; Ctrl-C stops it. Setup files are read again when they change.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        type=FileToOpen(),
        nargs="*",
        action=Distinct,
        default=[],
        metavar="FILE",
        help="setup files, as --setup FILE, and networks and data from files and folders",
    )
    parser.add_argument(
        "--port", type=Number(_PORT), default=_PORT.default, metavar="N", help="port on this computer (%(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Start the server and return its exit status when it ends."""
    _check_port(arguments.port)
    address, environment = f"http://{_ADDRESS}:{arguments.port}", dict(os.environ)
    own = [file for file in arguments.files if isinstance(file, str)]  # names of what was given by a path
    files = [*arguments.setup, *(file for file in arguments.files if not isinstance(file, str))]
    models: list[str] = []
    if files:
        from idc_core.opening import setup_files

        for file in files[len(arguments.setup) :]:
            setup_files.open_setup(file)
        setups = setup_files.opened()
        environment[setup_files.VARIABLE] = os.pathsep.join(str(setup.path) for setup in setups)
        models += [name for setup in setups for name in setup.models]
    if arguments.own_files is not None:
        from idc_core.models import MODELS
        from idc_core.opening.entering import try_out
        from idc_core.opening.server_files import VARIABLE

        environment[VARIABLE] = arguments.own_files.to_json()
        try_out(own)
        models = [*(name for name in own if name in MODELS), *models]
    if models:
        address += f"/?{urlencode({'model': models[0]})}"
    print(f"Opening the dashboard on {address} (Ctrl-C stops it).", flush=True)
    options = (
        f"--server.address={_ADDRESS}",
        f"--server.port={arguments.port}",
        "--server.showEmailPrompt=false",
        "--browser.gatherUsageStats=false",
        "--logger.hideWelcomeMessage=true",
    )
    command = [sys.executable, "-m", "streamlit", "run", "app.py", *options]
    server = subprocess.Popen(command, cwd=SHIPPED, env=environment)
    before = signal.signal(signal.SIGTERM, lambda *_: server.terminate())  # who ends this ends the server
    try:
        return server.wait()
    except KeyboardInterrupt:
        server.wait()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_port(port: int) -> None:
    """Refuse a port that is taken before anything is read."""
    try:
        socket.create_server((_ADDRESS, port)).close()
    except (OSError, OverflowError) as error:
        raise SettingError(
            f"Port {port} cannot be opened ({error}): stop what runs there, or choose another one with --port."
        ) from error
