"""Watch a network run: capture layers, and give every operation a backward pass that carries relevance.

Operations are intercepted, not modules, so residual sums written with ``+``, functional activations and modules used
twice are met like anything else. Nothing is recorded before the earliest watched layer, which is where the way back
ends. In-place operations on watched values are run out of place, so that no captured value changes afterwards.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from idc_core.attribution import normalisation, pooling, recurrent  # noqa: F401 - they enter their operations
from idc_core.attribution.operations import ACTIVATIONS, FASTER, OPERATIONS, STRUCTURAL, pass_on
from idc_core.attribution.rules import RelevanceSettings
from idc_core.errors import ModelError, UnsupportedOperationError

INPUT = "input"
"""The name under which the network's own input is watched, beside the names of its modules."""


@dataclass
class Capture:
    """What one use of a watched layer gave."""

    layer: str
    value: Tensor


@dataclass
class Watch(TorchFunctionMode):
    """A pass over one batch during which layers are captured.

    Parameters
    ----------
    settings : RelevanceSettings or None
        None captures activations only and records no graph.
    """

    settings: RelevanceSettings | None
    captures: list[Capture] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    elements: int = 0
    watch_input: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self._pending: list[Capture] = []
        self._current: dict[int, tuple[Tensor, Tensor]] = {}
        self._before_softmax: dict[int, tuple[Tensor, Tensor]] = {}

    def layer_ran(self, layer: str, output: Any) -> None:
        """Note that a watched layer gave this output; an activation function right behind it still belongs to it."""
        tensor = output[0] if isinstance(output, tuple | list) else output
        if not isinstance(tensor, Tensor):
            raise ModelError(f"Layer {layer!r} returns a {type(tensor).__name__}; expected a tensor.")
        self._pending.append(Capture(layer, self._now(tensor)))

    def begin(self, inputs: Tensor) -> Tensor:
        """Watch the input itself, if that was asked for; whole numbers wait for their embedding."""
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
        if id(scores) in self._before_softmax:
            scores = self._before_softmax[id(scores)][1]
        scores = scores[:, None] if scores.dim() == 1 else scores
        if scores.dim() != 2:
            raise ModelError(
                f"The network returns an array of shape {tuple(scores.shape)}; expected scores of shape (n, classes)."
            )
        return scores

    def _settle(self, capture: Capture) -> Tensor:
        """Fix a captured value; where nothing before it is watched, the way back ends here."""
        value = self._now(capture.value)
        if self.settings is not None and not value.requires_grad:
            value = _mark(value.detach().requires_grad_())
            self._current[id(capture.value)] = (capture.value, value)
        capture.value = value
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
        name = getattr(func, "__name__", type(func).__name__)
        if self._current:
            args, kwargs = _replace(args, self._now), _replace(kwargs, self._now)
        if self._pending and name != "__get__":
            activated = self._activate(func, name, args, kwargs)
            if activated is not None:
                return activated
            args, kwargs = _replace(args, self._now), _replace(kwargs, self._now)
        if self.settings is None or not _any_tracked(args, kwargs):
            result = FASTER.get(name, func)(*args, **kwargs)
            if self.watch_input and name == "embedding":
                self.watch_input = False
                result = self._settle(Capture(INPUT, result))
            self._count(result)
            return result
        result = self._propagate(func, name, args, kwargs)
        self._count(result)
        return result

    def _activate(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor | None:
        """Let a captured layer take its activation function along, or settle it before any other operation."""
        x = args[0] if args else kwargs.get("input")
        touched = [c for c in self._pending if any(c.value is tensor for tensor in _tensors(args, kwargs))]
        if not touched:
            return None
        self._pending = [c for c in self._pending if c not in touched]
        plain, in_place = _plain_name(name, kwargs)
        own = [c for c in touched if c.value is x]
        if plain not in ACTIVATIONS or not own:
            for capture in touched:
                self._settle(capture)
            return None
        result = self._propagate(func, name, args, kwargs) if _tracked(x) else func(*args, **kwargs)
        self._count(result)
        for capture in touched:
            capture.value = result if capture in own else capture.value
            settled = self._settle(capture)
            result = settled if capture in own else result
        if in_place and isinstance(x, Tensor) and x is not result:
            self._current[id(x)] = (x, result)
        return result  # type: ignore[no-any-return]

    def _propagate(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operation on watched values in its relevance-carrying form."""
        if any(tensor.requires_grad and not _marked(tensor) for tensor in _tensors(args, kwargs)):
            hidden = "an operation that PyTorch does not show (custom or compiled)"
            raise UnsupportedOperationError(self._refusal(hidden))
        plain, in_place = _plain_name(name, kwargs)
        try:
            result = self._run(func, plain, args, kwargs)
        except UnsupportedOperationError as error:
            raise UnsupportedOperationError(self._refusal(str(error))) from None
        if in_place and isinstance(args[0], Tensor):
            self._current[id(args[0])] = (args[0], result)
        return result

    def _run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        settings = self.settings
        if id(args[0] if args else None) in self._before_softmax and name != "__get__":
            raise UnsupportedOperationError("softmax inside the network (attention)")
        kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
        if name in ACTIVATIONS:
            x, *rest = args if args else (kwargs.pop("input"),)
            return _mark(pass_on(lambda value: ACTIVATIONS[name](value, *rest, **kwargs), x))
        if name in OPERATIONS:
            return _mark(OPERATIONS[name](settings, *args, **kwargs))
        if name in ("softmax", "log_softmax"):
            x = args[0] if args else kwargs["input"]
            result = func(*args, **kwargs)
            self._before_softmax[id(result)] = (result, x)
            return _mark(result)
        result = func(*args, **kwargs)
        if name not in STRUCTURAL and any(_tracked(x) for x in _tensors((result,), {})):
            raise UnsupportedOperationError(name)
        return _mark(result)

    def _refusal(self, reason: str) -> str:
        if reason.startswith("Relevance"):
            return reason
        place = f" in module {self.where[-1]!r}" if self.where and self.where[-1] else ""
        advice = "Choose a layer behind it, or replace the operation."
        return f"Relevance cannot be propagated through {reason}{place}. {advice}"

    def _count(self, result: Any) -> None:
        if isinstance(result, Tensor):
            self.elements += result.numel()


def start_relevance(scores: Tensor, target: str | Tensor) -> Tensor:
    """Return the relevance to start from: the chosen class's score, zero elsewhere.

    Parameters
    ----------
    scores : Tensor, (n, classes)
        Scores before the softmax.
    target : "predicted" or Tensor, int64 (n,)
        The class to explain, an input.

    Returns
    -------
    Tensor, (n, classes)
    """
    chosen = scores.argmax(1) if isinstance(target, str) else target
    start = torch.zeros_like(scores)
    rows = torch.arange(len(scores), device=scores.device)
    start[rows, chosen] = scores.detach()[rows, chosen]
    return start


def propagate(watch: Watch, scores: Tensor, start: Tensor) -> list[Tensor]:
    """Send relevance from the scores back to every capture in one backward pass.

    Parameters
    ----------
    watch : Watch
        A finished pass.
    scores, start : Tensor, (n, classes)
        The scores of that pass and the relevance to start from.

    Returns
    -------
    list of Tensor
        One a capture, in its shape; zero where no way leads back to it.
    """
    values = [capture.value for capture in watch.captures]
    if not scores.requires_grad:
        raise UnsupportedOperationError(
            f"The scores do not depend on {', '.join(sorted({c.layer for c in watch.captures}))} through operations "
            "that can be followed. Choose a layer that the scores are computed from."
        )
    if not _marked(scores):
        raise UnsupportedOperationError(
            "Relevance cannot be propagated through the network's last operation, which PyTorch does not show "
            "(custom or compiled). Choose a network of ordinary operations."
        )
    relevances = torch.autograd.grad(scores, values, start, allow_unused=True)
    return [torch.zeros_like(v) if r is None else r for v, r in zip(values, relevances, strict=True)]


def _plain_name(name: str, kwargs: dict[str, Any]) -> tuple[str, bool]:
    """Return the name of the out-of-place form, and whether the operation was in place."""
    if name.startswith("__i") and name.endswith("__") and name not in ("__init__", "__invert__"):
        return name, True
    if name.endswith("_") and not name.endswith("__"):
        return name[:-1], True
    return name, bool(kwargs.get("inplace"))


def _mark(result: Any) -> Any:
    """Mark what a known operation gave, so that the result of an unseen one is noticed."""
    for tensor in _tensors((result,), {}):
        if tensor.requires_grad:
            tensor._idc_followed = True  # type: ignore[attr-defined]
    return result


def _marked(tensor: Tensor) -> bool:
    return getattr(tensor, "_idc_followed", False)


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


def module_names(model: nn.Module) -> list[str]:
    """Return the names under which layers can be asked for, in the order they are registered."""
    return [name for name, _ in model.named_modules() if name]
