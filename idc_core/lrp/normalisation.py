"""Normalisations with their deviations held constant; all follow the epsilon rule or the plain one.

Of local response normalisation the divisor is held constant, so that its relevance passes unchanged; [1] expands it to
first order instead.

References
----------
.. [1] A. Binder, G. Montavon, S. Lapuschkin, K.-R. Müller, W. Samek, "Layer-wise relevance propagation for neural
   networks with local renormalization layers", ICANN 2016.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, Function, Keeps, applied
from idc_core.lrp.operations import OPERATIONS, affine, operation, pass_on, scaled
from idc_core.lrp.rules import RelevanceSettings


@operation("batch_norm")
def _batch_norm(
    settings: RelevanceSettings,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if training or running_mean is None or running_var is None:
        raise UnsupportedOperationError("batch_norm without stored statistics, which mixes the inputs of a batch")
    shape = (-1, *[1] * (input.dim() - 2))
    scale = torch.rsqrt(running_var + eps)
    scale = (scale if weight is None else scale * weight).reshape(shape)
    shift = (0.0 if bias is None else bias.reshape(shape)) - running_mean.reshape(shape) * scale
    return affine(settings, Affine("normalisation", _scale_and_shift, scale, shift, shift, pointwise=True), input)


def _scale_and_shift(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    if w is None:
        return x[0] if b is None else x[0] + b
    return x[0] * w if b is None else torch.addcmul(b, x[0], w)


_Kept = Keeps[tuple[Tensor, tuple[int, ...], Tensor | None]]


class _HeldDeviation(torch.autograd.Function):
    """Normalisation over the last axes; on the way back the deviation is a constant."""

    @staticmethod
    def forward(
        ctx: _Kept, x: Tensor, shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        """Normalise by PyTorch's own operation, which gives 1 / deviation as well."""
        z, _, scale = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.kept = scale, tuple(range(-len(shape), 0)), weight
        return z

    @staticmethod
    def backward(ctx: _Kept, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of ``weight * (x - mean) / deviation``."""
        scale, axes, weight = ctx.kept
        weighted = grads[0].clone() if weight is None else grads[0] * weight
        gradient = weighted.sub_(weighted.mean(axes, keepdim=True)).mul_(scale)
        return gradient, None, None, None, None


def _normalise(settings: RelevanceSettings, x: Tensor, axes: int, function: Function, bias: Tensor | None) -> Tensor:
    """Run a normalisation over the last so many axes; a share that belongs to no single number goes to all of them."""
    dims = tuple(range(-axes, 0))

    def spread(v: tuple[Tensor, ...]) -> Tensor:
        return v[0].mean(dims, keepdim=True).expand_as(v[0])

    return affine(settings, Affine("normalisation", function, None, bias, bias, spread), x)


@operation("layer_norm")
def _layer_norm(
    settings: RelevanceSettings,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_: object,
) -> Tensor:
    shape = tuple(normalized_shape)

    def function(v: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
        return applied(_HeldDeviation, v[0], shape, weight, b, eps)

    return _normalise(settings, input, len(shape), function, bias)


@operation("group_norm")
def _group_norm(
    settings: RelevanceSettings,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    grouped = input.unflatten(1, (num_groups, -1))
    shape = (1, num_groups, -1, *[1] * (input.dim() - 2))
    weight, bias = (None if parameter is None else parameter.reshape(shape) for parameter in (weight, bias))

    def function(v: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
        z = applied(_HeldDeviation, v[0], tuple(grouped.shape[2:]), None, None, eps)
        return _scale_and_shift((z,), weight, b)

    return _normalise(settings, grouped, grouped.dim() - 2, function, bias).flatten(1, 2)


@operation("instance_norm")
def _instance_norm(
    settings: RelevanceSettings,
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if use_input_stats:
        return _group_norm(settings, input, input.shape[1], weight, bias, eps)
    return _batch_norm(settings, input, running_mean, running_var, weight, bias, False, momentum, eps)


@operation("local_response_norm")
def _local_response_norm(
    settings: RelevanceSettings, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    return pass_on(settings, lambda value: F.local_response_norm(value, size, alpha, beta, k), input)


@operation("rms_norm")
def _rms_norm(
    settings: RelevanceSettings,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    return pass_on(settings, lambda value: F.rms_norm(value, list(normalized_shape), weight, eps), input)


@operation("normalize")
def _normalize(
    settings: RelevanceSettings,
    input: Tensor,
    p: float = 2.0,
    dim: int | tuple[int, ...] = 1,
    eps: float = 1e-12,
    out: None = None,
) -> Tensor:
    length = torch.linalg.vector_norm(input.detach(), p, dim, keepdim=True).clamp_min(eps)
    return scaled(settings, input, 1 / length)


def _statistic(
    settings: RelevanceSettings, input: Tensor, value: Tensor, squares: Callable[[Tensor], Tensor], dim: object
) -> Tensor:
    """Return a statistic; where a network uses it as a value, relevance goes to what its squares consist of."""
    dim = tuple(range(input.dim())) if dim is None else dim
    total = OPERATIONS["sum"](settings, pass_on(settings, squares, input), dim)
    return pass_on(settings, lambda _: value, total.reshape(value.shape))


@operation("var")
def _variance(settings: RelevanceSettings, input: Tensor, *rest: Any, **options: Any) -> Tensor:
    dim = options.get("dim", rest[0] if rest and not isinstance(rest[0], bool) else None)
    value = torch.var(input.detach(), *rest, **options)
    return _statistic(settings, input, value, lambda x: (x - x.mean(dim, keepdim=True)).square(), dim)


@operation("std")
def _deviation(settings: RelevanceSettings, input: Tensor, *rest: object, **options: object) -> Tensor:
    return pass_on(settings, torch.sqrt, _variance(settings, input, *rest, **options))


@operation("var_mean")
def _variance_and_mean(
    settings: RelevanceSettings, input: Tensor, *rest: object, **options: object
) -> tuple[Tensor, object]:
    dim = options.get("dim", rest[0] if rest and not isinstance(rest[0], bool) else None)
    mean = OPERATIONS["mean"](settings, input, dim, keepdim=bool(options.get("keepdim", False)))
    return _variance(settings, input, *rest, **options), mean


@operation("norm", "vector_norm", "linalg_vector_norm")
def norm(
    settings: RelevanceSettings,
    input: Tensor,
    p: object = 2,
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    **options: Any,
) -> Tensor:
    """Measure by a norm; relevance goes to what the squares consist of."""
    order = 2.0 if p in ("fro", None) else float(options.pop("ord", p))
    value = torch.linalg.vector_norm(input.detach(), order, dim, keepdim, **options)
    return _statistic(settings, input, value, torch.square, dim)
