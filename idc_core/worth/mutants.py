"""Mutants of a trained network, and which tests kill them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.base.arrays import Ints
from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress, report
from idc_core.base.ranges import SEED
from idc_core.datasets import Dataset
from idc_core.errors import DataError, ModelError
from idc_core.lrp.session import lock_of, named_layers
from idc_core.tracing.trace import collect
from idc_core.worth.operators import OPERATORS, Operator
from idc_core.worth.yardstick import Yardstick

LEAST_ACCURACY = 0.9
"""Share of the original's accuracy on the pool below which a mutant is left out: anything would kill it."""

MUTANTS = 60
"""Mutants of one network, unless others are asked for: equally many of every operator."""

_TRIES = 10
"""How often a mutant is drawn anew, on average, before an operator is left with fewer."""

_SHARES = (0.01, 0.5)
"""Least and largest share of neurons, or weights, of one layer; drawn uniformly on a logarithmic scale."""

_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True)
class Mutant:
    """How a mutant was made, and its accuracy on the pool, 0..1.

    `where` is the layer, of a retrained one empty; `value` the share of its neurons, or the operator's setting.
    """

    operator: str
    where: str
    value: float | str
    accuracy: float


@dataclass(frozen=True, eq=False)
class Mutants:
    """The mutants of one network, and the tests of a pool that kill them.

    Attributes
    ----------
    name : str
        What they are, for people.
    mutants : tuple of Mutant
        Those that are accurate enough and killed by some test.
    killed : bool (n, mutants)
        Whether test i kills mutant j.
    classes : int64 (n,)
        True classes of the tests.
    inaccurate, equivalent : int
        Mutants left out: of too low an accuracy, and killed by no test of the pool.
    """

    name: str
    mutants: tuple[Mutant, ...]
    killed: NDArray[np.bool_]
    classes: Ints
    inaccurate: int
    equivalent: int

    def yardstick(self, *, by_class: bool = True) -> Yardstick:
        """Return mutants as targets, or `by_class` each pair of a mutant and a class in which some test kills it.

        The share of the latter that a suite finds is DeepMutation's score (equation 1), without pairs that no test of
        the pool kills.

        Notes
        -----
        L. Ma et al., "DeepMutation: Mutation Testing of Deep Learning Systems", ISSRE 2018, section III.C.
        """
        if not by_class:
            return Yardstick(self.name, self.killed)
        of_class = self.classes[:, None] == np.unique(self.classes)
        pairs = (self.killed[:, :, None] & of_class[:, None]).reshape(len(self.killed), -1)
        return Yardstick(f"{self.name}, by class", pairs[:, pairs.any(0)])


def mutants_after_training(
    model: nn.Module,
    pool: Dataset,
    *,
    count: int = MUTANTS,
    operators: Sequence[str] | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Mutants:
    """Mutate a trained classifier, and find which tests of the pool kill each mutant.

    A test kills a mutant if the network classifies it rightly and the mutant does not. Mutants of an accuracy on the
    pool of less than 90 % of the network's, and those that no test of the pool kills, are drawn anew.

    Parameters
    ----------
    model : Module
        A classifier, left as it is: a copy is mutated, one layer at a time.
    pool : Dataset
        Tests with their true classes.
    count : int
        Mutants, equally many of each operator; fewer where ten times as many draws give no more.
    operators : sequence of str, optional
        Names in `OPERATORS`; default all.
    seed : int
        A mutant depends on it, its operator and the number of its draw alone.

    Raises
    ------
    DataError
        If the tests have no classes.
    ModelError
        If no layer is dense or convolutional, or no mutant is left.

    Notes
    -----
    L. Ma et al., "DeepMutation", ISSRE 2018, Table II: its operators that change no layer as a whole. There a blocked
    neuron's outgoing weights are 0, here those that lead into it and its bias, which is the same wherever the
    activation function of 0 is 0. There 1 % of all neurons or weights are changed, here a random share of one layer.
    """
    if pool.task != "classification":
        raise DataError(f"Mutants are killed by tests with classes; the task of {pool.name!r} is {pool.task}.")
    chosen = [OPERATORS[name] for name in (OPERATORS if operators is None else operators)]
    each = -(-whole_number("count", count, 1) // len(chosen))
    SEED.check(seed)
    right = predicted_classes(model, pool) == pool.targets
    with lock_of(model):
        changed = copy.deepcopy(model)
    if not _weighted(changed):
        raise ModelError("Only dense and convolutional layers are mutated, and this network has none.")
    sieve = Sieve(float(right.mean()))
    for place, operator in enumerate(chosen):
        done = 0
        for number in range(each * _TRIES):
            random = np.random.default_rng((seed, crc32(operator.name.encode()), number))
            with _mutated(changed, operator, random) as (where, share):
                still = predicted_classes(changed, pool) == pool.targets
            done += sieve.take(Mutant(operator.name, where, share, float(still.mean())), right & ~still)
            report(on_progress, place * each + done, each * len(chosen), f"mutants: {operator.label}")
            if done == each:
                break
    return sieve.mutants("mutants after training", pool.targets)


def predicted_classes(model: nn.Module, pool: Dataset) -> Ints:
    """Return the class that a network gives each test of a pool, int64 (n,)."""
    return np.asarray(collect(model, pool.inputs, []).scores.argmax(1), np.int64)


class Sieve:
    """Takes mutants one by one, and keeps those that are accurate enough and killed by some test.

    Parameters
    ----------
    accuracy : float
        The original's on the pool, 0..1.
    """

    def __init__(self, accuracy: float) -> None:
        self._least = LEAST_ACCURACY * accuracy
        self._kept: list[tuple[Mutant, NDArray[np.bool_]]] = []
        self._inaccurate = self._equivalent = 0

    def lost(self, accuracy: float) -> bool:
        """Return whether a mutant of that accuracy is left out."""
        return accuracy < self._least

    def take(self, mutant: Mutant, killed: NDArray[np.bool_]) -> bool:
        """Return whether a mutant is kept, which the tests `killed`, bool (n,), kill."""
        if self.lost(mutant.accuracy):
            self._inaccurate += 1
            return False
        if not killed.any():
            self._equivalent += 1
            return False
        self._kept.append((mutant, killed))
        return True

    def mutants(self, name: str, classes: Ints) -> Mutants:
        """Return what was kept; ModelError if that is nothing."""
        if not self._kept:
            raise ModelError(
                f"No mutant is both accurate and killed by one of {len(classes)} tests: {self._inaccurate} are less "
                f"accurate than {LEAST_ACCURACY:.0%} of the network, {self._equivalent} killed by none: take more."
            )
        made, kills = zip(*self._kept, strict=True)
        return Mutants(name, made, np.stack(kills, 1), classes, self._inaccurate, self._equivalent)


def _weighted(model: nn.Module) -> dict[str, nn.Module]:
    """Return the layers with a table of weights (neurons, inputs) by name, in forward order of their making."""
    return {name: module for name, module in named_layers(model).items() if isinstance(module, _LAYERS)}


@contextmanager
def _mutated(model: nn.Module, operator: Operator, random: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Mutate a layer of a network, and put its weights back; gives the layer's name and the share that was drawn."""
    layers = _weighted(model)
    where = list(layers)[random.integers(len(layers))]
    share = float(np.exp(random.uniform(*np.log(_SHARES))))
    layer = layers[where]
    values = [value for value in (layer.weight, layer.bias) if isinstance(value, torch.Tensor)]
    before = [value.detach().clone() for value in values]
    weights = before[0].flatten(1).cpu().float().numpy().copy()
    biases = before[1].cpu().float().numpy().copy() if len(before) == 2 else np.zeros(len(weights), np.float32)
    operator.apply(weights, biases, share, random)
    try:
        with torch.no_grad():
            for value, table in zip(values, (weights, biases), strict=False):
                value.copy_(torch.from_numpy(table).reshape(value.shape))
        yield where, share
    finally:
        with torch.no_grad():
            for value, kept in zip(values, before, strict=True):
                value.copy_(kept)
