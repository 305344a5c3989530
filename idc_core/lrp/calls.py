"""How an operation was called: its name, whether it works in place, and the tensors among its arguments."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
"""What torch's functions are called with."""

Operation = Callable[..., Any]
"""One of torch's functions, as it hands it to whoever intercepts it."""

_IN_PLACE = frozenset(("__iadd__", "__isub__", "__imul__", "__itruediv__", "__imatmul__", "__ipow__", "__setitem__"))
"""In-place operators; every other in-place operation has a name that ends in an underscore."""


@lru_cache(4096)
def name_of(func: Operation) -> str:
    """Return the name of an operation; an attribute of a tensor has a dot in front, one on int8 its namespace."""
    name = getattr(func, "__name__", type(func).__name__)
    whole = str(getattr(func, "_qualified_op_name", ""))
    if whole.startswith("quantized::"):  # its weights are packed, and no tensors
        return whole
    return f".{getattr(getattr(func, '__self__', None), '__name__', 'attribute')}" if name == "__get__" else name


def plain_name(name: str, kwargs: Kwargs) -> tuple[str, bool]:
    """Return the name of the out-of-place form, and whether the operation was in place."""
    if name in _IN_PLACE:
        return name, True
    if name.endswith("_") and not name.endswith("__"):
        return name[:-1], True
    return name, bool(kwargs.get("inplace"))


def is_view(index: object) -> bool:
    """Return whether a tensor at an index is a view of it: of whole numbers, slices, None and dots."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or type(part) in (int, slice, type(...)) for part in parts)


def written_into(name: str, args: Args, kwargs: Kwargs) -> list[Tensor]:
    """Return the tensors that an operation writes its results into."""
    if plain_name(name, kwargs)[1]:
        return tensors_of(args[:1] or (kwargs.get("input"),), {})
    return tensors_of((kwargs.get("out"),), {})


def tensors_of(args: Sequence[object], kwargs: Kwargs) -> list[Tensor]:
    """Return the tensors among arguments, those in lists and tuples included."""
    tensors: list[Tensor] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, tuple | list):
            tensors.extend(tensors_of(value, {}))
    return tensors


def is_transformed(tensor: Tensor) -> bool:
    """Return whether a tensor is seen within torch.vmap, or another transform of torch.func, and has no numbers."""
    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def any_tracked(args: Sequence[object], kwargs: Kwargs) -> bool:
    """Return whether relevance comes back through any argument."""
    return any(tensor.requires_grad for tensor in tensors_of(args, kwargs))


def replaced(value: Any, now: Callable[[Tensor], Tensor]) -> Any:
    """Return arguments with every tensor exchanged for what stands for it now."""
    if isinstance(value, Tensor):
        return now(value)
    if isinstance(value, dict):
        return {key: replaced(item, now) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(replaced(item, now) for item in value)
    return value
