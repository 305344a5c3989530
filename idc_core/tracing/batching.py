"""Batches of a size that suits the network, on its device; the first input is tried before any work."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from idc_core.errors import DataError, ModelError, UnsupportedOperationError
from idc_core.lrp.interception import INPUT, CaptureTraits, Watch
from idc_core.lrp.propagation import propagate, start_relevance
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import check_layers, run_watched, undisturbed, watching
from idc_core.parameters import whole_number

BATCH_BYTES = 64 * 2**20
"""Activations of one batch: large enough to keep every core busy, small enough to stay near the caches."""

MOST_INPUTS = 640
"""Inputs of one batch, however small; beyond this nothing is gained and the caches are left."""

Inputs = Any
"""A tensor, an array, anything with ``.inputs`` (a `Dataset`), or an iterable of batches of these."""


def batches(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    batch_size: int | None = None,
) -> Iterator[tuple[int, Tensor, CaptureTraits]]:
    """Cut inputs into batches of a size that suits the network, and try the first input before any work.

    Yields the position of each batch's first input, the batch on the network's device and of its dtype, and its traits.
    """
    check_layers(model, layers)
    if batch_size is not None:
        whole_number("batch_size", batch_size, 1)
    done, size, traits = 0, 1, CaptureTraits()
    for part in source(inputs)[0]:
        if not _rows(part):
            continue
        if done == 0:
            footprint, traits = probe(model, place(model, part[:1]), layers, settings)
            size = batch_size or max(1, min(MOST_INPUTS, BATCH_BYTES // footprint))
        for begin in range(0, len(part), size):
            batch = place(model, part[begin : begin + size])
            yield done, batch, traits
            done += len(batch)
    if not done:
        raise DataError("There are no inputs to run: expected at least one.")


def probe(
    model: nn.Module,
    one: Tensor,
    layers: Sequence[str],
    settings: RelevanceSettings | None,
    traits: CaptureTraits | None = None,
) -> tuple[int, CaptureTraits]:
    """Try everything on one input, so that a refusal comes before any work; return its bytes, the network's traits."""
    watch = Watch(settings, traits, watch_input=INPUT in layers)
    with undisturbed(model), watching(model, layers, watch, name_all=True):
        scores = run_watched(model, one.clone(), watch)
        if watch.forked:
            return probe(model, one, layers, settings, CaptureTraits(forks=frozenset(watch.forked)))
        check_captures(watch, scores, 1, layers)
        if settings is not None:
            propagate(watch, scores, start_relevance(scores, "predicted"))
    for layer in watch.overwritten:
        if settings is not None and layer != INPUT:
            raise UnsupportedOperationError(
                f"The output of layer {layer!r} is changed in place through another view of it. Choose another layer."
            )
    found = CaptureTraits(bool(watch.overwritten), traits.forks if traits else frozenset())
    return max(1, (watch.elements + one.numel()) * scores.element_size()), found


def check_captures(watch: Watch, scores: Tensor, rows: int, layers: Sequence[str]) -> None:
    """Refuse a network or a layer whose output is not one row per input, and a layer that did not run."""
    if len(scores) != rows:
        raise ModelError(f"The network returns {len(scores)} rows for {rows} inputs; expected one row per input.")
    for layer in layers:
        shapes = [tuple(use.shape) for use in (c.rows_first(c.value) for c in watch.captures if c.layer == layer)]
        if not shapes and layer == INPUT:
            raise UnsupportedOperationError(
                "The network's input is whole numbers that no embedding looks up as they are, so that there is no "
                "relevance of 'input'. Choose a layer of the network."
            )
        if not shapes:
            raise UnsupportedOperationError(f"Layer {layer!r} did not run on these inputs; choose one that does.")
        if len(set(shapes)) > 1:
            found = " and ".join(str(shape[1:]) for shape in shapes)
            raise UnsupportedOperationError(
                f"Layer {layer!r} runs {len(shapes)} times with different shapes ({found}). Choose one that runs once."
            )
        if shapes[0][:1] != (rows,):
            raise UnsupportedOperationError(
                f"Layer {layer!r} gives an array of shape {shapes[0]} for {rows} inputs; expected one row per input. "
                "Choose a layer that keeps the inputs apart."
            )


def source(inputs: Inputs) -> tuple[Iterable[Any], int | None]:
    """Return the parts that inputs come in, and how many inputs there are where that is known."""
    inputs = getattr(inputs, "inputs", inputs)
    if isinstance(inputs, Tensor | np.ndarray):
        return (inputs,), _rows(inputs)
    if isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes):
        return (batch[0] if isinstance(batch, tuple | list) else batch for batch in inputs), None
    raise DataError(f"Expected a tensor, an array, a data set or an iterable of batches, not {type(inputs).__name__}.")


def _rows(part: Any) -> int:
    """Return the number of inputs in a batch."""
    if not isinstance(part, Tensor | np.ndarray) or not part.ndim:
        kind = f"a single {part.dtype} number" if isinstance(part, Tensor | np.ndarray) else type(part).__name__
        raise DataError(f"Expected batches that are tensors or arrays, one row per input, not {kind}.")
    return len(part)


@torch.inference_mode(False)
def place(model: nn.Module, batch: Any) -> Tensor:
    """Return a batch of inputs on the network's device, in its dtype, images with the channels last in memory."""
    if isinstance(batch, np.ndarray):
        if batch.dtype.kind not in "fiub":
            raise DataError(f"Expected an array of numbers, not of {batch.dtype}.")
        if not batch.flags.writeable or not batch.dtype.isnative or min(batch.strides) < 0:
            batch = batch.astype(batch.dtype.newbyteorder("="), order="C")
    tensor = torch.as_tensor(batch)
    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    if parameter is not None:
        dtype = parameter.dtype if tensor.is_floating_point() else None
        tensor = tensor.to(parameter.device, dtype)
    if tensor.dim() == 4:
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    return tensor.clone() if tensor.is_inference() else tensor.detach()
