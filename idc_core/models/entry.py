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

    Optimiser, schedule and augmentation are names in the registries of `idc_core.models.recipes`. `learning_rate` is
    the highest one where the schedule varies it; `batch` is inputs per step; `weight_decay` the share of each weight
    taken away per unit of learning rate and step, apart from the gradient; `note` says where the recipe departs from
    the paper's and why.
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
class Found:
    """What a pass over two inputs told of a network: its layers in forward order, and the one analysed by default."""

    layers: tuple[str, ...]
    default_layer: str


@dataclass(frozen=True)
class ModelEntry:
    """One line of the registry.

    `build` returns the network with fresh, untrained weights, or where `complete` with its own, so that no file is
    read; it imports torch only when it is called. `layers` are those that have neurons, in forward order;
    `default_layer` is the last hidden one with weights, unless that layer tells little. `dataset` is what the network
    takes; `parameters` the exact number of trained values, where it is known; `recipe` None for networks that are not
    trained here; `edition` another number whenever a network of this name is registered again, 0 for the project's own.
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
