"""Operations of which some numbers win: extremes, medians, and the smooth maximum.

Relevance passes to the winners, and equal ones share it, as in max pooling. The smooth maximum ``log sum exp`` divides
it by the softmax of its input, which is its gradient: all of it arrives, nearly all at the largest number where that
stands out, and as much at each where all are equal. A constant bound that wins is to a value what that of a clamp is:
an activation function, which hands relevance on unchanged.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from idc_core.lrp.operations import OPERATIONS, Handler, by_its_gradient, depends, operation, pass_on
from idc_core.lrp.rules import RelevanceSettings


def _extreme(name: str) -> tuple[Handler, Handler]:
    """Return handlers of amax and max, or of amin and min, which PyTorch's own gradient shares among equal ones."""
    over_axes, index_of = getattr(torch, f"a{name}"), getattr(Tensor, f"arg{name}")

    def extremes(
        settings: RelevanceSettings, input: Tensor, dim: int | tuple[int, ...] = (), keepdim: bool = False
    ) -> object:
        return over_axes(input, dim, keepdim)

    def along(settings: RelevanceSettings, input: Tensor, *args: object, **options: object) -> object:
        other = options.get("other", args[0] if args else None)
        if isinstance(other, Tensor):
            return OPERATIONS[f"{name}imum"](settings, input, other)
        dim = options.get("dim", options.get("axis", other))
        if dim is None:
            return over_axes(input)
        keepdim = bool(options.get("keepdim", args[1] if len(args) > 1 else False))
        index = index_of(input.detach(), dim, keepdim=keepdim)
        return getattr(torch.return_types, name)((over_axes(input, dim, keepdim), index))

    return extremes, along


def _better_of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Handler:
    def handler(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
        if not (depends(input) and depends(other)):
            return _bounded(settings, function, input, other)
        value = function(input.detach(), other.detach())
        first, second = ((x == value).to(value.dtype) for x in (input, other))
        return pass_on(settings, lambda _: value, (input * first + other * second) / (first + second))

    return handler


def _bounded(
    settings: RelevanceSettings, function: Callable[[Tensor, Tensor], Tensor], one: Tensor, other: Tensor
) -> Tensor:
    """Run a function of a watched value and a constant."""
    x, constant = (one, other) if depends(one) else (other, one)
    constant = torch.as_tensor(constant, dtype=x.dtype, device=x.device)
    return pass_on(
        settings, lambda value: function(value, constant), x.expand(torch.broadcast_shapes(x.shape, constant.shape))
    )


for _name in ("max", "min"):
    OPERATIONS[f"a{_name}"], OPERATIONS[_name] = _extreme(_name)
    for _pair in (f"{_name}imum", f"f{_name}"):
        OPERATIONS[_pair] = _better_of_two(getattr(torch, _pair))


def _along(name: str, *, before: int = 0, dim: int | None = None) -> Handler:
    """Return the handler of an operation that takes one number along an axis, named behind so many arguments."""

    def handler(settings: RelevanceSettings, input: Tensor, *args: int, **options: int) -> object:
        result = getattr(torch, name)(input.detach(), *args, **options)
        value = result if isinstance(result, Tensor) else result[0]
        axis = options.get("dim", args[before] if len(args) > before else dim)
        axes = tuple(range(input.dim())) if axis is None else (axis,)
        winners = (input == (value if value.dim() in (0, input.dim()) else value.unsqueeze(axes[0]))).to(input.dtype)
        shares = winners / winners.sum(axes, keepdim=True)
        won = pass_on(settings, lambda _: value, (input * shares).sum(axes).reshape(value.shape))
        return won if isinstance(result, Tensor) else type(result)((won, *result[1:]))

    return handler


OPERATIONS["median"], OPERATIONS["nanmedian"] = _along("median"), _along("nanmedian")
OPERATIONS["kthvalue"], OPERATIONS["mode"] = _along("kthvalue", before=1, dim=-1), _along("mode", dim=-1)


@operation("clamp", "clip")
def _clamp(settings: RelevanceSettings, input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Clamp to bounds of which one at least is watched."""
    for name, bound in (("maximum", min), ("minimum", max)):
        if depends(input) or depends(bound):
            input = input if bound is None else OPERATIONS[name](settings, input, bound)
        elif bound is not None:
            input = getattr(torch, name)(input, torch.as_tensor(bound, dtype=input.dtype))
    return input


@operation("clamp_min")
def _clamp_min(settings: RelevanceSettings, input: Tensor, min: Tensor) -> Tensor:
    return _clamp(settings, input, min)


@operation("clamp_max")
def _clamp_max(settings: RelevanceSettings, input: Tensor, max: Tensor) -> Tensor:
    return _clamp(settings, input, None, max)


@operation("logsumexp", "special_logsumexp")
def _log_sum_exp(
    settings: RelevanceSettings, input: Tensor, dim: int | tuple[int, ...], keepdim: bool = False
) -> Tensor:
    return by_its_gradient(settings, lambda x: torch.logsumexp(x, dim, keepdim), input)


@operation("log_softmax", "special_log_softmax")
def _log_softmax(
    settings: RelevanceSettings,
    input: Tensor,
    dim: int | None = None,
    *rest: object,
    dtype: torch.dtype | None = None,
    **_: object,
) -> Tensor:
    """Take the logarithm of the sum of exponentials from what is summed up, as where that is written out."""
    dim = (0 if input.dim() in (0, 1, 3) else 1) if dim is None else dim
    dtype = next((value for value in rest if isinstance(value, torch.dtype)), dtype)
    x = input if dtype is None else input.to(dtype)
    result: Tensor = OPERATIONS["sub"](settings, x, _log_sum_exp(settings, x, dim, True))
    return result


def _smooth_better(function: Callable[[Tensor, Tensor], Tensor]) -> Handler:
    def handler(settings: RelevanceSettings, input: Tensor, other: Tensor) -> Tensor:
        if depends(input) and depends(other):
            pair = torch.stack(torch.broadcast_tensors(input, other))
            return by_its_gradient(settings, lambda x: function(x[0], x[1]), pair)
        return _bounded(settings, function, input, other)

    return handler


OPERATIONS["logaddexp"], OPERATIONS["logaddexp2"] = _smooth_better(torch.logaddexp), _smooth_better(torch.logaddexp2)
