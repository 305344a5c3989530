"""Batch and layer normalisation with their statistics held constant; both follow the epsilon rule or the plain one."""

from typing import Any

import torch
from torch import Tensor

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine
from idc_core.lrp.operations import affine, operation
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
    return affine(settings, Affine("normalisation", _scale_and_shift, scale, shift, shift), input)


def _scale_and_shift(x: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
    return x[0] * w if b is None else torch.addcmul(b, x[0], w)  # type: ignore[operator, arg-type]


def _normalise(
    settings: RelevanceSettings,
    x: Tensor,
    dims: tuple[int, ...],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """Subtract the mean and divide by the deviation over `dims`, the deviation held constant."""
    deviation = torch.sqrt(x.detach().var(dims, unbiased=False, keepdim=True) + eps)
    scale = 1 / deviation if weight is None else weight / deviation

    def function(v: tuple[Tensor, ...], w: Tensor | None, b: Tensor | None) -> Tensor:
        z = (v[0] - v[0].mean(dims, keepdim=True)) * scale
        return z if b is None else z + b

    def spread(v: tuple[Tensor, ...]) -> Tensor:
        return v[0].mean(dims, keepdim=True).expand_as(v[0])

    return affine(settings, Affine("normalisation", function, None, bias, bias, spread), x)


@operation("layer_norm")
def _layer_norm(
    settings: RelevanceSettings,
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Tensor:
    return _normalise(settings, input, tuple(range(-len(tuple(normalized_shape)), 0)), weight, bias, eps)
