"""Functions of a person's own, subclasses of `torch.autograd.Function`, which PyTorch does not show to a mode.

What one is to relevance is found by its values. Where each number of its result depends on the number at its own place,
it is an activation function, which hands relevance on unchanged. Where it is linear near its input, up to an offset, as
sparsemax is, it is an affine operation, whose weights are its gradient's. Any other is refused by its name.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._C import DisableTorchFunction

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import pull_back
from idc_core.lrp.calls import Args, tensors_of
from idc_core.lrp.linear import linear_in
from idc_core.lrp.operations import depends, pass_on
from idc_core.lrp.rules import RelevanceSettings

_Hear = Callable[[Callable[..., Any], type, Args], Any]

_HEARING = threading.local()
_LOCK = threading.Lock()
_BASE: Any = torch.autograd.function._SingleLevelFunction
"""What `Function.apply` asks to run a function, also where a network keeps that as ``swish = Swish.apply``."""

_counted = [0]

_STEP = 1e-5
"""How far from its input a function is looked at, as a part of its size; a function that bends differs by as much."""


def _apply(cls: type, *args: object) -> object:
    def run(*given: object) -> object:
        return super(_BASE, cls).apply(*given)

    hear: _Hear | None = getattr(_HEARING, "hear", None)
    if hear is None or cls.__module__.startswith(("idc_core.", "torch.")):
        return run(*args)
    return hear(run, cls, args)


@contextmanager
def functions_shown(hear: _Hear) -> Iterator[None]:
    """Let `hear` run what this thread applies of a person's own functions, in place of what PyTorch would."""
    before = getattr(_HEARING, "hear", None)
    with _LOCK:
        _counted[0] += 1
        _BASE.apply = classmethod(_apply)
    _HEARING.hear = hear
    try:
        yield
    finally:
        _HEARING.hear = before
        with _LOCK:
            _counted[0] -= 1
            if not _counted[0]:
                del _BASE.apply


def follow(
    settings: RelevanceSettings, run: Callable[..., Any], cls: type, args: Args, lose: Callable[[Tensor], None]
) -> Any:
    """Run a function of a person's own on watched values in a form that carries relevance.

    It is given copies; what it writes into, as TabNet's sparsemax does, `lose` hears of.

    Raises UnsupportedOperationError if it is of no kind that can be followed.
    """
    watched = [x for x in args if depends(x)]
    inside = [x for x in tensors_of(args, {}) if depends(x)]
    if len(watched) != 1 or len(inside) != 1:
        raise _refused(cls, "of several quantities that depend on the input")
    (x,) = watched

    def function(value: Tensor) -> Any:
        with DisableTorchFunction():
            copy = value.clone()
            result = run(*(copy if given is x else given for given in args))
        if copy._version:
            lose(x)
        return result

    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        z = function(leaf)
    if not isinstance(z, Tensor):
        raise _refused(cls, "that returns several things")
    if not z.requires_grad:
        return z
    if z.shape == x.shape and _is_elementwise(leaf, z):
        return pass_on(settings, function, x)
    offset = _offset(function, x, cls)
    return linear_in(settings, function, x, offset=offset)


def _refused(cls: type, what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"the function {cls.__name__!r} of the network's own, {what}")


def _seeds(z: Tensor) -> tuple[Tensor, Tensor]:
    """Return two gradients that have nothing in common, the same each time."""
    places = torch.arange(1, z.numel() + 1, device=z.device, dtype=torch.float64).reshape(z.shape)
    return tuple((1.5 + torch.cos(places * step)).to(z.dtype) for step in (1.7, 2.9))  # type: ignore[return-value]


def _is_elementwise(x: Tensor, z: Tensor) -> bool:
    """Whether each number of a result depends on the number at its own place alone."""
    first, other = (pull_back(z, (x,), seed, retain=True)[0] / seed for seed in _seeds(z))
    return torch.allclose(first, other, rtol=1e-4, atol=1e-6 * float(first.abs().max() + 1e-30))


def _offset(function: Callable[[Tensor], Any], x: Tensor, cls: type) -> Tensor | None:
    """Return what is added to what is linear near x; refuse what is not, as double precision tells."""
    try:
        with torch.enable_grad():
            point = x.detach().double().requires_grad_()
            z = function(point)
        seed = _seeds(z)[0]
        step = _STEP * _seeds(point)[1] * point.detach().abs().mean()
        moved, back = (function(point.detach() + way * step) - z.detach() for way in (1, -1))
        (gradient,) = pull_back(z, (point,), seed, retain=True)
    except RuntimeError as error:
        raise _refused(cls, "which fails in double precision, by which it would be checked") from error
    found, expected, size = (seed * moved).sum(), (gradient * step).sum(), (gradient * step).abs().sum()
    straight = (moved + back).abs().max() <= 1e-3 * _STEP * moved.abs().max()
    if not straight or not bool((found - expected).abs() <= _STEP * size):
        raise _refused(cls, "which is neither linear near its input nor works number by number")
    along = (function(point.detach() * (1 + _STEP)) - z.detach()) / _STEP  # what the weights make of x
    offset = z.detach() - along
    near = 1e-9 * float(z.detach().abs().max())
    return None if float(offset.abs().max()) <= near else offset.to(x.dtype)
