"""How strongly an input activates each neuron, scaled to 0..1 over the layer, as DeepInspect has it."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.progress import Progress, report
from idc_core.errors import DataError, IdcError, ModelError, UnsupportedOperationError
from idc_core.lrp.captures import CaptureTraits, in_full
from idc_core.lrp.named_inputs import Batch, call, described, filled
from idc_core.lrp.operations import Faster
from idc_core.lrp.scores import scores_of
from idc_core.lrp.session import layer_names, undisturbed, watching
from idc_core.tracing.batching import Portion, batches
from idc_core.tracing.neurons import neuron_activation, neuron_axes
from idc_core.tracing.parts import part_of
from idc_core.tracing.pieces import Pieces
from idc_core.tracing.sources import Inputs, source
from idc_core.tracing.transfers import brought_back

_Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Statistics:
    """Mean scaled output of every neuron for every input, so that any threshold can be counted without the network.

    `values` is float32 (n, neurons) in 0..1, layer after layer; `scores` float32 (n, outputs); both read-only.
    """

    layers: tuple[str, ...]
    sizes: tuple[int, ...]
    values: _Floats
    scores: _Floats

    @property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the highest score, int64 (n,)."""
        return np.asarray(self.scores.argmax(1), np.int64)


def collect_statistics(
    model: nn.Module,
    inputs: Inputs,
    layers: str | Sequence[str],
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Statistics:
    """Run inputs (n, ...) through a network once and keep how strongly each activates every neuron.

    Layers are convolutions and linear layers by their names in ``named_modules()``. Raises what
    `idc_core.tracing.trace.trace` does; DataError also where an output is not finite.

    Notes
    -----
    Y. Tian, Z. Zhong, V. Ordonez, G. Kaiser, B. Ray, "Testing DNN Image Classifiers for Confusion & Bias
    Errors", ICSE 2020, section 3: the output of a layer is scaled to 0..1 by the smallest and the largest value of this
    input anywhere in the layer; a neuron's number is the mean of its scaled map over positions. A constant output
    scales to zeros. As in the published program, the output is the module's own, before batch norm and activation
    function.
    """
    values, scores = [], []
    sizes: tuple[int, ...] = ()
    names = layer_names(layers)
    for parts, score in stream_statistics(model, inputs, names, batch_size=batch_size, on_progress=on_progress):
        sizes = tuple(part.shape[1] for part in parts)
        values.append(np.concatenate(parts, axis=1))
        scores.append(score)
    statistics = Statistics(names, sizes, np.concatenate(values), np.concatenate(scores))
    statistics.values.setflags(write=False)
    statistics.scores.setflags(write=False)
    return statistics


def stream_statistics(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Iterator[tuple[list[_Floats], _Floats]]:
    """Yield, batch by batch, one array (n, neurons) a layer, and the scores; as `collect_statistics`."""
    if not layers:
        raise ModelError("Expected at least one layer whose neurons are counted; none was named.")
    part = next((layer for layer in layers if part_of(layer)), None)
    if part is not None:
        raise UnsupportedOperationError(
            f"Layer {part!r} is a part of a layer, but the range that outputs are scaled by is that of a whole layer. "
            "Choose convolutions and linear layers."
        )
    total = source(inputs)[1] or 0
    axes = neuron_axes(model, layers)
    for done, arrays in brought_back(_scaled(model, inputs, axes, batch_size)):
        for layer in layers:
            if not arrays["finite", layer]:
                raise DataError(f"Layer {layer!r} gives outputs that are not finite; check the weights and the inputs.")
        yield [arrays["mean", layer] for layer in layers], arrays["scores", ""]
        report(on_progress, done, max(total, done), "inputs through the network")


def _scaled(
    model: nn.Module, inputs: Inputs, axes: dict[str, int], batch_size: int | None
) -> Iterator[tuple[int, dict[tuple[str, str], Tensor]]]:
    """Yield how many inputs are done, and what each layer and the scores showed on the last of them."""
    pieces = Pieces(sys.maxsize)

    def run(batch: Portion, rows: slice) -> dict[tuple[str, str], Tensor]:
        part = batch.part(rows).inputs
        ranges = _OutputRanges(axes, len(part), batch.traits)
        with undisturbed(model), watching(model, list(axes), ranges), torch.no_grad():
            arrays = {("scores", ""): _run(model, filled(part, batch.traits.least))[: len(part)].float()}
        for layer in axes:
            mean, arrays["finite", layer] = ranges.scaled(layer)
            arrays["mean", layer] = mean.float()
        return arrays

    for batch in (one for some in batches(model, inputs, list(axes), batch_size=batch_size) for one in some.runs()):
        for rows, arrays in pieces(len(batch.inputs), partial(run, batch)):
            yield batch.start + rows.stop, arrays


class _OutputRanges:
    """Collect smallest, largest and mean outputs of layers while they run, so that no output has to be kept."""

    def __init__(self, axes: dict[str, int], rows: int, traits: CaptureTraits) -> None:
        self.where: list[str] = []
        self._axes, self._inputs, self._traits = axes, rows, traits
        self._rows = max(rows, traits.least)
        self._uses: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {layer: [] for layer in axes}

    def layer_ran(self, layer: str, module: nn.Module, output: object) -> None:
        if isinstance(output, Tensor) and layer in self._traits.swapped:
            output = output.transpose(0, 1)
        if not isinstance(output, Tensor) or output.dim() < 2 or len(output) != self._rows:
            given = f"shape {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
            raise UnsupportedOperationError(
                f"Layer {layer!r} gives {given} for {self._rows} inputs; expected one row of outputs an input. Choose "
                "convolutions and linear layers."
            )
        others = tuple(range(1, output.dim()))
        output = in_full(output[: self._inputs])
        low, high = output.amin(others), output.amax(others)
        self._uses[layer].append((low, high, neuron_activation(output, self._axes[layer])))

    def scaled(self, layer: str) -> tuple[Tensor, Tensor]:
        """Return the mean scaled output of each neuron, (n, neurons), and whether all outputs are finite.

        Uses of a layer are like positions.
        """
        lows, highs, means = zip(*self._uses[layer], strict=True)
        low, high = torch.stack(lows).amin(0), torch.stack(highs).amax(0)
        finite = (torch.isfinite(low) & torch.isfinite(high)).all()
        span = (high - low)[:, None]
        mean = means[0] if len(means) == 1 else torch.stack(means).mean(0)
        return torch.where(span > 0, (mean - low[:, None]) / torch.where(span > 0, span, 1.0), 0.0), finite


def _run(model: nn.Module, batch: Batch) -> Tensor:
    try:
        with Faster():
            scores = scores_of(call(model, batch))
    except (IdcError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise ModelError(f"The network failed on {described(batch)}: {type(error).__name__}: {error}") from error
    if not isinstance(scores, Tensor) or scores.dim() != 2 or len(scores) != len(batch):
        raise ModelError(f"The network must return scores of shape ({len(batch)}, classes) for these inputs.")
    return scores
