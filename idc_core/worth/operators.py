"""What mutates a trained network: the operators of DeepMutation that any dense or convolutional layer allows.

Each changes some neurons of one layer through the weights that lead into them, so the network's code stays as it is.
A layer with weights (neurons, ...) has them here as a table (neurons, inputs); of a convolution a neuron is a channel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.registry import Registry

Weights = NDArray[np.float32]
_Apply = Callable[[Weights, Weights, float, np.random.Generator], None]
"""Called with weights (neurons, inputs), biases (neurons,), a share above 0 and at most 1, and random numbers; changes
both in place."""


@dataclass(frozen=True)
class Operator:
    """What is said of an operator, and the function itself."""

    name: str
    label: str
    help: str
    apply: _Apply


OPERATORS: Registry[Operator] = Registry("operator that mutates a trained network")
"""Operators by name, entered by `mutation_operator`."""


def mutation_operator(name: str, label: str, help: str) -> Callable[[_Apply], _Apply]:
    """Enter the decorated function into `OPERATORS`."""

    def enter(apply: _Apply) -> _Apply:
        OPERATORS.enter(name, Operator(name, label, help, apply))
        return apply

    return enter


def _chosen(count: int, share: float, random: np.random.Generator, least: int = 1) -> NDArray[np.int64]:
    """Draw a share of `count` places, at least so many of them."""
    return random.permutation(count)[: min(count, max(least, round(share * count)))]


@mutation_operator("gaussian-fuzzing", "Gaussian fuzzing", "Noise on a share of a layer's weights, as large as they.")
def _fuzzing(weights: Weights, biases: Weights, share: float, random: np.random.Generator) -> None:
    flat = weights.reshape(-1)
    places = _chosen(flat.size, share, random)
    flat[places] += (random.standard_normal(len(places)) * weights.std()).astype(np.float32)


@mutation_operator("weight-shuffling", "Weight shuffling", "Puts the weights into a share of neurons in another order.")
def _shuffling(weights: Weights, biases: Weights, share: float, random: np.random.Generator) -> None:
    rows = _chosen(len(weights), share, random)
    weights[rows] = random.permuted(weights[rows], axis=1)


@mutation_operator("neuron-block", "Neuron effect block", "A share of neurons gives 0 before the activation function.")
def _block(weights: Weights, biases: Weights, share: float, random: np.random.Generator) -> None:
    rows = _chosen(len(weights), share, random)
    weights[rows] = 0
    biases[rows] = 0


@mutation_operator(
    "activation-inversion", "Activation inversion", "A share of neurons has the other sign before the activation."
)
def _inversion(weights: Weights, biases: Weights, share: float, random: np.random.Generator) -> None:
    rows = _chosen(len(weights), share, random)
    weights[rows] *= -1
    biases[rows] *= -1


@mutation_operator("neuron-switch", "Neuron switch", "A share of neurons take each other's places, two by two.")
def _switch(weights: Weights, biases: Weights, share: float, random: np.random.Generator) -> None:
    rows = _chosen(len(weights), share, random, least=2)
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 : len(rows) // 2 * 2]
    for values in (weights, biases):
        values[np.concatenate([first, second])] = values[np.concatenate([second, first])]
