"""Weights of a person (safetensors) for an architecture of the registry, which names and shapes of tensors tell."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from idc_core.errors import ModelError
from idc_core.models.entry import ModelEntry
from idc_core.models.registry import MODELS, find_entry
from idc_core.models.weights import read_headers, read_weights

_LISTED = 3


def read_architecture(path: Path, architecture: str = "") -> nn.Module:
    """Build the network whose weights a file holds.

    Parameters
    ----------
    path : Path
        A safetensors file.
    architecture : str
        Name in `MODELS`; by default the first one whose tensors have the names and shapes of the file.

    Raises
    ------
    ModelError
        If the file is damaged, or fits no architecture: those that nearly fit are named.
    """
    name = architecture or _fitting(path)[0]
    network = find_entry(name).build()
    read_weights(network, path, widen=True)
    network.remarks = (f"The weights are those of the architecture of {name}.",)
    return network


def data_of(path: Path) -> str:
    """Return the data set that all architectures take whose tensors a file holds; empty where they take several."""
    datasets = {MODELS[name].dataset for name in _fitting(path)}
    return datasets.pop() if len(datasets) == 1 else ""


def _fitting(path: Path) -> list[str]:
    """Return the names of the architectures whose tensors a file holds; ModelError where there is none."""
    held = {name: header.shape for name, header in read_headers(path).items()}
    own = {entry.name: _shapes(entry) for entry in MODELS.values() if not entry.complete}
    names = [name for name, shapes in own.items() if shapes == held]
    if names:
        return names
    shared = {name: len(set(shapes.items()) & set(held.items())) for name, shapes in own.items()}
    near = sorted((name for name in own if shared[name]), key=lambda name: -shared[name] / len(own[name]))[:_LISTED]
    nearest = ", ".join(f"{name} ({shared[name]} of {len(own[name])})" for name in near)
    raise ModelError(
        f"{path} holds {len(held)} tensor{'' if len(held) == 1 else 's'} that fit no architecture of the registry"
        f"{f'; nearest are {nearest}' if near else ''}. For a network of your own save it as ONNX, or register it in a "
        "setup file with @idc.network."
    )


def _shapes(entry: ModelEntry) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        return {name: tuple(value.shape) for name, value in entry.build().state_dict().items()}
