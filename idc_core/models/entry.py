"""What is known of a network without building it: its registry entry and its recipe. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from idc_core.models.card import ModelCard, Task

if TYPE_CHECKING:
    from idc_core.models.network import Network


@dataclass(frozen=True)
class Recipe:
    """How a network is trained; together with a seed it fixes the weights.

    Attributes
    ----------
    optimizer, schedule, augmentation : str
        Names in `OPTIMIZERS`, `SCHEDULES` and `AUGMENTATIONS` of `idc_core.models.recipes`.
    learning_rate : float
        The optimiser's learning rate; the highest one where the schedule varies it.
    batch, epochs : int
        Inputs a step and passes over the training split.
    weight_decay : float
        Share of each weight taken away per unit of learning rate and step, apart from the gradient.
    note : str
        Where the recipe departs from the paper's and why, in a sentence.
    """

    optimizer: str
    learning_rate: float
    batch: int
    epochs: int
    schedule: str = "one-cycle"
    augmentation: str = "none"
    weight_decay: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class ModelEntry:
    """One line of the registry.

    Attributes
    ----------
    name, label, help : str
        Registry name, name for people, and one line on what the network is.
    build : callable
        Returns the network with fresh, untrained weights (see `complete`); imports torch only when it is called.
    layers : tuple of str
        Names of the layers that have neurons, in forward order; the built network's own.
    dataset : str
        Registry name of the data set the network takes.
    task : {"classification", "regression"}
    default_layer : str
        The last hidden layer with weights, unless that layer tells little.
    parameters : int or None
        The exact number of trained values, where it is known; tests hold the network to it.
    recipe : Recipe or None
        None for networks that are not trained here.
    citation, licence : str
    complete : bool
        Whether `build` returns the network with its weights, so that no file is read.
    edition : int
        Another number whenever a network of this name is registered again; 0 for those of the project.
    """

    name: str
    label: str
    help: str
    build: Callable[[], Network]
    layers: tuple[str, ...]
    dataset: str
    default_layer: str
    parameters: int | None
    recipe: Recipe | None
    citation: str
    licence: str
    task: Task = "classification"
    complete: bool = False
    edition: int = 0

    def card(self, network: Network, **measured: Any) -> ModelCard:
        """Return the card of a network of this entry; `measured` are the fields that are not the entry's own."""
        from idc_core.models.weights import fingerprint

        own = {name: getattr(self, name) for name in ("name", "label", "dataset", "task", "default_layer", "layers")}
        terms = {"licence": self.licence, "citation": self.citation}
        count = sum(parameter.numel() for parameter in network.parameters())
        return ModelCard(**{**own, **terms, "parameters": count, "fingerprint": fingerprint(network), **measured})

    @property
    def published(self) -> bool:
        """Whether the weights are a paper's own rather than trained here or built in."""
        return self.recipe is None and not self.complete
