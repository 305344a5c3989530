"""A person's own network in the registry: what was not given is found from the network itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from idc_core.base.own_code import next_registration, source_of
from idc_core.base.registry import lazy
from idc_core.models.card import Task
from idc_core.models.entry import Found, ModelEntry, Recipe

if TYPE_CHECKING:
    from idc_core.lrp.explained import Explain
    from idc_core.models.network import Network


def _found(entry: OwnModel) -> Found:
    entry.open()
    return entry.found


def _task(entry: OwnModel) -> Task:
    """Return the task of its data; classification where it has none."""
    from idc_core.datasets import DATASETS

    return DATASETS[entry.dataset].task if entry.dataset else "classification"


@dataclass(frozen=True, eq=False, kw_only=True)
class OwnModel(ModelEntry):
    """A network that a person registered: what was not given is found when it is first asked for.

    Attributes
    ----------
    found : Found
        What the network told when it was built last.
    explain : str or callable, optional
        Which scores are explained, as `idc_core.lrp.explained.explaining` takes it.
    output : str
        Name or number of the output that they are read from, of a network with several; "": the likeliest one.
    output_names : tuple of str
        What its outputs are called, in their order; empty: as the network says.
    output_layout : str
        "time-first" where scores are (time, n, classes), "batch-first" where not; "": told by a batch of two.
    """

    layers: tuple[str, ...] = lazy(lambda entry: entry.found.layers)
    default_layer: str = lazy(lambda entry: entry.found.default_layer)
    task: Task = lazy(_task)
    parameters: int | None = None
    recipe: Recipe | None = None
    citation: str = ""
    licence: str = ""
    complete: bool = True
    edition: int = field(default_factory=next_registration)
    found: Found = lazy(_found)
    explain: Explain | None = None
    output: str = ""
    output_names: tuple[str, ...] = ()
    output_layout: str = ""

    def open(self) -> Network:
        """Build the network and make it ready: see `idc_core.models.adoption.adopt`."""
        from idc_core.models.adoption import adopt

        fields = vars(self)  # as they were given
        network, fields["found"] = adopt(self, fields["layers"] or (), fields["default_layer"] or "")
        return network

    @property
    def file(self) -> str:
        """The file that it comes from."""
        return source_of(self.build)[0]
