"""The safetensors files of a Hugging Face folder: counted before they are read, and checked before they are used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from idc_core.errors import DataError, ModelError
from idc_core.guarded import Budget, opened, read_content, read_json, typed
from idc_core.guarded.opening import size_of
from idc_core.models.huggingface.members import MOST_SAID, one_line

_MOST_HEADER = 16 << 20
_FLOATS = ("F16", "BF16", "F32", "F64")
_KINDS = (*_FLOATS, "I64", "I32", "I16", "I8", "U8", "BOOL")


def count_values(paths: Sequence[Path]) -> int:
    """Return how many numbers some safetensors files hold, as their headers say; nothing else of them is read.

    Raises
    ------
    ModelError
        If a header is damaged, or a tensor is of a type that no network here has (quantised weights).
    """
    return sum(_count(path) for path in paths)


def read_state(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return the tensors of some safetensors files by name.

    Raises
    ------
    ModelError
        If a file is damaged or larger than is allowed, two hold the same tensor, or a value is not finite.
    """
    state: dict[str, Tensor] = {}
    budget = Budget(_where(paths[0]))
    for path in paths:
        where = _where(path)
        try:
            tensors = load(read_content(path, where, budget, copies=2))
        except (SafetensorError, ValueError, KeyError) as error:
            raise ModelError(f"{where} is not a complete safetensors file ({one_line(str(error))}).") from error
        except DataError as error:
            raise ModelError(str(error)) from error
        for name, value in tensors.items():
            if name in state:
                raise ModelError(
                    f"{where} holds the tensor {one_line(name, MOST_SAID)!r}, which another file holds too."
                )
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise ModelError(f"{where}: the tensor {one_line(name, MOST_SAID)!r} holds values that are not finite.")
            state[name] = value
    return state


def widest(state: dict[str, Tensor]) -> torch.dtype:
    """Return the widest type of floating-point numbers among some tensors, at least float32."""
    return max(
        (value.dtype for value in state.values() if value.is_floating_point()),
        key=lambda kind: torch.finfo(kind).bits,
        default=torch.float32,
    )


def _count(path: Path) -> int:
    where = _where(path)
    try:
        with opened(path, where) as stream:
            size = size_of(stream)
            length = int.from_bytes(stream.read(8), "little")
            if size < 8 or length > min(size - 8, _MOST_HEADER):
                raise ModelError(
                    f"{where} is not a complete safetensors file: its header of {length:,} bytes is cut off, or longer "
                    f"than {_MOST_HEADER:,}."
                )
            content = stream.read(length)
        entries = read_json(content, f"{where}: its header", dict[str, object])
        entries.pop("__metadata__", None)
        headers = typed(entries, f"{where}: its header", dict[str, dict[str, object]])
    except DataError as error:
        raise ModelError(str(error)) from error
    total = 0
    for name, header in headers.items():
        kind, shape = header.get("dtype"), header.get("shape")
        if kind not in _KINDS:
            raise ModelError(
                f"{where}: the tensor {one_line(name, MOST_SAID)!r} is of the type {str(kind)[:MOST_SAID]}; expected "
                f"{', '.join(_KINDS)}. Save the network with float weights."
            )
        if not isinstance(shape, list) or not all(type(side) is int and side >= 0 for side in shape):
            raise ModelError(f"{where}: the tensor {one_line(name, MOST_SAID)!r} has no shape.")
        total += math.prod(shape)
    return total


def _where(path: Path) -> str:
    return f"The weights file {path}"
