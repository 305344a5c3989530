"""What a test must leave as it found it: threads, environment, registries, settings of torch, global random numbers.

What one test leaves behind decides whether another one passes, and only in some orders.
"""

import ctypes
import os
import random
import re
import sys
import threading
from concurrent.futures import thread as pools
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

OWN = ("idc_core", "studio")
PLAN = Path(__file__).parents[1] / "docs" / "ARCHITECTURE.md"
REGISTRIES = tuple(
    (name, path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    for name, path in re.findall(r"^\| .* \| `([A-Z_]+)` in `([\w/]+\.py)`", PLAN.read_text(encoding="utf-8"), re.M)
)
"""Names and modules of all registries, from the plan's table."""

CLEANED = ("DATASETS", "MODELS")
"""Registries out of which what a test has entered is taken by itself: `nothing_left_open` in `conftest.py`."""

_TRANSFORMERS = ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM", "TRANSFORMERS_OFFLINE")
OTHERS = {
    "PYTEST_CURRENT_TEST",
    "KMP_INIT_AT_FORK",
    "MAPBOX_API_KEY",
    "MPLBACKEND",
    "RAY_CLIENT_MODE",
    "TORCHINDUCTOR_CACHE_DIR",
    *_TRANSFORMERS,
}
"""Variables that pytest sets at every step, other libraries when they are imported, and what transformers reads."""

ENDING_S = 5.0
"""Seconds that a thread has to end that a test has told to."""

SEED = 0
_NUMPY = np.random.get_bit_generator().ctypes.state_address
_NUMPY_BYTES = 624 * 4 + 4
"""Of the state of NumPy's global generator, which takes long to be asked for: words and a position."""

random.seed(SEED)
np.random.seed(SEED)
_SEEDED = random.getstate(), ctypes.string_at(_NUMPY, _NUMPY_BYTES)


class ProcessState:
    """What this process is like; every test begins with the same random numbers."""

    def __init__(self) -> None:
        _seed()
        self.loaded = len(sys.modules)
        self.modules = _own_modules()
        self.registries = _registries()
        self.environment = dict(os.environ._data)
        self.threads = set(threading.enumerate())
        self.torch = _torch()

    def changed(self) -> list[str]:
        """Return a sentence for each thing that is another now, and put back what is easily put back."""
        found = []
        if self.loaded == len(sys.modules):  # else a library may have drawn as it was imported
            if random.getstate() != _SEEDED[0]:
                found.append("random's global generator was used or seeded")
            if ctypes.string_at(_NUMPY, _NUMPY_BYTES) != _SEEDED[1]:
                found.append("NumPy's global generator was used or seeded")
        _seed()
        now = dict(os.environ._data)
        if names := {
            name for name in now.keys() | self.environment.keys() if now.get(name) != self.environment.get(name)
        }:
            names = {os.fsdecode(name) for name in names} - OTHERS
            found += [f"the environment's {name} is {os.environ.get(name)!r}" for name in sorted(names)]
        if self.torch is not None and (torch_now := _torch()) != self.torch:
            found.append(f"torch has {torch_now}, before {self.torch}")
        if self.modules == _own_modules():  # else a registry may just have been filled
            for name, entries in _registries().items():
                if (before := self.registries.get(name, entries)) != entries:
                    differing = {
                        one for one in before.keys() | entries.keys() if before.get(one) is not entries.get(one)
                    }
                    found.append(f"the registry {name[0]} has other entries: {sorted(map(str, differing))}")
        for one in set(threading.enumerate()) - self.threads:
            if not one.daemon and getattr(one, "_target", None) is not pools._worker:
                one.join(ENDING_S)
                if one.is_alive():
                    found.append(f"{one} still runs")
        return found


def _seed() -> None:
    """Give each of the global generators the state that every test begins with."""
    random.setstate(_SEEDED[0])
    ctypes.memmove(_NUMPY, _SEEDED[1], _NUMPY_BYTES)
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "default_generator"):
        torch.default_generator.manual_seed(SEED)


def _own_modules() -> int:
    """Return how many of our modules are loaded; they are counted where any module has been."""
    return _counted(len(sys.modules))


@lru_cache(maxsize=1)
def _counted(modules: int) -> int:
    return sum(name.startswith(OWN) for name in list(sys.modules))


def _registries() -> dict[tuple[str, str], dict[Any, Any]]:
    """Return the entries of every registry that is loaded."""
    loaded = ((key, vars(sys.modules[key[1]]).get(key[0])) for key in REGISTRIES if key[1] in sys.modules)
    return {key: dict(one) for key, one in loaded if isinstance(one, dict) and key[0] not in CLEANED}


def _torch() -> tuple[Any, ...] | None:
    """Return torch's settings of the whole process and of this thread; None where torch is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_num_threads"):
        return None
    return (
        f"{torch.get_num_threads()} threads",
        f"gradients {torch.is_grad_enabled()}",
        f"inference mode {torch.is_inference_mode_enabled()}",
        f"{torch.get_default_dtype()} by default",
        f"deterministic {torch.are_deterministic_algorithms_enabled()}",
        f"products in {torch.get_float32_matmul_precision()}",
    )
