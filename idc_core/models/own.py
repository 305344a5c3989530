"""A person's own network in the registry: what was not given is found from the network itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from idc_core.models.card import Task
from idc_core.models.entry import ModelEntry

if TYPE_CHECKING:
    from idc_core.explained import Explain
    from idc_core.models.network import Network


@dataclass(frozen=True)
class Found:
    """What a pass over two inputs told of a network: its layers in forward order, and the one analysed by default."""

    layers: tuple[str, ...]
    default_layer: str


@dataclass(frozen=True, eq=False)
class OwnModel(ModelEntry):
    """A network that a person registered: what was not given is found when it is first asked for.

    Attributes
    ----------
    given : tuple of str
        Which of layers, default layer and task were given.
    explain : str or callable, optional
        Which scores are explained, as `idc_core.explained.explaining` takes it.
    """

    explain: Explain | None = None
    given: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """Leave what was not given to the properties below."""
        found = ("layers", "default_layer", "task")
        object.__setattr__(self, "given", tuple(name for name in found if self.__dict__[name]))
        for name in set(found) - set(self.given):
            del self.__dict__[name]

    def open(self) -> Network:
        """Build the network and make it ready: see `idc_core.models.adoption.adopt`."""
        from idc_core.models.adoption import adopt

        network, self.__dict__["found"] = adopt(self)
        return network

    @cached_property
    def found(self) -> Found:
        """What the network told when it was built last."""
        self.open()
        found: Found = self.__dict__["found"]
        return found

    @cached_property  # type: ignore[misc]
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have neurons, in forward order."""
        return self.found.layers

    @cached_property  # type: ignore[misc]
    def default_layer(self) -> str:
        """The last hidden layer with weights."""
        return self.found.default_layer

    @cached_property  # type: ignore[misc]
    def task(self) -> Task:
        """That of its data; classification where it has none."""
        from idc_core.datasets import DATASETS

        return DATASETS[self.dataset].task if self.dataset else "classification"
