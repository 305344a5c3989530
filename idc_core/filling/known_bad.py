"""Inputs that are certainly not valid, on which every detector is tried."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from idc_core.filling.proposals import eight_bits
from idc_core.perturbation import random_noise
from idc_core.perturbation.inputs import Pictures

_DEVIATION = 0.2
"""Of noise on all pixels, in parts of the range: plainly visible."""


def known_bad(pictures: Pictures, seed: int = 0) -> dict[str, Pictures]:
    """Make bad inputs of natural pictures (n, C, H, W), n of each kind; by what people call them."""
    return {
        "noise": eight_bits(random_noise(pictures, share=1.0, deviation=_DEVIATION, seed=seed)),
        "shuffled pixels": _shuffled(pictures, seed),
        **_other_pictures(len(pictures), pictures.shape[1:], seed),
    }


def _shuffled(pictures: Pictures, seed: int) -> Pictures:
    """Put the pixels of every picture into a random order, the same for all of its colours."""
    random = np.random.default_rng(seed)
    flat = pictures.reshape(*pictures.shape[:2], -1)
    order = random.permuted(np.tile(np.arange(flat.shape[2]), (len(flat), 1)), axis=1)
    return np.take_along_axis(flat, order[:, None], axis=2).reshape(pictures.shape)


def _other_pictures(count: int, shape: tuple[int, ...], seed: int) -> dict[str, Pictures]:
    """Return pictures of another data set that needs no download: of photographs for grey ones, else of digits."""
    channels, height, width = shape
    random = np.random.default_rng(seed)
    if channels == 1:
        found = {"another data set (photographs)": _crops(count, random)}
    else:
        from idc_core.datasets import load_dataset

        digits = load_dataset("digits", "test").inputs
        found = {"another data set (digits)": digits[random.integers(len(digits), size=count)]}
    fitted = {}
    for name, values in found.items():
        resized = F.interpolate(torch.as_tensor(values), size=(height, width), mode="bilinear", antialias=True)
        fitted[name] = eight_bits(np.broadcast_to(resized.mean(1, keepdim=True).numpy(), (count, *shape)))
    return fitted


def _crops(count: int, random: np.random.Generator) -> Pictures:
    """Cut random squares out of scikit-learn's two photographs, float32 (n, 3, 64, 64)."""
    from sklearn.datasets import load_sample_images

    photos = [photo.astype(np.float32).transpose(2, 0, 1) / 255 for photo in load_sample_images().images]
    side = 64
    cut = []
    for _ in range(count):
        photo = photos[random.integers(len(photos))]
        top, left = (int(random.integers(size - side)) for size in photo.shape[1:])
        cut.append(photo[:, top : top + side, left : left + side])
    return np.stack(cut)
