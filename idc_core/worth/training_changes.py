"""Faults in how a network is trained: DeepCrime's operators, each one function that changes a training.

What is drawn (which class, layer or inputs) follows from the random numbers that a change gets, so that one setting
gives several mutants where something is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from idc_core.base.arrays import Array, Ints
from idc_core.base.registry import Registry
from idc_core.datasets import Dataset
from idc_core.models.entry import Recipe

Value = float | str


@dataclass(frozen=True, eq=False)
class Training:
    """What is trained: data, recipe, what is done to the untrained network, and the loss of scores and classes."""

    data: Dataset
    recipe: Recipe
    prepare: Callable[[nn.Module], nn.Module] = lambda network: network
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy


_Apply = Callable[[Training, Value, np.random.Generator], Training]


@dataclass(frozen=True)
class TrainingChange:
    """What is said of a change, the values it is tried with, and the function itself.

    `code` is DeepCrime's name; `drawn` says whether anything but the value matters.
    """

    name: str
    code: str
    label: str
    values: tuple[Value, ...]
    drawn: bool
    apply: _Apply


TRAINING_CHANGES: Registry[TrainingChange] = Registry("change of a training")
"""Changes by name, entered by `training_change`."""


def training_change(
    name: str, code: str, label: str, *values: Value, drawn: bool = False
) -> Callable[[_Apply], _Apply]:
    """Enter the decorated function into `TRAINING_CHANGES`."""

    def enter(apply: _Apply) -> _Apply:
        TRAINING_CHANGES.enter(name, TrainingChange(name, code, label, values, drawn, apply))
        return apply

    return enter


def _with(training: Training, inputs: Array, targets: Ints) -> Training:
    """Return the training with other inputs and classes."""
    ids = np.arange(len(targets))
    return replace(training, data=replace(training.data, inputs=inputs, targets=targets, ids=ids, texts=()))


def _some(rows: Ints, share: float, random: np.random.Generator) -> Ints:
    """Draw a share of some rows."""
    return np.sort(random.permutation(rows)[: round(share * len(rows))])


def _class(data: Dataset, random: np.random.Generator) -> int:
    return int(random.choice(np.unique(data.targets)))


@training_change("labels", "TCL", "A share of one class has other labels", 0.5, 0.75, 1.0, drawn=True)
def _labels(training: Training, share: Value, random: np.random.Generator) -> Training:
    data, chosen = training.data, _class(training.data, random)
    rows, targets = _some(np.flatnonzero(data.targets == chosen), float(share), random), data.targets.copy()
    targets[rows] = random.choice(np.setdiff1d(data.targets, [chosen]), len(rows))
    return _with(training, data.inputs, targets)


@training_change("removal", "TRD", "A share of every class is missing", 0.5, 0.8, 0.9, drawn=True)
def _removal(training: Training, share: Value, random: np.random.Generator) -> Training:
    data = training.data
    rows = [_some(np.flatnonzero(data.targets == one), 1 - float(share), random) for one in np.unique(data.targets)]
    kept = np.sort(np.concatenate(rows))
    return _with(training, data.inputs[kept], data.targets[kept])


@training_change("unbalance", "TUD", "A share of the less frequent classes is missing", 0.6, 0.9, drawn=True)
def _unbalance(training: Training, share: Value, random: np.random.Generator) -> Training:
    data = training.data
    kept = []
    for one, count in zip(*np.unique(data.targets, return_counts=True), strict=True):
        rows = np.flatnonzero(data.targets == one)
        few = count < len(data) / len(np.unique(data.targets))
        kept.append(_some(rows, 1 - float(share), random) if few else rows)
    chosen = np.sort(np.concatenate(kept))
    return _with(training, data.inputs[chosen], data.targets[chosen])


@training_change("noise", "TAN", "Inputs have noise, by the standard deviation of each", 0.5, 1.0, 2.0, drawn=True)
def _noise(training: Training, strength: Value, random: np.random.Generator) -> Training:
    inputs = training.data.inputs
    spread = inputs.std(axis=tuple(range(1, inputs.ndim)), keepdims=True) * float(strength)
    noisy = (inputs + spread * random.standard_normal(inputs.shape)).astype(np.float32)
    return _with(training, noisy, training.data.targets)


@training_change("overlap", "TCO", "A share of one class is there once more, as another class", 0.75, 1.0, drawn=True)
def _overlap(training: Training, share: Value, random: np.random.Generator) -> Training:
    data = training.data
    first, second = (int(one) for one in random.choice(np.unique(data.targets), 2, replace=False))
    again = _some(np.flatnonzero(data.targets == first), float(share), random)
    inputs, targets = data.inputs[again], np.full(len(again), second, np.int64)
    return _with(training, np.concatenate([data.inputs, inputs]), np.concatenate([data.targets, targets]))


@training_change("batch", "HBS", "Another size of batches", 4.0, 256.0)
def _batch(training: Training, size: Value, random: np.random.Generator) -> Training:
    return replace(training, recipe=replace(training.recipe, batch=int(size)))


@training_change("no-batches", "HDB", "One batch of all inputs", "all")
def _no_batches(training: Training, value: Value, random: np.random.Generator) -> Training:
    return replace(training, recipe=replace(training.recipe, batch=len(training.data)))


@training_change("learning-rate", "HLR", "A smaller learning rate, by this factor", 0.3, 0.1, 0.05)
def _learning_rate(training: Training, factor: Value, random: np.random.Generator) -> Training:
    rate = training.recipe.learning_rate * float(factor)
    return replace(training, recipe=replace(training.recipe, learning_rate=rate))


@training_change("epochs", "HNE", "Fewer epochs", 1.0, 2.0, 4.0)
def _epochs(training: Training, epochs: Value, random: np.random.Generator) -> Training:
    return replace(training, recipe=replace(training.recipe, epochs=int(epochs)))


@training_change("regularisation", "RAW", "Weights shrink, by this share per unit of learning rate", 3.0, 10.0, 30.0)
def _regularisation(training: Training, decay: Value, random: np.random.Generator) -> Training:
    return replace(training, recipe=replace(training.recipe, weight_decay=float(decay)))


_RATES = {"sgd": 1e-2, "rmsprop": 1e-3, "adagrad": 1e-2, "adadelta": 1.0}
"""Optimisers, with the learning rates that DeepCrime gives them."""


@training_change("optimiser", "OCH", "Another optimiser, with its usual learning rate", *_RATES)
def _optimiser(training: Training, name: Value, random: np.random.Generator) -> Training:
    recipe = replace(training.recipe, optimizer=str(name), learning_rate=_RATES[str(name)])
    return replace(training, recipe=recipe)


def _one_hot(scores: Tensor, classes: Tensor) -> Tensor:
    return F.one_hot(classes, scores.shape[1]).to(scores.dtype)


_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "squared error": lambda scores, classes: F.mse_loss(scores.softmax(1), _one_hot(scores, classes)),
    "absolute error": lambda scores, classes: F.l1_loss(scores.softmax(1), _one_hot(scores, classes)),
    "hinge": F.multi_margin_loss,
}


@training_change("loss", "LCH", "Another loss", *_LOSSES)
def _loss(training: Training, name: Value, random: np.random.Generator) -> Training:
    return replace(training, loss=_LOSSES[str(name)])


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": F.softplus,
    "none": lambda values: values,
}


class _OtherActivation(nn.Module):
    """A network in whose forward pass the ReLU of one number is another function."""

    def __init__(self, network: nn.Module, place: int, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.network, self.place, self.function = network, place, function

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores of inputs."""
        counting = _Counting(self.place, self.function)
        with counting:
            scores: Tensor = self.network(inputs)
        return scores


class _Counting(TorchFunctionMode):
    """Counts the ReLUs of a pass, and puts a function in place of one of them."""

    def __init__(self, place: int, function: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.place, self.function, self.met = place, function, 0

    def __torch_function__(self, called, types, args=(), kwargs=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN204
        """Run an operation of the pass, or the function instead."""
        if called in (F.relu, torch.relu, Tensor.relu):
            self.met += 1
            if self.met - 1 == self.place and self.function is not None:
                return self.function(args[0])
        return called(*args, **(kwargs or {}))


@training_change(
    "activation", "ACH, ARM", "One activation function is another one, or missing", *_ACTIVATIONS, drawn=True
)
def _activation(training: Training, name: Value, random: np.random.Generator) -> Training:
    number = float(random.random())

    def prepare(network: nn.Module) -> nn.Module:
        with torch.no_grad(), _Counting(-1) as counting:
            network(torch.from_numpy(training.data.inputs[:1].copy()))
        return _OtherActivation(network, int(number * counting.met), _ACTIVATIONS[str(name)])

    return replace(training, prepare=prepare)


def _layer(network: nn.Module, number: float) -> nn.Module:
    """Return the layer with weights at a share, 0 to 1, of all of them."""
    layers = [
        module for module in network.modules() if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
    ]
    return layers[int(number * len(layers))]


_INITIALISATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros": nn.init.zeros_,
    "ones": nn.init.ones_,
    "normal": nn.init.normal_,
    "orthogonal": nn.init.orthogonal_,
}


@training_change("initialisation", "WCI", "One layer starts with other weights", *_INITIALISATIONS, drawn=True)
def _initialisation(training: Training, name: Value, random: np.random.Generator) -> Training:
    number = float(random.random())

    def prepare(network: nn.Module) -> nn.Module:
        with torch.no_grad():
            _INITIALISATIONS[str(name)](_layer(network, number).weight)  # type: ignore[arg-type]
        return network

    return replace(training, prepare=prepare)


@training_change("no-bias", "WRB", "One layer has no bias", "none", drawn=True)
def _no_bias(training: Training, value: Value, random: np.random.Generator) -> Training:
    number = float(random.random())

    def prepare(network: nn.Module) -> nn.Module:
        bias = _layer(network, number).bias
        if isinstance(bias, nn.Parameter):
            bias.requires_grad_(False).zero_()
        return network

    return replace(training, prepare=prepare)
