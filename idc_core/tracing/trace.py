"""The one streaming pass over inputs: scores, activations and relevance, batch by batch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.errors import DataError, SettingError
from idc_core.lrp.interception import INPUT, CaptureTraits, Watch
from idc_core.lrp.propagation import propagate, start_relevance
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import run_watched, undisturbed, watching
from idc_core.progress import Progress, report
from idc_core.tracing.batching import Inputs, batches, check_captures, source


@dataclass(frozen=True)
class TraceBatch:
    """What the network showed on one batch."""

    start: int  # position of the batch's first input among all inputs
    scores: Tensor  # (n, classes), scores before the softmax
    activations: dict[str, Tensor]
    """(n, ...), output of each layer after its activation function, in the layer's own shape."""
    relevance: dict[str, Tensor]  # (n, ...), relevance at the same places; empty where none was asked for


@dataclass(frozen=True)
class Traces:
    """What the network showed on all inputs, one number per neuron."""

    scores: NDArray[np.float32]  # (n, classes), scores before the softmax
    activations: dict[str, NDArray[np.float32]]
    """(n, neurons), unit outputs of dense layers; channel means over positions of convolutions."""
    relevance: dict[str, NDArray[np.float32]]
    """(n, neurons), relevance, summed over positions for convolutions; empty where none was asked for."""
    shapes: dict[str, tuple[int, ...]]  # shape of each layer's output for one input: (units,) or (channels, *positions)

    @property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the highest score, int64 (n,)."""
        return np.asarray(self.scores.argmax(1), np.int64)

    def only(self, positions: NDArray[np.int64]) -> "Traces":
        """Return the traces of some of the inputs, copied."""
        activations, relevance = (
            {layer: values[positions] for layer, values in held.items()} for held in (self.activations, self.relevance)
        )
        return Traces(self.scores[positions], activations, relevance, self.shapes)

    @classmethod
    def joined(cls, *parts: "Traces") -> "Traces":
        """Return the traces of several sets of inputs, one after the other; layers that a part lacks are left out."""
        activations, relevance = (
            {
                layer: np.concatenate([values[layer] for values in held])
                for layer in held[0]
                if all(layer in values for values in held)
            }
            for held in ([part.activations for part in parts], [part.relevance for part in parts])
        )
        return cls(np.concatenate([part.scores for part in parts]), activations, relevance, parts[0].shapes)


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
    total = source(inputs)[1]
    wanted = target if isinstance(target, str) else _targets(target, total)
    if isinstance(wanted, str) and wanted != "predicted":
        raise SettingError(f"target must be 'predicted', a class or one class per input, not {wanted!r}.")
    done = 0
    for start, batch, traits in batches(model, inputs, layers, settings, batch_size):
        chosen = wanted if isinstance(wanted, str) else _slice(wanted, start, len(batch)).to(batch.device)
        yield _run(model, batch, layers, settings, chosen, start, traits)
        done = start + len(batch)
        report(on_progress, done, total or done, "inputs through the network")
    if isinstance(wanted, Tensor) and wanted.dim() and len(wanted) != done:
        raise DataError(f"There are {len(wanted)} target classes for {done} inputs; expected one per input.")


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
    """Trace all inputs as `trace` does, and keep one activation, and one relevance, per neuron and input, read-only."""
    layers = (layers,) if isinstance(layers, str) else tuple(dict.fromkeys(layers))
    scores: list[NDArray[np.float32]] = []
    activations: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in layers}
    relevance: dict[str, list[NDArray[np.float32]]] = {layer: [] for layer in layers if settings}
    shapes: dict[str, tuple[int, ...]] = {}
    axes = neuron_axes(model, layers)
    for batch in trace(model, inputs, layers, settings, target=target, batch_size=batch_size, on_progress=on_progress):
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
    """Return one activation per neuron, (n, neurons): the mean over positions."""
    others = _positions(value, axis)
    return value.mean(others) if others else value


def neuron_relevance(value: Tensor, axis: int = 1) -> Tensor:
    """Return one relevance per neuron, (n, neurons): the sum over positions."""
    others = _positions(value, axis)
    return value.sum(others) if others else value


def _positions(value: Tensor, axis: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, value.dim()) if d != axis % value.dim())


def _run(
    model: nn.Module,
    batch: Tensor,
    layers: Sequence[str],
    settings: RelevanceSettings | None,
    target: str | Tensor,
    start: int,
    traits: CaptureTraits,
) -> TraceBatch:
    watch = Watch(settings, traits, watch_input=INPUT in layers)
    with undisturbed(model), watching(model, layers, watch):
        scores = run_watched(model, batch, watch)
        check_captures(watch, scores, len(batch), layers)
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


def _combined(watch: Watch, values: list[Tensor], layers: Sequence[str], over: Any) -> dict[str, Tensor]:
    """Return one tensor a layer; a use of a layer that ran twice is to its neurons what a position is to a channel."""
    found: dict[str, Tensor] = {}
    for layer in layers:
        uses = [c.rows_first(value) for c, value in zip(watch.captures, values, strict=True) if c.layer == layer]
        found[layer] = uses[0] if len(uses) == 1 else over(torch.stack(uses), 0)
    return found


def _targets(target: int | Iterable[int], total: int | None) -> Tensor:
    target = target if isinstance(target, int | np.generic | np.ndarray | Tensor) else list(target)
    classes = torch.as_tensor(target)
    if classes.is_floating_point() or classes.dim() > 1 or classes.dtype == torch.bool:
        raise SettingError(f"target must be 'predicted', a class or one class per input, not {target!r:.80}.")
    if classes.dim() and total is not None and len(classes) != total:
        raise DataError(f"There are {len(classes)} target classes for {total} inputs; expected one per input.")
    return classes.long().cpu()


def _slice(targets: Tensor, start: int, count: int) -> Tensor:
    if targets.dim() and len(targets) < start + count:
        raise DataError(f"There are {len(targets)} target classes for at least {start + count} inputs.")
    return targets[start : start + count] if targets.dim() else targets.expand(count)


def _join(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    joined = np.concatenate(parts)
    joined.setflags(write=False)
    return joined
