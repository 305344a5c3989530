"""One unit and one hypothesis on single records: what both do at every symbol or pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from idc_core.datasets import Dataset
from idc_core.errors import SettingError
from idc_core.inspection.blocks import unit_rows
from idc_core.inspection.hypothesis import Hypothesis, Records
from idc_core.tracing.neurons import neuron_axes
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import TraceBatch, trace


@dataclass(frozen=True, eq=False)
class RecordBehaviour:
    """What a unit and a hypothesis do on some records: one value per record (n,), or one per place (n, *places).

    `present`, bool (n, *places), says where there is anything but padding.
    """

    activations: NDArray[np.float32]
    behaviour: NDArray[np.float32]
    present: NDArray[np.bool_]

    @property
    def mean(self) -> NDArray[np.float32]:
        """The unit's mean over its places in each record, float32 (n,)."""
        return np.asarray(self.activations.reshape(len(self.activations), -1).mean(1), np.float32)

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether the hypothesis is above zero anywhere in each record, bool (n,)."""
        return np.asarray((self.behaviour.reshape(len(self.behaviour), -1) > 0).any(1))

    @property
    def varies(self) -> NDArray[np.bool_]:
        """Whether the hypothesis has more than one value within each record, bool (n,)."""
        flat = self.behaviour.reshape(len(self.behaviour), -1)
        there = self.present.reshape(len(flat), -1) if self.present[0].size == flat.shape[1] else np.ones_like(flat)
        high = np.where(there, flat, -np.inf).max(1)
        low = np.where(there, flat, np.inf).min(1)
        return np.asarray(high > low)

    def by_class(self, classes: int) -> list[NDArray[np.float32]]:
        """Return the unit's values in each class: at every place of it, or the mean over every record of it."""
        if self.behaviour.shape == self.activations.shape == self.present.shape:
            values, labels = self.activations[self.present], self.behaviour[self.present]
        else:
            # A class at each place of a record that has one value: where it occurs at all.
            flat = self.behaviour.reshape(len(self.behaviour), -1)
            if flat.shape[1] > 1:
                return [self.mean[(flat == number).any(1)] for number in range(classes)]
            values, labels = self.mean, flat[:, 0]
        return [np.asarray(values[labels == number], np.float32) for number in range(classes)]

    def over(self, index: int) -> NDArray[np.float32]:
        """Return one record's activations at every pixel, float32 (height, width), repeated for a coarser layer."""
        shape = self.present.shape[1:]
        values = self.activations[index]
        if values.ndim != len(shape):
            return np.full(shape, values.mean(), np.float32)
        for axis, (size, target) in enumerate(zip(values.shape, shape, strict=True)):
            values = values.take(np.arange(target) * size // target, axis)
        return np.asarray(values, np.float32)


def behaviour_on_records(
    model: nn.Module, layer: str, unit: int, hypothesis: Hypothesis, dataset: Dataset, positions: NDArray[np.int64]
) -> RecordBehaviour:
    """Return what unit `unit` of a layer and a hypothesis do on the records at `positions` (n,)."""
    records = Records(dataset, positions)
    return RecordBehaviour(unit_values(model, layer, unit, records.inputs), hypothesis(records), records.present)


def unit_values(model: nn.Module, layer: str, unit: int, inputs: Inputs) -> NDArray[np.float32]:
    """Return what one unit of a layer does, float32 (n, *places); SettingError if the layer has no such unit."""
    axis = neuron_axes(model, [layer])[layer]

    def shown(batch: TraceBatch) -> NDArray[np.float32]:
        rows, shape = unit_rows(batch.activations[layer], axis)
        if not 0 <= unit < rows.shape[1]:
            raise SettingError(f"{layer} has units 0..{rows.shape[1] - 1}, not {unit}.")
        values = rows[:, unit].clone()  # a view would keep all units
        return np.asarray(values.reshape(-1, *shape).cpu().numpy())

    return np.concatenate(list(map(shown, trace(model, inputs, [layer]))))
