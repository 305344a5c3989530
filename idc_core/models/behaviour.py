"""What a person's network does, told by more than its weights; and copies of it, so that it stays as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from copy import deepcopy
from types import CellType, FunctionType

import torch
from torch import Tensor, nn

from idc_core.base.own_code import is_mistake, said
from idc_core.base.threads import number, one_thread
from idc_core.lrp.layer_parts import split_layer
from idc_core.lrp.session import named_layers

PROBED = 4
"""Training inputs that tell networks of equal weights apart."""


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


def behaviour(network: nn.Module, inputs: Tensor, at_a_time: int, layers: Sequence[str]) -> str:
    """Return 16 hexadecimal digits of what a network computes, to the bit: the same for every number of threads.

    Parameters
    ----------
    network : Module
    inputs : Tensor, (n, ...)
    at_a_time : int
        Inputs per batch; those that fill none are left out.
    layers : sequence of str
        Whose outputs count beside the scores.
    """
    digest = hashlib.sha256()

    def take(value: object) -> None:
        if isinstance(value, tuple | list):
            for one in value:
                take(one)
        elif isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized:
            digest.update(f"{value.dtype} {tuple(value.shape)}\n".encode())
            digest.update(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)

    modules = named_layers(network)
    with ExitStack() as stack:
        for name in dict.fromkeys(split_layer(layer)[0] for layer in layers):
            hook = modules[name].register_forward_hook(lambda module, given, output: take(output))
            stack.callback(hook.remove)
        stack.enter_context(torch.no_grad())
        stack.enter_context(nullcontext() if number() == 1 else one_thread())
        stack.enter_context(torch.random.fork_rng(devices=[]))
        torch.manual_seed(0)
        for start in range(0, len(inputs) - at_a_time + 1, at_a_time):
            try:
                take(network(inputs[start : start + at_a_time]))
            except BaseException as error:
                if not is_mistake(error):
                    raise
                digest.update(said(error).encode())  # an analysis will tell it
    return digest.hexdigest()[:16]
