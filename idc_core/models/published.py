"""Networks published with papers: Keras weights as one `.npz` and a `.json` with the layer list.

Keras keeps kernels as HWIO and flattens maps in HWC order; PyTorch uses OIHW and CHW. Both are turned here,
once, so a published network is the same `LeNet` class as any other and permutes nothing in its forward pass.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from idc_core.errors import ModelError, of_a_network
from idc_core.guarded import ArrayFile, open_arrays, read_json
from idc_core.models.card import ModelCard
from idc_core.models.entry import ModelEntry
from idc_core.models.network import Network
from idc_core.models.weights import fill

_KINDS: dict[str, type[nn.Module]] = {"conv2d": nn.Conv2d, "max_pool2d": nn.MaxPool2d, "dense": nn.Linear}
_WITHOUT_MODULE = ("flatten", "activation")


@dataclass(frozen=True)
class _Layer:
    """A layer of the list, as far as it is read."""

    name: str
    type: str
    output_shape: tuple[int, ...]
    padding: str = ""


@dataclass(frozen=True)
class _Accuracy:
    """Published shares of correct answers in percent."""

    test_percent: float | None = None
    train_percent: float | None = None


@dataclass(frozen=True)
class _Source:
    """Where the weights were published."""

    repository: str = ""
    weights: str = ""
    keras_version: str | int | float = ""


@dataclass(frozen=True)
class _Description:
    """The file beside the weights, as far as it is read."""

    layers: tuple[_Layer, ...]
    mnist_accuracy: _Accuracy = field(default_factory=_Accuracy)
    source: _Source = field(default_factory=_Source)


def published_folder(name: str) -> Path:
    """Return the folder that should hold the published weights; ModelError if the environment does not name it."""
    folder = os.environ.get("IDC_DATA")
    if not folder:
        raise ModelError(
            f"The weights of {name!r} were published with a paper and do not come with this project: set "
            f"IDC_DATA to a folder that holds weights/{name}.npz and weights/{name}.json."
        )
    return Path(folder) / "weights"


@of_a_network()
def load_published(entry: ModelEntry, weights: Path | None = None) -> Network:
    """Build a published network, with its card, from a `.npz` file and the layer list beside it.

    Raises ModelError if a file is absent or damaged, or describes another network than the entry.
    """
    path = weights if weights is not None else published_folder(entry.name) / f"{entry.name}.npz"
    listed = path.with_suffix(".json")
    source = f"The weights file {path}"
    network = entry.build()
    description = read_json(listed, f"The layer list {listed}", _Description)
    with open_arrays(path, source) as arrays:
        state = _translate(network, description.layers, arrays)
    fill(network, state, source)
    network.card = _card(entry, network, description)
    return network


def _translate(network: Network, layers: tuple[_Layer, ...], arrays: ArrayFile) -> dict[str, Tensor]:
    """Turn Keras arrays into a state dict, walking both layer lists side by side."""
    described = [layer for layer in layers if layer.type not in _WITHOUT_MODULE]
    children = list(network.named_children())
    if len(described) != len(children):
        raise ModelError(
            f"{arrays.where}: expected {len(children)} layers with a module, found {len(described)} in its layer list."
        )
    pairs = list(zip(children, described, strict=True))
    for (name, module), layer in pairs:
        _check_layer(name, module, layer, arrays)
    state: dict[str, Tensor] = {}
    maps: tuple[int, ...] = ()  # shape (h, w, c) of maps waiting to be flattened
    for (name, module), layer in pairs:
        if layer.type != "dense":
            maps = layer.output_shape
        if not isinstance(module, (nn.Conv2d, nn.Linear)):
            continue
        kernel = arrays.read(f"{layer.name}/kernel")
        if isinstance(module, nn.Linear) and maps:
            if len(maps) != 3 or min(maps) < 1 or math.prod(maps) != len(kernel):
                raise ModelError(
                    f"{arrays.where}: maps of the shape {maps} are not the {len(kernel)} inputs of {name}."
                )
            kernel = kernel.reshape(*maps, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
            maps = ()
        turned = kernel.transpose(3, 2, 0, 1) if isinstance(module, nn.Conv2d) else kernel.T
        state[f"{name}.weight"] = torch.from_numpy(np.ascontiguousarray(turned))
        state[f"{name}.bias"] = torch.from_numpy(arrays.read(f"{layer.name}/bias"))
    return state


def _check_layer(name: str, module: nn.Module, layer: _Layer, arrays: ArrayFile) -> None:
    """Refuse a described layer that is not what the network has at this place, before any array is read."""
    kind = _KINDS.get(layer.type)
    if kind is None or not isinstance(module, kind):
        raise ModelError(
            f"{arrays.where}: layer {layer.name!r:.100} is a {layer.type:.100}, but the network has a "
            f"{type(module).__name__} ({name}) there."
        )
    if isinstance(module, nn.Conv2d):
        padding = "valid" if module.padding == (0, 0) else "same"
        if layer.padding != padding:
            raise ModelError(
                f"{arrays.where}: {layer.name!r:.100} must have padding {padding!r}, not {layer.padding!r:.100}."
            )
        if layer.output_shape[-1:] != (module.out_channels,):
            raise ModelError(
                f"{arrays.where}: {layer.name!r:.100} must have {module.out_channels} maps, not the shape "
                f"{layer.output_shape!s:.100}."
            )
    if isinstance(module, (nn.Conv2d, nn.Linear)):
        for array, shape in (("kernel", _kernel_shape(module)), ("bias", module.weight.shape[:1])):
            key = f"{layer.name}/{array}"
            if key not in arrays.names:
                raise ModelError(f"{arrays.where} lacks {key!r:.100}; it has {', '.join(arrays.names)[:500]}.")
            header = arrays.header(key)
            if header.shape != tuple(shape):
                raise ModelError(
                    f"{arrays.where}: {key!r:.100} must have the shape {tuple(shape)}, not {header.shape}."
                )
            if header.kind.newbyteorder("=") != np.float32:
                raise ModelError(f"{arrays.where}: {key!r:.100} must be float32, not {header.kind}.")


def _kernel_shape(module: nn.Conv2d | nn.Linear) -> tuple[int, ...]:
    """Return the shape that Keras gives a kernel: HWIO, or inputs and units."""
    shape = tuple(module.weight.shape)
    return (*shape[2:], shape[1], shape[0])


def _card(entry: ModelEntry, network: Network, description: _Description) -> ModelCard:
    measured, source = description.mnist_accuracy, description.source
    percent = {"test_accuracy": measured.test_percent, "train_accuracy": measured.train_percent}
    return entry.card(
        network,
        metrics={name: round(value / 100, 5) for name, value in percent.items() if value is not None},
        recipe={"source": source.repository, "file": source.weights},
        seed=None,
        split="60,000 training and 10,000 test images of MNIST",
        versions={"keras": str(source.keras_version)},
    )
