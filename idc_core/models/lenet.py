"""LeNet-1, LeNet-4 and LeNet-5: two convolutions with pooling, then none, one or two hidden dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.entry import ModelEntry, Network, Recipe


class LeNet(Network):
    """A LeNet for 28x28 grey images and ten classes.

    Layers: `conv1`, `pool1`, `conv2`, `pool2`, then `fc1`, `fc2`, ... and `logits`.

    Parameters
    ----------
    channels : pair of int
        Filters of the two 5x5 convolutions.
    hidden : sequence of int
        Units of the hidden dense layers.
    padding : int
        Zeros around each convolution's input: 2 keeps the size ("same"), 0 is "valid".

    Notes
    -----
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document recognition",
    Proceedings of the IEEE 86(11), 1998, in the simplified form of DeepXplore (SOSP 2017): ReLU, max pooling,
    full connections between the two convolutions.
    """

    def __init__(self, channels: tuple[int, int], hidden: Sequence[int], padding: int) -> None:
        super().__init__()
        first, second = channels
        self.conv1 = nn.Conv2d(1, first, 5, padding=padding)
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(first, second, 5, padding=padding)
        self.pool2 = nn.MaxPool2d(2)
        side = ((28 + 2 * padding - 4) // 2 + 2 * padding - 4) // 2
        width = second * side * side
        self.dense = tuple(f"fc{number}" for number in range(1, len(hidden) + 1))
        for name, units in zip(self.dense, hidden, strict=True):
            self.add_module(name, nn.Linear(width, units))
            width = units
        self.logits = nn.Linear(width, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores (n, 10) of images (n, 1, 28, 28) in 0..1."""
        hidden = self.pool1(F.relu(self.conv1(inputs)))
        hidden = self.pool2(F.relu(self.conv2(hidden))).flatten(1)
        for name in self.dense:
            hidden = F.relu(self.get_submodule(name)(hidden))
        scores: Tensor = self.logits(hidden)
        return scores


@dataclass(frozen=True)
class _Shape:
    number: int
    channels: tuple[int, int]
    hidden: tuple[int, ...]
    default_layer: str
    same_parameters: int
    valid_parameters: int


_SHAPES = (
    _Shape(1, (4, 12), (), "conv2", 7_206, 3_246),
    _Shape(4, (6, 16), (84,), "fc1", 69_362, 25_010),
    _Shape(5, (6, 16), (120, 84), "fc2", 107_786, 44_426),
)

_LECUN = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, "
    "Proceedings of the IEEE 86(11), 1998"
)
_DEEPXPLORE = (
    "K. Pei, Y. Cao, J. Yang, S. Jana, DeepXplore: Automated Whitebox Testing of Deep Learning Systems, "
    "SOSP 2017"
)
_DEEPIMPORTANCE = (
    "S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, Importance-Driven Deep Learning System Testing, ICSE 2020"
)
_RECIPES = {
    "digits": Recipe(
        "adamw", 3e-3, batch=32, epochs=20,
        note="Adam with a one-cycle schedule instead of the paper's Adadelta: 1,257 images give few steps.",
    ),
    "mnist": Recipe(
        "adamw", 3e-3, batch=128, epochs=10,
        note="Adam with a one-cycle schedule instead of the paper's Adadelta (learning rate 1.0, batch 256).",
    ),
}
_DATA_LABELS = {"digits": "digits", "mnist": "MNIST"}


def _trained(shape: _Shape, dataset: str) -> ModelEntry:
    return ModelEntry(
        name=f"lenet{shape.number}-{dataset}",
        label=f"LeNet-{shape.number} on {_DATA_LABELS[dataset]}",
        help=f"{shape.same_parameters:,} parameters, trained on {_DATA_LABELS[dataset]}.",
        build=partial(LeNet, shape.channels, shape.hidden, 2),
        dataset=dataset,
        default_layer=shape.default_layer,
        parameters=shape.same_parameters,
        recipe=_RECIPES[dataset],
        citation=_LECUN,
        licence="MIT",
    )


def _published(shape: _Shape, name: str, paper: str, *, same: bool) -> ModelEntry:
    parameters = shape.same_parameters if same else shape.valid_parameters
    return ModelEntry(
        name=name,
        label=f"LeNet-{shape.number} of {'DeepXplore' if same else 'DeepImportance'}",
        help=f"The weights published with the paper: LeNet-{shape.number}, {parameters:,} parameters, MNIST.",
        build=partial(LeNet, shape.channels, shape.hidden, 2 if same else 0),
        dataset="mnist",
        default_layer=shape.default_layer,
        parameters=parameters,
        recipe=None,
        citation=paper,
        licence="MIT",
    )


ENTRIES = (
    *(_trained(shape, dataset) for dataset in ("digits", "mnist") for shape in _SHAPES),
    *(
        _published(shape, f"deepxplore-model{position}", _DEEPXPLORE, same=True)
        for position, shape in enumerate(_SHAPES, start=1)
    ),
    *(
        _published(shape, f"deepimportance-lenet{shape.number}", _DEEPIMPORTANCE, same=False)
        for shape in _SHAPES
    ),
)
