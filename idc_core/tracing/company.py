"""Which row is whose: layers and scores of an input alone and beside others, before any work.

Some networks sort a batch and put the scores back, take the first axis for time, or compute something over the inputs
of a batch. What they show of an input among others is then not its own, or depends on these.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from idc_core.base.arrays import Array
from idc_core.errors import IdcError, ModelError, UnsupportedOperationError
from idc_core.lrp.calls import Args, Kwargs, Operation, name_of, tensors_of
from idc_core.lrp.captures import HALF, INPUT, Capture, CaptureTraits
from idc_core.lrp.interception import Watch
from idc_core.lrp.named_inputs import Batch, NamedInputs, call, filled, main_of
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import run_watched, undisturbed, watching
from idc_core.lrp.unseen import in_module

_ROOM = {torch.float64: 1e-6, torch.float32: 1e-3}
"""How far an input may be from itself in another batch, as share of the largest value: what rounding makes of deep
networks."""

_ROOM_OF_HALF, _ROOM_OF_INT8 = 3e-2, 5e-2

_TWICE = 1 / 300
"""The same of two copies in one batch, which are computed alike, as share of that room."""

_NEAR = 0.1
"""How far these copies may be from each other, as share of the distance to other inputs."""

_MOST_SCANNED = 1 << 24
"""Numbers among which the inputs with the fewest and the most zeros are looked for."""

_MOST_FILLED = 1 << 24
"""Numbers of a batch that is tried because that many rows seem to be written into a network."""

_OF_SHAPES = (RuntimeError, ValueError, AssertionError, IndexError)
"""What code raises that does not take as many rows; whatever else a network ends with is a person's to know."""

_OVER_TIME = """
multi_head_attention_forward scaled_dot_product_attention _transformer_encoder_layer_fwd lstm gru rnn_tanh rnn_relu
"""
_TIME_FIRST = frozenset(_OVER_TIME.split())
"""Operations that take an axis for time or tokens, by default the first."""


class TogetherError(UnsupportedOperationError):
    """A layer does not give one row per input."""


def together(layer: str, shape: tuple[int, ...], rows: int) -> TogetherError:
    """Return the error for a layer that gives an array of this shape."""
    return TogetherError(
        f"Layer {layer!r} gives an array of shape {shape} for {rows} inputs; expected one row per input. "
        "Choose a layer that keeps the inputs apart."
    )


def time_first(
    model: nn.Module, one: Batch, settings: RelevanceSettings | None, traits: CaptureTraits | None, watch: Watch
) -> frozenset[str]:
    """Return the layers that put positions before inputs, (time, n, ...), told by a second input behind the first.

    Layers that give several rows per input, such as the windows of a picture, are refused unless these lie together:
    the rows of an input are then the same, and come first, when another input is run behind it.
    """
    alone = [c for c in watch.captures if len(c.rows_first(c.value)) != 1 or _is_turned(c)]
    if not alone:
        return frozenset()
    main = main_of(one)
    other = main.flip(*range(1, main.dim())) if main.dim() > 1 else main
    both = torch.cat([main, other + 1 if main.is_floating_point() else other])
    pair = one.each(lambda value: torch.cat([value, value])).with_main(both) if isinstance(one, NamedInputs) else both
    if traits is not None and traits.least == 2:  # more rows, in which those that fill the batch come last
        traits = replace(traits, least=4)
    second = Watch(settings, traits)
    with watching(model, list(dict.fromkeys(c.layer for c in alone)), second):
        run_watched(model, pair, second)
    swapped: set[str] = set()
    for before, after in zip(alone, second.captures, strict=False):
        first, doubled = (c.value.transpose(0, 1) if c.swapped else c.value for c in (before, after))
        turned = doubled.shape == (len(first), after.rows, *first.shape[2:])
        if turned and (_is_turned(before) or (first.shape[1] == before.rows != len(first))):
            swapped.add(before.layer)
            first, doubled = first.transpose(0, 1), doubled.transpose(0, 1)
        per_row = len(first) // before.rows
        first = first[:per_row].detach()
        fits = per_row and doubled.shape == (after.rows * per_row, *first.shape[1:]) and not torch.equal(main, other)
        if not fits or not doubled[: len(first)].allclose(first, rtol=1e-3, atol=1e-4 * float(first.abs().max())):
            raise together(before.layer, tuple(before.value.shape), 1)
    return frozenset(swapped)


def _is_turned(capture: Capture) -> bool:
    """Whether as many positions as rows come first: rows that are copies are alike along the second axis alone."""
    value = capture.value.detach()
    if capture.swapped or capture.rows == 1 or value.dim() < 2 or value.shape[:2] != (capture.rows, capture.rows):
        return False
    return torch.equal(value, value[:, :1].expand_as(value)) and not torch.equal(value, value[:1].expand_as(value))


def sizes_in(error: IdcError, one: Batch) -> list[int]:
    """Return the numbers of rows above 2 with which a network may run that has failed on one input or two.

    They are the numbers that its error names, and what fills a shape in it, as far as they are no larger than may be
    tried.
    """
    found = re.search(r"(?:The network failed|fails) on inputs of shape \((\d+)[^)]*\) and type \w+: (.*)", str(error))
    numbers = {int(number) for number in re.findall(r"\d{1,4}", found[2])} if found else set()
    if found and (given := re.search(r"shape '\[([\d, ]+)\]' is invalid for input of size ([1-9]\d*)", found[2])):
        numbers.add(
            int(found[1]) * math.prod(map(int, given[1].split(","))) // int(given[2])
        )  # folded into another axis
    return [rows for rows in sorted(numbers) if rows > 2 and rows * main_of(one)[:1].numel() <= _MOST_FILLED]


def run_alone(
    model: nn.Module, first: Batch, others: Sequence[Batch], layers: Sequence[str], traits: CaptureTraits, ends_at: str
) -> bool:
    """Whether inputs have to run one by one, since rows of a layer belong to other inputs in a batch.

    Parameters
    ----------
    first, others
        Single inputs; the first is run at both ends of a batch with the others between.
    ends_at : str
        The layer that is explained, so that nothing is asked of scores; empty for scores.

    Raises
    ------
    ModelError
        If the scores of an input depend on which others are in its batch.
    """
    batch = joined([first, *others, first])
    rows = len(batch)
    try:
        beside, found = _ran(model, batch, layers, traits, ends_at)
    except ModelError as error:
        if not isinstance(error.__cause__, _OF_SHAPES):
            raise
        return True  # a batch of one is written into it
    room = _room(model, [found, *(capture.value for capture in beside.captures)])
    for one, places in ((first, (0, rows - 1)), (others[-1], (rows - 2,))):
        alone, scores = _ran(model, joined([one]), layers, traits, ends_at)
        if not ends_at and len(found) != rows:
            return True
        if not ends_at and not _keeps(scores, found, rows, places, room):
            raise _mixed(model, one, batch, places, room, traits, scores, found)
        pairs = zip(alone.captures, beside.captures, strict=False)
        if len(alone.captures) != len(beside.captures) or not all(
            _same_rows(own, among, rows, places, room) for own, among in pairs
        ):
            return True
    return False


def _ran(
    model: nn.Module, batch: Batch, layers: Sequence[str], traits: CaptureTraits, ends_at: str
) -> tuple[Watch, Tensor]:
    watch = Watch(None, traits, watch_input=INPUT in layers, ends_at=ends_at)
    with undisturbed(model), watching(model, layers, watch):
        return watch, run_watched(model, batch, watch)


def companions(part: object, begin: int, size: int) -> list[int]:
    """Return which inputs to run beside one of a part: some of its batch, and the shortest and longest or largest.

    Networks sort by length, which zeros tell, and divide by what is largest.
    """
    end = min(begin + size, len(part))  # type: ignore[arg-type]
    main = part.main if isinstance(part, NamedInputs) else part
    some = [begin + 1, (begin + end) // 2, end - 1]
    if isinstance(main, np.ndarray | Tensor) and not isinstance(main, np.memmap):
        scanned: Any = main[begin:] if math.prod(main.shape) <= _MOST_SCANNED else main[begin:end]
        length = (abs(scanned) if _is_real(scanned) else scanned != 0).reshape(len(scanned), -1).sum(1)
        some += [begin + int(length.argmin()), begin + int(length.argmax())]
    return [row for row in dict.fromkeys(some) if begin != row]


def _is_real(main: Array | Tensor) -> bool:
    return main.is_floating_point() if isinstance(main, Tensor) else main.dtype.kind == "f"


def joined(inputs: Sequence[Batch]) -> Batch:
    """Return one batch of several."""
    first = inputs[0]
    if not isinstance(first, NamedInputs):
        return torch.cat([main_of(one) for one in inputs])
    return NamedInputs(
        {name: torch.cat([one.values[name] for one in inputs if isinstance(one, NamedInputs)]) for name in first.values}
    )


def mixing(
    model: nn.Module, one: Batch, batch: Batch, places: Sequence[int], room: float = 1e-3, least: int = 1
) -> tuple[str, str]:
    """Say which operation mixes the inputs of a batch, which holds one at some places, and what to do.

    It is the first one that gives this input something else than alone, in as many copies as there have to be at
    `least`.
    """
    unknown = "An operation mixes them", "Look for what is computed over the first axis, which holds the inputs."
    if least > 2:  # a batch of one size alone does not tell which axis is its own
        return unknown
    alone = _Recorded()
    among = _Recorded(alone.found, (len(batch), least, places, room))
    for inputs, run in ((filled(one, least), alone), (batch, among)):
        with undisturbed(model), torch.no_grad(), watching(model, (), run, name_all=True), run:
            call(model, inputs)
        run.where.clear()
    if among.mixing is None:
        return unknown
    name, place = among.mixing
    said = f"{name.strip('_')!r}{in_module(place)} mixes them"
    if name in _TIME_FIRST:
        return (
            f"{said}, since it takes the first axis for time or tokens",
            "Set batch_first=True, or exchange the first two axes before it.",
        )
    if name in ("batch_norm", "instance_norm"):
        return (
            f"{said}, since it takes its moments from the batch",
            "Use batch normalisation with track_running_stats=True and training=self.training.",
        )
    return (
        said,
        "The first axis holds the inputs: compute it over another one, or with numbers kept from training, and put "
        "back what is sorted.",
    )


class _Recorded(TorchFunctionMode):
    """Records what operations gave of an input alone; or finds the first that gave it something else in a batch."""

    def __init__(
        self,
        found: list[tuple[str, Tensor]] | None = None,
        about: tuple[int, int, Sequence[int], float] = (1, 1, (), 0.0),
    ) -> None:
        super().__init__()
        self.where: list[str] = []
        self.found: list[tuple[str, Tensor]] = []
        self.mixing: tuple[str, str] | None = None
        self._alone, self._about, self._done = found, about, 0

    def layer_ran(self, layer: str, module: nn.Module, output: object) -> object:
        """Hear of a layer's output."""
        return None

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation."""
        result = func(*args, **(kwargs or {}))
        given = tensors_of((result,), {})
        if given and self.mixing is None:
            self._meet(name_of(func), given[0].detach())
        return result

    def _meet(self, name: str, value: Tensor) -> None:
        if self._alone is None:
            self.found.append((name, value.clone()))
        elif self._done < len(self._alone):
            known, alone = self._alone[self._done]
            self._done += 1
            if known != name or not _is_row_of(alone, value, *self._about):
                self.mixing = name, self.where[-1] if self.where else ""


def _is_row_of(alone: Tensor, value: Tensor, rows: int, copies: int, places: Sequence[int], room: float) -> bool:
    """Whether what an operation gave of a batch is, at some places, what it gave of an input alone."""
    if alone.dim() != value.dim():
        return False
    axes = [axis for axis, (a, b) in enumerate(zip(alone.shape, value.shape, strict=True)) if a != b]
    if not axes:
        return _keeps(alone[None], value[None], 1, (0,), room)
    if len(axes) > 1 or value.shape[axes[0]] * copies != rows * alone.shape[axes[0]]:
        return False
    own = alone.movedim(axes[0], 0)
    return _keeps(own[: len(own) // copies], value.movedim(axes[0], 0), rows, places, room)


def _same_rows(alone: Capture, among: Capture, rows: int, places: Sequence[int], room: float) -> bool:
    own, found = (capture.rows_first(capture.value).detach() for capture in (alone, among))
    fits = alone.layer == among.layer and found.shape == (rows * len(own), *own.shape[1:])
    return fits and _keeps(own, found, rows, places, room)


def _keeps(alone: Tensor, among: Tensor, rows: int, places: Sequence[int], room: float) -> bool:
    """Whether an input is at some places in a batch what it is alone, and like itself there."""
    if not alone.numel():
        return True
    found = among.detach().double().nan_to_num().unflatten(0, (rows, -1))
    own = alone.detach().double().nan_to_num()
    size = float(torch.maximum(found.abs().amax(), own.abs().amax()))
    copies, first = found[list(places)], found[places[0]]
    apart, twice, others = (float(gap.abs().amax()) for gap in (copies - own, copies - first, found - first))
    return apart <= room * size and (twice <= _TWICE * room * size or twice <= _NEAR * others)


def _room(model: nn.Module, values: Sequence[Tensor]) -> float:
    """Return how far apart an input may be from itself in another batch, as share of the largest value."""
    if any(hasattr(module, "_packed_params") for module in model.modules()):
        return _ROOM_OF_INT8  # it rounds as the largest value of a batch asks
    kinds = {value.dtype for value in (*model.parameters(), *values)}
    return _ROOM_OF_HALF if kinds & HALF else _ROOM.get(values[0].dtype, 1e-3)


def _mixed(
    model: nn.Module,
    one: Batch,
    batch: Batch,
    places: Sequence[int],
    room: float,
    traits: CaptureTraits,
    alone: Tensor,
    among: Tensor,
) -> ModelError:
    difference = float((among[list(places)] - alone).abs().amax())
    said, advice = mixing(model, one, batch, places, room, traits.least)
    return ModelError(
        f"The scores of an input depend on which others are in its batch: alone and in a batch of {len(batch)} they "
        f"differ by up to {difference:.3g} (they reach {float(alone.abs().amax()):.3g}). {said}. {advice}"
    )
