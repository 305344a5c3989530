"""Watch a network run: capture layers, and give every operation a backward pass that carries relevance.

Operations are intercepted, not modules, so residual sums written with ``+``, functional activations and modules used
twice are met like anything else. Nothing is recorded before the earliest watched layer, which is where the way back
ends. In-place operations on watched values are run out of place, so that no captured value changes afterwards; where
nothing is watched yet they run as they are, and `Watch.overwritten` tells whether that reached a captured value.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch._C import DisableTorchFunction
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from idc_core.base.devices import without_autocast
from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.lrp import attention, endings, joining, lineage, normalisation, pooling, products, recurrent, winners  # noqa: F401 - they enter operations
from idc_core.lrp.calls import (
    Args,
    Kwargs,
    Operation,
    any_tracked,
    is_transformed,
    is_view,
    name_of,
    plain_name,
    replaced,
    tensors_of,
    written_into,
)
from idc_core.lrp.captures import (
    HALF,
    INPUT,
    Capture,
    CaptureTraits,
    Counts,
    followed,
    in_full,
    is_constant,
    mark,
    place_of,
)
from idc_core.lrp.explained import WAYS
from idc_core.lrp.folding import Notes, copy_note
from idc_core.lrp.heads import MULTI_HEAD, HeadFinder
from idc_core.lrp.lineage import is_first, note_depth
from idc_core.lrp.linear import COMPLEX, PARTS
from idc_core.lrp.operations import (
    ACTIVATIONS,
    CONVERTING,
    FASTER,
    FILLING,
    FUNCTIONS,
    GRADIENTS,
    HOMOGENEOUS,
    OPERATIONS,
    READS,
    STRUCTURAL,
    TURNING,
    depends,
    handled,
    keeps_zero,
    pass_on,
)
from idc_core.lrp.own_functions import follow
from idc_core.lrp.randomness import DRAWING, Randomness
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.scores import scores_of
from idc_core.lrp.substitutes import Substitutes
from idc_core.lrp.unseen import Unseen, cannot_pass, in_module


@dataclass(eq=False)
class Watch(TorchFunctionMode):
    """A pass over one batch during which layers are captured."""

    settings: RelevanceSettings | None  # None captures activations only
    traits: CaptureTraits | None = None  # what a first pass has found out; None finds it out
    captures: list[Capture] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    watch_input: bool = False
    change: Callable[[str, Tensor], Tensor] | None = None
    """Given a layer's name and its value after the activation function, returns what the network goes on with instead,
    of the same shape; inputs come first."""
    gradients: bool = False
    """Without settings: whether plain gradients are taken of scores and layers."""
    ends_at: str = ""
    """A watched layer whose values are what `end` returns, in place of the network's scores."""
    forked: set[str] = field(default_factory=set)
    unseen: Unseen = field(default_factory=Unseen)
    notes: Notes = field(default_factory=Notes)

    def __post_init__(self) -> None:
        super().__init__()
        if self.settings is not None and self.traits is not None and self.traits.shifts:
            self.settings = self.settings.by_relevance()
        elif self.settings is not None and self.settings.as_gradient:
            self.settings = self.settings.for_pass()
        self.notes.as_gradient = self.settings is not None and self.settings.as_gradient
        self._pending: list[Capture] = []
        self._substitutes = Substitutes()
        self._now = self._substitutes.now
        self._halved = False
        self._given: Capture | None = None
        self._unactivated: dict[int, tuple[Tensor, list[str]]] = {}
        self._within: list[str] = []
        self._attended: set[str] = set()
        self._finder = HeadFinder(1)
        self._randomness = Randomness()
        self._unused = self._randomness.unused
        self.detached: list[str] = []  # where values that relevance comes back through were cut off
        self._cut: dict[int | None, Tensor] = {}  # these by their memory, which nothing else takes while they are held
        self._asks_where = self.settings is not None and self.settings.asks_where
        self.notes.maps = self.traits is None or self.traits.maps

    @property
    def shifts(self) -> bool:
        """Whether relevance was carried as a gradient where values and relevance cannot be told from each other."""
        if self.settings is None or not self.settings.as_gradient:
            return False
        return self.notes.shifts or any(map(bool, self.settings.lost))

    @property
    def overwritten(self) -> list[str]:
        """What the network wrote into after it was captured: "input" and names of layers."""
        kept = self.captures if self._given is None else [self._given, *self.captures]
        return [capture.layer for capture in kept if capture.value._version != capture.version]

    def layer_ran(self, layer: str, module: nn.Module, output: object) -> object:
        """Note a layer's output, its activation function behind it included; return what replaces it, or None."""
        tensor = next(iter(output.values()), None) if isinstance(output, Mapping) else output
        if any(isinstance(part, PackedSequence) for part in (output, *(output if isinstance(output, tuple) else ()))):
            raise ModelError(f"Layer {layer!r} returns packed sequences; expected a tensor. Choose a layer behind it.")
        tensor = tensor[0] if isinstance(tensor, tuple | list) and tensor else tensor
        if not isinstance(tensor, Tensor):
            raise ModelError(f"Layer {layer!r} returns a {type(tensor).__name__}; expected a tensor.")
        if self.settings is not None and is_transformed(tensor):
            raise UnsupportedOperationError(
                f"Relevance cannot be propagated through torch.vmap, within which layer {layer!r} runs. Choose a layer "
                "behind it, or call the layer with the whole batch."
            )
        if tensor.is_complex():
            raise ModelError(
                f"Layer {layer!r} returns complex numbers. Choose a layer behind it that returns real ones."
            )
        if tensor.is_quantized:
            raise ModelError(
                f"Layer {layer!r} returns numbers of 8 bits. Choose a layer that returns floats, or examine what "
                "it was before torch.ao.quantization.convert."
            )
        self._randomness.check([tensor])
        swapped = self.traits is not None and layer in self.traits.swapped
        capture = Capture(layer, self._now(tensor), swapped)
        if not isinstance(module, nn.RNNBase) or not isinstance(output, tuple):
            self._pending.append(capture)
            return None
        capture.swapped = not module.batch_first
        value = self._settle(capture)
        if self.settings is None and self.change is None:
            return None
        return mark(recurrent.with_last_states(module, value, output[1]))

    def entered(self, layer: str) -> None:
        """Begin to look for the attention in a module whose heads are watched as `layer`."""
        self._within.append(layer)
        self._attended.discard(layer)
        self._finder = HeadFinder(self._rows)

    def left(self, layer: str) -> None:
        """End what `entered` began."""
        self._within.remove(layer)

    def _heads_ran(self, heads: Tensor) -> Tensor:
        """Capture what heads give, (n, heads, tokens, features); return what the network goes on with."""
        for layer in self._within:
            if layer in self._attended:
                raise UnsupportedOperationError(
                    f"Layer {layer!r} has more than one attention. Name the module of one of them."
                )
            self._attended.add(layer)
            heads = self._settle(Capture(layer, mark(heads)))
        return heads

    def _multi_head(self, func: Operation, name: str, args: Args, kwargs: Kwargs) -> object:
        """Run an attention that is one operation with its projections by its handler, which tells of its heads."""
        kwargs = {**kwargs, "on_heads": self._heads_ran}
        if any_tracked(args, kwargs):
            return self._propagate(func, name, args, kwargs, tensors_of(args, kwargs))
        if self.settings is not None:  # the way back begins at the heads, in single precision
            args, kwargs = replaced(args, in_full), replaced(kwargs, in_full)
        return mark(handled(self._here(args, kwargs), name, args, kwargs))

    def _here(self, args: Args, kwargs: Kwargs) -> RelevanceSettings | None:
        """Return the settings for an operation, with its place where the rule asks for it."""
        if self.settings is None or not self._asks_where:
            return self.settings
        return self.settings.at(self.where[-1] if self.where else "", is_first(args, kwargs))

    def _opened(self, name: str, args: Args, kwargs: Kwargs, result: object) -> object:
        """Capture what heads give where this operation was an attention; return what stands for its result."""
        layout = self._finder.met(name, args, kwargs, result)
        if layout is None or not isinstance(result, Tensor):
            return result
        heads = self._heads_ran(mark(layout.heads_of(result)))
        if self.settings is None and self.change is None:
            return result
        return mark(layout.back(heads, result))

    def begin(self, inputs: Tensor, count: int) -> Tensor:
        """Watch the input itself, if that was asked for; whole numbers wait for their embedding.

        `count` of its rows are inputs; the others only fill the batch.
        """
        copies = self.gradients or (self.traits is not None and self.traits.overwrites)
        inputs = inputs.clone() if copies else inputs.detach()
        self._given = Capture(INPUT, inputs, version=inputs._version)
        self._rows, self._inputs = len(inputs), count
        if not self.watch_input or not inputs.is_floating_point():
            return inputs
        self.watch_input = False
        return self._settle(Capture(INPUT, inputs))

    def end(self, output: object) -> Tensor:
        """Settle what is still open and return the scores before the final softmax, shape (n, classes)."""
        output = scores_of(output)
        for capture in self._pending:
            self._settle(capture)
        self._pending.clear()
        if self.ends_at:
            return self._values_of(self.ends_at)
        if not isinstance(output, Tensor):
            raise ModelError(f"The network returns a {type(output).__name__}; expected scores of shape (n, classes).")
        self._randomness.check([output])
        scores = self._now(output)
        self._note_forks([scores])
        before = endings.scores_before(scores)
        if before is not scores:
            self._note_forks([before, getattr(before, "_idc_unmoved", before)])
            scores = mark(before) if followed(scores) else before
        if scores.dim() == 1:
            scores = mark(scores[:, None]) if followed(scores) else scores[:, None]
        if scores.dim() != 2:
            raise ModelError(
                f"The network returns an array of shape {tuple(scores.shape)}; expected scores of shape (n, classes). "
                f"Say which are explained, with explain={WAYS}: `relevance`, `explaining`, `network` and `launch` take "
                "it."
            )
        if self._inputs == self._rows:
            return scores
        if len(scores) != self._rows:
            raise ModelError(f"The network returns {len(scores)} rows for {self._rows} inputs; expected one an input.")
        return mark(scores[: self._inputs]) if followed(scores) else scores[: self._inputs]

    def _values_of(self, layer: str) -> Tensor:
        """Return the values of all uses of a watched layer, (n, numbers)."""
        uses = [capture.rows_first(capture.value) for capture in self.captures if capture.layer == layer]
        if not uses:
            raise UnsupportedOperationError(f"Layer {layer!r} did not run on these inputs; choose one that does.")
        for value in uses:
            if value.requires_grad and not followed(value):
                raise self.unseen.refusal(value, layer)
        values: Tensor = mark(torch.cat([value.flatten(1) for value in uses], 1))
        return values

    def _settle(self, capture: Capture) -> Tensor:
        """Fix a captured value; where nothing before it is watched, the way back ends here."""
        capture.inputs, capture.rows = self._inputs, self._rows
        value = self._now(capture.value)
        if value.is_inference():
            with torch.inference_mode(False):
                value = value.clone()
        if self.settings is not None and (not value.requires_grad or is_constant(value)):
            self._halved |= value.dtype in HALF
            value = copy_note(self._now(capture.value), mark(in_full(value.detach()).requires_grad_()))
            self._substitutes.put(capture.value, value)
        if self.change is not None:
            changed = self.change(capture.layer, value.transpose(0, 1) if capture.swapped else value)
            changed = changed.transpose(0, 1) if capture.swapped else changed
            if changed is not value:
                self._substitutes.put(capture.value, changed)
            value = changed
        copy = self.settings is None and self.traits is not None and self.traits.overwrites
        capture.value = value.clone() if copy else value
        capture.version = capture.value._version
        self.captures.append(capture)
        return value

    def __torch_function__(
        self, func: Operation, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> object:
        """Run one operation of the network."""
        kwargs = kwargs or {}
        name = name_of(func)
        given = tensors_of(args, kwargs)
        if name in READS:
            args, kwargs = replaced(args, self._substitutes.standing), replaced(kwargs, self._substitutes.standing)
            if name in GRADIENTS and (name != "requires_grad_" or followed(args[0])):
                return args[0] if name == "requires_grad_" else RemovableHandle(OrderedDict())
            # Where the way goes on in single precision, weights say that they are of it, for modules that compare.
            return func(*replaced(args, in_full)) if self._halved and name == ".dtype" else func(*args, **kwargs)
        args, kwargs, given = self._as_now(args, kwargs, given)
        if self._hides(given):
            raise cannot_pass("torch.vmap or another transform of torch.func", self._place)
        drawn = name in DRAWING and self._randomness.meet(name, args, kwargs, self._place)
        if self._unused and not drawn:
            self._randomness.check(given)
        if self._unactivated:
            self._note_forks(given)
        waiting = self._waiting_for(name, args, kwargs, given) if self._pending else []
        args, kwargs, given = self._as_now(args, kwargs, given)
        tracked = self.settings is not None and any(x.requires_grad and not is_constant(x) for x in given)
        if self._within and name == MULTI_HEAD:
            result = self._multi_head(func, name, args, kwargs)
        elif not tracked:
            if self._cut and plain_name(name, kwargs)[1] and any(place_of(tensor) in self._cut for tensor in given[:1]):
                raise cannot_pass("a value that is changed in place through .detach() or .data", self._place)
            # The faster form has the same values, and another gradient where several are largest.
            result = (func if self.gradients else FASTER.get(name, func))(*args, **kwargs)
            if self.settings is not None:
                self.notes.unwatched(name, args, kwargs, given, result)
            if name == "embedding" and self.watch_input and self._reads_input(args):
                result = self._settle(Capture(INPUT, result))
        else:
            result = self._propagate(func, name, args, kwargs, given)
        if waiting:
            result = self._activated(waiting, name, args, kwargs, result)
        if drawn:
            self._randomness.keep(name, result, self._place)
        endings.note(name, args, kwargs, result)
        if self._within:
            result = self._opened(name, args, kwargs, result)
        self.counts.add(name, args, result)
        if self._asks_where:
            note_depth(plain_name(name, kwargs)[0], args, kwargs, result)
        return result

    def _as_now(self, args: Args, kwargs: Kwargs, given: list[Tensor]) -> tuple[Args, Kwargs, list[Tensor]]:
        """Return arguments, and the tensors `given` among them, with what stands for each now."""
        stands = {id(tensor): self._substitutes.now(tensor, self._place) for tensor in given if self._substitutes}
        if all(one is stands.get(id(one), one) for one in given):
            return args, kwargs, given
        args, kwargs = (replaced(values, lambda tensor: stands[id(tensor)]) for values in (args, kwargs))
        return args, kwargs, tensors_of(args, kwargs)

    def _hides(self, given: list[Tensor]) -> bool:
        """Return whether a transform that the network runs puts others in the place of watched values."""
        if self.settings is None and self.change is None:
            return False
        for x in filter(is_transformed, given):
            while is_transformed(x):
                x = torch._C._functorch.get_unwrapped(x)
                waits = id(x) in self._substitutes.current or any(x is capture.value for capture in self._pending)
                if waits or (x.requires_grad and not is_constant(x)):
                    return True
        return False

    def _note_forks(self, tensors: list[Tensor]) -> None:
        """Note layers whose output is used although an activation function has already been taken of it."""
        for x in tensors:
            if id(x) in self._unactivated:
                self.forked.update(self._unactivated[id(x)][1])

    def _reads_input(self, args: Args) -> bool:
        """Return whether an embedding looks the network's own input up, not positions or segments."""
        given = self._given
        return given is not None and args[0].shape == given.value.shape and bool((args[0] == given.value).all())

    def _waiting_for(self, name: str, args: Args, kwargs: Kwargs, given: list[Tensor]) -> list[Capture]:
        """Return the captured layers that wait for this activation function; settle them before any other operation."""
        x = args[0] if args else kwargs.get("input")
        touched = [c for c in self._pending if any(c.value is tensor for tensor in given)]
        self._pending = [c for c in self._pending if c not in touched]
        if plain_name(name, kwargs)[0] in ACTIVATIONS and self._own(touched, x):
            return touched
        for capture in touched:
            self._settle(capture)
        return []

    def _own(self, captures: list[Capture], x: object) -> list[Capture]:
        """Return which captured layers gave this value, and take its activation function along."""
        forks = self.traits.forks if self.traits else frozenset()
        return [c for c in captures if c.value is x and c.layer not in forks]

    def _activated(self, waiting: list[Capture], name: str, args: Args, kwargs: Kwargs, result: Any) -> Tensor:
        """Let captured layers take their activation function along; return what the network goes on with."""
        x, in_place = args[0] if args else kwargs["input"], plain_name(name, kwargs)[1]
        own = self._own(waiting, x)
        if (self.traits is None or self.traits.searching) and not in_place:
            self._unactivated[id(x)] = (own[0].value, [c.layer for c in own])
        going_on: Tensor = result
        for capture in waiting:
            capture.value = going_on if capture in own else capture.value
            settled = self._settle(capture)
            going_on = settled if capture in own else going_on
        if in_place and x is not going_on:
            self._substitutes.put(x, going_on)
        return going_on

    def _propagate(self, func: Operation, name: str, args: Args, kwargs: Kwargs, given: list[Tensor]) -> Any:
        """Run an operation on watched values, some of the tensors that it is given, in its relevance-carrying form."""
        constants = [x for x in given if x.is_inference() or (x.requires_grad and not followed(x))]
        if constants:
            for x in constants:
                if x.requires_grad and not is_constant(x):
                    raise self.unseen.refusal(x, self._place)
            with torch.inference_mode(False):
                for x in constants:
                    self._substitutes.put(x, x.clone() if x.is_inference() else x.detach())
                    if x.is_inference() and any(x is one for one in written_into(name, args, kwargs)):
                        self._substitutes.lose(x)  # its other views are not known
            return self.__torch_function__(func, (), args, kwargs)
        if torch._C._is_any_autocast_enabled():  # sums of relevance need the digits of single precision
            self._halved = True
            with without_autocast():
                return self._carry(func, name, args, kwargs, given)
        return self._carry(func, name, args, kwargs, given)

    def _carry(self, func: Operation, name: str, args: Args, kwargs: Kwargs, given: list[Tensor]) -> object:
        """Run an operation on tracked values, all of them known."""
        if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
            with torch.inference_mode(False):  # what the network runs without gradients still carries relevance
                return self._carry(func, name, args, kwargs, given)
        if name == "__setitem__" and args[0].dim() < 2 and is_view(args[1]):  # whose rows only its base may tell
            whole, index, value = args
            return self._carry(Tensor.copy_, "copy_", (mark(whole[index]), value), {}, given)
        plain, in_place = plain_name(name, kwargs)
        targets = written_into(name, args, kwargs)
        kwargs = {key: value for key, value in kwargs.items() if key not in ("inplace", "out")}
        try:
            if in_place and plain in TURNING:  # another look at the same numbers
                result = mark(getattr(torch, plain)(*args, **kwargs))
            else:
                result = self._run(func, plain, args, kwargs, in_place)
        except UnsupportedOperationError as error:
            raise cannot_pass(str(error), self._place) from None
        lineage.note(plain, given, result)
        if not targets:
            return result
        settings = None if plain in TURNING else self.settings
        written = [
            self._substitutes.write(settings, target, value, self._place)
            for target, value in zip(targets, tensors_of((result,), {}), strict=True)
        ]
        return written[0] if isinstance(result, Tensor) else tuple(written)

    def _run(self, func: Operation, name: str, args: Args, kwargs: Kwargs, in_place: bool) -> Any:
        own = args, kwargs  # by which constants are known
        if self._halved:
            args, kwargs = replaced(args, in_full), replaced(kwargs, in_full)
        if name not in STRUCTURAL and any(x.is_complex() for x in tensors_of(args, kwargs)):
            return mark(self._run_complex(func, name, args, kwargs))
        function = ACTIVATIONS.get(name) or FUNCTIONS.get(name)
        if function is not None and not any_tracked(
            args[1:], options := {key: value for key, value in kwargs.items() if key != "input"}
        ):
            x, *rest = args or (kwargs["input"],)
            settings = cast(RelevanceSettings, self.settings)
            if name in HOMOGENEOUS and settings.as_gradient:
                return mark(function(x, *rest, **options))
            zero = settings.as_gradient and keeps_zero(name, rest, options)
            return mark(pass_on(settings, lambda value: function(value, *rest, **options), x, zero))
        if name in OPERATIONS:
            return self.notes.watched(name, *own, mark(handled(self._here(args, kwargs), name, args, kwargs)))
        if in_place and args:
            args = (args[0].clone(), *args[1:])
        fills = name in FILLING and func is not Tensor.unfold  # a view, other than F.unfold, which copies and pads
        if fills and self.settings is not None and self.settings.bias == "redistribute":
            return mark(joining.filled(func, args, kwargs))
        result = func(*args, **kwargs)
        if name in ("detach", ".data"):
            self.detached.append(in_module(self._place))
            self._cut |= {place_of(part): part for part in tensors_of((result,), {})}
        if self._halved and name in CONVERTING:  # from half precision it would be a copy
            result = result.clone() if result is args[0] else result
            self._substitutes.may_share(args[0], result)
        if name not in STRUCTURAL and any(depends(x) for x in tensors_of((result,), {})):
            raise UnsupportedOperationError(name)
        return mark(result)

    def own_function(self, run: Callable[..., Any], cls: type, args: Args) -> Any:
        """Run a function of the network's own, of which PyTorch shows nothing."""
        with DisableTorchFunction():
            args, _, given = self._as_now(args, {}, tensors_of(args, {}))
            for capture in self._waiting_for("", args, {}, given) if self._pending else []:
                self._settle(capture)
            args, _, given = self._as_now(args, {}, given)
            constants = [x for x in given if x.requires_grad and not followed(x)]
            if any(not is_constant(x) for x in constants):
                raise self.unseen.refusal(next(x for x in constants if not is_constant(x)), self._place)
            if not any(map(followed, given)):
                return run(*args)
            args = replaced(args, lambda x: x.detach() if any(x is one for one in constants) else x)
            try:
                return mark(follow(cast(RelevanceSettings, self.settings), run, cls, args, self._substitutes.lose))
            except UnsupportedOperationError as error:
                raise cannot_pass(str(error), self._place) from None

    def _run_complex(self, func: Operation, name: str, args: Args, kwargs: Kwargs) -> object:
        """Run an operation on complex numbers."""
        if name in PARTS:
            return func(*args, **kwargs)
        if name not in COMPLEX:
            raise UnsupportedOperationError(f"{name} of complex numbers")
        return COMPLEX[name](self._here(args, kwargs), *args, **kwargs)

    @property
    def _place(self) -> str:
        """The module that runs, the innermost one; "" where that is the network itself, or is not known."""
        return self.where[-1] if self.where else ""
