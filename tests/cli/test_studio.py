"""The command that opens the dashboard: whoever ends it ends the server."""

import os
import signal

from idc_core.cli import main
from idc_core.cli import studio as command


class Server:
    """A server that is there until it is told to end; while it is waited for, the command is terminated."""

    ended = False

    def wait(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return -signal.SIGTERM if self.ended else 0

    def terminate(self):
        self.ended = True


def test_who_terminates_the_command_ends_the_server(monkeypatch):
    monkeypatch.setattr(command.subprocess, "Popen", lambda *_, **__: Server())
    before = signal.getsignal(signal.SIGTERM)
    assert main(["studio", "--port", "8777"]) == -signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
