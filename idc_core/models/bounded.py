"""What a network from a file may hold while it is looked at: every operation is counted before it makes anything."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from idc_core.base.config import config_file
from idc_core.errors import ModelError
from idc_core.guarded import Budget
from idc_core.lrp.calls import Args, Kwargs, Operation

_ALIKE = {
    "_log_softmax",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_softmax",
    "_prelu_kernel",
    "adaptive_avg_pool2d",
    "all",
    "any",
    "cat",
    "cumsum",
    "hardswish",
    "mean",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "stack",
    "tril",
    "triu",
}
"""Operations that make at most as much as they are given: to ask for their form, as for that of operations number by
number, PyTorch would import its compiler."""


class TooLargeError(ModelError):
    """An operation would make more than may be held."""


class Bounded(TorchDispatchMode):
    """Refuses, within a `with` block, an operation whose result would bring what is held at once above a budget.

    How large a result would be says the operation itself, on tensors without memory. Memory that an operation needs
    only while it runs is not counted, nor is what nobody can tell beforehand, which is at most a few times its inputs.
    """

    def __init__(self, budget: Budget) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._budget = budget

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: nothing is compiled here, and only to say so PyTorch's compiler would be imported."""
        return False

    def __torch_dispatch__(
        self, func: Operation, types: Iterable[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation."""
        given = kwargs or {}
        there = {_storage(x) for x in _tensors((args, given))}
        size = _size(func, args, given)
        if self._budget.held + size > self._budget.limit:
            raise TooLargeError(
                f"an operation ({func}) would bring what is held at once to {self._budget.held + size:,} bytes of "
                f"memory; at most {self._budget.limit:,} are allowed. Make the network smaller, or raise memory_mib in "
                f"the section limits of {config_file()}."
            )
        result = func(*args, **given)
        for made in {_storage(x): x.untyped_storage() for x in _tensors(result)}.values():
            if made._cdata not in there:
                self._budget.held += made.nbytes()
                weakref.finalize(made, self._budget.give, made.nbytes()).atexit = False
        return result


def _tensors(tree: object) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor) and leaf.layout == torch.strided)


def _storage(x: Tensor) -> int:
    return int(x.untyped_storage()._cdata)


def _size(func: Any, args: Args, kwargs: Kwargs) -> int:
    """Return the bytes that an operation would make; 0 where that depends on the values of its inputs."""
    name, given = func.overloadpacket.__name__, list(_tensors((args, kwargs)))
    if torch.Tag.pointwise in func.tags or name in _ALIKE:
        return _at_most(name, given)
    if name == "addmm":
        func, args, kwargs = torch.ops.aten.mm.default, args[1:3], {}
    try:
        without = tree_map(_without_memory, (args, kwargs))
        there = {_storage(x) for x in _tensors(without)}
        result = func(*without[0], **without[1])
        made = {_storage(x): x.untyped_storage().nbytes() for x in _tensors(result)}
    except (RuntimeError, NotImplementedError, TypeError, ValueError, LookupError):
        return 0  # the operation itself says what is wrong, if anything is
    return sum(size for storage, size in made.items() if storage not in there)


def _at_most(name: str, given: list[Tensor]) -> int:
    """Return the most bytes that an operation makes of its inputs number by number, or of all of them together."""
    widest = max((4, *(x.element_size() for x in given)))
    if name.endswith("_") or not given:
        return 0
    try:
        count = math.prod(np.broadcast_shapes(*(x.shape for x in given)))  # PyTorch's own imports an algebra system
    except ValueError:  # they do not fit together, or need not
        count = 0
    return widest * (sum(x.numel() for x in given) if name in _ALIKE else count)


def _without_memory(leaf: object) -> object:
    """Return a tensor of the same form that holds nothing; a device becomes that of such tensors."""
    if isinstance(leaf, torch.device):
        return torch.device("meta")
    if not isinstance(leaf, Tensor):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
