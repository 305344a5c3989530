"""Operations that join watched values and constants: concatenation, stacking, padding, masking.

Each only moves numbers, so the plain gradient carries relevance. A constant that is joined in is to the sum behind it
what a bias is: with ``bias="redistribute"`` its share goes back to the watched values beside it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, Keeps, applied, pull_back
from idc_core.lrp.calls import Args, Kwargs, replaced, tensors_of
from idc_core.lrp.linear import linear_in
from idc_core.lrp.operations import OPERATIONS, Handler, affine, depends, operation, scaled
from idc_core.lrp.rules import RelevanceSettings

_Join = Callable[[tuple[Tensor, ...]], Tensor]

_Kept = Keeps[tuple[_Join, tuple[int, ...], tuple[Tensor, ...], Tensor]]


class _JoinedRelevance(torch.autograd.Function):
    """A join whose backward pass divides what falls to constants equally among the watched values along some axes."""

    @staticmethod
    def forward(ctx: _Kept, join: _Join, axes: tuple[int, ...], *inputs: Tensor) -> Tensor:
        """Run the operation once, keeping its own small graph for the way back."""
        with torch.enable_grad():
            leaves = tuple(x.detach().requires_grad_() for x in inputs)
            z = join(leaves)
        ctx.kept = join, axes, leaves, z
        return z.detach()

    @staticmethod
    def backward(ctx: _Kept, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the relevance of the watched values."""
        join, axes, leaves, z = ctx.kept
        relevance, watched = grads[0], _places_of_watched(join, leaves)
        if axes and not bool(watched.all()):  # without any, inputs of a batch would share with each other
            lost = relevance.masked_fill(watched, 0.0).sum(axes, keepdim=True)
            relevance = relevance + lost / watched.sum(axes, keepdim=True).clamp(min=1)
        return (None, None, *pull_back(z, leaves, relevance, retain=True))


def _places_of_watched(join: _Join, inputs: tuple[Tensor, ...]) -> Tensor:
    """Return which places of a join hold watched values, whatever they are."""
    first, other = (join(tuple(torch.full_like(x.detach(), number) for x in inputs)) for number in (0.0, 1.0))
    return first != other


def follow_join(settings: RelevanceSettings, join: _Join, axes: tuple[int, ...], *inputs: Tensor) -> Tensor:
    """Run a join of watched values; where biases are redistributed, so is what falls to constants, along the axes."""
    if settings.bias == "absorb":
        return join(inputs)
    return applied(_JoinedRelevance, join, axes, *inputs)


@operation("cat", "concat", "concatenate")
def concatenate(settings: RelevanceSettings, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Put tensors beside each other, watched ones and constants."""
    watched = [x for x in tensors if depends(x)]
    if len(watched) in (0, len(tensors)):
        return torch.cat(tuple(tensors), dim)

    def join(parts: tuple[Tensor, ...]) -> Tensor:
        rest = iter(parts)
        return torch.cat([next(rest) if depends(x) else x for x in tensors], dim)

    return follow_join(settings, join, (dim,), *watched)


@operation("stack")
def _stack(settings: RelevanceSettings, tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return concatenate(settings, [x.unsqueeze(dim) for x in tensors], dim)


@operation("hstack")
def _hstack(settings: RelevanceSettings, tensors: Sequence[Tensor]) -> Tensor:
    return concatenate(settings, tensors, min(1, tensors[0].dim() - 1))


@operation("vstack", "row_stack")
def _vstack(settings: RelevanceSettings, tensors: Sequence[Tensor]) -> Tensor:
    return concatenate(settings, [torch.atleast_2d(x) for x in tensors])


@operation("dstack")
def _dstack(settings: RelevanceSettings, tensors: Sequence[Tensor]) -> Tensor:
    return concatenate(settings, [torch.atleast_3d(x) for x in tensors], 2)


@operation("column_stack")
def _column_stack(settings: RelevanceSettings, tensors: Sequence[Tensor]) -> Tensor:
    return concatenate(settings, [x.unsqueeze(1) if x.dim() == 1 else x for x in tensors], 1)


@operation("diff")
def _differences(
    settings: RelevanceSettings,
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Take each number from the next one."""
    parts = [x for x in (prepend, input, append) if x is not None]
    x = concatenate(settings, parts, dim) if len(parts) > 1 else input
    return linear_in(settings, lambda value: torch.diff(value, n, dim), x, "sum")


@operation("pad")
def _pad(
    settings: RelevanceSettings, input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    axes = tuple(input.dim() - 1 - i for i in range(len(pad) // 2))
    return follow_join(settings, lambda x: F.pad(x[0], tuple(pad), mode, value), axes, input)


@operation("masked_fill")
def masked_fill(settings: RelevanceSettings, input: Tensor, mask: Tensor, value: Tensor | float) -> Tensor:
    """Replace the numbers under a mask by a constant."""
    shape = torch.broadcast_shapes(input.shape, mask.shape)
    axes = tuple(range(1, len(shape)))
    return follow_join(settings, lambda x: x[0].masked_fill(mask, value), axes, input.expand(shape))


@operation("where")
def _where(settings: RelevanceSettings, *given: Tensor, **named: Tensor) -> Tensor:
    """Choose place by place between two values, either of which may be a constant."""
    condition, input, other = *given, *(named[name] for name in ("condition", "input", "other") if name in named)
    if isinstance(input, Tensor) and input.dtype is torch.bool is not condition.dtype:  # x.where(condition, other)
        condition, input = input, condition
    shape = torch.broadcast_shapes(condition.shape, *(x.shape for x in (input, other) if isinstance(x, Tensor)))
    both = [x.expand(shape) if depends(x) else x for x in (input, other)]
    watched = [x for x in both if depends(x)]
    if len(watched) == 2:
        return torch.where(condition, watched[0], watched[1])

    def join(parts: tuple[Tensor, ...]) -> Tensor:
        one, two = (parts[0] if depends(x) else x for x in both)
        return torch.where(condition, one, two)

    return follow_join(settings, join, tuple(range(1, len(shape))), *watched)


def filled(function: Callable[..., Tensor], args: Args, kwargs: Kwargs) -> Tensor:
    """Run an operation that moves watched values into places between constants, such as the triangle of a matrix."""
    watched = [x for x in tensors_of(args, kwargs) if depends(x)]

    def join(parts: tuple[Tensor, ...]) -> Tensor:
        rest = iter(parts)
        given, options = replaced([args, kwargs], lambda x: next(rest).clone() if depends(x) else x)
        return function(*given, **options)

    with torch.no_grad():
        dimensions = join(tuple(watched)).dim()
    return applied(_JoinedRelevance, join, tuple(range(1, dimensions)), *watched)


@operation("__setitem__")
def _write(settings: RelevanceSettings, input: Tensor, index: Any, value: Tensor) -> Tensor:
    """Return a tensor of which a part is replaced; the interception puts it in the place of the one written into."""
    watched = [x for x in (input, value) if depends(x)]

    def join(parts: tuple[Tensor, ...]) -> Tensor:
        rest = iter(parts)
        whole, part = (next(rest) if depends(x) else x for x in (input, value))
        whole = whole.clone()
        whole[index] = part
        return whole

    return follow_join(settings, join, tuple(range(1, input.dim())), *watched)


@operation("copy")
def _copy(settings: RelevanceSettings, input: Tensor, other: Tensor | float, non_blocking: bool = False) -> Tensor:
    other = torch.as_tensor(other, dtype=input.dtype, device=input.device)
    return other.reshape(other.shape[max(0, other.dim() - input.dim()) :]).expand(input.shape).clone()


@operation("fill", "zero")
def _fill(settings: RelevanceSettings, input: Tensor, value: Tensor | float = 0.0) -> Tensor:
    return torch.as_tensor(value, dtype=input.dtype, device=input.device).expand(input.shape).clone()


def _adding(name: str) -> Handler:
    def handler(
        settings: RelevanceSettings, input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1
    ) -> Tensor:
        given = (input, scaled(settings, source, alpha))

        def total(parts: tuple[Tensor, ...]) -> Tensor:
            rest = iter(parts)
            whole, more = (next(rest) if depends(x) else x for x in given)
            return getattr(torch, name)(whole, dim, index, more)  # type: ignore[no-any-return]

        return affine(settings, Affine("sum", lambda x, _, __: total(x)), *(x for x in given if depends(x)))

    return handler


@operation("scatter")
def _scatter(
    settings: RelevanceSettings,
    input: Tensor,
    dim: int,
    index: Tensor,
    src: object = None,
    *,
    value: object = None,
    reduce: str | None = None,
) -> Tensor:
    """Write numbers into a tensor by their index; some sum up what meets there."""
    src = value if src is None else src
    if reduce not in (None, "add"):
        raise UnsupportedOperationError(f"scatter that reduces by {reduce!r}")
    if reduce == "add":
        return OPERATIONS["scatter_add"](settings, input, dim, index, src)  # type: ignore[no-any-return]
    return _moved(settings, torch.scatter, input, dim, index, src)


@operation("index_put")
def _index_put(
    settings: RelevanceSettings, input: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Write numbers into a tensor by their indices, or add them to what is there."""
    given = [x for x in (input, values) if depends(x)]
    if not accumulate:
        return _moved(settings, torch.index_put, input, indices, values)

    def total(parts: tuple[Tensor, ...]) -> Tensor:
        rest = iter(parts)
        whole, more = (next(rest) if depends(x) else x for x in (input, values))
        return torch.index_put(whole, indices, more, True)

    return affine(settings, Affine("sum", lambda x, _, __: total(x)), *given)


def _moved(settings: RelevanceSettings, function: Callable[..., Tensor], *args: object) -> Tensor:
    return function(*args) if settings.bias == "absorb" else filled(function, args, {})


for _name in ("index_add", "scatter_add"):
    OPERATIONS[_name] = _adding(_name)
