"""Gaussian white noise on random pixels: what relevance-guided noise is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.perturbation.inputs import SHARE, Pictures, as_numbers, as_pictures, check_seed, pixel_count, stream

DEVIATION = 0.5
"""Standard deviation of the noise, in units of the whole range of a pixel; the paper gives none."""


def random_noise(
    inputs: object,
    pixels: int | None = None,
    *,
    share: float = SHARE,
    deviation: float = DEVIATION,
    seed: int = 0,
    numbers: object = None,
) -> Pictures:
    """Add Gaussian white noise to random pixels of every picture, float32 (n, C, H, W), and cut it to 0..1.

    Parameters
    ----------
    inputs : Tensor, array or Dataset, float (n, C, H, W)
        Pictures in 0..1; left as they are.
    pixels : int, optional
        How many pixels of each picture; default: `share` of them.
    share : float
        Share of the pixels, above 0 and at most 1; rounded down, at least one pixel.
    deviation : float
        Standard deviation of the noise, in units of a pixel's range.
    seed : int
    numbers : int (n,), optional
        Number of each input in its data set, default its position: its noise depends on this and the seed alone, so
        that it does not matter how the inputs are cut into batches.

    Raises
    ------
    DataError, SettingError
        If the inputs are no pictures in 0..1, or a setting is outside its range.

    Notes
    -----
    S. Gerasimou et al., "Importance-Driven Deep Learning System Testing", ICSE 2020, RQ2: the set U_O+S. A pixel is a
    place with all its colours, each of which gets noise of its own. The values are drawn before the places, so that
    `guided_noise` with the same seed adds the same values elsewhere.
    """
    pictures = as_pictures(inputs)
    count, channels, height, width = pictures.shape
    chosen, spread = pixel_count(pixels, share, height * width), check_deviation(deviation)
    seed, ids = check_seed(seed), as_numbers(numbers, count)
    noisy = pictures.copy()
    flat = noisy.reshape(count, channels, height * width)
    for row, number in enumerate(ids):
        random = stream(seed, int(number))
        values = noise_values(random, chosen, channels, spread)
        places = random.choice(height * width, chosen, replace=False)
        flat[row][:, places] += values
    return np.clip(noisy, 0, 1, out=noisy)


def noise_values(random: np.random.Generator, pixels: int, channels: int, deviation: float) -> NDArray[np.float32]:
    """Return an input's noise, float32 (channels, pixels), from the beginning of its random stream."""
    return (random.standard_normal((pixels, channels)) * deviation).astype(np.float32).T


def check_deviation(deviation: object) -> float:
    """Return a standard deviation above 0 and at most 10."""
    if isinstance(deviation, bool) or not isinstance(deviation, int | float) or not 0 < deviation <= 10:
        raise SettingError(f"deviation must be a number above 0 and at most 10, not {deviation!r}.")
    return float(deviation)
