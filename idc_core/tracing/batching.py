"""Batches of a size that suits the network, on its device; the first input is tried before any work."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from idc_core.base.parameters import whole_number
from idc_core.errors import DataError, ModelError, UnsupportedOperationError
from idc_core.lrp.captures import HALF, INPUT, CaptureTraits
from idc_core.lrp.folding import is_mapped
from idc_core.lrp.interception import Watch
from idc_core.lrp.layer_parts import CLASS, HEADS, LAST, split_layer
from idc_core.lrp.named_inputs import Batch, NamedInputs, filled, main_of
from idc_core.lrp.propagation import check_way
from idc_core.lrp.randomness import check_outside, generators, is_allowed
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import check_layers, run_watched, said_network, undisturbed, watching
from idc_core.tracing.batch_size import MOST_INPUTS, NEAR, inputs_at_once
from idc_core.tracing.company import TogetherError, companions, run_alone, sizes_in, time_first, together
from idc_core.tracing.memory import EVERY, keep, release
from idc_core.tracing.neurons import CHANNELS, behind, neuron_axes
from idc_core.tracing.sources import Inputs, is_array, rows_of, source, whole
from idc_core.tracing.transfers import to_device

_NO_TOKENS = "no tokens; expected (inputs, tokens, features). Choose a layer of tokens"


Watched = tuple[Watch, Tensor]
"""A finished watch and the scores."""

_AT_WORK = 3
"""Values as large as the largest that an operation and those around it have in memory at a time."""

_ALONE: WeakKeyDictionary[nn.Module, dict[tuple[str, ...], bool]] = WeakKeyDictionary()
"""Of networks that were looked at, by their layers: whether inputs have to run one by one."""

_FEW = 100
"""Among fewer inputs than these a second run of the first one is felt."""


@dataclass(frozen=True)
class _Probe:
    """What one input has shown of a network before any work."""

    footprint: int  # bytes of the activations
    held: int  # bytes of those that are there at the same time
    uses: float  # how often it uses a weight of a dense layer or convolution on average; infinite without any
    traits: CaptureTraits
    watched: Watched


@dataclass(frozen=True)
class Portion:
    """Inputs that run through a network together."""

    start: int  # position of the first one
    inputs: Batch  # on the network's device and of its dtype
    traits: CaptureTraits
    watched: Watched | None = None  # what the network showed on them, if it ran
    alone: bool = False  # each of them has to run alone

    def part(self, rows: slice) -> "Portion":
        """Return some of the inputs; itself for all of them."""
        if rows == slice(0, len(self.inputs)):
            return self
        return Portion(self.start + rows.start, self.inputs[rows], self.traits, alone=self.alone)

    def runs(self) -> "Iterator[Portion]":
        """Yield what runs together: all of it, or each input."""
        if not self.alone or len(self.inputs) == 1:
            yield self
            return
        for row in range(len(self.inputs)):
            yield self.part(slice(row, row + 1))


@dataclass(frozen=True)
class Company:
    """How a network takes inputs where something else than a trace runs it: filled up, so many at most, or alone."""

    traits: CaptureTraits
    most: int  # inputs that may run together
    elements: int  # numbers that the network computes for one input
    scores: Tensor  # of the first input

    def run(self, batch: Tensor, run: Callable[[Tensor], Tensor]) -> Tensor:
        """Return what `run` gives of each of some inputs, (n, ...), which it is given as the network takes them."""
        if self.traits.least <= len(batch) <= self.most:
            return run(batch)
        parts = [(len(part), filled(part, self.traits.least)) for part in batch.split(self.most)]
        return torch.cat([run(main_of(part))[:rows] for rows, part in parts])


def company_of(model: nn.Module, inputs: Any, layers: Sequence[str] = (), ends_at: str = "") -> Company:
    """Look at the first of some inputs, alone and beside others, as `batches` does, with its refusals."""
    layers = tuple(dict.fromkeys((*layers, ends_at))) if ends_at else layers
    check_layers(model, layers)
    tried = probe(model, to_network(model, inputs[:1]), layers, None, ends_at=ends_at)
    most = tried.traits.most
    if getattr(model, "one_by_one", False) or _must_run_alone(model, inputs, 0, min(most, MOST_INPUTS), layers, tried):
        most = 1
    scores = tried.watched[1]
    return Company(tried.traits, most, max(1, tried.footprint // scores.element_size()), scores)


def batches(
    model: nn.Module,
    inputs: Inputs,
    layers: Sequence[str],
    settings: RelevanceSettings | None = None,
    batch_size: int | None = None,
    skip: int = 0,
    ends_at: str = "",
) -> Iterator[Portion]:
    """Cut inputs into batches of a size that suits the network, and try the first input before any work.

    Of few inputs that are large or take several batches, the first is a batch of its own, which need not run again.
    `skip` inputs of an array were run before: the others come in the batches that they would have come in. `ends_at` is
    as in `Watch`.
    """
    check_layers(model, layers)
    if batch_size is not None:
        whole_number("batch_size", batch_size, 1)
    if getattr(model, "one_by_one", False):  # a batch of one is written into an ONNX file
        batch_size = 1
    keep()
    done, size, traits, unreleased, alone = skip, 1, CaptureTraits(), 0, False
    for part in source(inputs)[0]:
        if not rows_of(part):
            continue
        begin = skip
        if done == skip:
            first = to_network(model, part[skip : skip + 1])
            tried = probe(model, first, layers, settings, ends_at=ends_at)
            traits = tried.traits
            size = batch_size or inputs_at_once(tried.footprint, tried.uses, main_of(first).device, tried.held)
            size = min(size, traits.most)
            alone = _must_run_alone(model, part, skip, size, layers, tried)
            felt = size < len(part) or tried.footprint > NEAR
            if batch_size is None and felt and 1 < len(part) < _FEW and not traits.overwrites:
                if not skip:
                    yield Portion(0, first, traits, tried.watched)
                    begin = done = 1
                size = -(-(len(part) - 1) // -(-(len(part) - 1) // size))  # the rest in batches of about one size
            del tried
        for start in range(begin, len(part), size):
            batch = to_network(model, part[start : start + size])
            yield Portion(done, batch, traits, alone=alone)
            done += len(batch)
            unreleased += main_of(batch).nbytes
            if unreleased > EVERY:
                release()
                unreleased = 0
    if not done:
        raise DataError("There are no inputs to run: expected at least one.")


def probe(
    model: nn.Module,
    one: Batch,
    layers: Sequence[str],
    settings: RelevanceSettings | None,
    traits: CaptureTraits | None = None,
    ends_at: str = "",
) -> _Probe:
    """Try everything on one input, so that a refusal comes before any work.

    A network that fails on one input, or loses its axis there, is tried on copies of it: two, or as many as it names.
    """
    check_parts(model, layers)
    known = traits or CaptureTraits(searching=True)
    try:
        return _tried(model, one, layers, settings, traits, ends_at)
    except (ModelError, TogetherError) as error:
        if known.least > 1:
            raise
        sizes = [2, *sizes_in(error, one)]
        for least in sizes:
            try:
                return _tried(model, one, layers, settings, replace(known, least=least), ends_at)
            except ModelError as other:
                sizes += [size for size in sizes_in(other, one) if size not in sizes]
            except UnsupportedOperationError as other:
                if not isinstance(other, TogetherError):
                    raise
        raise


def _tried(
    model: nn.Module,
    one: Batch,
    layers: Sequence[str],
    settings: RelevanceSettings | None,
    traits: CaptureTraits | None,
    ends_at: str,
) -> _Probe:
    """Try everything on one input, in a batch of as many rows as the traits say."""
    known = traits or CaptureTraits(searching=True)
    watch, before = Watch(settings, traits, watch_input=INPUT in layers, ends_at=ends_at), generators()
    with undisturbed(model), watching(model, layers, watch, name_all=True):
        scores = run_watched(model, one.each(Tensor.clone) if isinstance(one, NamedInputs) else one.clone(), watch)
        shifted = watch.shifts
        if watch.forked or shifted:
            again = replace(known, forks=known.forks | watch.forked, shifts=shifted or known.shifts, searching=False)
            return _tried(model, one, layers, settings, again, ends_at)
        swapped = time_first(model, one, settings, traits, watch)
        if swapped:
            return _tried(model, one, layers, settings, replace(known, swapped=known.swapped | swapped), ends_at)
        check_captures(watch, scores, 1, layers)
        if generators() != before:  # by the network, or by another thread
            check_outside(lambda: run_watched(model, one, Watch(None, traits)), said_network(model))
        if settings is not None:
            check_way(watch, scores)
    for layer in watch.overwritten:
        if settings is not None and layer != INPUT:
            raise UnsupportedOperationError(
                f"The output of layer {layer!r} is changed in place through another view of it. Choose another layer."
            )
    maps = any(is_mapped(capture.value) for capture in watch.captures)
    seen = replace(known, overwrites=bool(watch.overwritten), maps=maps, searching=False)
    starts = sum(capture.value.numel() for capture in watch.captures if capture.value.grad_fn is None)
    counts = watch.counts
    kept = main_of(one).numel() + counts.recorded + starts
    footprint = max(1, (counts.elements // known.least + main_of(one).numel()) * scores.element_size())
    relevances = 0 if settings is None else sum(capture.value.numel() for capture in watch.captures)
    held = min(footprint, (kept + _AT_WORK * counts.largest) * scores.element_size())
    held += relevances * scores.element_size()
    uses = counts.products / counts.weights if counts.weights else float("inf")
    return _Probe(footprint, held, uses, seen, (watch, scores))


def _must_run_alone(model: nn.Module, part: Any, begin: int, size: int, layers: Sequence[str], tried: _Probe) -> bool:
    """Whether inputs have to run one by one, told from the first of a part beside some others; refuse mixed scores."""
    if min(size, len(part) - begin) < 2 or is_allowed() or tried.watched[1].is_meta:
        return False
    known, ends_at = _ALONE.setdefault(model, {}), tried.watched[0].ends_at
    key = (*layers, ends_at)
    if key not in known:
        first, *others = (to_network(model, part[row : row + 1]) for row in (begin, *companions(part, begin, size)))
        others = [other for other in others if not torch.equal(main_of(other), main_of(first))][: max(1, size - 2)]
        if not others:
            return False
        alone = run_alone(model, first, others, layers, tried.traits, ends_at)
        lengths = {int((main_of(one) != 0).sum()) for one in (first, *others)}
        if not alone and not main_of(first).is_floating_point() and len(lengths) == 1:
            return False  # others may be of other lengths
        known[key] = alone
    return known[key]


def check_parts(model: nn.Module, layers: Sequence[str]) -> None:
    """Refuse one token of a layer that has channels instead of tokens."""
    modules = {layer: split_layer(layer)[0] for layer in layers if split_layer(layer)[1] in (CLASS, LAST)}
    if not modules:
        return
    axes = neuron_axes(model, modules.values())
    for layer, module in modules.items():
        if axes[module] == CHANNELS:
            raise UnsupportedOperationError(f"Layer {layer!r} is one token of {module!r}, which has {_NO_TOKENS}.")


def check_captures(watch: Watch, scores: Tensor, rows: int, layers: Sequence[str]) -> None:
    """Refuse a network or a layer whose output is not one row per input, and a layer that did not run."""
    if len(scores) != rows and not watch.ends_at:
        raise ModelError(
            f"The network returns {len(scores)} rows for {rows} inputs; expected one row per input. Return an output "
            "whose first axis is that of the inputs, from a forward of your own in a setup file or by another export."
        )
    uses: dict[str, list[tuple[int, ...]]] = {layer: [] for layer in layers}
    for capture in watch.captures:
        if capture.layer in uses:
            uses[capture.layer].append(tuple(capture.rows_first(capture.value).shape))
    for layer, shapes in uses.items():
        if not shapes and split_layer(layer)[1] == HEADS:
            raise UnsupportedOperationError(
                f"Layer {layer!r} has no attention whose heads can be told: expected scaled_dot_product_attention, "
                "nn.MultiheadAttention, or a softmax that is multiplied with values. Choose the name of another module."
            )
        if split_layer(layer)[1] in (CLASS, LAST) and any(len(shape) != 3 for shape in shapes):
            raise UnsupportedOperationError(f"Layer {layer!r} is one token of a module that has {_NO_TOKENS}.")
        if not shapes and layer == INPUT:
            raise UnsupportedOperationError(
                "The network's input is whole numbers that no embedding looks up as they are, so that there is no "
                "relevance of 'input'. Choose a layer of the network."
            )
        if not shapes:
            raise UnsupportedOperationError(f"Layer {layer!r} did not run on these inputs; choose one that does.")
        # Of whole numbers the input is what embeddings make of it, each in a width of its own.
        if len({shape[:-1] if layer == INPUT else shape for shape in shapes}) > 1:
            text = " and ".join(str(shape[1:]) for shape in shapes)
            raise UnsupportedOperationError(
                f"Layer {layer!r} runs {len(shapes)} times with different shapes ({text}). Choose one that runs once."
            )
        whole = layer == watch.ends_at or bool(split_layer(layer)[1])
        parted = not whole and len(shapes[0]) > 1 and shapes[0][0] and shapes[0][0] % rows == 0
        if shapes[0][:1] != (rows,) and not parted:
            raise together(layer, shapes[0], rows)
    if watch.ends_at:
        _check_before(watch, layers)


def _check_before(watch: Watch, layers: Sequence[str]) -> None:
    """Refuse layers that run only behind the one that a watch ends at."""
    ends = [place for place, capture in enumerate(watch.captures) if capture.layer == watch.ends_at]
    last, before = watch.captures[ends[-1]].value, sorted({earlier.layer for earlier in watch.captures[: ends[0]]})
    if watch.settings is not None and before and last.grad_fn is None:
        raise UnsupportedOperationError(
            f"Layer {watch.ends_at!r} does not depend on {', '.join(before)} through operations that can be followed. "
            "Choose layers that it is computed from."
        )
    for layer in layers:
        uses = [place for place, capture in enumerate(watch.captures) if capture.layer == layer]
        if uses[0] > ends[-1] and watch.captures[uses[0]].value is not last:
            raise behind(layer, watch.ends_at)


def layers_until(model: nn.Module, one: object, layers: Sequence[str], end: str) -> tuple[str, ...]:
    """Return those of some layers that run before another one, in their order, and that one last.

    `one` is a single input (1, ...), which runs through the network.
    """
    watch = Watch(None)
    with undisturbed(model), watching(model, tuple(dict.fromkeys((*layers, end))), watch):
        run_watched(model, to_network(model, whole(one)), watch)
    ran = list(dict.fromkeys(capture.layer for capture in watch.captures))
    return tuple(ran[: ran.index(end) + 1])


def to_network(model: nn.Module, batch: object) -> Batch:
    """Return a batch of inputs on the network's device, in its dtype, laid out in memory as it is used to."""
    return batch.each(partial(placed, model)) if isinstance(batch, NamedInputs) else placed(model, batch)


@torch.inference_mode(False)
def placed(model: nn.Module, batch: object, in_single: bool = False) -> Tensor:
    """Return one array of inputs as `to_network` does; `in_single`: in single precision at least."""
    if is_array(batch) and not isinstance(batch, Tensor):
        batch = np.asarray(batch)
        if batch.dtype.kind not in "fiub":
            raise DataError(f"Expected an array of numbers, not of {batch.dtype}.")
        if not batch.flags.writeable or not batch.dtype.isnative or min(batch.strides) < 0:
            batch = batch.astype(batch.dtype.newbyteorder("="), order="C")
    tensor = torch.as_tensor(batch)
    parameter = next((p for p in model.parameters() if p.is_floating_point()), None)
    if parameter is not None:
        own = torch.float32 if in_single and parameter.dtype in HALF else parameter.dtype
        dtype = own if tensor.is_floating_point() else None
        tensor = to_device(tensor, parameter.device, dtype)
    tensor = laid_out(model, tensor)
    return tensor.clone() if tensor.is_inference() else tensor.detach()


def laid_out(model: nn.Module, inputs: Tensor) -> Tensor:
    """Return inputs as they lie in memory when the network runs on its own: row by row.

    Where numbers lie can be seen: of a picture with the channels last there is no `view` of its pixels, and what is
    written into its `flatten` is lost. Only networks of our own that never look have the channels last.
    """
    if inputs.dim() == 4 and runs_channels_last(model):
        return inputs.contiguous(memory_format=torch.channels_last)
    # By way of one axis, since an axis of one number may have any stride, of which convolutions take a layout.
    return inputs.contiguous().view(-1).view(inputs.shape)


def runs_channels_last(model: nn.Module) -> bool:
    """Return whether a network's own class, not one that it was derived from, says so (`Network.channels_last`)."""
    return bool(vars(type(model)).get("channels_last", False))
