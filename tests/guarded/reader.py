"""What is said of a reader so that its files can be damaged: a good file, how it is read, and what may come out."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from idc_core.errors import DataError
from tests.guarded import damage

Craft = Callable[[bytes, Any], bytes]


@dataclass(frozen=True)
class Reader:
    """One kind of file, and the way in for it.

    `modules`: those of `idc_core` that read it. `prepare(folder)`: write a good file, and what must lie beside it, into
    a folder; return its path. IDC_HOME and IDC_DATA are the folders home and data in it. `read(path)`: return what was
    read, anything that `plain` knows. `crafts`: ways to change the file that know its format, by name.
    `differs`: why another result than the good file's may come out, by name of a craft, or "damage" for bytes changed
    anywhere; all others give an equal result or an `IdcError`. `heads`: positions where every byte is tried. `tries`:
    how many copies are drawn at random. `flips`: about how many bits are flipped elsewhere. `valid(result)`: whether
    another result is one that the format allows. `special`: whether the path itself may be a pipe, a folder and so on.
    `mends`: whether what is damaged is made again from elsewhere, so that nothing is refused.
    """

    name: str
    modules: tuple[str, ...]
    prepare: Callable[[Path], Path]
    read: Callable[[Path], Any]
    crafts: Mapping[str, Craft] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)
    heads: Callable[[bytes], set[int]] = damage.ends
    tries: int = 600
    flips: int = 500
    valid: Callable[[Any], bool] = lambda result: True
    special: bool = True
    mends: bool = False


class AbsentError(DataError):
    """A damaged entry of the cache counts as absent."""


def plain(value):
    """Bring a result into a form that can be compared: arrays as type, shape and bytes."""
    if isinstance(value, torch.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, torch.nn.Module):
        return plain(dict(value.state_dict())), plain(getattr(value, "card", None))
    if dataclasses.is_dataclass(value):
        return type(value).__name__, *(plain(getattr(value, one.name)) for one in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    assert value is None or isinstance(value, str | int | float | bool | bytes | Path), type(value)
    return repr(value)
