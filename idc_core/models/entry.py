"""What is known of a network without building it: its registry entry, its recipe, its card. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from idc_core.errors import ModelError

if TYPE_CHECKING:
    from idc_core.models.network import Network

Task = Literal["classification", "regression"]


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
class ModelCard:
    """What a person should know about a trained network before trusting it.

    Attributes
    ----------
    name, label : str
        Registry name, and the name shown to people.
    dataset : str
        Registry name of the data set it was trained and measured on.
    task : {"classification", "regression"}
    parameters : int
        Number of trained values.
    default_layer : str
        The layer analysed unless another one is chosen.
    layers : tuple of str
        Names of the layers that can be analysed, in forward order.
    metrics : dict
        Measured figures: `test_accuracy` and `train_accuracy` as fractions, or `test_rmse`, `train_rmse` and
        `test_rmse_of_training_mean` in the target's unit.
    recipe : dict
        The `Recipe` as plain values, or where published weights come from.
    seed : int or None
        None where the weights were published without one.
    split : str
        What was trained and what was measured on.
    licence, citation : str
    fingerprint : str
        First 16 hexadecimal digits of the SHA-256 of the parameters; changes whenever any weight changes.
    versions : dict
        Versions of the libraries that trained it.
    """

    name: str
    label: str
    dataset: str
    task: Task
    parameters: int
    default_layer: str
    layers: tuple[str, ...]
    metrics: dict[str, float]
    recipe: dict[str, Any]
    seed: int | None
    split: str
    licence: str
    citation: str
    fingerprint: str
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the card as indented JSON text."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> ModelCard:
        """Read a card that `to_json` wrote.

        Raises
        ------
        ModelError
            If the file is not JSON or its fields are not those of a card.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"The model card {path} cannot be read as JSON ({error}).") from error
        return cls.of(content, str(path))

    @classmethod
    def of(cls, content: Any, source: str) -> ModelCard:
        """Make a card of what its JSON text held.

        Parameters
        ----------
        content : Any
            As `json.loads` returns it.
        source : str
            Where it was, for error messages.

        Raises
        ------
        ModelError
            If its fields are not those of a card.
        """
        expected = {item.name for item in fields(cls)}
        if not isinstance(content, Mapping) or set(content) != expected:
            found = sorted(content) if isinstance(content, Mapping) else type(content).__name__
            raise ModelError(f"The model card {source} must have the fields {sorted(expected)}, not {found}.")
        values = dict(content)
        values["layers"] = tuple(values["layers"])
        return cls(**values)


@dataclass(frozen=True)
class ModelEntry:
    """One line of the registry.

    Attributes
    ----------
    name, label, help : str
        Registry name, name for people, and one line on what the network is.
    build : callable
        Returns the network with fresh, untrained weights; imports its module, and with it torch, when it is called.
    layers : tuple of str
        Names of the layers that have neurons, in forward order; the built network's own.
    dataset : str
        Registry name of the data set the network takes.
    task : {"classification", "regression"}
    default_layer : str
        The last hidden layer with weights, unless that layer tells little.
    parameters : int
        The exact number of trained values; loading and tests hold the network to it.
    recipe : Recipe or None
        None for networks whose published weights are read instead.
    citation, licence : str
    """

    name: str
    label: str
    help: str
    build: Callable[[], Network]
    layers: tuple[str, ...]
    dataset: str
    default_layer: str
    parameters: int
    recipe: Recipe | None
    citation: str
    licence: str
    task: Task = "classification"

    @property
    def published(self) -> bool:
        """Whether the weights are a paper's own rather than trained here."""
        return self.recipe is None
