"""The inputs in which each neuron of a layer mattered most, and where in them: relevance maximisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress
from idc_core.errors import SettingError
from idc_core.importance.training_pass import check_finite
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.neurons import axis_in, neuron_activation, neuron_axes, neuron_relevance
from idc_core.tracing.parts import TokenMask
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import TraceBatch, trace
from idc_core.tracing.transfers import brought_back

Measure = Literal["relevance", "activation"]
"""What makes an input matter to a neuron: its part in the prediction, or how much the input activates it."""

USUAL = 8
"""Inputs per neuron, as in the paper's figures."""


@dataclass(frozen=True, eq=False)
class Strongest:
    """The inputs of each neuron's k largest values, the largest first, of equals the earlier input.

    Attributes
    ----------
    values : ndarray of float64, shape (k, neurons)
    inputs : ndarray of int64, shape (k, neurons)
        Positions among the inputs that were looked at.
    places : ndarray of int64, shape (k, neurons)
        Which of the neuron's positions in the layer, row by row, has the largest value; -1 before `locate`.
    seen : int
        How many inputs were looked at.
    """

    values: NDArray[np.float64]
    inputs: NDArray[np.int64]
    places: NDArray[np.int64]
    seen: int

    @classmethod
    def of(cls, values: NDArray[np.floating], k: int = USUAL, places: NDArray[np.int64] | None = None) -> Strongest:
        """Return the inputs of the k largest values (n, neurons); all n where there are fewer."""
        numbers = np.broadcast_to(np.arange(len(values))[:, None], values.shape)
        places = np.full(values.shape, -1) if places is None else places
        return cls._first(k, values.astype(np.float64), numbers, places, len(values))

    def merge(self, other: Strongest, k: int = USUAL) -> Strongest:
        """Return the strongest of these inputs and of those that come next."""
        return self._first(
            k,
            np.concatenate([self.values, other.values]),
            np.concatenate([self.inputs, other.inputs + self.seen]),
            np.concatenate([self.places, other.places]),
            self.seen + other.seen,
        )

    @classmethod
    def _first(
        cls, k: int, values: NDArray[np.float64], inputs: NDArray[Any], places: NDArray[np.int64], seen: int
    ) -> Strongest:
        order = np.lexsort((inputs, -values), axis=0)[:k]
        values, inputs, places = (np.take_along_axis(array, order, 0) for array in (values, inputs, places))
        return cls(values, inputs, places, seen)


def strongest_inputs(
    model: nn.Module,
    inputs: Inputs,
    layer: str,
    settings: RelevanceSettings | None = None,
    *,
    k: int = USUAL,
    by: Measure = "relevance",
    target: str | int | Iterable[int] = "predicted",
    normed: bool = True,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Strongest:
    """Find the inputs in which each neuron of a layer mattered most, in one pass that holds a batch and the result.

    Parameters
    ----------
    model, inputs, layer, target, batch_size, on_progress
        As in `trace`.
    settings : RelevanceSettings, optional
        How relevance is propagated; by default the epsilon rule.
    k : int
        Inputs per neuron.
    by : "relevance" or "activation"
        Relevance flows from the score of the `target` and is summed over positions; an activation is the mean over
        positions, after the activation function.
    normed : bool
        Divide relevance by the sum of the absolute relevance of the layer's neurons, so that inputs with high scores do
        not come first for that alone.

    Returns
    -------
    Strongest

    Raises
    ------
    SettingError
        If `k` or `by` cannot be.
    IdcError
        As `trace`; also where values are not finite.

    References
    ----------
    R. Achtibat, M. Dreyer, I. Eisenbraun, S. Bosse, T. Wiegand, W. Samek, S. Lapuschkin, "From attribution maps to
    human-understandable explanations through concept relevance propagation", Nature Machine Intelligence 5, 2023.
    """
    whole_number("k", k, 1)
    if by not in ("relevance", "activation"):
        raise SettingError(f"by must be 'relevance' or 'activation', not {by!r:.80}.")
    how = settings or RelevanceSettings()
    found: Strongest | None = None
    passed = trace(
        model,
        inputs,
        [layer],
        how if by == "relevance" else None,
        target=target,
        batch_size=batch_size,
        on_progress=on_progress,
    )
    for start, arrays in brought_back(map(_reduction(model, layer, by), passed)):
        check_finite(layer, start, arrays["activation", ""], arrays[by, ""], how.rule)
        values = arrays[by, ""].astype(np.float64)
        values = shares_of_relevance(values) if normed and by == "relevance" else values
        batch = Strongest.of(values, k, arrays["places", ""])
        found = batch if found is None else found.merge(batch, k)
    assert found is not None  # a pass without inputs raises
    return found


def locate(
    model: nn.Module,
    inputs: NDArray[Any],
    layer: str,
    found: Strongest,
    settings: RelevanceSettings | None = None,
    *,
    by: Measure = "relevance",
    neurons: NDArray[np.int64] | None = None,
    on_progress: Progress | None = None,
) -> Strongest:
    """Find where in the layer the values of inputs lie that were ranked by kept rows; only those inputs run again.

    Relevance flows from the predicted class. Parameters as in `strongest_inputs`; `inputs` are those that were ranked,
    `neurons` those of the layer that `found` is about, by default all.
    """
    wanted = np.unique(found.inputs)
    how = settings or RelevanceSettings() if by == "relevance" else None
    passed = trace(model, inputs[wanted], [layer], how, on_progress=on_progress)
    rows = [arrays["places", ""] for _, arrays in brought_back(map(_reduction(model, layer, by), passed))]
    neurons = np.arange(found.inputs.shape[1]) if neurons is None else neurons
    return replace(found, places=np.concatenate(rows)[np.searchsorted(wanted, found.inputs), neurons])


def shares_of_relevance(relevance: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return each neuron's relevance (n, neurons) as a share of its input's absolute relevance; 0 where that is 0."""
    total = np.abs(relevance).sum(1, keepdims=True, dtype=np.float64)
    shares: NDArray[np.float64] = np.divide(relevance, total, out=np.zeros(relevance.shape), where=total > 0)
    return shares


def _reduction(
    model: nn.Module, layer: str, by: Measure
) -> Callable[[TraceBatch], tuple[int, dict[tuple[str, str], Tensor]]]:
    """Return what gives of a batch its start, one value per neuron and input, and where its largest position is."""
    axis = neuron_axes(model, [layer])[layer]

    def reduced(batch: TraceBatch) -> tuple[int, dict[tuple[str, str], Tensor]]:
        whole = batch.relevance[layer] if by == "relevance" else batch.activations[layer]
        values = {
            ("activation", ""): neuron_activation(batch.activations[layer], axis, batch.kept),
            ("places", ""): _largest(whole, axis, batch.kept),
        }
        if by == "relevance":
            values["relevance", ""] = neuron_relevance(whole, axis)
        return batch.start, values

    return reduced


def _largest(value: Tensor, axis: int, kept: TokenMask) -> Tensor:
    """Return which position of each neuron has the largest value, int64 (n, neurons); tokens of padding are none."""
    if value.dim() < 3:
        return value.new_zeros(value.shape[0], value[0].numel()).long()
    flat = value.movedim(axis_in(value.dim(), axis), 1).flatten(2)
    if kept is not None and flat.shape[2] == kept.shape[1]:
        flat = flat.masked_fill(~kept[:, None].to(flat.device), -float("inf"))
    return flat.argmax(2)
