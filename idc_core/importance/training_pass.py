"""The pass over the training inputs: the important neurons of layers, and their activations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.growing import GrowingArrays, row_blocks
from idc_core.base.progress import Progress
from idc_core.clustering.sketch import Sketch
from idc_core.errors import DataError, SettingError
from idc_core.importance.important_neurons import PRIORITIES, check_m, most_important
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.neurons import first_unsound, neuron_activation, neuron_axes, neuron_relevance
from idc_core.tracing.sources import Inputs, PairedTargets
from idc_core.tracing.trace import TraceBatch, trace
from idc_core.tracing.traces import Traces
from idc_core.tracing.transfers import brought_back


@dataclass(frozen=True, eq=False)
class RankedLayer:
    """The important neurons of a layer."""

    layer: str
    importance: NDArray[np.float64]  # (neurons,), relevance of every neuron, summed over the training inputs
    important: NDArray[np.int64]  # (k,), most important first
    activations: NDArray[np.floating]
    """(train inputs, k), of these neurons, in their order; read-only, a large one mapped from a file. float32, of a
    float64 network float64."""
    dense: bool  # whether the layer's neurons are units, not channels

    @property
    def inputs(self) -> int:
        """How many inputs took part."""
        return len(self.activations)

    def values(self, place: int) -> NDArray[np.floating]:
        """Return the activations (train inputs,) of the important neuron at a place in their order."""
        return self.activations[:, place]

    @classmethod
    def of(
        cls,
        traces: Traces,
        layer: str,
        m: int,
        priority: str = "sum",
        used: NDArray[np.bool_] | None = None,
        in_memory: int | None = None,
    ) -> RankedLayer:
        """Rank a layer by traces that were collected with relevance, from the inputs that are `used`."""
        ranked, counted = PRIORITIES[priority], GrowingArrays(in_memory)
        for rows in _used(traces.relevance[layer], used):
            counted.append(layer, ranked.per_input(rows))
        # Summed in one go: sums in another order would end in other digits.
        importance: NDArray[np.float64] = counted.joined(layer).sum(0, dtype=np.float64)
        counted.drop(layer)
        dense = len(traces.shapes[layer]) == 1
        return cls._keep(layer, importance, _used(traces.activations[layer], used), m, dense, in_memory)

    @classmethod
    def _keep(
        cls,
        layer: str,
        importance: NDArray[np.float64],
        blocks: Iterable[NDArray[np.floating]],
        m: int,
        dense: bool,
        in_memory: int | None,
    ) -> RankedLayer:
        important = most_important(importance, m)
        kept = GrowingArrays(in_memory)
        for block in blocks:
            kept.append(layer, block[:, important])
        return cls(layer, importance, important, kept.joined(layer), dense)


@dataclass(frozen=True, eq=False)
class SketchedLayer:
    """The important neurons of a layer, with a sketch of each one's activations in place of these."""

    layer: str
    importance: NDArray[np.float64]  # (neurons,)
    important: NDArray[np.int64]  # (k,), most important first
    sketches: Sequence[Sketch]  # k
    dense: bool

    @property
    def inputs(self) -> int:
        """How many inputs took part."""
        return self.sketches[0].n_values

    def values(self, place: int) -> Sketch:
        """Return the sketch of the important neuron at a place in their order."""
        return self.sketches[place]


def rank_layers(
    model: nn.Module,
    train: Inputs,
    layers: Sequence[str],
    most: int,
    settings: RelevanceSettings | None = None,
    *,
    priority: str = "sum",
    truth: NDArray[np.int64] | PairedTargets | None = None,
    least: int | None = None,
    batch_size: int | None = None,
    in_memory: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, RankedLayer]:
    """Find the important neurons of several layers in one pass over the training inputs.

    `truth`: int64 (n,), true classes: only inputs that are classified correctly take part. A layer of fewer neurons
    than `least` is refused; one of fewer than `most` gives all.

    Which neurons are important is known only at the end of the pass, so until then it holds one float32 an input and
    neuron of all layers together: 62 MB for LeNet-5 and 60,000 inputs; past `in_memory` bytes (default:
    ``activations_mib`` of the config file) in files. Relevance is summed on the way.
    """
    held = GrowingArrays(in_memory)
    sums = sum_relevance(
        model,
        train,
        layers,
        settings,
        held.append,
        priority=priority,
        truth=truth,
        least=least,
        batch_size=batch_size,
        on_progress=on_progress,
    )
    ranked = {}
    for layer, total in sums.importance.items():
        blocks, m = held.blocks(layer), min(most, len(total))
        ranked[layer] = RankedLayer._keep(layer, total, blocks, m, sums.dense[layer], in_memory)
        held.drop(layer)
    return ranked


@dataclass(eq=False)
class RelevanceSums:
    """Relevance summed over inputs, by layer."""

    importance: dict[str, NDArray[np.float64]]  # (neurons,)
    dense: dict[str, bool]  # whether the layer's neurons are units, not channels

    def merge(self, other: RelevanceSums) -> Self:
        """Take in the sums of the inputs that come next."""
        for layer in self.importance:
            self.importance[layer] = self.importance[layer] + other.importance[layer]
        return self


def sum_relevance(
    model: nn.Module,
    train: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings | None,
    keep: Callable[[str, NDArray[np.floating]], None],
    *,
    priority: str,
    truth: NDArray[np.int64] | PairedTargets | None,
    least: int | None,
    batch_size: int | None,
    on_progress: Progress | None,
) -> RelevanceSums:
    """Sum relevance over training inputs, or over a part of them.

    `keep` gets each layer's activations (k, neurons), batch by batch. Others are as in `rank_layers`.
    """
    ranked, axes = PRIORITIES[priority], neuron_axes(model, layers)
    importance: dict[str, NDArray[np.float64]] = {layer: np.zeros(()) for layer in layers}
    dense: dict[str, bool] = {}
    done, how = 0, settings or RelevanceSettings()

    def reduced(batch: TraceBatch) -> tuple[int, dict[tuple[str, str], Tensor]]:
        """Return where a batch starts, and one activation and one relevance per neuron and input."""
        values = {("classes", ""): batch.scores.argmax(1)}
        for layer in layers:
            values["active", layer] = neuron_activation(batch.activations[layer], axes[layer], batch.kept)
            values["relevance", layer] = neuron_relevance(batch.relevance[layer], axes[layer])
            dense[layer] = batch.activations[layer].dim() == 2
            if least is not None:
                check_m(least, values["active", layer].shape[1])
        return batch.start, values

    passed = trace(model, train, layers, how, batch_size=batch_size, on_progress=on_progress)
    for start, arrays in brought_back(map(reduced, passed)):
        classes = arrays["classes", ""]
        done = start + len(classes)
        for layer in layers:
            check_finite(layer, start, arrays["active", layer], arrays["relevance", layer], how.rule)
        used = slice(None) if truth is None else classes == _rows(truth, start, done)
        for layer in layers:
            importance[layer] = importance[layer] + ranked.total(arrays["relevance", layer][used])
            keep(layer, arrays["active", layer][used])
    if truth is not None and len(truth) != done:
        raise DataError(f"There are {len(truth)} targets for {done} inputs; expected one per input.")
    return RelevanceSums(importance, dense)


def check_finite(
    layer: str, start: int, active: NDArray[np.floating], relevance: NDArray[np.floating], rule: str
) -> None:
    """Raise SettingError, which names the first input, where relevance (n, neurons) by a rule is not finite.

    Of activations it raises as `check_activations`; `start` as there.
    """
    check_activations(layer, start, active)
    if (row := first_unsound(relevance)) is not None:
        other = "" if rule == "epsilon" else ", or use the epsilon rule"
        raise SettingError(
            f"Input {start + row:,} gives relevance of layer {layer!r} that is not finite, although the layer's "
            f"activations are. Check the network's weights behind this layer{other}."
        )


def check_activations(layer: str, start: int, active: NDArray[np.floating]) -> None:
    """Raise DataError, which names the first input, where activations (n, neurons) are not finite.

    `start` is the number of the first row among all inputs.
    """
    if (row := first_unsound(active)) is not None:
        raise DataError(
            f"Input {start + row:,} gives activations of layer {layer!r} that are not finite. Check the values of this "
            "input, the scaling of the inputs and the network's weights."
        )


def _used(values: NDArray[np.floating], used: NDArray[np.bool_] | None) -> Iterable[NDArray[np.floating]]:
    """Return the rows of the inputs that are used, block by block."""
    if used is None:
        return (rows for _, rows in row_blocks(values))
    return (rows[used[start : start + len(rows)]] for start, rows in row_blocks(values))


def _rows(truth: NDArray[np.int64] | PairedTargets, start: int, end: int) -> NDArray[np.int64]:
    if len(truth) < end:
        raise DataError(f"There are {len(truth)} targets for at least {end} inputs; expected one per input.")
    return truth[start:end]
