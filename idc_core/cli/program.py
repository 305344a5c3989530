"""The command line as a program: where it runs a person's code, in a process of its own that reports how it ended.

That code can end its process without a word, as `os._exit(0)` does. So a success is what was reported, and silence is a
failure whatever the status of the process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType

from idc_core.cli import COMMANDS, main

_OWN_CODE = ("--setup", "--trust")
"""Options that name a person's code; `benchmark` runs a file of it, and the file of `check` may name some, too."""

_SILENT = 2


def run() -> int:
    """Run the command line of this process and return its exit status."""
    words = sys.argv[1:]
    command = next((word for word in words if word in COMMANDS), "studio")
    names_code = command in ("benchmark", "check") or any(word.partition("=")[0] in _OWN_CODE for word in words)
    if command == "studio" or not names_code:  # a server reaches no verdict
        return main()
    context = multiprocessing.get_context("spawn")  # a fork would take over what other libraries hold
    told, telling = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(telling,))
    process.start()
    telling.close()
    _pass_on_signals(process)
    process.join()  # what it has started may hold the pipe open
    try:
        return int(told.recv_bytes()) if told.poll() else _silent(process.exitcode)
    except EOFError:
        return _silent(process.exitcode)


def _report(telling: Connection) -> None:
    """Run the command line, and tell its exit status."""
    if os.name == "posix":
        os.setpgid(0, 0)  # Ctrl-C reaches the first process alone, which passes it on once
    threading.Thread(target=_follow, daemon=True).start()
    try:
        status = main()
    except SystemExit as end:  # of a help text
        status = int(end.code or 0)
    telling.send_bytes(str(status).encode())


def _follow() -> None:
    """End this process where the first one was killed."""
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(_SILENT)


def _pass_on_signals(process: BaseProcess) -> None:
    """Let signals end the second process, which says what it has to say; on Windows Ctrl-C reaches both."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):  # it has ended just now
            if process.pid is not None and os.name == "posix":
                os.kill(process.pid, number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), pass_on)


def _silent(status: int | None) -> int:
    """Say how a process ended that has reported nothing, and return the status of a failure."""
    how, what = f"ended with status {status}", "Look for what ends the program in the code that it ran."
    if status is not None and status < 0:
        how = f"was ended by the signal {signal.Signals(-status).name}"
        what = "It may have needed more memory than there is." if how.endswith("SIGKILL") else ""
    print(f"The process {how} before the command was done: it reached no result. {what}".strip(), file=sys.stderr)
    return _SILENT
