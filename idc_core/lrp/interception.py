"""Watch a network run: capture layers, and give every operation a backward pass that carries relevance.

Operations are intercepted, not modules, so residual sums written with ``+``, functional activations and modules used
twice are met like anything else. Nothing is recorded before the earliest watched layer, which is where the way back
ends. In-place operations on watched values are run out of place, so that no captured value changes afterwards; where
nothing is watched yet they run as they are, and `Watch.overwritten` tells whether that reached a captured value.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.lrp import joining, normalisation, pooling, recurrent  # noqa: F401 - they enter operations
from idc_core.lrp.operations import ACTIVATIONS, FASTER, OPERATIONS, SOFTMAX, STRUCTURAL, pass_on
from idc_core.lrp.rules import RelevanceSettings

INPUT = "input"
"""The name under which the network's own input is watched, beside the names of its modules."""

_READS = """
.shape .dtype .device .ndim .layout .is_cuda .requires_grad size dim ndimension numel nelement stride is_contiguous
is_floating_point get_device element_size __len__ __repr__ __format__
"""
READS = frozenset(_READS.split())
"""What only asks about a tensor, so that a captured layer still waits for its activation function."""

IN_PLACE = frozenset(("__iadd__", "__isub__", "__imul__", "__itruediv__", "__imatmul__", "__ipow__"))
"""In-place operators; every other in-place operation has a name that ends in an underscore."""

UNSEEN = "an operation that PyTorch does not show (custom or compiled)"


@dataclass(eq=False)
class Capture:
    """What one use of a watched layer gave; `swapped` where the layer puts positions before inputs."""

    layer: str
    value: Tensor
    swapped: bool = False
    version: int = 0

    def rows_first(self, value: Tensor) -> Tensor:
        """Return a value of this capture's shape with one row per input."""
        return value.transpose(0, 1) if self.swapped else value


@dataclass(frozen=True)
class CaptureTraits:
    """What a first pass has found out about how a network treats what is captured."""

    overwrites: bool = False  # it writes into its input or into a captured output, so that they must be copied
    forks: frozenset[str] = frozenset()
    """Layers whose output it uses before their activation function as well; theirs is captured before it."""


@dataclass(eq=False)
class Watch(TorchFunctionMode):
    """A pass over one batch during which layers are captured."""

    settings: RelevanceSettings | None  # None captures activations only and records no graph
    traits: CaptureTraits | None = None  # what a first pass has found out; None finds it out
    captures: list[Capture] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    elements: int = 0
    watch_input: bool = False
    change: Callable[[str, Tensor], Tensor] | None = None
    """Given a layer's name and its value after the activation function, returns what the network goes on with instead,
    of the same shape."""
    forked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self._pending: list[Capture] = []
        self._current: dict[int, tuple[Tensor, Tensor]] = {}
        self._before_softmax: dict[int, tuple[Tensor, Tensor]] = {}
        self._rewritten: set[int] = set()
        self._given: Capture | None = None
        self._unactivated: dict[int, tuple[Tensor, str]] = {}

    @property
    def overwritten(self) -> list[str]:
        """What the network wrote into after it was captured: "input" and names of layers."""
        kept = self.captures if self._given is None else [self._given, *self.captures]
        return [capture.layer for capture in kept if capture.value._version != capture.version]

    def layer_ran(self, layer: str, module: nn.Module, output: Any) -> Any:
        """Note a layer's output, its activation function behind it included; return what replaces it, or None."""
        tensor = output[0] if isinstance(output, tuple | list) else output
        if not isinstance(tensor, Tensor):
            raise ModelError(f"Layer {layer!r} returns a {type(tensor).__name__}; expected a tensor.")
        capture = Capture(layer, self._now(tensor))
        if not isinstance(module, nn.RNNBase):
            self._pending.append(capture)
            return None
        capture.swapped = not module.batch_first
        value = self._settle(capture)
        if self.settings is None and self.change is None:
            return None
        return _mark(recurrent.with_last_states(module, value, output[1]))

    def begin(self, inputs: Tensor) -> Tensor:
        """Watch the input itself, if that was asked for; whole numbers wait for their embedding."""
        inputs = inputs.clone() if self.traits and self.traits.overwrites else inputs
        self._given = Capture(INPUT, inputs, version=inputs._version)
        if not self.watch_input or not inputs.is_floating_point():
            return inputs
        self.watch_input = False
        return self._settle(Capture(INPUT, inputs))

    def end(self, output: Any) -> Tensor:
        """Settle what is still open and return the scores before the final softmax, shape (n, classes)."""
        output = output[0] if isinstance(output, tuple | list) else output
        for capture in self._pending:
            self._settle(capture)
        self._pending.clear()
        if not isinstance(output, Tensor):
            raise ModelError(f"The network returns a {type(output).__name__}; expected scores of shape (n, classes).")
        scores = self._now(output)
        self._note_forks([scores])
        if id(scores) in self._before_softmax:
            scores = self._before_softmax[id(scores)][1]
        if scores.dim() == 1:
            scores = _mark(scores[:, None]) if followed(scores) else scores[:, None]
        if scores.dim() != 2:
            raise ModelError(
                f"The network returns an array of shape {tuple(scores.shape)}; expected scores of shape (n, classes)."
            )
        return scores

    def _settle(self, capture: Capture) -> Tensor:
        """Fix a captured value; where nothing before it is watched, the way back ends here."""
        value = self._now(capture.value)
        if value.is_inference():
            with torch.inference_mode(False):
                value = value.clone()
        if self.settings is not None and not value.requires_grad:
            value = _mark(value.detach().requires_grad_())
            self._current[id(capture.value)] = (capture.value, value)
        if self.change is not None:
            changed = self.change(capture.layer, value)
            if changed is not value:
                self._current[id(capture.value)] = (capture.value, changed)
            value = changed
        copy = self.settings is None and self.traits is not None and self.traits.overwrites
        capture.value = value.clone() if copy else value
        capture.version = capture.value._version
        self.captures.append(capture)
        return value

    def _now(self, tensor: Tensor) -> Tensor:
        """Return what stands for this tensor after captures and in-place operations."""
        while id(tensor) in self._current:
            tensor = self._current[id(tensor)][1]
        return tensor

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation of the network."""
        kwargs = kwargs or {}
        name = _name(func)
        if self._current:
            args, kwargs = _replace(args, self._now), _replace(kwargs, self._now)
        if name in READS:
            return func(*args, **kwargs)
        if self._unactivated:
            self._note_forks(_tensors(args, kwargs))
        if self._pending:
            activated = self._activate(func, name, args, kwargs)
            if activated is not None:
                return activated
            args, kwargs = _replace(args, self._now), _replace(kwargs, self._now)
        if self.settings is None or not _any_tracked(args, kwargs):
            result = FASTER.get(name, func)(*args, **kwargs)
            if name == "embedding" and self.watch_input and self._reads_input(args):
                self.watch_input = False
                result = self._settle(Capture(INPUT, result))
            if name in SOFTMAX and result.dim() == 2:
                self._before_softmax[id(result)] = (result, args[0] if args else kwargs["input"])
        else:
            result = self._propagate(func, name, args, kwargs)
        self._count(result)
        return result

    def _note_forks(self, tensors: list[Tensor]) -> None:
        """Note layers whose output is used although an activation function has already been taken of it."""
        self.forked.update(self._unactivated[id(x)][1] for x in tensors if id(x) in self._unactivated)

    def _reads_input(self, args: tuple[Any, ...]) -> bool:
        """Return whether an embedding looks the network's own input up, not positions or segments."""
        given = self._given
        return given is not None and args[0].shape == given.value.shape and bool((args[0] == given.value).all())

    def _activate(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        """Let a captured layer take its activation function along, or settle it before any other operation."""
        x = args[0] if args else kwargs.get("input")
        touched = [c for c in self._pending if any(c.value is tensor for tensor in _tensors(args, kwargs))]
        if not touched:
            return None
        self._pending = [c for c in self._pending if c not in touched]
        plain, in_place = _plain_name(name, kwargs)
        forks = self.traits.forks if self.traits else frozenset()
        own = [c for c in touched if c.value is x and c.layer not in forks]
        if plain not in ACTIVATIONS or not own:
            for capture in touched:
                self._settle(capture)
            return None
        result = self._propagate(func, name, args, kwargs) if _tracked(x) else func(*args, **kwargs)
        self._count(result)
        if self.traits is None and not in_place:
            self._unactivated.update((id(c.value), (c.value, c.layer)) for c in own)
        for capture in touched:
            capture.value = result if capture in own else capture.value
            settled = self._settle(capture)
            result = settled if capture in own else result
        if in_place and isinstance(x, Tensor) and x is not result:
            self._current[id(x)] = (x, result)
        return result  # type: ignore[no-any-return]

    def _propagate(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operation on watched values in its relevance-carrying form."""
        tracked = [tensor for tensor in _tensors(args, kwargs) if tensor.requires_grad]
        plain, in_place = _plain_name(name, kwargs)
        # What the network itself runs without gradients still carries relevance.
        with torch.inference_mode(False):
            try:
                self._check_origin(tracked)
                result = self._run(func, plain, args, kwargs, in_place)
            except UnsupportedOperationError as error:
                raise UnsupportedOperationError(self._refusal(str(error))) from None
        target = args[0] if args else kwargs.get("input")
        if in_place and isinstance(target, Tensor) and result is not target:
            self._current[id(target)] = (target, result)
            self._rewritten.add(target.untyped_storage().data_ptr())
        return result

    def _check_origin(self, tracked: list[Tensor]) -> None:
        for tensor in tracked:
            if not followed(tensor):
                raise UnsupportedOperationError(unseen(tensor))
            if self._rewritten and tensor.untyped_storage().data_ptr() in self._rewritten:
                raise UnsupportedOperationError("a tensor of which another view was changed in place")

    def _run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], in_place: bool) -> Any:
        if any(tensor.requires_grad and id(tensor) in self._before_softmax for tensor in _tensors(args, kwargs)):
            raise UnsupportedOperationError("softmax inside the network (attention)")
        kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
        if name in ACTIVATIONS:
            x, *rest = args if args else (kwargs.pop("input"),)
            return _mark(pass_on(lambda value: ACTIVATIONS[name](value, *rest, **kwargs), x))
        if name in OPERATIONS:
            return _mark(_handled(self.settings, name, args, kwargs))
        if name in SOFTMAX:
            result = func(*args, **kwargs)
            self._before_softmax[id(result)] = (result, args[0] if args else kwargs["input"])
            return _mark(result)
        if name == "__setitem__":
            raise UnsupportedOperationError("__setitem__ (writing into a part of a tensor)")
        if in_place and args:
            args = (args[0].clone(), *args[1:])
        result = func(*args, **kwargs)
        if name not in STRUCTURAL and any(_tracked(x) for x in _tensors((result,), {})):
            raise UnsupportedOperationError(name)
        return _mark(result)

    def _refusal(self, reason: str) -> str:
        place = f" in module {self.where[-1]!r}" if self.where and self.where[-1] else ""
        advice = "Choose a layer behind it, or replace the operation."
        return f"Relevance cannot be propagated through {reason}{place}. {advice}"

    def _count(self, result: Any) -> None:
        if isinstance(result, Tensor):
            self.elements += result.numel()


class Faster(TorchFunctionMode):
    """Runs a network's operations as a pass does where nothing is watched: the same numbers, faster."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one operation."""
        return FASTER.get(_name(func), func)(*args, **(kwargs or {}))


def _handled(settings: RelevanceSettings | None, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation by its handler; arguments that the handler does not know are refused."""
    handler = OPERATIONS[name]
    if kwargs:
        try:
            signature(handler).bind(settings, *args, **kwargs)
        except TypeError:
            raise UnsupportedOperationError(f"{name} with the arguments {', '.join(kwargs)}") from None
    return handler(settings, *args, **kwargs)


def _name(func: Any) -> str:
    """Return the name of an operation; an attribute of a tensor has a dot in front."""
    name = getattr(func, "__name__", type(func).__name__)
    return f".{getattr(func.__self__, '__name__', 'attribute')}" if name == "__get__" else name


def unseen(tensor: Tensor) -> str:
    """Describe the operation that gave a tensor unseen, by the name its gradient goes by."""
    known = "" if tensor.grad_fn is None else tensor.grad_fn.name().removesuffix("Backward")
    return f"{known}, {UNSEEN}" if known else UNSEEN


def _plain_name(name: str, kwargs: dict[str, Any]) -> tuple[str, bool]:
    """Return the name of the out-of-place form, and whether the operation was in place."""
    if name in IN_PLACE:
        return name, True
    if name.endswith("_") and not name.endswith("__"):
        return name[:-1], True
    return name, bool(kwargs.get("inplace"))


def _mark(result: Any) -> Any:
    """Mark what a known operation gave, so that the result of an unseen one is noticed."""
    for tensor in _tensors((result,), {}):
        if tensor.requires_grad:
            tensor._idc_followed = (tensor.grad_fn,)  # type: ignore[attr-defined]
    return result


def followed(tensor: Tensor) -> bool:
    """Return whether a known operation gave this tensor; a custom function around it has its own gradient."""
    return getattr(tensor, "_idc_followed", None) == (tensor.grad_fn,)


def _tracked(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad


def _tensors(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple | list):
            found.extend(_tensors(value, {}))
    return found


def _any_tracked(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    return any(tensor.requires_grad for tensor in _tensors(args, kwargs))


def _replace(value: Any, now: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return now(value)
    if isinstance(value, dict):
        return {key: _replace(item, now) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_replace(item, now) for item in value)
    return value
