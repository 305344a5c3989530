"""What a network from a file may hold while it is looked at: every operation is counted before it makes anything."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from idc_core.base.config import config_file
from idc_core.errors import ModelError
from idc_core.guarded import Budget


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

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
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


def _size(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the bytes that an operation would make; 0 where that depends on the values of its inputs."""
    try:
        without = tree_map(_without_memory, (args, kwargs))
        there = {_storage(x) for x in _tensors(without)}
        result = func(*without[0], **without[1])
        made = {_storage(x): x.untyped_storage().nbytes() for x in _tensors(result)}
    except (RuntimeError, NotImplementedError, TypeError, ValueError, LookupError):
        return 0  # the operation itself says what is wrong, if anything is
    return sum(size for storage, size in made.items() if storage not in there)


def _without_memory(leaf: object) -> object:
    """Return a tensor of the same form that holds nothing; a device becomes that of such tensors."""
    if isinstance(leaf, torch.device):
        return torch.device("meta")
    if not isinstance(leaf, Tensor):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
