"""The one streaming pass over inputs: scores, activations and relevance, batch by batch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.attribution.interception import INPUT, Habits, Watch
from idc_core.attribution.propagation import propagate, start_relevance
from idc_core.attribution.rules import RelevanceSettings
from idc_core.attribution.session import check_layers, run_watched, undisturbed, watching
from idc_core.errors import DataError, ModelError, SettingError, UnsupportedOperationError
from idc_core.progress import Progress, report

BATCH_BYTES = 64 * 2**20
"""Activations of one batch: large enough to keep every core busy, small enough to stay near the caches."""

MOST_INPUTS = 640
"""Inputs of one batch, however small; beyond this nothing is gained and the caches are left."""

Inputs = Any
"""A tensor, an array, anything with ``.inputs`` (a `Dataset`), or an iterable of batches of these."""


@dataclass(frozen=True)
class TraceBatch:
    """What the network showed on one batch.

    Attributes
    ----------
    start : int
        Position of the batch's first input among all inputs.
    scores : Tensor, (n, classes)
        Scores before the softmax.
    activations : dict of str to Tensor, (n, ...)
        Output of each layer after its activation function, in the layer's own shape.
    relevance : dict of str to Tensor, (n, ...)
        Relevance at the same places; empty where none was asked for.
    """

    start: int
    scores: Tensor
    activations: dict[str, Tensor]
    relevance: dict[str, Tensor]


@dataclass(frozen=True)
class Traces:
    """What the network showed on all inputs, a number a neuron.

    Attributes
    ----------
    scores : ndarray, float32 (n, classes)
        Scores before the softmax.
    activations : dict of str to ndarray, float32 (n, neurons)
        Unit outputs of dense layers; channel means over positions of convolutions.
    relevance : dict of str to ndarray, float32 (n, neurons)
        Relevance, summed over positions for convolutions; empty where none was asked for.
    shapes : dict of str to tuple of int
        Shape of each layer's output for one input: (units,) or (channels, *positions).
    """

    scores: NDArray[np.float32]
    activations: dict[str, NDArray[np.float32]]
    relevance: dict[str, NDArray[np.float32]]
    shapes: dict[str, tuple[int, ...]]

    @property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the highest score, int64 (n,)."""
        return np.asarray(self.scores.argmax(1), np.int64)

    def only(self, positions: NDArray[np.int64]) -> "Traces":
        """Return what the network showed on some of the inputs, copied."""
        activations, relevance = (
            {layer: values[positions] for layer, values in held.items()} for held in (self.activations, self.relevance)
        )
        return Traces(self.scores[positions], activations, relevance, self.shapes)


def trace(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    *,
    target: str | int | Iterable[int] = "predicted",
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Iterator[TraceBatch]:
    """Run a network over inputs and yield what the layers showed, batch by batch.

    Parameters
    ----------
    model : Module
        Left as it was found: training flags, ``requires_grad``, hooks.
    inputs : Tensor, array, Dataset or iterable of batches, (n, ...)
        Moved to the network's device and dtype batch by batch.
    layers : sequence of str
        Names from ``named_modules()``; "input" is the network's input.
    settings : RelevanceSettings, optional
        How relevance is propagated; None records activations only.
    target : "predicted", int, or int of shape (n,)
        The class whose score is explained.
    batch_size : int, optional
        Default: as many inputs as keep one batch's activations in `BATCH_BYTES`.
    on_progress : Progress, optional
        Called after every batch with the number of inputs done.

    Yields
    ------
    TraceBatch

    Raises
    ------
    ModelError
        If a layer does not exist, or the network does not return scores.
    UnsupportedOperationError
        Before any work, if relevance cannot pass through an operation of the network.
    DataError
        If there are no inputs, or targets and inputs do not match.
    """
    layers = (layers,) if isinstance(layers, str) else tuple(dict.fromkeys(layers))
    total = _source(inputs)[1]
    wanted = target if isinstance(target, str) else _targets(target, total)
    if isinstance(wanted, str) and wanted != "predicted":
        raise SettingError(f"target must be 'predicted', a class or one class an input, not {wanted!r}.")
    done = 0
    for start, batch, habits in batches(model, inputs, layers, settings, batch_size):
        chosen = wanted if isinstance(wanted, str) else _slice(wanted, start, len(batch)).to(batch.device)
        yield _run(model, batch, layers, settings, chosen, start, habits)
        done = start + len(batch)
        report(on_progress, done, total or done, "inputs through the network")
    if isinstance(wanted, Tensor) and wanted.dim() and len(wanted) != done:
        raise DataError(f"There are {len(wanted)} target classes for {done} inputs; expected one an input.")


def batches(
    model: nn.Module, inputs: Inputs, layers: Sequence[str], settings: RelevanceSettings | None = None,
    batch_size: int | None = None,
) -> Iterator[tuple[int, Tensor, Habits]]:  # fmt: skip
    """Cut inputs into batches of a size that suits the network, and try the first input before any work.

    Parameters
    ----------
    model, inputs, layers, settings, batch_size
        As in `trace`.

    Yields
    ------
    start : int
        Position of the batch's first input among all inputs.
    batch : Tensor, (n, ...)
        On the network's device and of its dtype.
    habits : Habits
        What was found out about the network.

    Raises
    ------
    ModelError, UnsupportedOperationError, DataError, SettingError
        As `trace`.
    """
    check_layers(model, layers)
    if batch_size is not None and batch_size < 1:
        raise SettingError(f"batch_size must be at least 1, not {batch_size!r}.")
    done, size, habits = 0, 1, Habits()
    for part in _source(inputs)[0]:
        if not _rows(part):
            continue
        if done == 0:
            footprint, habits = probe(model, place(model, part[:1]), layers, settings)
            size = batch_size or max(1, min(MOST_INPUTS, BATCH_BYTES // footprint))
        for begin in range(0, len(part), size):
            batch = place(model, part[begin : begin + size])
            yield done, batch, habits
            done += len(batch)
    if not done:
        raise DataError("There are no inputs to run: expected at least one.")


def collect(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    *,
    target: str | int | Iterable[int] = "predicted",
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> Traces:
    """Trace all inputs and keep one activation, and one relevance, a neuron and input.

    Parameters
    ----------
    model, inputs, layers, settings, target, batch_size, on_progress
        As in `trace`.

    Returns
    -------
    Traces
        Arrays of shape (n, neurons); read-only.

    Raises
    ------
    ModelError, UnsupportedOperationError, DataError, SettingError
        As `trace`.
    """
    layers = (layers,) if isinstance(layers, str) else tuple(dict.fromkeys(layers))
    scores: list[NDArray[np.float32]] = []
    activations: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in layers}
    relevance: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in layers if settings}
    shapes: dict[str, tuple[int, ...]] = {}
    axes = neuron_axes(model, layers)
    for batch in trace(
        model, inputs, layers, settings, target=target, batch_size=batch_size, on_progress=on_progress
    ):
        scores.append(batch.scores.float().cpu().numpy())
        for layer, value in batch.activations.items():
            shapes[layer] = tuple(value.shape[1:])
            activations[layer].append(neuron_activation(value, axes[layer]).float().cpu().numpy())
        for layer, value in batch.relevance.items():
            relevance[layer].append(neuron_relevance(value, axes[layer]).float().cpu().numpy())
    return Traces(
        _join(scores),
        {layer: _join(parts) for layer, parts in activations.items()},
        {layer: _join(parts) for layer, parts in relevance.items()},
        shapes,
    )


def neuron_axes(model: nn.Module, layers: Iterable[str]) -> dict[str, int]:
    """Return along which axis of its output each layer's neurons lie.

    Layers with units (dense, recurrent, embedding, layer norm over one axis) hold them last; convolutions and
    everything else hold channels in axis 1.
    """
    modules = dict(model.named_modules())
    return {layer: -1 if _has_units(modules.get(layer)) else 1 for layer in layers}


def _has_units(module: nn.Module | None) -> bool:
    if isinstance(module, nn.LayerNorm):
        return len(module.normalized_shape) == 1
    return isinstance(module, nn.Linear | nn.RNNBase | nn.Embedding | nn.EmbeddingBag)


def neuron_activation(value: Tensor, axis: int = 1) -> Tensor:
    """Return one activation a neuron, (n, neurons): the mean over positions."""
    others = _positions(value, axis)
    return value.mean(others) if others else value


def neuron_relevance(value: Tensor, axis: int = 1) -> Tensor:
    """Return one relevance a neuron, (n, neurons): the sum over positions."""
    others = _positions(value, axis)
    return value.sum(others) if others else value


def _positions(value: Tensor, axis: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, value.dim()) if d != axis % value.dim())


def _run(
    model: nn.Module, batch: Tensor, layers: Sequence[str], settings: RelevanceSettings | None, target: str | Tensor,
    start: int, habits: Habits,
) -> TraceBatch:  # fmt: skip
    watch = Watch(settings, habits, watch_input=INPUT in layers)
    with undisturbed(model), watching(model, layers, watch):
        scores = run_watched(model, batch, watch)
        _check(watch, scores, len(batch), layers)
        relevances = None
        if settings is not None:
            if not isinstance(target, str) and not bool(((target >= 0) & (target < scores.shape[1])).all()):
                raise SettingError(f"target classes must lie in 0..{scores.shape[1] - 1}, the network's outputs.")
            relevances = propagate(watch, scores, start_relevance(scores, target))
    activations = _combined(watch, [capture.value.detach() for capture in watch.captures], layers, torch.mean)
    relevance = {} if relevances is None else _combined(watch, relevances, layers, torch.sum)
    if INPUT in layers and not batch.is_floating_point():
        activations[INPUT] = batch
        if relevance:
            relevance[INPUT] = relevance[INPUT].sum(-1)
    return TraceBatch(start, scores.detach(), activations, relevance)


def _check(watch: Watch, scores: Tensor, rows: int, layers: Sequence[str]) -> None:
    """Refuse a network or a layer whose output is not one row an input, and a layer that did not run."""
    if len(scores) != rows:
        raise ModelError(f"The network returns {len(scores)} rows for {rows} inputs; expected one row an input.")
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
                f"Layer {layer!r} gives an array of shape {shapes[0]} for {rows} inputs; expected one row an input. "
                "Choose a layer that keeps the inputs apart."
            )


def _combined(watch: Watch, values: list[Tensor], layers: Sequence[str], over: Any) -> dict[str, Tensor]:
    """Return one tensor a layer; a use of a layer that ran twice is to its neurons what a position is to a channel."""
    found: dict[str, Tensor] = {}
    for layer in layers:
        uses = [c.rows_first(value) for c, value in zip(watch.captures, values, strict=True) if c.layer == layer]
        found[layer] = uses[0] if len(uses) == 1 else over(torch.stack(uses), 0)
    return found


def probe(
    model: nn.Module, one: Tensor, layers: Sequence[str], settings: RelevanceSettings | None,
    habits: Habits | None = None,
) -> tuple[int, Habits]:  # fmt: skip
    """Try everything on one input, so that a refusal comes before any work.

    Returns the size of its activations in bytes, and what was found out about the network.
    """
    watch = Watch(settings, habits, watch_input=INPUT in layers)
    with undisturbed(model), watching(model, layers, watch, name_all=True):
        scores = run_watched(model, one.clone(), watch)
        if watch.forked:
            return probe(model, one, layers, settings, Habits(forks=frozenset(watch.forked)))
        _check(watch, scores, 1, layers)
        if settings is not None:
            propagate(watch, scores, start_relevance(scores, "predicted"))
    for layer in watch.overwritten:
        if settings is not None and layer != INPUT:
            raise UnsupportedOperationError(
                f"The output of layer {layer!r} is changed in place through another view of it. Choose another layer."
            )
    found = Habits(bool(watch.overwritten), habits.forks if habits else frozenset())
    return max(1, (watch.elements + one.numel()) * scores.element_size()), found


def _source(inputs: Inputs) -> tuple[Iterable[Any], int | None]:
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
        raise DataError(f"Expected batches that are tensors or arrays, one row an input, not {kind}.")
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


def _targets(target: int | Iterable[int], total: int | None) -> Tensor:
    target = target if isinstance(target, int | np.generic | np.ndarray | Tensor) else list(target)
    classes = torch.as_tensor(target)
    if classes.is_floating_point() or classes.dim() > 1 or classes.dtype == torch.bool:
        raise SettingError(f"target must be 'predicted', a class or one class an input, not {target!r:.80}.")
    if classes.dim() and total is not None and len(classes) != total:
        raise DataError(f"There are {len(classes)} target classes for {total} inputs; expected one an input.")
    return classes.long().cpu()


def _slice(targets: Tensor, start: int, count: int) -> Tensor:
    if targets.dim() and len(targets) < start + count:
        raise DataError(f"There are {len(targets)} target classes for at least {start + count} inputs.")
    return targets[start : start + count] if targets.dim() else targets.expand(count)


def _join(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    joined = np.concatenate(parts)
    joined.setflags(write=False)
    return joined
