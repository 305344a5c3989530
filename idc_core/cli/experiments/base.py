"""The parts that experiments of the command line share: the registry's entry, records, and a network with its data."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.datasets import Dataset
    from idc_core.models import Network

Record = dict[str, str | int | float | None]
"""A row of a table; None where there is nothing to tell."""

PAPER = ("lenet1-mnist", "lenet4-mnist", "lenet5-mnist", "convnet-cifar10", "dave2-udacity")
"""The registry's counterparts of the five networks of the DeepImportance paper."""


@dataclass(frozen=True)
class Experiment:
    """One experiment: `run` takes (arguments, model, on_progress) and returns the records of one network."""

    name: str
    help: str
    models: tuple[str, ...]
    """Networks, unless others are named."""
    shown: tuple[str, ...]
    """Fields of a record in the printed table; a file has them all."""
    run: Callable[[argparse.Namespace, str, Progress], list[Record]]
    ms: tuple[int, ...] = (6,)
    """Numbers of important neurons, unless others are named."""
    protocols: bool = False
    """Whether it can follow another protocol than the studio's."""
    trainings: bool = False
    """Whether it can be made for several trainings of each network."""
    together: Callable[[argparse.Namespace, Sequence[str], Progress], list[Record]] | None = None
    """Called in place of `run` where it is given: takes all networks at once, on an engine where one is named."""


def one_m(arguments: argparse.Namespace) -> int:
    """Return the number of important neurons of an experiment that takes one."""
    if len(arguments.m) > 1:
        raise SettingError(f"{arguments.name} takes one number of important neurons; got --m {arguments.m}.")
    return int(arguments.m[0])


def usual_ms(ms: Sequence[int], name: str) -> list[int]:
    """Return the numbers of important neurons that an experiment takes of a network: its own, or all of fewer."""
    from idc_core.analysis.analysis import count_neurons
    from idc_core.datasets import load_dataset
    from idc_core.models import load_model

    model = load_model(name)
    neurons = count_neurons(model, load_dataset(model.card.dataset, "train", 1), model.card.default_layer)
    return list(dict.fromkeys(min(m, neurons) for m in ms))


def load(arguments: argparse.Namespace, name: str, on_progress: Progress) -> tuple[Network, Dataset, Dataset]:
    """Return a network with its training inputs and tests, as many as the command line asks for.

    The network is the project's own, or one of the trainings that the command line asks for; training inputs are those
    that the protocol learns from.
    """
    from idc_core.datasets import load_dataset
    from idc_core.models import find_entry, load_model
    from idc_core.models.trainings import load_training

    if arguments.training is None:
        model = load_model(name)
    else:
        recipe = arguments.protocol.recipes.get(find_entry(name).dataset)
        model = load_training(name, arguments.training, recipe, on_progress=on_progress)
    train = load_dataset(model.card.dataset, "train", arguments.limit_train, on_progress=on_progress)
    test = load_dataset(model.card.dataset, "test", arguments.limit, on_progress=on_progress)
    return model, arguments.protocol.learnt_from(model, train), test
