"""Weights on disk: safetensors only, checked name by name and shape by shape before a network takes them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from idc_core.base import files
from idc_core.base.own_digest import reached_digest
from idc_core.base.parameters import shown
from idc_core.errors import ModelError, of_a_network
from idc_core.guarded import Budget, opened, read_content, read_json, typed
from idc_core.guarded.opening import size_of

_MOST_HEADER = 16 << 20
_NAMES = {
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Types of values as safetensors files name them."""

_BYTES = {name: kind.itemsize for kind, name in _NAMES.items()}


def fingerprint(network: nn.Module) -> str:
    """Return 16 hexadecimal digits that change whenever any parameter or buffer of the network changes.

    They begin the SHA-256 of the names, shapes, types and bytes of the state dict, in order of name; of a person's own
    network they change with its code and all else that it computes with, too.
    """
    known = getattr(network, "idc_code", None)
    ours = type(network).__module__.split(".")[0] == "idc_core"
    code = ("" if ours else reached_digest(network)) if known is None else str(known)
    digest = hashlib.sha256(code.encode())
    for name, value in sorted(network.state_dict().items()):
        for part in _parts(name, value):
            digest.update(part)
    return digest.hexdigest()[:16]


def _parts(name: str, value: object) -> Iterator[bytes | memoryview]:
    """Yield what tells a value of a state dict: of a quantised layer it is a tuple, or no tensor at all."""
    if isinstance(value, tuple | list):
        for place, part in enumerate(value):
            yield from _parts(f"{name} {place}", part)
        return
    if not isinstance(value, Tensor):
        yield f"{name} {value!r}\n".encode()
        return
    plain = (value.dequantize() if value.is_quantized else value).detach().cpu().contiguous()
    try:
        array = plain.numpy()
        kind = array.dtype.str
    except TypeError:  # NumPy has no such type: bfloat16, float8
        array, kind = plain.reshape(-1).view(torch.uint8).numpy(), str(plain.dtype)
    yield f"{name} {tuple(plain.shape)} {kind}\n".encode()
    yield array.data


def fill(network: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Copy a complete state into a network; `source` says where it comes from.

    Raises ModelError, and leaves the network unchanged, if parameters are missing or left over, or one has the wrong
    shape or type, or is not finite.
    """
    _check_fit(network, {name: _Header.of(value) for name, value in state.items()}, source)
    for name, value in state.items():
        if not bool(torch.isfinite(value).all()):
            raise ModelError(f"{source}: parameter {name!r} holds values that are not finite.")
    network.load_state_dict(dict(state))


@dataclass(frozen=True)
class _Header:
    """What a safetensors file says of a tensor before it is read."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int] = (0, 0)

    @staticmethod
    def of(value: Tensor) -> _Header:
        return _Header(_NAMES.get(value.dtype, str(value.dtype)), tuple(value.shape))


def _check_fit(network: nn.Module, state: Mapping[str, _Header], source: str, *, widen: bool = False) -> None:
    """Raise ModelError unless names, shapes and types are the network's, with 16 bits for 32 where they are widened."""
    expected = {name: _Header.of(value) for name, value in network.state_dict().items()}
    missing = sorted(set(expected) - set(state))
    unknown = [name[:60] for name in sorted(set(state) - set(expected))[:20]]
    if missing or unknown:
        raise ModelError(
            f"{source} does not fit the network: it lacks {missing or 'nothing'} and has "
            f"{unknown or 'nothing'} too many; expected exactly {sorted(expected)}."
        )
    for name, value in state.items():
        header = expected[name]
        if value.shape != header.shape:
            raise ModelError(f"{source}: parameter {name!r} must have the shape {header.shape}, but has {value.shape}.")
        if value.dtype != header.dtype and not (widen and (value.dtype, header.dtype) == ("F16", "F32")):
            raise ModelError(f"{source}: parameter {name!r} must be {header.dtype}, but is {value.dtype}.")


@of_a_network()
def read_weights(network: nn.Module, path: Path, *, widen: bool = False) -> None:
    """Fill a network from a safetensors file, whose values may have 16 bits where they are to be widened; as `fill`."""
    source = f"The weights file {path}"
    if not path.exists():
        raise ModelError(f"{source} does not exist.")
    _check_fit(network, read_headers(path), source, widen=widen)
    state = read_tensors(path)
    if widen:
        state = {name: value.float() if value.dtype == torch.float16 else value for name, value in state.items()}
    fill(network, state, source)


@of_a_network()
def read_tensors(path: Path, budget: Budget | None = None) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name; ModelError where it is damaged or larger than is allowed."""
    source = f"The weights file {path}"
    try:
        return load(read_content(path, source, budget, copies=2))
    except (SafetensorError, ValueError, KeyError) as error:
        raise _damaged(source, shown(str(error))) from error


@of_a_network()
def read_headers(path: Path) -> dict[str, _Header]:
    """Return what a safetensors file says of its tensors, and read nothing else; ModelError where it is damaged."""
    source = f"The weights file {path}"
    with opened(path, source) as stream:
        size, length = size_of(stream), int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, _MOST_HEADER):
            raise _damaged(source, f"its header of {length:,} bytes is cut off, or longer than {_MOST_HEADER:,}")
        content = stream.read(length)
    where = f"{source} is not a complete safetensors file: its header"
    table = read_json(content, where, dict[str, object])
    table.pop("__metadata__", None)
    headers = typed(table, where, dict[str, _Header])
    try:
        _check_layout(headers, size - 8 - length)
    except ValueError as error:
        raise _damaged(source, error) from error
    return headers


def _damaged(source: str, why: object) -> ModelError:
    return ModelError(f"{source} is not a complete safetensors file ({why}); copy or save it again.")


def _check_layout(headers: Mapping[str, _Header], held: int) -> None:
    """Raise ValueError unless tensors fill the bytes behind the header, one after the other."""
    end = 0
    for name, header in sorted(headers.items(), key=lambda item: item[1].data_offsets):
        begin, stop = header.data_offsets
        if begin != end or stop < begin:
            raise ValueError(f"its tensor {name[:60]!a} lies over another one, or leaves a gap before it")
        needed = prod(header.shape) * _BYTES.get(header.dtype, 0)
        if (needed and needed != stop - begin) or any(side < 0 for side in header.shape):
            raise ValueError(f"its tensor {name[:60]!a} needs {needed:,} bytes and has {stop - begin:,}")
        end = stop
    if end != held:
        raise ValueError(f"it holds {held:,} bytes of values where its header says {end:,}")


def write_weights(network: nn.Module, path: Path, *, half: bool = False) -> None:
    """Write a network's parameters as safetensors, in 16 bits where asked; the file appears whole or not at all."""
    state = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    if half:
        state = {name: value.half() if value.is_floating_point() else value for name, value in state.items()}
    write_whole(path, save(state))


def make_folder(path: Path) -> None:
    """Make a folder unless it is there; ModelError if that is not possible, or nothing can be written into it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"The folder {path} cannot be made ({error}); name another one with --out.") from error
    if not os.access(path, os.W_OK):
        raise ModelError(f"The folder {path} cannot be written to; name another one with --out.")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader never sees half of it; ModelError if the folder cannot be written to."""
    make_folder(path.parent)
    try:
        files.write_whole(path, content)
    except OSError as error:
        raise ModelError(f"{path} cannot be written ({error}); name another folder with --out.") from error
