"""Arrays inside an ONNX file, and beside it in the same folder."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import TensorProto
from torch import Tensor

from idc_core.errors import ModelError, UnsupportedOperationError

Read = Callable[[str, int, int | None], bytearray]
"""``read(location, offset, length)`` returns bytes of a file beside the network's own."""

_TYPES: dict[int, torch.dtype] = {
    TensorProto.FLOAT: torch.float32,
    TensorProto.DOUBLE: torch.float64,
    TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16,
    TensorProto.INT8: torch.int8,
    TensorProto.INT16: torch.int16,
    TensorProto.INT32: torch.int32,
    TensorProto.INT64: torch.int64,
    TensorProto.UINT8: torch.uint8,
    TensorProto.BOOL: torch.bool,
}
_FIELDS: dict[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT64: "int64_data",
}
"""Where the numbers of a type are that does not come as bytes; all others are in ``int32_data``."""


HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
"""Types that are computed in single precision: onnxruntime does so on a processor, without rounding in between."""


def torch_type(kind: int, where: str) -> torch.dtype:
    """Return the type of PyTorch that numbers of one of ONNX are computed in."""
    return torch.float32 if kind in HALVES else _stored_type(kind, where)


def _stored_type(kind: int, where: str) -> torch.dtype:
    if kind not in _TYPES:
        names = {value: name for name, value in TensorProto.DataType.items()}
        known = ", ".join(names[value] for value in _TYPES)
        raise UnsupportedOperationError(
            f"{where} has numbers of the type {names.get(kind, kind)}; expected one of {known}."
        )
    return _TYPES[kind]


def tensor_of(proto: TensorProto, read: Read, where: str) -> Tensor:
    """Return an array of the file; its size is compared with what is there before anything is made."""
    array = _stored(proto, read, where)
    return array.to(torch_type(proto.data_type, where))


def _stored(proto: TensorProto, read: Read, where: str) -> Tensor:
    dtype = _stored_type(proto.data_type, where)
    shape, size = tuple(proto.dims), torch.empty((), dtype=dtype).element_size()
    if any(length < 0 for length in shape) or proto.HasField("segment"):
        raise ModelError(f"{where} has the shape {list(shape)}, or comes in segments; expected a whole array.")
    content: bytes | bytearray
    if proto.data_location == TensorProto.EXTERNAL:
        content = _external(proto, read, where, prod(shape) * size)
    elif proto.HasField("raw_data"):
        content = proto.raw_data
    else:
        return _from_field(proto, shape, dtype, where)
    if len(content) != prod(shape) * size:
        raise ModelError(
            f"{where} has {len(content):,} bytes; its shape {list(shape)} needs {prod(shape) * size:,}. The file is "
            "damaged; copy it again."
        )
    if not content:
        return torch.empty(shape, dtype=dtype)
    writable = content if isinstance(content, bytearray) else bytearray(content)
    return torch.frombuffer(writable, dtype=dtype).reshape(shape)


def _from_field(proto: TensorProto, shape: tuple[int, ...], dtype: torch.dtype, where: str) -> Tensor:
    numbers = getattr(proto, _FIELDS.get(proto.data_type, "int32_data"))
    if len(numbers) != prod(shape):
        raise ModelError(f"{where} has {len(numbers):,} numbers; its shape {list(shape)} needs {prod(shape):,}.")
    if dtype in (torch.float16, torch.bfloat16):
        bits: NDArray[np.int16] = np.array(numbers, np.int64).astype(np.uint16).view(np.int16)
        return torch.from_numpy(bits).view(dtype).reshape(shape)
    wide = np.array(numbers, np.float64 if dtype.is_floating_point else np.int64)
    return torch.from_numpy(wide).to(dtype).reshape(shape)


def _external(proto: TensorProto, read: Read, where: str, needed: int) -> bytearray:
    """Read an array that lies in a file beside the network's own."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(needed)))
    except ValueError as error:
        raise ModelError(f"{where} has an offset or a length that is no number ({error}).") from error
    if offset < 0 or length != needed:
        raise ModelError(f"{where} is said to have {length:,} bytes from {offset:,}; its shape needs {needed:,}.")
    return read(entries.get("location", ""), offset, length)


def inside(folder: Path, location: str, where: str) -> Path:
    """Return a file of the folder; whatever leads out of it, symbolic links too, is refused."""
    path = folder / location
    parts = Path(location).parts
    if not location or "\0" in location or Path(location).is_absolute() or ".." in parts or "\\" in location:
        raise ModelError(f"{where}: the name {location!r} leads out of its folder; expected a file beside the network.")
    resolved = path.resolve()
    if not resolved.is_relative_to(folder.resolve()):
        raise ModelError(f"{where}: {location!r} is a link that leads out of its folder; expected a file beside it.")
    return resolved
