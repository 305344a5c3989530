"""Networks and data from files that a server opens at its start, as its command line gave them."""

from __future__ import annotations

import os
import threading

from idc_core.errors import IdcError
from idc_core.opening.entering import try_out
from idc_core.opening.files import NETWORKS, OwnFiles

VARIABLE = "IDC_FILES"
"""Environment variable with the files and what they are opened with."""

_LOCK = threading.Lock()
_OPENED: dict[str, tuple[list[str], str]] = {}


def open_once() -> tuple[list[str], str]:
    """Open what the environment names, once in this process; return the networks, and what was wrong in a sentence."""
    text = os.environ.get(VARIABLE, "")
    with _LOCK:
        if text and text not in _OPENED:
            try:
                names = named().enter()
                try_out(names.values())
                _OPENED[text] = [name for file, name in names.items() if file.kind == NETWORKS], ""
            except IdcError as error:
                _OPENED[text] = [], str(error)
        return _OPENED.get(text, ([], ""))


def pending() -> bool:
    """Whether the environment names something that this process has not opened."""
    text = os.environ.get(VARIABLE, "")
    return bool(text) and text not in _OPENED


def named() -> OwnFiles:
    """Return what the environment names."""
    return OwnFiles.from_json(os.environ[VARIABLE], f"The variable {VARIABLE}")
