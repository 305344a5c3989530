"""Pictures as a search sees them: 8 bits a value, so that what is found survives being saved."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from idc_core.errors import DataError

LEVELS = 255
"""Steps between black and white in a picture of 8 bits."""


def eight_bits(pictures: Tensor) -> Tensor:
    """Return the nearest pictures that 8 bits can hold, values k / 255 with whole k in 0..255."""
    return torch.round(pictures.clamp(0, 1) * LEVELS) / LEVELS


def towards(seeds: Tensor, pictures: Tensor) -> Tensor:
    """Return pictures of 8 bits between the seeds and the given pictures: no value lies farther from its seed.

    Parameters
    ----------
    seeds : Tensor, float32 (n, C, H, W)
        Of 8 bits.
    pictures : Tensor, float32 (n, C, H, W)
        In 0..1.
    """
    change = torch.trunc((pictures - seeds) * LEVELS)
    return torch.round((seeds * LEVELS + change).clamp(0, LEVELS)) / LEVELS


def as_seeds(seeds: Any) -> Tensor:
    """Return the pictures of 8 bits that are nearest to the seeds.

    Parameters
    ----------
    seeds : Tensor, array or Dataset, (n, C, H, W)
        Values in 0..1.

    Returns
    -------
    Tensor, float32 (n, C, H, W)

    Raises
    ------
    DataError
        If they are no pictures, there are none, or values lie outside 0..1.
    """
    found = getattr(seeds, "inputs", seeds)
    array = found.detach().cpu().numpy() if isinstance(found, Tensor) else np.asarray(found)
    if array.ndim != 4 or array.dtype.kind != "f" or not len(array):
        raise DataError(
            "A search starts from pictures: expected at least one, numbers in 0..1 of shape (n, channels, height, "
            f"width), not {array.dtype} of shape {array.shape}."
        )
    if not (array.min() >= 0 and array.max() <= 1):
        raise DataError(
            f"Expected pictures with values in 0..1, but they reach from {array.min():.3g} to {array.max():.3g}; "
            "scale them first."
        )
    return eight_bits(torch.tensor(array, dtype=torch.float32))
