"""Affine operations as the rules of relevance propagation see them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.graph import _engine_run_backward
from torch.nn.modules.utils import _pair

Kind = Literal["dense", "convolution", "pooling", "sum", "normalisation"]
"""What an operation is."""


class Place(str):
    """The kind of an operation, as the word itself, and where in the network it is: what a rule is asked about.

    Attributes
    ----------
    fixed : bool
        Of a normalisation: whether it scales and shifts by numbers that no input changes, as batch normalisation does.
    module : str
        Name of the innermost module that the operation runs in, as in ``named_modules()``.
    first, last : bool
        Of a dense operation or a convolution: whether none of these is before it, or behind it.
    """

    fixed: bool
    module: str
    first: bool
    last: bool

    def __new__(cls, kind: Kind, fixed: bool = False, module: str = "", first: bool = False) -> "Place":
        """Name a kind and a place; `last` is found at the end of the pass."""
        self = super().__new__(cls, kind)
        self.fixed, self.module, self.last = fixed, module, False
        self.first = first and kind in ("dense", "convolution")
        return self


Function = Callable[[tuple[Tensor, ...], Tensor | None, Tensor | None], Tensor]


@dataclass(frozen=True)
class Affine:
    """One affine operation z = f(inputs; weight, bias) of a network, met while it ran."""

    kind: Kind  # what the operation is, so that a composite can choose its rule
    function: Function  # ``function(inputs, weight, bias) -> z``, linear in the inputs for a fixed weight and no bias
    weight: Tensor | None = None  # None where the operation has none (pooling, sums), as `bias`
    bias: Tensor | None = None
    offset: Tensor | None = None  # the bias in a shape that broadcasts against z
    spread: Callable[[tuple[Tensor, ...]], Tensor] | None = None
    """``spread(inputs) -> z`` with the same wiring and only positive weights, along which a share that belongs to no
    single input is divided equally; None: `function` with every weight set to one."""
    pointwise: bool = False
    """Whether every number of z is that of each input at the same place, times the weight if there is one, and the bias
    added."""
    back: Callable[[Tensor], Tensor] | None = None
    """Carries a gradient of z, times `factor`, back to the one input, where that takes less time than by z's graph."""
    factor: Tensor | None = None

    @property
    def weighs(self) -> bool:
        """Whether it has weights."""
        return self.weight is not None

    def __call__(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return z for these inputs, bias included."""
        return self.function(inputs, self.weight, self.bias)

    def equally(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the operation with every weight set to one and no bias."""
        if self.spread is not None:
            return self.spread(inputs)
        return self.function(inputs, None if self.weight is None else torch.ones_like(self.weight), None)

    def pull_back(
        self, inputs: tuple[Tensor, ...], z: Tensor, gradient: Tensor, *, multiplied: bool = False
    ) -> tuple[Tensor, ...]:
        """Carry a gradient of z back to the inputs that it was computed from; `multiplied`: by `factor` already."""
        if self.back is None:
            return pull_back(z, inputs, gradient, retain=True)
        return (self.back(gradient if multiplied or self.factor is None else gradient * self.factor),)


Rule = Callable[[Affine, tuple[Tensor, ...], Tensor, Tensor], tuple[Tensor, ...]]
"""``rule(affine, inputs, z, relevance_of_z) -> relevance of each input``; z hangs on the inputs' graph."""


_What = TypeVar("_What")


class Keeps(Protocol[_What]):
    """What the way through an operation keeps for the way back."""

    kept: _What


def taken(ctx: Keeps[_What]) -> _What:
    """Return what was kept and make room for what comes."""
    kept = ctx.kept
    del ctx.kept
    return kept


def applied(function: type[torch.autograd.Function], *given: object) -> Tensor:
    """Run an operation that has a way back of its own."""
    result: Tensor = function.apply(*given)
    return result


def pull_back(
    z: Tensor, inputs: Sequence[Tensor], gradient: Tensor, *, retain: bool = False, allow_unused: bool = False
) -> tuple[Tensor, ...]:
    """Carry a gradient of z back to what z was computed from; `allow_unused` gives None where z does not depend on it.

    The same as ``torch.autograd.grad(z, inputs, gradient)``, whose engine it asks directly: before that, PyTorch
    compares the two shapes as formulas, at every call, and at the first one of a process loads a computer algebra
    system for it, which takes a quarter of a second.
    """
    return _engine_run_backward((z,), (gradient,), retain, False, tuple(inputs), allow_unused, accumulate_grad=False)


_Pair = tuple[int, int]
_KeepsSizes = Keeps[tuple[Tensor, _Pair, _Pair]]


class _GreyConvolution(torch.autograd.Function):
    """A convolution of stride 1 over one channel; its input's gradient is a convolution with the turned kernel.

    PyTorch computes the same gradient several times slower on CPU where there is but one channel to return to.
    """

    @staticmethod
    def forward(
        ctx: _KeepsSizes, x: Tensor, weight: Tensor, bias: Tensor | None, padding: _Pair, dilation: _Pair
    ) -> Tensor:
        """Convolve."""
        ctx.kept = weight, padding, dilation
        return F.conv2d(x, weight, bias, 1, padding, dilation)

    @staticmethod
    def backward(ctx: _KeepsSizes, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the input."""
        return _turned(grads[0], *ctx.kept), None, None, None, None


def _turned(gradient: Tensor, weight: Tensor, padding: _Pair, dilation: _Pair) -> Tensor:
    """Return the gradient of the input of a convolution of stride 1."""
    reach = zip(weight.shape[2:], padding, dilation, strict=True)
    outside = [d * (k - 1) - p for k, p, d in reach]
    return F.conv2d(gradient, weight.transpose(0, 1).flip(2, 3), None, 1, outside, dilation)


def _is_grey(input: Tensor, weight: Tensor, stride: object, padding: object, dilation: object) -> bool:
    """Return whether the turned kernel gives the gradient of the input."""
    grey = input.dim() == 4 and input.shape[1] == 1 and input.device.type == "cpu"
    if not grey or _pair(stride) != (1, 1) or isinstance(padding, str):
        return False
    reach = zip(weight.shape[2:], _pair(padding), _pair(dilation), strict=True)
    return all(p <= d * (k - 1) for k, p, d in reach)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve as PyTorch does; over one channel with stride 1 the way back is the fast one."""
    if _is_grey(input, weight, stride, padding, dilation):
        return applied(_GreyConvolution, input, weight, bias, _pair(padding), _pair(dilation))
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv2d_back(
    input: Tensor, weight: Tensor, stride: object = 1, padding: object = 0, dilation: object = 1, groups: int = 1
) -> Callable[[Tensor], Tensor] | None:
    """Return what carries a gradient of `conv2d`'s result back to its input; None where only the graph can."""
    if _is_grey(input, weight, stride, padding, dilation):
        return lambda gradient: _turned(gradient, weight, _pair(padding), _pair(dilation))
    if input.dim() != 4 or isinstance(padding, str):
        return None
    sizes = [_pair(size) for size in (stride, padding, dilation)]

    def back(gradient: Tensor) -> Tensor:
        mask = (True, False, False)
        gradients = torch.ops.aten.convolution_backward(
            gradient, input, weight, None, *sizes, False, (0, 0), groups, mask
        )
        return gradients[0]  # type: ignore[no-any-return]

    return back
