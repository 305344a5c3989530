"""Maps that scale and shift channels, batch normalisation among them, as parts of the linear operation beside them.

An affine map directly behind a linear operation is one linear operation with it, and so is one directly before: the
rule sees the scaled weights and the shifted bias, and the map itself passes relevance on. So relevance is that of the
folded network, whoever folds it. A map is told by its numbers being the same for every input, a linear operation by
what it is: modules do not matter. Before an operation that pads with zeros, or whose outputs see places that are no
input, a shift is no bias per channel; such a map, and one with no linear operation beside it, follows the rule for
normalisations.

The network runs as it is written. What was folded is settled on the way back: whoever has folded a map tells the value
behind it how much of its relevance came by the folded operation (`behind`, `parts`), beside the gradient itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from idc_core.lrp.affine import Affine, Rule
from idc_core.lrp.calls import Args, Kwargs
from idc_core.lrp.captures import in_full
from idc_core.lrp.channel_maps import LINEAR, MAPS, PRODUCTS, IsConstant, Layout, Map
from idc_core.lrp.contributions import add

_CONVOLUTION = ["input", "weight", "bias", "stride", "padding", "dilation", "groups"]
_TRANSPOSED = ["input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"]


@dataclass(frozen=True)
class _Folded:
    """Relevance of what a map behind a value gave, to be shared by the operation that both are."""

    map: Map
    z: Tensor
    relevance: Tensor


@dataclass(eq=False)
class _LinearNote:
    """What is noted of the result of a linear operation."""

    layout: Layout
    before: _MapNote | None = None  # the map directly before it that it takes in
    behind: list[_Folded] = field(default_factory=list)

    @property
    def shifts(self) -> bool:
        """Whether a shift is taken in."""
        return self.before is not None and self.before.map.shift is not None

    def share(
        self, rule: Rule, kept: tuple[Affine, tuple[Tensor, ...], Tensor], relevance: Tensor
    ) -> tuple[Tensor, ...]:
        """Share the relevance of the result by the rule, that of maps behind it with them taken in."""
        if self.before is None and not self.behind:
            return rule(*kept, relevance)
        affine, inputs, z = kept
        affine = replace(affine, back=lambda gradient: kept[0].pull_back(kept[1], z, gradient)[0])
        before = self.before if self.before is not None and self.before.unchanged else None
        if before is not None:
            affine, inputs = _with_map_before(affine, self.layout, before), (in_full(before.value),)
        shares = [
            rule(_with_map_behind(affine, self.layout, folded.map, folded.z), inputs, folded.z, folded.relevance)
            for folded in self.behind
        ]
        rest = _rest(relevance, [folded.relevance for folded in self.behind])
        if rest is not None:
            shares.append(rule(affine, inputs, z.detach(), rest))
        relevances = add(*shares)
        if before is not None:
            before.parts.append(relevances[0])
        self.behind.clear()
        return relevances


@dataclass(eq=False)
class _MapNote:
    """What is noted of the result of a map."""

    map: Map  # from `value` for one before a linear operation, else the last step alone
    value: Tensor  # what a map before an operation maps; what one behind an operation gives
    source: _LinearNote | _MapNote | None = None  # that of what it was computed from
    layout: Layout | None = None  # of the linear operation that it is behind; None where it is behind none
    behind: list[_Folded] = field(default_factory=list)
    parts: list[Tensor] = field(default_factory=list)  # relevance of `value` that operations behind gave

    def __post_init__(self) -> None:
        self._version = _version(self.value)

    @property
    def shifts(self) -> bool:
        """Whether a shift is taken in."""
        return self.layout is not None and self.map.shift is not None

    @property
    def unchanged(self) -> bool:
        """Whether nothing was written into the value since; a map of other numbers cannot be taken in."""
        return _version(self.value) == self._version

    def share(
        self, rule: Rule, kept: tuple[Affine, tuple[Tensor, ...], Tensor], relevance: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the relevance of what is mapped: as it came where it is folded, by the rule where not."""
        if self.layout is not None:
            return (self.passed(relevance),)
        self.passed(relevance)
        rest = _rest(relevance, self.parts)
        shares = [*self.parts, *([] if rest is None else rule(*kept, rest))]
        self.parts.clear()
        return (sum(shares[1:], shares[0]),)

    def passed(self, relevance: Tensor) -> Tensor:
        """Tell of what the map was computed from how much of its relevance is of which folded operation."""
        if self.layout is None:
            if isinstance(self.source, _MapNote):
                self.source.parts.extend(self.parts)
            return relevance
        behind = self.source.behind if self.source is not None else []
        behind.extend(replace(folded, map=self.map.then(folded.map)) for folded in self.behind)
        rest = _rest(relevance, [folded.relevance for folded in self.behind])
        if rest is not None:
            behind.append(_Folded(self.map, self.value, rest))
        self.behind.clear()
        del self.value
        return relevance


_Note = _LinearNote | _MapNote


def _rest(whole: Tensor, parts: Sequence[Tensor]) -> Tensor | None:
    """Return what is left of relevance without its parts; None where one of them is all, as it nearly always is."""
    if not parts:
        return whole
    if any(whole.data_ptr() == part.data_ptr() and whole.stride() == part.stride() for part in parts):
        return None
    rest, size = whole, whole.abs()
    for part in parts:
        rest, size = rest - part, size + part.abs()
    # What rounding leaves of large parts that cancel is no relevance.
    return torch.where(rest.abs() > 16 * torch.finfo(rest.dtype).eps * size, rest, 0.0)


class _Whole(Affine):
    """A linear operation and a map beside it as one operation, whose weights are scaled once a rule asks for them."""

    weighs = True

    def __init__(
        self,
        affine: Affine,
        layout: Layout,
        scaled: Callable[[Tensor, Tensor], Tensor],
        scale: Tensor,
        bias: Tensor | None,
        back: Callable[[Tensor], Tensor],
        factor: Tensor | None = None,
    ) -> None:
        def function(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
            z = affine.function(x, w, None)
            return z if b is None else z + layout.across(b)

        offset = None if bias is None else layout.across(bias)
        given = {"kind": affine.kind, "function": function, "bias": bias, "offset": offset, "spread": affine.spread}
        self.__dict__.update(given, back=back, factor=factor, make=lambda: scaled(cast(Tensor, affine.weight), scale))

    @cached_property
    def weight(self) -> Tensor:
        """The scaled weights."""
        return cast(Tensor, self.__dict__["make"]())


def _with_map_behind(affine: Affine, layout: Layout, map: Map, z: Tensor) -> Affine:
    """Return a linear operation and a map behind it as one operation."""
    scale, shift = cast(Tensor, layout.per_channel(map.scale, z)), layout.per_channel(map.shift, z)
    bias = shift if affine.bias is None else affine.bias * scale + (0.0 if shift is None else shift)
    back = cast(Callable[[Tensor], Tensor], affine.back)
    return _Whole(affine, layout, layout.by_outputs, scale, bias, back, layout.across(scale))


def _with_map_before(affine: Affine, layout: Layout, note: _MapNote) -> Affine:
    """Return a map and the linear operation directly behind it as one operation on what is mapped."""
    scale, shift = (layout.per_channel(values, note.value) for values in (note.map.scale, note.map.shift))
    scale, bias = in_full(cast(Tensor, scale)), affine.bias
    shift = None if shift is None else in_full(shift)
    if shift is not None:
        carried = layout.carried(cast(Tensor, affine.weight), shift)
        bias = carried if bias is None else bias + carried
    factor, back = layout.across(scale), cast(Callable[[Tensor], Tensor], affine.back)
    return _Whole(affine, layout, layout.by_inputs, scale, bias, lambda gradient: back(gradient) * factor)


def _version(value: Tensor) -> int:
    """Return a number that changes where a tensor is written into."""
    return -1 if value.is_inference() else value._version


def _note_of(value: Tensor) -> _Note | None:
    """Return what is noted of a value; None where it was written into since."""
    note, version = getattr(value, "_idc_note", (None, 0))
    if note is None or _version(value) != version:
        return None
    if callable(note):  # of what nothing watched: most of it nobody asks for
        note = note(value)
        value._idc_note = note, version  # type: ignore[attr-defined]
    return cast(_Note | None, note)


def copy_note(value: Tensor, new: Tensor) -> Tensor:
    """Note of a tensor what is noted of the one that it stands for, and return it."""
    new._idc_note = _note_of(value), _version(new)  # type: ignore[attr-defined]
    new._idc_deep = getattr(value, "_idc_deep", False)  # type: ignore[attr-defined]
    return new


def is_mapped(value: Tensor) -> bool:
    """Return whether a value is what a map gave."""
    return isinstance(_note_of(value), _MapNote)


_NOTED = {f"{name}{end}": name for name in (*LINEAR, *MAPS) for end in ("", "_") if not name.endswith("_") or not end}
"""Operations that are noted, also in place, and how they are called out of place."""

_BY_WEIGHTS = LINEAR - PRODUCTS - {"addmm"}
"""Linear operations of which all that is noted follows from their weights, whatever they are given."""

_NO_INPUT = torch.empty(0)


@dataclass
class Notes:
    """Notes what the operations of a pass gave that may be one with what is beside them."""

    maps: bool = True  # whether those of maps that nothing watches may be asked for; they hold what was mapped
    buffers: set[int] = field(default_factory=set)  # those of the network, by identity
    as_gradient: bool = False  # whether the way back carries relevance / value, which nothing here settles
    shifts: bool = False  # whether a linear operation takes in a shift, so that value and relevance are of two places

    def watched(self, name: str, args: Args, kwargs: Kwargs, result: object) -> object:
        """Note of an operation that carries relevance, in its node as well; return its result."""
        if (name in LINEAR or name in MAPS) and isinstance(result, Tensor):
            node: Any = result.grad_fn
            settles = hasattr(node, "note")
            if (settles or self.as_gradient) and not any(result is given for given in (*args, *kwargs.values())):
                note = self._noted(name, args, kwargs, result)
                self.shifts |= note is not None and note.shifts
                if settles:
                    node.note = note
                result._idc_note = note, _version(result)  # type: ignore[attr-defined]
        return result

    def unwatched(self, name: str, args: Args, kwargs: Kwargs, given: list[Tensor], result: object) -> None:
        """Note the same where nothing is watched yet, and which tensors no input changes; `given` are the tensors.

        What a map does is found out once an operation behind it asks.
        """
        if not isinstance(result, Tensor):
            return
        plain = _NOTED.get(name)
        if given and self._is_constant(given[0]) and all(map(self._is_constant, given)):
            result._idc_constant = _version(result)  # type: ignore[attr-defined]
        elif plain is not None and (self.maps or plain in LINEAR) and not any(result is tensor for tensor in given):
            note: _Note | Callable[[Tensor], _Note | None] | None
            if plain in MAPS:
                note = self._noted_later(plain, args, kwargs, given)
            elif self.maps or plain not in _BY_WEIGHTS or not args:
                note = self._noted(plain, args, kwargs, result)
            else:  # only what is captured is asked for; the input would be held
                note = partial(self._noted, plain, (_NO_INPUT, *args[1:]), kwargs)
            result._idc_note = note, _version(result)  # type: ignore[attr-defined]

    def _noted_later(
        self, name: str, args: Args, kwargs: Kwargs, given: list[Tensor]
    ) -> Callable[[Tensor], _Note | None]:
        versions = [_version(tensor) for tensor in given]

        def noted(result: Tensor) -> _Note | None:
            unwritten = versions == [_version(tensor) for tensor in given]
            return self._noted(name, args, kwargs, result) if unwritten else None

        return noted

    def _noted(self, name: str, args: Args, kwargs: Kwargs, result: Tensor) -> _Note | None:
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self._noted(name, args, kwargs, result)
        if name in LINEAR:
            return _noted_linear(name, args, kwargs, self._is_constant)
        return _noted_map(name, args, kwargs, self._is_constant, result)

    def _is_constant(self, value: object) -> bool:
        """Return whether an argument is known to be the same for every input."""
        if not isinstance(value, Tensor):
            return isinstance(value, int | float)
        if type(value) is not Tensor and isinstance(value, nn.Parameter):  # the second question takes long
            return True
        version = getattr(value, "_idc_constant", None)
        return id(value) in self.buffers or (version is not None and version == _version(value))


_DENSE = Layout(-1)


def _layout(name: str, given: Kwargs) -> Layout | None:
    """Return the layout of a linear operation; None where its weight is no matrix or no kernel."""
    if name == "linear":
        return _DENSE
    if name == "addmm" or name in PRODUCTS:
        return Layout(-1, transposed=True) if given["weight"].dim() == 2 and given["input"].dim() > 1 else None
    transposed, padding = "transpose" in name, given.get("padding", 0)
    reach = given["weight"].shape[2:]
    padded = any(size > 1 for size in reach) if padding == "same" else padding not in ("valid", 0)
    padded = any(padding) if isinstance(padding, tuple | list) else padded
    return Layout(-1 - len(reach), transposed, int(given.get("groups", 1)), transposed or padded)


def _arguments(name: str, args: Args, kwargs: Kwargs) -> Kwargs:
    """Return the arguments of a linear operation by name; its input and its weight by these names."""
    if name == "linear" and not kwargs:  # the most frequent, in less time
        return {"input": args[0], "weight": args[1], "bias": args[2] if len(args) > 2 else None}
    if name == "addmm":
        names = ["bias", "input", "weight"]
        kwargs = {{"input": "bias", "mat1": "input", "mat2": "weight"}.get(k, k): v for k, v in kwargs.items()}
    elif name in PRODUCTS:
        names = ["input", "weight"]
        kwargs = {{"other": "weight", "mat2": "weight"}.get(key, key): value for key, value in kwargs.items()}
    else:
        names = _TRANSPOSED if "transpose" in name else _CONVOLUTION
    return dict(zip(names, args, strict=False)) | kwargs


def _noted_linear(name: str, args: Args, kwargs: Kwargs, is_constant: IsConstant) -> _LinearNote | None:
    """Return what is noted of the result of a linear operation on `input` with a constant weight."""
    given = _arguments(name, args, kwargs)
    weight, x, bias = given["weight"], given["input"], given.get("bias")
    of_x = x.requires_grad or name not in PRODUCTS or is_constant(weight)
    scaled = given.get("alpha", 1) != 1 or given.get("beta", 1) != 1
    if weight.requires_grad or (bias is not None and bias.requires_grad) or scaled or not of_x:
        return None
    layout, front = _layout(name, given), _note_of(x)
    if layout is None:
        return None
    if isinstance(front, _MapNote) and front.layout is None and front.unchanged:
        return _LinearNote(layout, front if front.map.fits(layout, x, before=True) else None)
    return _LinearNote(layout)


def _held(value: Tensor) -> Tensor:
    """Return the numbers of a value for the way back, which takes none of inference mode."""
    if not value.is_inference():
        return value.detach()
    with torch.inference_mode(False):
        return value.clone()


def _noted_map(name: str, args: Args, kwargs: Kwargs, is_constant: IsConstant, result: Tensor) -> _MapNote | None:
    """Return what is noted of a result where the operation scales and shifts by numbers that no input changes."""
    mapped: tuple[Tensor, Map] | None
    kept = getattr(result.grad_fn, "kept", None)
    ran = kept[0] if isinstance(kept, tuple) else None
    if isinstance(ran, Affine) and ran.kind == "normalisation":  # it has made the same numbers already
        mapped = args[0] if args else kwargs["input"], Map(cast(Tensor, ran.weight), ran.bias)
    else:
        mapped = MAPS[name](args, kwargs, is_constant)
    if mapped is None:
        return None
    (x, map), front = mapped, _note_of(mapped[0])
    if x.shape != result.shape:
        return None
    layout = front.layout if isinstance(front, _LinearNote | _MapNote) else None
    if layout is not None and map.fits(layout, x, before=False):
        return _MapNote(map, _held(result), front, layout)
    if layout is None and isinstance(front, _MapNote):
        return _MapNote(front.map.then(map), front.value, front)
    return _MapNote(map, _held(x))
