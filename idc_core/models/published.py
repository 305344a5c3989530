"""Networks published with papers: Keras weights as one `.npz` and a `.json` with the layer list.

Keras keeps kernels as HWIO and flattens maps in HWC order; PyTorch uses OIHW and CHW. Both are turned here,
once, so a published network is the same `LeNet` class as any other and permutes nothing in its forward pass.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.errors import DataError, ModelError
from idc_core.guarded import read_arrays
from idc_core.models.card import ModelCard
from idc_core.models.entry import ModelEntry
from idc_core.models.network import Network
from idc_core.models.weights import fill

_KINDS: dict[str, type[nn.Module]] = {"conv2d": nn.Conv2d, "max_pool2d": nn.MaxPool2d, "dense": nn.Linear}
_WITHOUT_MODULE = ("flatten", "activation")


def published_folder(name: str) -> Path:
    """Return the folder that should hold the published weights; ModelError if the environment does not name it."""
    folder = os.environ.get("IDC_DATA")
    if not folder:
        raise ModelError(
            f"The weights of {name!r} were published with a paper and do not come with this project: set "
            f"IDC_DATA to a folder that holds weights/{name}.npz and weights/{name}.json."
        )
    return Path(folder) / "weights"


def load_published(entry: ModelEntry, weights: Path | None = None) -> Network:
    """Build a published network, with its card, from a `.npz` file and the layer list beside it.

    Raises ModelError if a file is absent or damaged, or describes another network than the entry.
    """
    path = weights if weights is not None else published_folder(entry.name) / f"{entry.name}.npz"
    description = _read_description(path.with_suffix(".json"))
    try:
        arrays = read_arrays(path, str(path))
    except DataError as error:
        raise ModelError(f"The weights file {path} is not a complete npz file ({error.__cause__ or error}).") from error
    network = entry.build()
    try:
        state = _translate(network, description["layers"], arrays, path)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path.with_suffix('.json')}: the layer list lacks or garbles {error}.") from error
    fill(network, state, f"The weights file {path}")
    network.card = _card(entry, network, description)
    return network


def _read_description(path: Path) -> dict[str, Any]:
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"The layer list {path} cannot be read as JSON ({error}).") from error
    if not isinstance(description, dict) or not isinstance(description.get("layers"), list):
        raise ModelError(f"The layer list {path} must be an object with a list 'layers'.")
    return description


def _translate(
    network: Network, layers: list[dict[str, Any]], arrays: dict[str, NDArray[np.float32]], path: Path
) -> dict[str, Tensor]:
    """Turn Keras arrays into a state dict, walking both layer lists side by side."""
    described = [layer for layer in layers if layer["type"] not in _WITHOUT_MODULE]
    children = list(network.named_children())
    if len(described) != len(children):
        raise ModelError(f"{path}: expected {len(children)} layers with a module, found {len(described)}.")
    state: dict[str, Tensor] = {}
    maps: tuple[int, int, int] | None = None  # shape (h, w, c) of maps waiting to be flattened
    for (name, module), layer in zip(children, described, strict=True):
        _check_kind(name, module, layer, path)
        if layer["type"] != "dense":
            height, width, channels = layer["output_shape"]
            maps = (height, width, channels)
        if not layer.get("params"):
            continue
        kernel = _array(arrays, f"{layer['name']}/kernel", layer["params"]["kernel"], path)
        bias = _array(arrays, f"{layer['name']}/bias", layer["params"]["bias"], path)
        if layer["type"] == "conv2d":
            turned = kernel.transpose(3, 2, 0, 1)
        else:
            if maps is not None:
                kernel = kernel.reshape(*maps, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
                maps = None
            turned = kernel.T
        state[f"{name}.weight"] = torch.from_numpy(np.ascontiguousarray(turned))
        state[f"{name}.bias"] = torch.from_numpy(bias)
    return state


def _check_kind(name: str, module: nn.Module, layer: dict[str, Any], path: Path) -> None:
    """Refuse a described layer that is not what the network has at this place."""
    kind = _KINDS.get(layer["type"])
    if kind is None or not isinstance(module, kind):
        raise ModelError(
            f"{path}: layer {layer['name']!r} is a {layer['type']}, but the network has a "
            f"{type(module).__name__} ({name}) there."
        )
    if isinstance(module, nn.Conv2d):
        padding = "valid" if module.padding == (0, 0) else "same"
        if layer["padding"] != padding:
            found = layer["padding"]
            raise ModelError(f"{path}: {layer['name']!r} must have padding {padding!r}, not {found!r}.")


def _array(arrays: dict[str, NDArray[np.float32]], key: str, shape: list[int], path: Path) -> NDArray[np.float32]:
    if key not in arrays:
        raise ModelError(f"The weights file {path} lacks {key!r}; it has {sorted(arrays)}.")
    found = arrays[key].shape
    if found != tuple(shape):
        raise ModelError(f"The weights file {path}: {key!r} must have the shape {tuple(shape)}, not {found}.")
    return arrays[key]


def _card(entry: ModelEntry, network: Network, description: dict[str, Any]) -> ModelCard:
    measured = description.get("mnist_accuracy", {})
    metrics = {
        f"{split}_accuracy": round(measured[f"{split}_percent"] / 100, 5)
        for split in ("test", "train")
        if f"{split}_percent" in measured
    }
    source = description.get("source", {})
    return entry.card(
        network,
        metrics=metrics,
        recipe={"source": source.get("repository", ""), "file": source.get("weights", "")},
        seed=None,
        split="60,000 training and 10,000 test images of MNIST",
        versions={"keras": str(source.get("keras_version", ""))},
    )
