"""Convolutions over a single channel, such as grey images, with a fast way back to it."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.utils import _pair


class GreyConvolution(torch.autograd.Function):
    """A convolution of stride 1 over one channel; its input's gradient is a convolution with the turned kernel.

    PyTorch computes the same gradient several times slower on CPU where there is but one channel to return to.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: Any, dilation: Any) -> Tensor:
        """Convolve."""
        ctx.weight, ctx.padding, ctx.dilation = weight, padding, dilation
        return F.conv2d(x, weight, bias, 1, padding, dilation)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the input."""
        reach = zip(ctx.weight.shape[2:], ctx.padding, ctx.dilation, strict=True)
        padding = [d * (k - 1) - p for k, p, d in reach]
        turned = ctx.weight.transpose(0, 1).flip(2, 3)
        return F.conv2d(grads[0], turned, None, 1, padding, ctx.dilation), None, None, None, None


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolve as PyTorch does; over one channel with stride 1 the way back is the fast one."""
    grey = input.dim() == 4 and input.shape[1] == 1 and input.device.type == "cpu"
    if grey and _pair(stride) == (1, 1) and not isinstance(padding, str):
        paddings, dilations = _pair(padding), _pair(dilation)
        reach = zip(weight.shape[2:], paddings, dilations, strict=True)
        if all(p <= d * (k - 1) for k, p, d in reach):
            result: Tensor = GreyConvolution.apply(input, weight, bias, paddings, dilations)  # type: ignore[no-untyped-call]
            return result
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
