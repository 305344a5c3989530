"""Inputs to an accelerator and results back, while it computes; on a processor nothing is copied or waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from idc_core.base.arrays import Array
from idc_core.base.devices import check_values

_T = TypeVar("_T")
_K = TypeVar("_K")


def to_device(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor on a device; copies to a GPU run beside its work, on a stream of their own.

    The type is changed before the copy, since Apple's GPU has no float64.
    """
    tensor = tensor if dtype is None else tensor.to(dtype)
    if device.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    working, copying = torch.cuda.current_stream(device), _copying(device)
    with torch.cuda.stream(copying):
        moved = tensor.pin_memory().to(device, non_blocking=True)
    working.wait_stream(copying)
    moved.record_stream(working)
    return moved


@cache
def _copying(device: torch.device) -> torch.cuda.Stream:
    """Return the stream of copies to a GPU."""
    return torch.cuda.Stream(device)


def brought_back(parts: Iterable[tuple[_T, Mapping[_K, Tensor]]]) -> Iterator[tuple[_T, dict[_K, Array]]]:
    """Yield what belongs to each batch, and its tensors as arrays; bfloat16 and float16 as float32.

    From a GPU they come one batch late: the next one is prepared and begun before anything waits for this one.
    """
    waiting: tuple[_T, dict[_K, Tensor], torch.cuda.Event | None] | None = None
    for about, tensors in parts:
        copies, arrived = _begin({name: _readable(tensor.detach()) for name, tensor in tensors.items()})
        if waiting is not None:
            yield _finished(*waiting)
        waiting = about, copies, arrived
        if arrived is None:
            yield _finished(*waiting)
            waiting = None
        del about, tensors, copies  # the next batch needs the memory
    if waiting is not None:
        yield _finished(*waiting)


def _begin(tensors: dict[_K, Tensor]) -> tuple[dict[_K, Tensor], torch.cuda.Event | None]:
    """Begin to copy tensors to the processor; return them, and an event to wait for where they are not there yet."""
    check_values(tensors.values())
    if not any(tensor.is_cuda for tensor in tensors.values()):
        return {name: tensor.cpu() for name, tensor in tensors.items()}, None
    copies = {name: tensor.to("cpu", non_blocking=True) for name, tensor in tensors.items()}
    return copies, torch.cuda.current_stream(next(t.device for t in tensors.values() if t.is_cuda)).record_event()


def _finished(about: _T, copies: dict[_K, Tensor], arrived: torch.cuda.Event | None) -> tuple[_T, dict[_K, Array]]:
    if arrived is not None:
        arrived.synchronize()
    return about, {name: np.asarray(copy.numpy()) for name, copy in copies.items()}


def _readable(tensor: Tensor) -> Tensor:
    """Return numbers that numpy can hold."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
