"""What a person's network does, told by more than its weights; and copies of it, so that it stays as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from types import CellType, FunctionType

import torch
from torch import Tensor, nn
from torch._C import DisableTorchFunction

from idc_core.base.threads import number, one_thread

PROBED = 3
"""Training inputs that tell networks of equal weights apart; an axis of three is seldom one of positions or classes."""


def copied(model: nn.Module) -> nn.Module:
    """Return a copy of a network that shares nothing with it: neither weights, nor hooks, nor what functions hold.

    Whatever copying a network raises is raised.
    """
    memo: dict[int, object] = {}
    for module in model.modules():
        for value in vars(module).values():
            if isinstance(value, Tensor) and not value.is_leaf:  # what a forward has left, or computes its weights into
                memo[id(value)] = value.detach().clone()
    known = {id(module) for module in model.modules()}
    bound = {id(one): one for module in model.modules() for one in _functions(module) if _holds(one, known)}
    cells: list[tuple[CellType, CellType]] = []
    for key, function in bound.items():
        own = tuple(CellType() for _ in function.__closure__ or ())
        cells += zip(own, function.__closure__ or (), strict=True)
        other = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, own)
        other.__dict__.update(function.__dict__)
        other.__kwdefaults__ = function.__kwdefaults__
        memo[key] = other
    copy = deepcopy(model, memo)
    for mine, theirs in cells:
        mine.cell_contents = memo.get(id(theirs.cell_contents), theirs.cell_contents)
    return copy


def _functions(module: nn.Module) -> Iterator[FunctionType]:
    """Yield the functions that a module has as attributes or hooks."""
    for value in vars(module).values():
        for one in value.values() if isinstance(value, dict) else (value,):
            if isinstance(one, FunctionType):
                yield one


def _holds(function: FunctionType, known: set[int]) -> bool:
    """Whether a function holds one of some modules."""
    try:
        return any(id(cell.cell_contents) in known for cell in function.__closure__ or ())
    except ValueError:  # a cell that is not filled yet
        return False


class Behaviour:
    """What a network computes on a few inputs, to the bit: the same for every number of threads."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Let a block compute with one thread, and with chance of one seed."""
        with nullcontext() if number() == 1 else one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            yield

    def take(self, value: object) -> None:
        """Let what a module or the network gave count."""
        with DisableTorchFunction():
            self._take(value)

    def _take(self, value: object) -> None:
        if isinstance(value, tuple | list):
            for one in value:
                self._take(one)
        elif isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized:
            self._digest.update(f"{value.dtype} {tuple(value.shape)}\n".encode())
            self._digest.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)

    def hexdigest(self) -> str:
        """Return 16 hexadecimal digits."""
        return self._digest.hexdigest()[:16]
