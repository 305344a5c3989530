"""Average and max pooling, of fixed and of adaptive size."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from idc_core.attribution.affine import Affine
from idc_core.attribution.operations import FASTER, OPERATIONS, Handler, affine, operation
from idc_core.attribution.rules import RelevanceSettings
from idc_core.attribution.winners import WinnerRelevance, adaptive_windows, max_pool
from idc_core.errors import UnsupportedOperationError


def _average(function: Callable[..., Tensor]) -> Handler:
    def handler(settings: RelevanceSettings, input: Tensor, *args: Any, **options: Any) -> Tensor:
        return affine(settings, Affine("pooling", lambda v, _, __: function(v[0], *args, **options)), input)

    return handler


for _function in (
    F.avg_pool1d, F.avg_pool2d, F.avg_pool3d, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d,
    F.interpolate, F.upsample,
):  # fmt: skip
    OPERATIONS[_function.__name__] = _average(_function)


def _max_pool(dimensions: int) -> tuple[Handler, Handler]:
    slow = getattr(F, f"max_pool{dimensions}d")

    def plain(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        if return_indices or ceil_mode or input.device.type != "cpu" or input.dim() != dimensions + 2:
            return slow(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        return max_pool(input, _sizes(dimensions, kernel_size, stride, padding, dilation))

    def handler(settings: RelevanceSettings, input: Tensor, *args: Any, **options: Any) -> Tensor:
        bound = signature(plain).bind(input, *args, **options)
        bound.apply_defaults()
        if bound.arguments["return_indices"]:
            raise UnsupportedOperationError("max pooling that returns indices")
        _, kernel_size, stride, padding, dilation, *_ = bound.args
        sizes = _sizes(dimensions, kernel_size, stride, padding, dilation)
        batched = input if input.dim() == dimensions + 2 else input.unsqueeze(0)
        result: Tensor = WinnerRelevance.apply(lambda x: plain(x, *bound.args[1:]), sizes, batched)  # type: ignore[no-untyped-call]
        return result if batched is input else result.squeeze(0)

    return plain, handler


def _sizes(dimensions: int, kernel_size: Any, stride: Any, *others: Any) -> list[tuple[int, ...]]:
    stride = kernel_size if stride is None or stride == [] else stride
    sizes = (kernel_size, stride, *others)
    return [tuple(size) if isinstance(size, tuple | list) else (size,) * dimensions for size in sizes]


def _adaptive_max_pool(
    settings: RelevanceSettings, input: Tensor, output_size: Any, return_indices: bool = False
) -> Tensor:
    if return_indices:
        raise UnsupportedOperationError("adaptive max pooling that returns indices")
    windows, sizes = adaptive_windows(input, output_size)
    result: Tensor = WinnerRelevance.apply(lambda x: max_pool(x, sizes), sizes, windows)  # type: ignore[no-untyped-call]
    return result


for _dimensions in (1, 2, 3):
    FASTER[f"max_pool{_dimensions}d"], OPERATIONS[f"max_pool{_dimensions}d"] = _max_pool(_dimensions)
    OPERATIONS[f"adaptive_max_pool{_dimensions}d"] = _adaptive_max_pool


@operation("amax")
def _amax(settings: RelevanceSettings, input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Return the largest value; equal largest values share its relevance, as PyTorch's own gradient of amax does."""
    result: Tensor = torch.amax(input, dim, keepdim)
    return result


@operation("max")
def _max(settings: RelevanceSettings, input: Tensor, *args: Any, **options: Any) -> Any:
    dim = options.get("dim", args[0] if args else None)
    if not isinstance(dim, int):
        raise UnsupportedOperationError("max without a dimension, or of two tensors")
    keepdim = bool(options.get("keepdim", args[1] if len(args) > 1 else False))
    index = input.detach().argmax(dim, keepdim=keepdim)
    return torch.return_types.max((torch.amax(input, dim, keepdim), index))
