"""Retraining with inputs added to the training data, measured on several kinds of tests, over several seeds."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress, report
from idc_core.datasets import Dataset
from idc_core.errors import CancelledError, DataError, ModelError, SettingError
from idc_core.experiments.random_neurons import Seeds, check_seeds
from idc_core.experiments.retraining_results import RetrainedNetwork, Retraining
from idc_core.models.entry import Recipe
from idc_core.models.registry import MODELS
from idc_core.models.training import fit, measure, reproducible
from idc_core.models.weights import fingerprint
from idc_core.perturbation import attack

Examples = tuple[NDArray[np.generic], NDArray[np.generic]]
"""Inputs (n, ...) and their targets (n,)."""

Addition = Examples | Callable[[int], Examples] | None
"""What is added to the training data: the same for every seed, made from the seed, or nothing."""

Test = Examples | Callable[[nn.Module], Examples]
"""What is measured: the same for every network, or made from the retrained network, as an attack on it."""

Start = Literal["trained", "scratch"]

Store = MutableMapping[str, Mapping[str, NDArray[np.generic]]]
"""Where retrained networks are kept, as arrays by name: a dict, or an `idc_core.store.cache.ArrayFolder`."""

_OnResult = Callable[[str, int, RetrainedNetwork], None]
"""Called with the addition, the seed and the network as soon as one is finished, or read from the store."""

_GENTLY = 1 / 3
"""Retraining begins with this share of the learning rate that the network was trained with."""

_BIM_STEPS = 10

APART = 1_000_003
"""Added to the seeds of tests, so that none of them is made with the randomness of an input that was added."""

_SHOWN = 24
"""Inputs of every addition, at even distances, that are kept to be shown."""


def retrain(
    model: nn.Module,
    train: Dataset,
    additions: Mapping[str, Addition],
    tests: Mapping[str, Test],
    *,
    seeds: Seeds = 5,
    epochs: int = 5,
    start: Start = "trained",
    recipe: Recipe | None = None,
    store: Store | None = None,
    on_result: _OnResult | None = None,
    on_progress: Progress | None = None,
) -> Retraining:
    """Train a network further with several additions to its training data, and measure it after every epoch.

    An addition that is None, or has no inputs, is the baseline; a function is called with the seed. A test that is a
    function is called with the retrained network, in eval mode, after every epoch. A seed fixes the order of inputs,
    dropout, augmentation, fresh weights and additions. `recipe` is by default the network's own, from trained weights
    with `_GENTLY` of its learning rate; its epochs are ignored. Networks are put into `store` and read from it: a store
    belongs to one experiment, and of functions it knows the names alone. `on_progress` is called with training steps;
    where it returns False, the result has the networks that were finished.

    Notes
    -----
    The comparison is fair in that every addition gets the same number of steps of the same size: an epoch has as many
    as one pass over `train` alone. So what is added takes the place of training inputs, and the baseline sees those
    more often. Additions of equal size meet at the same steps of the same seed. Training runs on one thread, so that
    the same seed gives the same weights (see `idc_core.models.training.train`).
    """
    listed = check_seeds(seeds)
    _check_settings(additions, tests, epochs, start)
    chosen = recipe or usual_recipe(model, start)
    # Fixed by the training inputs alone, so that a step is as large with additions as without.
    chosen = replace(chosen, epochs=epochs, batch=min(chosen.batch, len(train)))
    fixed = {name: _as_data(train, test, f"test {name!r}") for name, test in tests.items() if isinstance(test, tuple)}
    work = _Work(model, train, dict(tests), fixed, chosen, start)
    about = work.about()
    networks: dict[tuple[str, int], RetrainedNetwork] = {}
    everything = len(listed) * len(additions)
    try:
        for place, (seed, name) in enumerate((seed, name) for seed in listed for name in additions):
            key = f"{name}-{seed}"
            mine = _digest(about, key, additions[name])
            held = None if store is None else store.get(key)
            network = None if held is None else _stored(held, mine, key)
            if network is None:
                inner = _inner(on_progress, place, everything, f"Retraining with {name}, seed {seed}")
                network = work.run(additions[name], name, seed, inner)
                if store is not None:
                    store[key] = {**network.arrays(), "experiment": np.array(mine)}
            networks[name, seed] = network
            if on_result is not None:
                on_result(name, seed, network)
    except CancelledError:
        pass  # finished networks are the result
    return Retraining(
        tuple(additions), listed, tuple(tests), train.task, epochs, work.steps, len(train), start, networks
    )


@dataclass(frozen=True, eq=False)
class RetrainingPlan:
    """A comparison that is ready to run; its store keeps every network that is finished."""

    model: nn.Module
    train: Dataset
    additions: dict[str, Addition]
    tests: dict[str, Test]
    store: Store
    epochs: int = 5
    start: Start = "trained"

    def run(
        self,
        seeds: Seeds = 5,
        additions: Sequence[str] | None = None,
        *,
        on_result: _OnResult | None = None,
        on_progress: Progress | None = None,
    ) -> Retraining:
        """Retrain with all additions, or with some of them, as `retrain`; what is in the store is not run again."""
        chosen = {name: self.additions[name] for name in additions or self.additions}
        return retrain(
            self.model,
            self.train,
            chosen,
            self.tests,
            seeds=seeds,
            epochs=self.epochs,
            start=self.start,
            store=self.store,
            on_result=on_result,
            on_progress=on_progress,
        )


def attacked(
    model: nn.Module,
    inputs: NDArray[np.generic],
    targets: NDArray[np.generic],
    epsilon: float,
    name: str = "fgsm",
    on_progress: Progress | None = None,
) -> Examples:
    """Attack inputs by FGSM or, in `_BIM_STEPS` steps, by BIM; their targets stay. CancelledError if stopped."""
    run = partial(attack, step=2 * epsilon / _BIM_STEPS, steps=_BIM_STEPS) if name == "bim" else attack
    result = run(model, inputs, targets, name, epsilon=epsilon, on_progress=on_progress)
    if not result.complete:
        raise CancelledError(f"Stopped on request while {len(inputs)} tests were attacked by {name}.")
    return np.asarray(result.inputs, np.float32), targets


def usual_recipe(model: nn.Module, start: Start = "trained") -> Recipe:
    """Return the default recipe of retraining: the one that the network was trained with, more gently."""
    entry = MODELS.get(getattr(getattr(model, "card", None), "name", ""))
    own = (entry.recipe if entry else None) or Recipe("adamw", 3e-3, batch=128, epochs=1)
    return replace(own, learning_rate=own.learning_rate * _GENTLY) if start == "trained" else own


@dataclass(frozen=True, eq=False)
class _Work:
    """The settings that all networks of an experiment share."""

    model: nn.Module
    train: Dataset
    tests: dict[str, Test]
    fixed: dict[str, Dataset]
    recipe: Recipe
    start: Start

    @property
    def steps(self) -> int:
        """Steps of an epoch: one pass over the training inputs."""
        return len(self.train) // self.recipe.batch

    def about(self) -> str:
        """Return a digest of the experiment, as far as it can be known without running it."""
        settings = (fingerprint(self.model), asdict(self.recipe), self.start, list(self.tests), _SHOWN)
        data = (self.train, *self.fixed.values())
        return _digest(repr(settings), "", *((dataset.inputs, dataset.targets) for dataset in data))

    def run(self, addition: Addition, name: str, seed: int, on_progress: Progress | None) -> RetrainedNetwork:
        """Train and measure one copy of the network."""
        report(on_progress, 0, self.steps * self.recipe.epochs, "inputs to add")
        made = addition(seed) if callable(addition) else addition
        added = made if made is not None and len(made[1]) else None
        data = self.train if added is None else _joined(self.train, added, name)
        with reproducible(seed):
            network = copy.deepcopy(self.model) if self.start == "trained" else _with_fresh_weights(self.model)
            for parameter in network.parameters():
                parameter.requires_grad_(True)
            values = [self.measured(network)]
            fit(
                network,
                data,
                self.recipe,
                seed=seed,
                label=name,
                steps=self.steps,
                on_epoch=lambda done: values.append(self.measured(network)),
                on_progress=on_progress,
            )
        weights = {key: value.detach().contiguous().numpy().copy() for key, value in network.state_dict().items()}
        inputs, targets = (self.train.inputs[:0], self.train.targets[:0]) if added is None else added
        some = np.unique(np.linspace(0, len(targets) - 1, min(_SHOWN, len(targets))).round().astype(int))
        return RetrainedNetwork(np.array(values), len(targets), inputs[some], targets[some], weights)

    def measured(self, network: nn.Module) -> list[float]:
        """Return accuracy or error on every test, and leave the network in training mode."""
        network.eval()
        values = []
        for name, test in self.tests.items():
            made = test(network) if callable(test) else test
            data = self.fixed.get(name) or _as_data(self.train, made, f"test {name!r}")
            (value,) = measure(network, data).values()
            values.append(value)
        network.train()
        return values


def _with_fresh_weights(model: nn.Module) -> nn.Module:
    """Return a copy of a network with fresh weights, drawn by torch's own generator."""
    network = copy.deepcopy(model)
    for name, part in network.named_modules():
        begin = getattr(part, "reset_parameters", None)
        if callable(begin):
            begin()
        elif next(part.parameters(recurse=False), None) is not None:
            raise ModelError(
                f"Part {name or 'itself'!r} of the network, a {type(part).__name__}, has weights but no "
                "reset_parameters(): it cannot get fresh weights. Retrain it from its own."
            )
    return network


def _check_settings(additions: Mapping[str, Addition], tests: Mapping[str, Test], epochs: int, start: str) -> None:
    if not additions or not tests:
        raise SettingError(f"Expected at least one addition and one test, got {len(additions)} and {len(tests)}.")
    whole_number("epochs", epochs, 1)
    if start not in ("trained", "scratch"):
        raise SettingError(f"start must be 'trained' or 'scratch', not {start!r}.")


def _as_data(train: Dataset, examples: Examples, what: str) -> Dataset:
    """Return inputs and targets as data of the training data's kind."""
    inputs, targets = examples
    if inputs.shape[1:] != train.inputs.shape[1:] or inputs.dtype != train.inputs.dtype or not len(inputs):
        raise DataError(
            f"The {what} has inputs of shape {inputs.shape}, {inputs.dtype}; expected one or more like the training "
            f"inputs: (n, {', '.join(map(str, train.inputs.shape[1:]))}), {train.inputs.dtype}."
        )
    if targets.shape != (len(inputs),) or targets.dtype != train.targets.dtype:
        raise DataError(
            f"The {what} has targets of shape {targets.shape}, {targets.dtype}, for {len(inputs)} inputs; expected one "
            f"{train.targets.dtype} each."
        )
    return replace(train, inputs=inputs, targets=targets, ids=np.arange(len(targets)), texts=())


def _joined(train: Dataset, added: Examples, name: str) -> Dataset:
    more = _as_data(train, added, f"addition {name!r}")
    inputs = np.concatenate([train.inputs, more.inputs])
    targets = np.concatenate([train.targets, more.targets])
    return replace(more, inputs=inputs, targets=targets)


def _digest(about: str, key: str, *parts: Addition) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over texts and fixed arrays; functions count by their key alone."""
    digest = hashlib.sha256(f"{about}\n{key}\n".encode())
    for part in parts:
        for array in part if isinstance(part, tuple) else ():
            digest.update(repr((array.dtype.str, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


def _stored(arrays: Mapping[str, NDArray[np.generic]], experiment: str, key: str) -> RetrainedNetwork:
    """Return a network from a store that holds it for this experiment."""
    if str(arrays.get("experiment", "")) != experiment:
        raise DataError(
            f"The store's network {key!r} is of another experiment: network, data, additions or settings differ. Give "
            "every experiment a store of its own, or empty this one."
        )
    return RetrainedNetwork.of(arrays)


def _inner(on_progress: Progress | None, place: int, count: int, label: str) -> Progress | None:
    """Return the callback of one network of several: it counts the steps of all."""
    if on_progress is None:
        return None
    return lambda done, total, what: on_progress(place * total + done, count * total, f"{label} ({what})")
