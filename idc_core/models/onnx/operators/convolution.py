"""Convolutions; with constant weights they are `torch.nn.Conv2d` and its like."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from idc_core.models.onnx.operators.windows import WINDOWS, Windows, flat
from idc_core.models.onnx.registry import Function, Node, operator


class _Padded(nn.Module):
    """A convolution that is padded otherwise before than after, or by the size of its input."""

    windows: Windows

    def forward(self, x: Tensor) -> Tensor:
        """Pad and convolve."""
        convolved: Tensor = super().forward(F.pad(x, flat(self.windows.padding(x), x)))
        return convolved


class _PaddedConv1d(_Padded, nn.Conv1d):
    pass


class _PaddedConv2d(_Padded, nn.Conv2d):
    pass


class _PaddedConv3d(_Padded, nn.Conv3d):
    pass


_PLAIN: tuple[Callable[..., nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_PADDED: tuple[Callable[..., nn.Module], ...] = (_PaddedConv1d, _PaddedConv2d, _PaddedConv3d)
_TRANSPOSED: tuple[Callable[..., nn.Module], ...] = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def _rank(node: Node, weight: Tensor) -> int:
    if not 3 <= weight.dim() <= 5:
        raise node.refuse(f"a weight of {weight.dim()} dimensions, not 3 to 5")
    return weight.dim() - 2


def _filled(layer: nn.Module, weight: Tensor, bias: Tensor | None) -> nn.Module:
    """Give a layer that was made without memory its weights."""
    layer.weight = nn.Parameter(weight.clone())
    if bias is not None:
        layer.bias = nn.Parameter(bias.clone())
    return layer


@operator("Conv")
def _conv(node: Node) -> nn.Module | Function:
    groups = node.get("group", 1)
    weight, bias = node.constants.get(1), node.constants.get(2)
    if weight is None or not node.known(2) or 0 in node.constants:
        node.read.update(WINDOWS)
        return lambda x, w, b=None: _convolve(node, x, w, b, groups)
    windows, rank = Windows.of(node, weight.shape[2:]), _rank(node, weight)
    padding = windows.symmetric
    layer = (_PADDED if padding is None else _PLAIN)[rank - 1](
        weight.shape[1] * groups,
        weight.shape[0],
        windows.kernel,
        windows.stride,
        padding or 0,
        windows.dilation,
        groups,
        bias is not None,
        device="meta",
    )
    if isinstance(layer, _Padded):
        layer.windows = windows
    return _filled(layer, weight, bias)


def _convolve(node: Node, x: Tensor, weight: Tensor, bias: Tensor | None, groups: int) -> Tensor:
    """Convolve with a weight that the network computes."""
    windows = Windows.of(node, weight.shape[2:])
    convolve = (F.conv1d, F.conv2d, F.conv3d)[_rank(node, weight) - 1]
    x = F.pad(x, flat(windows.padding(x), x))
    return convolve(x, weight, bias, windows.stride, 0, windows.dilation, groups)


@operator("ConvTranspose")
def _conv_transpose(node: Node) -> nn.Module | Function:
    groups, shape, extra = node.get("group", 1), node.get("output_shape"), node.get("output_padding")
    node.read.update(WINDOWS)
    weight, bias = node.constants.get(1), node.constants.get(2)
    if weight is not None and node.known(2) and 0 not in node.constants and shape is None:
        windows, rank = Windows.of(node, weight.shape[2:]), _rank(node, weight)
        added = tuple(extra or [0] * rank)
        fits = all(a < max(s, d) for a, s, d in zip(added, windows.stride, windows.dilation, strict=True))
        if windows.symmetric is not None and fits:
            layer = _TRANSPOSED[rank - 1](
                weight.shape[0],
                weight.shape[1] * groups,
                windows.kernel,
                windows.stride,
                windows.symmetric,
                added,
                groups,
                bias is not None,
                windows.dilation,
                device="meta",
            )
            return _filled(layer, weight, bias)

    def run(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        windows, rank = Windows.of(node, w.shape[2:]), _rank(node, w)
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        z = convolve(x, w, None, windows.stride, 0, 0, groups, windows.dilation)
        z = F.pad(z, flat(_crop(windows, x, z, extra or [0] * rank, shape), z))
        return z if b is None else z + b.reshape(-1, *[1] * rank)

    return run


def _crop(windows: Windows, x: Tensor, z: Tensor, extra: list[int], shape: list[int] | None) -> list[tuple[int, int]]:
    """Return what is added before and after a transposed convolution without padding; mostly it is taken away."""
    if shape is None and windows.auto in ("NOTSET", "VALID"):
        return [(-b, e - a) for (b, a), e in zip(windows.padding(x), extra, strict=True)]
    sizes = shape or [n * s for n, s in zip(x.shape[2:], windows.stride, strict=True)]
    sides = []
    for size, want, added in zip(z.shape[2:], sizes[-len(extra) :], extra, strict=True):
        total = size + added - want
        half = total // 2 if windows.auto == "SAME_UPPER" else total - total // 2
        sides.append((-half, added - (total - half)))
    return sides
