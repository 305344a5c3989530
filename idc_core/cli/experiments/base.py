"""What the experiments of the command line share: the registry's entry, records, and a network made ready."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from idc_core.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idc_core.datasets import Dataset
    from idc_core.models import Network
    from idc_core.progress import Progress

Record = dict[str, str | int | float | None]
"""A row of a table; None where there is nothing to tell."""

PAPER = ("lenet1-mnist", "lenet4-mnist", "lenet5-mnist", "convnet-cifar10", "dave2-udacity")
"""The registry's counterparts of the five networks of the DeepImportance paper."""


@dataclass(frozen=True)
class Experiment:
    """What the registry knows of an experiment.

    Attributes
    ----------
    name, help : str
    models : tuple of str
        Networks it is made for, unless others are named.
    shown : tuple of str
        Fields of a record that the printed table has; a file has them all.
    run : callable
        (arguments, model, on_progress) to the records of one network.
    ms : tuple of int
        Numbers of important neurons, unless others are named.
    """

    name: str
    help: str
    models: tuple[str, ...]
    shown: tuple[str, ...]
    run: Callable[[argparse.Namespace, str, Progress], list[Record]]
    ms: tuple[int, ...] = (6,)


@dataclass(frozen=True, eq=False)
class Bench:
    """A network with its tests, and the neurons of its default layer ranked on its training inputs."""

    model: Network
    test: Dataset
    ranking: NDArray[np.int64]
    about: Record

    @property
    def layer(self) -> str:
        """The network's default layer."""
        return self.model.card.default_layer


def one_m(arguments: argparse.Namespace) -> int:
    """Return the number of important neurons of an experiment that takes one.

    Raises
    ------
    SettingError
        If there are several.
    """
    if len(arguments.m) > 1:
        raise SettingError(f"{arguments.name} takes one number of important neurons; got --m {arguments.m}.")
    return int(arguments.m[0])


def bench(arguments: argparse.Namespace, name: str, on_progress: Progress) -> Bench:
    """Load a network and its tests, and rank its neurons."""
    from idc_core.datasets import load_dataset
    from idc_core.importance.important_neurons import check_m
    from idc_core.importance.training_pass import RankedLayer
    from idc_core.lrp.rules import RelevanceSettings
    from idc_core.models import load_model
    from idc_core.tracing.trace import collect

    model = load_model(name)
    layer = model.card.default_layer
    train = load_dataset(model.card.dataset, "train", arguments.limit_train, on_progress=on_progress)
    learnt = collect(model, train, [layer], RelevanceSettings(arguments.rule), on_progress=on_progress)
    ranking = RankedLayer.of(learnt, layer, learnt.relevance[layer].shape[1]).important
    m = one_m(arguments)
    check_m(m, len(ranking))
    test = load_dataset(model.card.dataset, "test", arguments.limit, on_progress=on_progress)
    about: Record = {
        "model": name,
        "layer": layer,
        "neurons": len(ranking),
        "train": len(train),
        "tests": len(test),
        "rule": arguments.rule,
        "fingerprint": model.card.fingerprint,
        "important_neurons": " ".join(str(neuron) for neuron in ranking[:m]),
    }
    return Bench(model, test, ranking, about)
