"""The one streaming pass over inputs: scores, activations and relevance, batch by batch."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from idc_core.base.parameters import class_numbers, counted_from
from idc_core.base.progress import Progress, report
from idc_core.errors import DataError, SettingError
from idc_core.lrp.captures import INPUT, Counts, in_full
from idc_core.lrp.interception import Watch
from idc_core.lrp.named_inputs import main_of
from idc_core.lrp.propagation import propagate, start_relevance
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import layer_names, run_watched, undisturbed, watching
from idc_core.store import Unfinished
from idc_core.tracing.batching import Portion, Watched, batches, check_captures
from idc_core.tracing.neurons import Neuron, check_neuron, neuron_activation, neuron_axes, neuron_relevance, no_neuron
from idc_core.tracing.parts import TokenMask, kept_tokens, part_of
from idc_core.tracing.pieces import Pieces
from idc_core.tracing.rows import PassRows
from idc_core.tracing.sources import Inputs, source
from idc_core.tracing.traces import Traces
from idc_core.tracing.transfers import brought_back

_DOING = "inputs through the network"


@dataclass(frozen=True)
class TraceBatch:
    """What the network showed on one batch."""

    start: int  # position of the batch's first input among all inputs
    scores: Tensor  # (n, classes), scores before the softmax
    activations: dict[str, Tensor]
    """(n, ...), output of each layer after its activation function, in the layer's own shape."""
    relevance: dict[str, Tensor]  # (n, ...), relevance at the same places; empty where none was asked for
    kept: TokenMask = (
        None  # bool (n, tokens), which tokens of the inputs are no padding; None where all of them are kept
    )


def trace(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    *,
    target: str | int | Iterable[int] = "predicted",
    of: Neuron | None = None,
    batch_size: int | None = None,
    skip: int = 0,
    on_progress: Progress | None = None,
) -> Iterator[TraceBatch]:
    """Run a network over inputs and yield what the layers showed, batch by batch.

    Parameters
    ----------
    model : Module
        Left as it was found: training flags, ``requires_grad``, hooks.
    inputs : Tensor, array, Dataset or iterable of batches, (n, ...)
        Moved to the network's device and dtype batch by batch. Of a network with several inputs a mapping from their
        names to arrays with equal rows, or an iterable of such; it is called by keyword.
    layers : sequence of str
        Names from ``named_modules()``; "input" is the network's input, of several the first. Of a layer of tokens
        ``NAME@class`` is its first token, ``NAME@last`` the last one that is no padding, both (n, features);
        ``NAME@heads`` the heads of the attention in a module, (n, heads, tokens): of activations the length of what a
        head gives a token, of relevance the sum over the head's features.
    settings : RelevanceSettings, optional
        How relevance is propagated; None records activations only.
    target : "predicted", int, or int of shape (n,)
        The class whose score is explained.
    of : (str, int), optional
        A layer and one of its neurons, whose activation is explained instead of a score, in the layers before it;
        scores are then the activations of that layer's neurons, (n, neurons).
    batch_size : int, optional
        Default: what keeps the machine busy within a bound of memory (`idc_core.tracing.batch_size`).
    skip : int
        Inputs of an array, from its first one on, that were run before and do not run again.
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
        Before any work, if relevance cannot pass through an operation of the network, or the network draws random
        numbers in evaluation and uses them.
    SettingError
        If the target is no class, the layer has no such neuron, or a layer runs behind it.
    DataError
        If there are no inputs, or targets and inputs do not match.
    """
    layers = layer_names(layers)
    total = source(inputs)[1]
    classes = target if isinstance(target, str) else _targets(target, total)
    if isinstance(classes, str) and classes != "predicted":
        raise SettingError(f"target must be 'predicted', a class or one class per input, not {classes!r}.")
    end = None if of is None else check_neuron(of, target)
    watched = layers if end is None else tuple(dict.fromkeys((*layers, end[0])))
    done, pieces = skip, Pieces(sys.maxsize)
    for portion in batches(model, inputs, watched, settings, batch_size, skip, "" if end is None else end[0]):
        for rows, batch in pieces(len(portion.inputs), partial(_piece, model, portion, layers, settings, classes, end)):
            yield batch
            del batch  # the next piece needs the memory
            done = portion.start + rows.stop
            report(on_progress, done, total or done, _DOING)
    if isinstance(classes, Tensor) and classes.dim() and len(classes) != done:
        raise DataError(f"There are {len(classes)} target classes for {done} inputs; expected one per input.")


def collect(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    *,
    target: str | int | Iterable[int] = "predicted",
    batch_size: int | None = None,
    in_memory: int | None = None,
    unfinished: Unfinished | None = None,
    on_progress: Progress | None = None,
) -> Traces:
    """Trace all inputs as `trace` does, and keep one activation, and one relevance, per neuron and input, read-only.

    Past `in_memory` bytes (default: ``activations_mib`` of the config file) the arrays are mapped from files. With
    `unfinished`, of inputs that are an array, a stopped pass goes on where it stopped, and a killed one where it was
    some seconds before; the result is the same, bit for bit, as that of a pass in one go.
    """
    layers = layer_names(layers)
    rows, axes = PassRows(in_memory, unfinished), neuron_axes(model, layers)

    def reduced(batch: TraceBatch) -> tuple[None, dict[tuple[str, str], Tensor]]:
        rows.shapes.update((layer, tuple(value.shape[1:])) for layer, value in batch.activations.items())
        parts = {("scores", ""): batch.scores}
        for layer, value in batch.activations.items():
            parts["activations", layer] = neuron_activation(value, axes[layer], batch.kept)
        for layer, value in batch.relevance.items():
            parts["relevance", layer] = neuron_relevance(value, axes[layer])
        return None, {key: part.float() for key, part in parts.items()}

    total = source(inputs)[1]
    if not rows.done or rows.done != total:
        if unfinished is not None:
            report(on_progress, rows.done, total or 0, _DOING)  # the first batch may take seconds
        try:
            passed = trace(
                model,
                inputs,
                layers,
                settings,
                target=target,
                batch_size=batch_size,
                skip=rows.done,
                on_progress=on_progress,
            )
            for _, arrays in brought_back(map(reduced, passed)):  # which holds one batch at a time
                rows.append(arrays)
        except BaseException:  # a person who ends the program goes on later, too
            rows.keep()
            raise
        rows.finish()
    held = rows.held
    return Traces(
        held.joined(("scores", "")),
        {layer: held.joined(("activations", layer)) for layer in layers},
        {layer: held.joined(("relevance", layer)) for layer in layers if settings},
        rows.shapes,
    )


def _piece(
    model: nn.Module,
    portion: Portion,
    layers: Sequence[str],
    settings: RelevanceSettings | None,
    wanted: str | Tensor,
    of: Neuron | None,
    rows: slice,
) -> TraceBatch:
    """Run some of the inputs of a batch; `wanted` are the target classes of all inputs, or "predicted"."""
    part = portion.part(rows)
    done = []
    for one in part.runs():
        target = wanted if isinstance(wanted, str) else _slice(wanted, one.start, len(one.inputs))
        done.append(_run(model, one, layers, settings, target, of))
    return done[0] if len(done) == 1 else _joined(done, kept_tokens(model, part.inputs))


def _joined(runs: list[TraceBatch], kept: TokenMask) -> TraceBatch:
    """Return one batch of inputs that ran one by one."""
    activations, relevance = (
        {layer: torch.cat([values[layer] for values in held]) for layer in held[0]}
        for held in ([run.activations for run in runs], [run.relevance for run in runs])
    )
    return TraceBatch(runs[0].start, torch.cat([run.scores for run in runs]), activations, relevance, kept)


def _run(
    model: nn.Module,
    portion: Portion,
    layers: Sequence[str],
    settings: RelevanceSettings | None,
    target: str | Tensor,
    of: Neuron | None,
) -> TraceBatch:
    kept = kept_tokens(model, portion.inputs)
    with undisturbed(model):
        watch, scores = portion.watched or _watched(model, portion, layers, settings, of)
        end = scores
        if of is None:
            start = None if settings is None else _start(scores, target)
        else:
            scores, start = _start_at(model, watch, of, kept)
        relevances = None if settings is None or start is None else propagate(watch, end, start)
    values = [in_full(capture.value.detach()) for capture in watch.captures]
    if not main_of(portion.inputs).is_floating_point():
        # What several embeddings make of a word may be of several widths, and its relevance is the sum over all.
        words = [capture.layer == INPUT for capture in watch.captures]
        values = [value.sum(-1) if word else value for value, word in zip(values, words, strict=True)]
        if relevances is not None:
            relevances = [part.sum(-1) if word else part for part, word in zip(relevances, words, strict=True)]
    activations = combined(watch, values, layers, kept, torch.mean, len(scores))
    relevance = {} if relevances is None else combined(watch, relevances, layers, kept, torch.sum, len(scores))
    if INPUT in layers and not main_of(portion.inputs).is_floating_point():
        activations[INPUT] = main_of(portion.inputs)
    return TraceBatch(portion.start, in_full(scores.detach()), activations, relevance, kept)


def _watched(
    model: nn.Module, portion: Portion, layers: Sequence[str], settings: RelevanceSettings | None, of: Neuron | None
) -> Watched:
    """Run a batch."""
    end = "" if of is None else of[0]
    counts = Counts(counting=False)
    watch = Watch(settings, portion.traits, counts=counts, watch_input=INPUT in layers, ends_at=end)
    with watching(model, tuple(dict.fromkeys((*layers, end))) if end else layers, watch):
        scores = run_watched(model, portion.inputs, watch)
    if watch.shifts:  # as the first input did not
        shifting = replace(portion, traits=replace(portion.traits, shifts=True))
        return _watched(model, shifting, layers, settings, of)
    check_captures(watch, scores, len(portion.inputs), layers)
    return watch, scores


def _start(scores: Tensor, target: str | Tensor) -> Tensor:
    """Return the relevance to start from: the scores of the predicted or the chosen classes."""
    if not isinstance(target, str) and not bool(((target >= 0) & (target < scores.shape[1])).all()):
        raise SettingError(
            f"target classes must lie in 0..{scores.shape[1] - 1}, the network's outputs"
            f"{counted_from(int(target.min()), int(target.max()), scores.shape[1])}."
        )
    chosen = target if isinstance(target, str) else target.to(scores.device)
    return start_relevance(scores, chosen)


def _start_at(model: nn.Module, watch: Watch, of: Neuron, kept: TokenMask) -> tuple[Tensor, Tensor]:
    """Return the activations (n, neurons) of a neuron's layer, and the relevance of its values (n, numbers).

    The neuron's activation is shared among the values that it is computed from by their gradients times themselves:
    of a mean over positions each one's part, of a head's length the squares of its features. These shares sum to the
    activation, which grows in proportion with the values.
    """
    layer, neuron = of
    uses = [capture for capture in watch.captures if capture.layer == layer]
    with torch.enable_grad():
        points = [in_full(use.value.detach()).requires_grad_() for use in uses]
        whole = _over_uses(
            [use.rows_first(value) for use, value in zip(uses, points, strict=True)], layer, kept, torch.mean
        )
        activations = neuron_activation(whole, neuron_axes(model, (layer,))[layer], kept)
    if neuron >= activations.shape[1]:
        raise no_neuron(of, activations.shape[1])
    shares = torch.autograd.grad(activations[:, neuron].sum(), points)
    relevances = [
        use.rows_first(value.detach() * share) for use, value, share in zip(uses, points, shares, strict=True)
    ]
    return activations.detach(), torch.cat([value.flatten(1) for value in relevances], 1)


def combined(
    watch: Watch, values: list[Tensor], layers: Sequence[str], kept: TokenMask, over: Callable[..., Tensor], rows: int
) -> dict[str, Tensor]:
    """Return one tensor a layer; a use of a layer that ran twice is to its neurons what a position is to a channel.

    So is each of several rows that a layer gives per input, such as the windows of a picture.
    """
    found: dict[str, Tensor] = {}
    by_layer: dict[str, list[Tensor]] = {layer: [] for layer in layers}
    for capture, value in zip(watch.captures, values, strict=True):
        if capture.layer in by_layer:
            by_layer[capture.layer].append(capture.rows_first(value))
    for layer, runs in by_layer.items():
        uses = [use for run in runs for use in (run.unflatten(0, (rows, -1)).unbind(1) if len(run) != rows else (run,))]
        found[layer] = _over_uses(uses, layer, kept, over)
    return found


def _over_uses(uses: list[Tensor], layer: str, kept: TokenMask, over: Callable[..., Tensor]) -> Tensor:
    """Return what is meant of a layer: one tensor of all its uses."""
    part = part_of(layer)
    if part is not None:
        uses = [(part.active if over is torch.mean else part.relevant)(use, kept) for use in uses]
    whole: Tensor = uses[0] if len(uses) == 1 else over(torch.stack(uses), 0)
    return whole


def _targets(target: int | Iterable[int], total: int | None) -> Tensor:
    classes = torch.as_tensor(class_numbers("target", target))
    if classes.is_floating_point() or classes.dim() > 1 or classes.dtype == torch.bool:
        raise SettingError(f"target must be 'predicted', a class or one class per input, not {target!r:.80}.")
    if classes.dim() and total is not None and len(classes) != total:
        raise DataError(f"There are {len(classes)} target classes for {total} inputs; expected one per input.")
    return classes.long().cpu()


def _slice(targets: Tensor, start: int, count: int) -> Tensor:
    if targets.dim() and len(targets) < start + count:
        raise DataError(f"There are {len(targets)} target classes for at least {start + count} inputs.")
    return targets[start : start + count] if targets.dim() else targets.expand(count)
