"""Weights on disk: safetensors only, checked name by name and shape by shape before a network takes them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from idc_core import files
from idc_core.errors import ModelError

WEIGHTS_FOLDER = Path(__file__).resolve().parents[2] / "assets" / "weights"
"""Where the weights trained for this project, and their cards, are kept."""


def fingerprint(network: nn.Module) -> str:
    """Return 16 hexadecimal digits that change whenever any parameter or buffer of the network changes.

    They begin the SHA-256 of the names, shapes, types and bytes of the state dict, in order of name; of a person's own
    network they change with its code, too.
    """
    digest = hashlib.sha256(str(getattr(network, "code", "")).encode())
    for name, value in sorted(network.state_dict().items()):
        array = value.detach().cpu().contiguous().numpy()
        digest.update(f"{name} {array.shape} {array.dtype.str}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def fill(network: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Copy a complete state into a network; `source` says where it comes from.

    Raises
    ------
    ModelError
        If parameters are missing or left over, or one has the wrong shape or type, or is not finite. The
        network is unchanged then.
    """
    expected = network.state_dict()
    missing = sorted(set(expected) - set(state))
    unknown = sorted(set(state) - set(expected))
    if missing or unknown:
        raise ModelError(
            f"{source} does not fit the network: it lacks {missing or 'nothing'} and has "
            f"{unknown or 'nothing'} too many; expected exactly {sorted(expected)}."
        )
    for name, value in state.items():
        wanted = expected[name]
        if value.shape != wanted.shape:
            raise ModelError(
                f"{source}: parameter {name!r} must have the shape {tuple(wanted.shape)}, but has {tuple(value.shape)}."
            )
        if value.dtype != wanted.dtype:
            raise ModelError(f"{source}: parameter {name!r} must be {wanted.dtype}, but is {value.dtype}.")
        if not bool(torch.isfinite(value).all()):
            raise ModelError(f"{source}: parameter {name!r} holds values that are not finite.")
    network.load_state_dict(dict(state))


def read_weights(network: nn.Module, path: Path, *, widen: bool = False) -> None:
    """Fill a network from a safetensors file, whose values may have 16 bits where they are to be widened.

    Raises
    ------
    ModelError
        If the file is absent, damaged, or does not fit the network (see `fill`).
    """
    if not path.is_file():
        raise ModelError(f"The weights file {path} does not exist.")
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"The weights file {path} is not a complete safetensors file ({error}).") from error
    if widen:
        state = {name: value.float() if value.dtype == torch.float16 else value for name, value in state.items()}
    fill(network, state, f"The weights file {path}")


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
