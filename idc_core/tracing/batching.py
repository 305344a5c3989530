"""Batches of a size that suits the network, on its device; the first input is tried before any work."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from idc_core.base.config import config
from idc_core.base.parameters import class_numbers, whole_number
from idc_core.errors import DataError, ModelError, SettingError, UnsupportedOperationError
from idc_core.lrp.captures import HALF, INPUT, CaptureTraits
from idc_core.lrp.folding import is_mapped
from idc_core.lrp.interception import Watch
from idc_core.lrp.layer_parts import CLASS, HEADS, LAST, split_layer
from idc_core.lrp.named_inputs import Batch, NamedInputs, main_of
from idc_core.lrp.propagation import check_way
from idc_core.lrp.randomness import check_outside, generators
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import check_layers, run_watched, said_network, undisturbed, watching
from idc_core.tracing.batch_size import MOST_INPUTS, NEAR, inputs_at_once
from idc_core.tracing.memory import EVERY, keep, release
from idc_core.tracing.neurons import CHANNELS, behind, neuron_axes
from idc_core.tracing.transfers import to_device

_NO_TOKENS = "no tokens; expected (inputs, tokens, features). Choose a layer of tokens"

Inputs = object
"""A tensor, an array, anything with ``.inputs`` (a `Dataset`), a ``torch.utils.data.Dataset`` of inputs or of pairs
(input, target), or an iterable of batches of these, such as a ``DataLoader``; of a network with several inputs a
mapping from their names to arrays with equal rows, the main one first."""


Watched = tuple[Watch, Tensor]
"""A finished watch and the scores."""

_AT_WORK = 3
"""Values as large as the largest that an operation and those around it have in memory at a time."""

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

    def part(self, rows: slice) -> "Portion":
        """Return some of the inputs; itself for all of them."""
        if rows == slice(0, len(self.inputs)):
            return self
        return Portion(self.start + rows.start, self.inputs[rows], self.traits)


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
    done, size, traits, unreleased = skip, 1, CaptureTraits(), 0
    for part in source(inputs)[0]:
        if not _rows(part):
            continue
        begin = skip
        if done == skip:
            first = to_network(model, part[skip : skip + 1])
            tried = probe(model, first, layers, settings, ends_at=ends_at)
            size = batch_size or inputs_at_once(tried.footprint, tried.uses, main_of(first).device, tried.held)
            traits = tried.traits
            felt = size < len(part) or tried.footprint > NEAR
            if batch_size is None and felt and 1 < len(part) < _FEW and not traits.overwrites:
                if not skip:
                    yield Portion(0, first, traits, tried.watched)
                    begin = done = 1
                size = -(-(len(part) - 1) // -(-(len(part) - 1) // size))  # the rest in batches of about one size
            del tried
        for start in range(begin, len(part), size):
            batch = to_network(model, part[start : start + size])
            yield Portion(done, batch, traits)
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
    """Try everything on one input, so that a refusal comes before any work."""
    check_parts(model, layers)
    watch, before = Watch(settings, traits, watch_input=INPUT in layers, ends_at=ends_at), generators()
    with undisturbed(model), watching(model, layers, watch, name_all=True):
        scores = run_watched(model, one.each(Tensor.clone) if isinstance(one, NamedInputs) else one.clone(), watch)
        shifted = watch.shifts
        if watch.forked or shifted:
            forks = traits.forks if traits else frozenset()
            again = CaptureTraits(forks=forks | watch.forked, shifts=shifted or bool(traits and traits.shifts))
            return probe(model, one, layers, settings, again, ends_at)
        check_captures(watch, scores, 1, layers)
        _check_windows(model, one, settings, traits, watch)
        if generators() != before:  # by the network, or by another thread
            check_outside(lambda: run_watched(model, one, Watch(None)), said_network(model))
        if settings is not None:
            check_way(watch, scores)
    for layer in watch.overwritten:
        if settings is not None and layer != INPUT:
            raise UnsupportedOperationError(
                f"The output of layer {layer!r} is changed in place through another view of it. Choose another layer."
            )
    maps = any(is_mapped(capture.value) for capture in watch.captures)
    known = traits or CaptureTraits()
    seen = CaptureTraits(bool(watch.overwritten), known.forks, known.shifts, maps)
    starts = sum(capture.value.numel() for capture in watch.captures if capture.value.grad_fn is None)
    counts = watch.counts
    kept = main_of(one).numel() + counts.recorded + starts
    footprint = max(1, (counts.elements + main_of(one).numel()) * scores.element_size())
    relevances = 0 if settings is None else sum(capture.value.numel() for capture in watch.captures)
    held = min(footprint, (kept + _AT_WORK * counts.largest) * scores.element_size())
    held += relevances * scores.element_size()
    uses = counts.products / counts.weights if counts.weights else float("inf")
    return _Probe(footprint, held, uses, seen, (watch, scores))


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
        raise ModelError(f"The network returns {len(scores)} rows for {rows} inputs; expected one row per input.")
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
            raise _together(layer, shapes[0], rows)
    if watch.ends_at:
        _check_before(watch, layers)


def _together(layer: str, shape: tuple[int, ...], rows: int) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"Layer {layer!r} gives an array of shape {shape} for {rows} inputs; expected one row per input. "
        "Choose a layer that keeps the inputs apart."
    )


def _check_windows(
    model: nn.Module, one: Batch, settings: RelevanceSettings | None, traits: CaptureTraits | None, watch: Watch
) -> None:
    """Refuse layers that give several rows per input, such as the windows of a picture, unless these lie together.

    The rows of an input are then the same, and come first, when another input is run behind it.
    """
    alone = [c for c in watch.captures if len(c.rows_first(c.value)) != 1]
    if not alone:
        return
    main = main_of(one)
    other = main.flip(*range(1, main.dim())) if main.dim() > 1 else main
    both = torch.cat([main, other + 1 if main.is_floating_point() else other])
    pair = one.each(lambda value: torch.cat([value, value])).with_main(both) if isinstance(one, NamedInputs) else both
    layers = list(dict.fromkeys(c.layer for c in alone))
    second = Watch(settings, traits)
    with watching(model, layers, second):
        run_watched(model, pair, second)
    for before, after in zip(alone, second.captures, strict=False):
        first, doubled = (c.rows_first(c.value).detach() for c in (before, after))
        same = doubled[: len(first)].allclose(first, rtol=1e-3, atol=1e-4 * float(first.abs().max()))
        if len(doubled) != 2 * len(first) or not same or torch.equal(main, other):
            raise _together(before.layer, tuple(first.shape), 1)


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


def source(inputs: Inputs) -> tuple[Iterable[Any], int | None]:
    """Return the parts that inputs come in, and how many inputs there are where that is known."""
    inputs = whole(inputs)
    if isinstance(inputs, NamedInputs) or is_array(inputs):
        return (inputs,), _rows(inputs)
    if isinstance(inputs, Dataset):
        loader, total = _loaded(inputs)
        return _parts(loader), total
    if isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes):
        return _parts(inputs), None
    raise DataError(f"Expected a tensor, an array, a data set or an iterable of batches, not {type(inputs).__name__}.")


def _parts(inputs: Iterable[object]) -> Iterator[object]:
    """Yield the inputs of batches, of pairs the first one; nothing is begun before the first is asked for."""
    for batch in inputs:
        yield whole(batch[0] if isinstance(batch, tuple | list) else batch)


def _loaded(items: Dataset[object]) -> tuple[Iterable[object], int | None]:
    """Return the batches of a Dataset in its own order, and how many items it has where that is known.

    ``loaders`` of the config file is the number of processes that read; the order does not depend on it. An iterable
    Dataset has no items by number that could be shared out, so it is read by this process.
    """
    iterable = isinstance(items, IterableDataset)
    # A generator of its own: else a loader would draw from the caller's random numbers.
    loader: DataLoader[object] = DataLoader(
        items, MOST_INPUTS, num_workers=0 if iterable else config().loaders, generator=torch.Generator()
    )
    return loader, None if iterable else len(items)  # type: ignore[arg-type]


class PairedTargets:
    """Batches of pairs (inputs, targets), from which inputs are taken; it holds the targets that came with them."""

    def __init__(self, batches: Iterable[object]) -> None:
        self._batches = batches
        self._targets: list[NDArray[np.int64]] = []

    @classmethod
    def of(cls, inputs: Inputs) -> "PairedTargets | None":
        """Return the batches of a loader or a torch Dataset; None for an array or a mapping, which hold no targets."""
        inputs = whole(inputs)
        if (
            isinstance(inputs, NamedInputs | str | bytes)
            or is_array(inputs)
            or not isinstance(inputs, Dataset | Iterable)
        ):
            return None
        return cls(_loaded(inputs)[0] if isinstance(inputs, Dataset) else inputs)

    def __iter__(self) -> Iterator[object]:
        for batch in self._batches:
            if not isinstance(batch, tuple | list) or len(batch) < 2:
                raise SettingError(
                    "original=True learns from correctly classified inputs only, and these batches hold no targets: "
                    "expected pairs (inputs, targets), or fit(inputs, targets)."
                )
            self._targets.append(class_numbers("targets", batch[1]).astype(np.int64))
            yield batch[0]

    def __len__(self) -> int:
        return sum(map(len, self._targets))

    def __getitem__(self, rows: slice) -> NDArray[np.int64]:
        return np.concatenate(self._targets)[rows]


def whole(inputs: Inputs) -> Any:
    """Return the inputs of a data set, and those of a mapping as `NamedInputs`; anything else as it is."""
    inputs = getattr(inputs, "inputs", inputs)
    return NamedInputs.of(inputs) if isinstance(inputs, Mapping) else inputs


def is_array(part: object) -> bool:
    """Return whether something is a tensor, an array, or what reads like an array without being in memory."""
    return isinstance(part, Tensor | np.ndarray) or (hasattr(part, "__array__") and hasattr(part, "ndim"))


def _rows(part: Any) -> int:
    """Return the number of inputs in a batch."""
    if isinstance(part, NamedInputs):
        for value in part.values.values():
            check_tensor(value)
        return len(part)
    check_tensor(part)
    if not is_array(part) or not part.ndim:
        kind = f"a single {part.dtype} number" if is_array(part) else type(part).__name__
        raise DataError(f"Expected batches that are tensors or arrays, one row per input, not {kind}.")
    return len(part)


def check_tensor(value: object) -> None:
    """Refuse tensors that are no plain arrays of numbers: sparse ones, and those of a transform of torch.func."""
    if not isinstance(value, Tensor):
        return
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        raise DataError(
            "This was called within torch.vmap or another transform of torch.func, where inputs have no numbers of "
            "their own. Call it with the whole batch instead: it takes (n, ...)."
        )
    if value.layout != torch.strided or value.is_nested or value.is_meta:
        kind = "nested" if value.is_nested else "on the meta device" if value.is_meta else str(value.layout)
        raise DataError(
            f"Expected dense inputs, but these are {kind.removeprefix('torch.')}. Make them dense, a batch at a time "
            "where they do not fit into memory: inputs.to_dense()."
        )


def to_network(model: nn.Module, batch: object) -> Batch:
    """Return a batch of inputs on the network's device, in its dtype, images with the channels last in memory."""
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
    if tensor.dim() == 4:
        tensor = tensor.contiguous(memory_format=torch.channels_last)
    return tensor.clone() if tensor.is_inference() else tensor.detach()
