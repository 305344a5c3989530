"""What all perturbations share: pictures in 0..1, a random stream for each of them, and their strongest pixels."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.parameters import whole_number
from idc_core.base.ranges import SEED
from idc_core.errors import DataError, SettingError
from idc_core.tracing.sources import check_tensor

Pictures = NDArray[np.float32]
"""Pictures, float32 (n, C, H, W) in 0..1."""

SHARE = 0.02
"""Share of the pixels that the paper changes: 15 of MNIST's 784, 20 of CIFAR-10's 1,024, 200 of Udacity's 10,000."""


def as_pictures(inputs: object) -> Pictures:
    """Return a tensor, array or Dataset (n, C, H, W) as pictures; raise `DataError` where values leave 0..1.

    The array is perhaps the caller's own memory: not to be written into.
    """
    pictures = getattr(inputs, "inputs", inputs)
    check_tensor(pictures)
    array = pictures.detach().cpu().numpy() if isinstance(pictures, Tensor) else np.asarray(pictures)
    if array.ndim != 4 or array.dtype.kind != "f":
        raise DataError(
            f"Only pictures can be perturbed: expected numbers in 0..1 of shape (n, channels, height, width), not "
            f"{array.dtype} of shape {array.shape}."
        )
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        raise DataError(
            f"Only pictures with values in 0..1 can be changed, and these reach from {array.min():.3g} to "
            f"{array.max():.3g}: give them in 0..1, and let the network's forward scale them."
        )
    return np.asarray(array, np.float32)


def as_numbers(numbers: object, count: int) -> NDArray[np.int64]:
    """Return the number of each input, on which its random draws depend; default its position."""
    if numbers is None:
        return np.arange(count, dtype=np.int64)
    array = np.asarray(numbers)
    if array.shape != (count,) or array.dtype.kind not in "iu" or (count and array.min() < 0):
        raise DataError(
            f"numbers must hold one whole number of at least 0 for each of {count} inputs, not {array.dtype} of "
            f"shape {array.shape}{f' with {array.min()}' if array.size and array.dtype.kind in 'if' else ''}."
        )
    return array.astype(np.int64)


def check_seed(seed: object) -> int:
    """Return the seed, a whole number of at least 0."""
    return int(SEED.check(seed))


def stream(seed: int, number: int) -> np.random.Generator:
    """Return the random numbers of one input: the same in whichever batch, block or order it is perturbed."""
    return np.random.default_rng((seed, number))


def share_of(size: int, share: float) -> int:
    """Return a share of a size, rounded down, at least 1; products such as 0.29 * 100 count as whole."""
    return max(1, int(size * share + 1e-9))


def pixel_count(pixels: int | None, share: float, places: int) -> int:
    """Return how many of a picture's places are changed: `pixels` in 1..places, or else a share of them."""
    if pixels is None:
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise SettingError(f"share must be a number above 0 and at most 1, not {share!r}.")
        return share_of(places, share)
    return whole_number("pixels", pixels, 1, places, ", a picture's pixels")


def largest_weights(weight: Tensor, counts: Tensor) -> Tensor:
    """Return where the largest weights (n, places) above 0 are, at most counts (n,) per row; of equals the first."""
    order = weight.argsort(dim=1, descending=True, stable=True)
    first = torch.arange(weight.shape[1], device=weight.device) < counts[:, None]
    return torch.zeros_like(weight, dtype=torch.bool).scatter(1, order, first) & (weight > 0)
