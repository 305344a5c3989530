"""Networks and data from files that a server opens at its start, as its command line gave them."""

from __future__ import annotations

import json
import os
import threading

from idc_core.errors import IdcError, SettingError

VARIABLE = "IDC_FILES"
"""Environment variable with the words of a command line of `studio`, as JSON."""

_LOCK = threading.Lock()
_OPENED: dict[str, tuple[list[str], str]] = {}


def open_once() -> tuple[list[str], str]:
    """Open what the environment names, once in this process; return the networks, and what was wrong in a sentence."""
    text = os.environ.get(VARIABLE, "")
    with _LOCK:
        if text and text not in _OPENED:
            try:
                _OPENED[text] = _open(text), ""
            except IdcError as error:
                _OPENED[text] = [], str(error)
        return _OPENED.get(text, ([], ""))


def pending() -> bool:
    """Whether the environment names something that this process has not opened."""
    text = os.environ.get(VARIABLE, "")
    return bool(text) and text not in _OPENED


def try_all(names: list[str]) -> list[str]:
    """Build what was opened under these names, so that mistakes come now; return the networks among them."""
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    for name in names:
        if name in MODELS:
            _ = MODELS[name].layers, MODELS[name].default_layer
        else:
            _ = DATASETS[name].input_shape, DATASETS[name].task
    return [name for name in names if name in MODELS]


def _open(text: str) -> list[str]:
    from idc_core.cli import make_parser
    from idc_core.cli.own_paths import open_paths

    try:
        words = [str(word) for word in json.loads(text)]
    except (ValueError, TypeError) as error:
        raise SettingError(f"The variable {VARIABLE} must hold a list of words as JSON ({error}).") from error
    arguments = make_parser().parse_args(["studio", *words])
    open_paths(arguments)
    return try_all([name for name in arguments.files if isinstance(name, str)])
