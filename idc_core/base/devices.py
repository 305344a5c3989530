"""Where networks run: the processor, or an accelerator that is chosen by name.

A network stays where it is put, and everything that runs it follows it there. The choice is therefore made once, where
a network is opened. It is no setting of the method: results agree to rounding whichever device made them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from idc_core.base.config import config, config_file
from idc_core.base.parameters import shown
from idc_core.errors import ModelError, SettingError

if TYPE_CHECKING:
    import torch
    from torch import nn

VARIABLE = "IDC_DEVICE"
"""Name of the environment variable that names the device; processes started from this one inherit it."""

AUTO, _PROCESSOR = "auto", "cpu"

_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Where Linux shows the drivers of NVIDIA, of AMD and of Windows below it: without one, torch need not be loaded."""


def available() -> tuple[str, ...]:
    """Return the names of this machine's devices, the processor first."""
    if sys.platform == "linux" and not any(map(os.path.exists, _DRIVERS)):
        return (_PROCESSOR,)
    import torch

    cards = tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
    return (_PROCESSOR, *cards, *(("mps",) if torch.backends.mps.is_available() else ()))


def choose(name: str = "") -> torch.device:
    """Return the device of a name.

    Parameters
    ----------
    name : str
        "cpu", "cuda" (its first GPU), "cuda:1", "mps", or "auto": the first accelerator, the processor where there is
        none. Empty: what the command line, else the config file, says; the processor where neither says anything.

    Raises
    ------
    SettingError
        If this machine has no such device.
    """
    import torch

    if not isinstance(name, str):
        raise SettingError(f"The device must be named as text, such as 'cpu' or 'cuda', not {shown(name)}.")
    name = name or os.environ.get(VARIABLE, "")
    where = "The device" if name else f"The device of {config_file()}"
    name = name or said()
    if name == _PROCESSOR:
        return torch.device(_PROCESSOR)
    there = available()
    if name == AUTO:
        return torch.device(there[min(1, len(there) - 1)])
    device = "cuda:0" if name == "cuda" else name
    if device not in there:
        raise SettingError(
            f"{where} must be one of {', '.join((AUTO, *there))}, which are on this machine, not {name[:40]!r}."
        )
    return torch.device(device)


def said() -> str:
    """Return the name that the command line, else the config file, says; that of the processor where neither does."""
    return os.environ.get(VARIABLE, "") or config().device


def device_of(model: nn.Module) -> torch.device:
    """Return where a network is: the device of its weights, the processor where it has none."""
    import torch

    weights = next((p for p in model.parameters() if p.is_floating_point()), next(model.parameters(), None))
    return torch.device(_PROCESSOR) if weights is None else weights.device


@contextmanager
def using(name: str | None) -> Iterator[None]:
    """Open networks on a device within the block, in processes started there too; None changes nothing."""
    before = os.environ.get(VARIABLE)
    try:
        if name is not None:
            choose(name)
            os.environ[VARIABLE] = name
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def check_values(tensors: Iterable[torch.Tensor]) -> None:
    """Refuse what a network on torch's meta device gives: it has a shape and no values."""
    if any(tensor.is_meta for tensor in tensors):
        raise ModelError(
            "The network has no weights: it is on the meta device. Give it weights first, with "
            "load_state_dict(weights, assign=True), or build it outside of torch.device('meta')."
        )


_AUTOCASTS = ("cpu", "cuda", "mps")
"""Kinds of devices that have an autocast of their own."""


@contextmanager
def exact(model: nn.Module) -> Iterator[None]:
    """Let a GPU sum in whole float32, and in the same order each time; torch would let its convolutions round more."""
    if device_of(model).type != "cuda":
        yield
        return
    _exactly.begin()
    try:
        yield
    finally:
        _exactly.end()


@contextmanager
def without_autocast() -> Iterator[None]:
    """Let operations run in the types of what they are given, whatever autocast is on."""
    import torch

    if not torch._C._is_any_autocast_enabled():
        yield
        return
    with ExitStack() as kinds:
        for kind in _AUTOCASTS:
            if torch.is_autocast_enabled(kind):
                kinds.enter_context(torch.autocast(kind, enabled=False))
        yield


class _Exactly:
    """Torch's settings of convolutions are those of the whole process: the last pass that ends puts them back."""

    def __init__(self) -> None:
        self._guard, self._passes, self._setting = threading.Lock(), 0, ExitStack()

    def begin(self) -> None:
        """Begin a pass."""
        from torch.backends import cudnn

        with self._guard:
            if not self._passes:
                self._setting.enter_context(cudnn.flags(cudnn.enabled, deterministic=True, allow_tf32=False))
            self._passes += 1

    def end(self) -> None:
        """End a pass."""
        with self._guard:
            self._passes -= 1
            if not self._passes:
                self._setting.close()


_exactly = _Exactly()
