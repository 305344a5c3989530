"""Pooling by the average, the maximum and a power mean, of fixed and of adaptive size; means and sums."""

import math
from collections.abc import Callable, Iterator
from functools import partial, reduce
from inspect import signature
from itertools import product
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.utils import _ntuple

from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.affine import Affine, Keeps, applied, taken
from idc_core.lrp.linear import linear_in
from idc_core.lrp.operations import FASTER, OPERATIONS, Handler, affine, operation, pass_on
from idc_core.lrp.rules import RelevanceSettings

_Sizes = list[tuple[int, ...]]
"""Kernel size, stride, padding, dilation; one number per spatial dimension each."""


def _average(function: Callable[..., Tensor]) -> Handler:
    def handler(settings: RelevanceSettings, input: Tensor, *args: object, **options: object) -> Tensor:
        return affine(settings, Affine("pooling", lambda v, _, __: function(v[0], *args, **options)), input)

    return handler


for _function in (
    F.avg_pool1d,
    F.avg_pool2d,
    F.avg_pool3d,
    F.adaptive_avg_pool1d,
    F.adaptive_avg_pool2d,
    F.adaptive_avg_pool3d,
    F.fold,
    Tensor.mean,
    Tensor.sum,
    Tensor.cumsum,
):
    OPERATIONS[_function.__name__] = _average(_function)


@operation("interpolate", "upsample")
def _interpolate(settings: RelevanceSettings, input: Tensor, *args: Any, **options: Any) -> Tensor:
    """Resize maps; cubic weights have both signs, and are the same for every map."""

    def run(x: Tensor) -> Tensor:
        return F.interpolate(x, *args, **options)

    if "bicubic" not in (*args, *options.values()):
        return affine(settings, Affine("pooling", lambda v, _, __: run(v[0])), input)
    z = linear_in(settings, run, input.flatten(0, 1)[:, None], "pooling", alike=True)
    return cast(Tensor, z[:, 0].unflatten(0, input.shape[:2]))


def _max_pool(dimensions: int) -> tuple[Handler, Handler]:
    slow = getattr(F, f"max_pool{dimensions}d")

    def plain(
        input: Tensor,
        kernel_size: object,
        stride: object = None,
        padding: object = 0,
        dilation: object = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> object:
        sizes = _sizes(dimensions, kernel_size, stride, padding, dilation)
        batched = input.dim() == dimensions + 2 and input.is_floating_point()
        if return_indices or ceil_mode or input.device.type != "cpu" or not batched or not _allowed(sizes, input):
            return slow(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
        return _pooled(input, sizes)

    form = signature(plain)

    def handler(settings: RelevanceSettings, input: Tensor, *args: object, **options: object) -> Tensor:
        bound = form.bind(input, *args, **options)
        bound.apply_defaults()
        if bound.arguments["return_indices"]:
            raise UnsupportedOperationError("max pooling that returns indices")
        _, kernel_size, stride, padding, dilation, *_ = bound.args
        sizes = _sizes(dimensions, kernel_size, stride, padding, dilation)
        batched = input if input.dim() == dimensions + 2 else input.unsqueeze(0)
        result = applied(_WinnerRelevance, lambda x: plain(x, *bound.args[1:]), sizes, batched)
        return result if batched is input else result.squeeze(0)

    return plain, handler


def _sizes(dimensions: int, kernel_size: object, stride: object, *others: object) -> list[tuple[int, ...]]:
    stride = kernel_size if stride is None or stride == [] else stride
    given = [size if isinstance(size, tuple | list) else (size,) for size in (kernel_size, stride, *others)]
    return [tuple(size) * dimensions if len(size) == 1 else tuple(size) for size in given]


def _allowed(sizes: _Sizes, x: Tensor) -> bool:
    """Return whether PyTorch pools x by these sizes; where it does not, its own message says why."""
    return all(
        size + 2 * p > d * (k - 1) and 0 <= 2 * p <= k and s > 0 and d > 0
        for size, k, s, p, d in zip(x.shape[2:], *sizes, strict=True)
    )


def _adaptive_max_pool(
    dimensions: int, settings: RelevanceSettings, input: Tensor, output_size: object, return_indices: bool = False
) -> Tensor:
    if return_indices:
        raise UnsupportedOperationError("adaptive max pooling that returns indices")
    batched = input if input.dim() == dimensions + 2 else input.unsqueeze(0)
    windows, sizes = _adaptive_windows(batched, output_size)
    result = applied(_WinnerRelevance, lambda x: _pooled(x, sizes), sizes, windows)
    return result if batched is input else result.squeeze(0)


def _power_pool(dimensions: int) -> Handler:
    """Return the handler of pooling by a power mean, ``z = (sum x ** p) ** (1 / p)``.

    Each input's share is that of its power: to the rules it is the sum of ``x ** p z ** (1 - p)``, which is z, so that
    a stabiliser damps it as it damps other sums.
    """
    average: Callable[..., Tensor] = getattr(F, f"avg_pool{dimensions}d")

    def handler(
        settings: RelevanceSettings,
        input: Tensor,
        norm_type: float,
        kernel_size: object,
        stride: object = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        power = float(norm_type)
        if not math.isfinite(power) or power == 0:
            raise UnsupportedOperationError(f"lp_pool{dimensions}d with the norm {norm_type}; use max pooling")
        size: int = math.prod(_ntuple(dimensions)(kernel_size))

        def total(x: Tensor) -> Tensor:
            return size * average(x, kernel_size, stride, 0, ceil_mode)

        powers = pass_on(settings, lambda value: value.pow(power), input)
        sums = total(powers.detach())
        # PyTorch takes the root of a negative sum of odd powers as it comes, which is not a number; so does this.
        roots = (torch.sign(sums) * torch.relu(sums.abs())).pow(1 / power)
        scale = torch.where(sums == 0, 1.0, roots / sums)
        return affine(settings, Affine("pooling", lambda x, _, __: total(x[0]) * scale), powers)

    return handler


for _dimensions in (1, 2, 3):
    OPERATIONS[f"lp_pool{_dimensions}d"] = _power_pool(_dimensions)
    FASTER[f"max_pool{_dimensions}d"], OPERATIONS[f"max_pool{_dimensions}d"] = _max_pool(_dimensions)
    OPERATIONS[f"adaptive_max_pool{_dimensions}d"] = partial(_adaptive_max_pool, _dimensions)


_NEAR = 1 << 19
"""Numbers of images that are shared among at a time; what is computed in between stays in a processor's cache."""

_Kept = Keeps[tuple[Tensor, Tensor, _Sizes]]


class _WinnerRelevance(torch.autograd.Function):
    """Max pooling that shares the relevance of each output equally among the inputs equal to it."""

    @staticmethod
    def forward(ctx: _Kept, pool: Callable[[Tensor], Tensor], sizes: _Sizes, x: Tensor) -> Tensor:
        """Pool; input and output are kept for the comparison on the way back."""
        z = pool(x)
        ctx.kept = x.detach(), z.detach(), sizes
        return z

    @staticmethod
    def backward(ctx: _Kept, *grads: Tensor) -> tuple[None, None, Tensor]:
        """Return the relevance of the pooled input."""
        x, z, sizes = taken(ctx)
        return None, None, _share_among_winners(x, z, grads[0], sizes)


def _share_among_winners(x: Tensor, z: Tensor, relevance: Tensor, sizes: _Sizes) -> Tensor:
    """Share each output's relevance (n, channels, *pooled) equally among the inputs of its window that equal it."""
    if x.device.type != "cpu":
        return _share_by_masks(x, z, relevance, sizes)
    share: Callable[..., Tensor] = _share_by_signs if math.isfinite(float(z.sum())) else _share_by_masks
    rows = max(1, _NEAR // x[0].numel())
    if len(x) <= rows:
        return share(x, z, relevance, sizes)
    result = torch.empty_like(x)
    for part, *given in zip(result.split(rows), x.split(rows), z.split(rows), relevance.split(rows), strict=True):
        share(*given, sizes, part)
    return result


def _share_by_signs(x: Tensor, z: Tensor, relevance: Tensor, sizes: _Sizes, out: Tensor | None = None) -> Tensor:
    """Do it by arithmetic on finite numbers: a difference to the maximum has the sign 0 or -1."""
    kernel, stride, padding, dilation = sizes
    out = torch.empty_like(x) if out is None else out
    across = zip(x.shape[2:], kernel, stride, padding, dilation, strict=True)
    tiled = all(k == s and p == 0 and d == 1 and size % k == 0 for size, k, s, p, d in across)
    if tiled and x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last):
        return _share_in_tiles(x, z, relevance, kernel, out)
    padded, inside = _pad(x, z.shape[2:], sizes)
    windows = [(slice(None), slice(None), *window) for window in _windows(z.shape[2:], sizes)]
    # Arithmetic on floats is several times faster than masks.
    losers = [(padded[window] - z).sign_() for window in windows]
    count = torch.full_like(z, len(losers))
    for loser in losers:
        count += loser
    share = torch.div(relevance, count, out=count)
    if tiled:  # every input is in one window
        for window, loser in zip(windows, losers, strict=True):
            torch.addcmul(share, share, loser, out=out[window])
        return out
    result = torch.zeros_like(padded)
    for window, loser in zip(windows, losers, strict=True):
        result[window].addcmul_(share, loser.add_(1))
    return out.copy_(result[inside])


def _share_by_masks(x: Tensor, z: Tensor, relevance: Tensor, sizes: _Sizes, out: Tensor | None = None) -> Tensor:
    """Do the same by comparison alone, which holds for infinite numbers as well: padding is no winner among those."""
    padded, inside = _pad(x, z.shape[2:], sizes, math.nan)
    windows = [(slice(None), slice(None), *window) for window in _windows(z.shape[2:], sizes)]
    count = torch.zeros_like(z)
    for window in windows:
        count += padded[window] == z
    share = relevance / count.clamp_(min=1)
    result = torch.zeros_like(padded)
    for window in windows:
        result[window] += torch.where(padded[window] == z, share, 0.0)
    return result[inside] if out is None else out.copy_(result[inside])


def _share_in_tiles(x: Tensor, z: Tensor, relevance: Tensor, kernel: tuple[int, ...], out: Tensor) -> Tensor:
    """Do the same where windows lie side by side in images whose channels are last: all windows' places at once."""
    losers = torch.sub(x, _spread(z, x), out=out).sign_()
    count = F.avg_pool2d(losers, kernel, kernel, divisor_override=1).add_(math.prod(kernel))
    share = _spread(torch.div(relevance, count, out=count), x)
    return torch.addcmul(share, share, losers, out=out)


def _spread(z: Tensor, x: Tensor) -> Tensor:
    """Give every input of a window what its output has."""
    return F.interpolate(z, size=x.shape[2:], mode="nearest-exact")


def _pooled(x: Tensor, sizes: _Sizes) -> Tensor:
    """Pool (n, channels, *spatial) by the maximum, one dimension after the other.

    The same numbers as PyTorch's own kernel, which is 4 to 20 times slower on CPU for images with few channels.
    """
    pooled = tuple(
        (size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in zip(x.shape[2:], *sizes, strict=True)
    )
    z, _ = _pad(x, pooled, sizes)
    for axis, (k, s, _, d, size) in enumerate(zip(*sizes, pooled, strict=True), start=2):
        before = (slice(None),) * axis
        parts = [z[(*before, slice(o * d, o * d + (size - 1) * s + 1, s))] for o in range(k)]
        z = reduce(torch.maximum, parts)
    return z if any(k > 1 for k in sizes[0]) else z.clone()


def _adaptive_windows(x: Tensor, output_size: object) -> tuple[Tensor, _Sizes]:
    """Lay the windows of an adaptive pooling of (n, channels, *spatial) side by side, so that they are a regular one's.

    Shorter windows are filled up with values that never win.
    """
    spatial = x.shape[2:]
    sizes = output_size if isinstance(output_size, tuple | list) else (output_size,) * len(spatial)
    kernel = []
    for axis, (size, want) in enumerate(zip(spatial, sizes, strict=True), start=2):
        out = size if want is None else int(want)
        starts = [i * size // out for i in range(out)]
        ends = [-(-(i + 1) * size // out) for i in range(out)]
        longest = max(end - start for start, end in zip(starts, ends, strict=True))
        kernel.append(longest)
        if size == out * longest:
            continue
        spans = [[*range(start, end), *[size] * longest][:longest] for start, end in zip(starts, ends, strict=True)]
        places = [place for span in spans for place in span]
        nothing = x.new_full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), float("-inf"))
        x = torch.cat([x, nothing], axis).index_select(axis, torch.tensor(places, device=x.device))
    return x, [tuple(kernel), tuple(kernel), (0,) * len(kernel), (1,) * len(kernel)]


def _windows(pooled: tuple[int, ...], sizes: _Sizes) -> Iterator[tuple[slice, ...]]:
    """Yield, for every position inside the kernel, the strided slices that meet it in all windows at once."""
    kernel, stride, _, dilation = sizes
    for offsets in product(*map(range, kernel)):
        starts = [o * d for o, d in zip(offsets, dilation, strict=True)]
        yield tuple(slice(b, b + (n - 1) * s + 1, s) for b, s, n in zip(starts, stride, pooled, strict=True))


def _pad(
    x: Tensor, pooled: tuple[int, ...], sizes: _Sizes, value: float = -math.inf
) -> tuple[Tensor, tuple[slice, ...]]:
    """Surround x by values that never win, as far as the windows reach; return it and where x lies in it."""
    before, after = [], []
    for size, out, k, s, p, d in zip(x.shape[2:], pooled, *sizes, strict=True):
        before.append(p)
        after.append(max(0, (out - 1) * s + (k - 1) * d + 1 - p - size))
    inside = (slice(None), slice(None), *(slice(b, b + n) for b, n in zip(before, x.shape[2:], strict=True)))
    if not any(before) and not any(after):
        return x, inside
    around = [reach for pair in zip(reversed(before), reversed(after), strict=True) for reach in pair]
    return F.pad(x, around, value=value), inside
