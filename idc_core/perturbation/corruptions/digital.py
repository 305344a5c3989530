"""Corruptions by what is done to a picture after it was taken."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from idc_core.perturbation.corruptions.registry import Bytes, Levels, corruption


@corruption("low-contrast", "Low contrast", "Draws values towards the mean of their colour.")
def _contrast(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    kept = (0.4, 0.3, 0.2, 0.1, 0.05)[severity - 1]
    values = picture / 255.0
    means = np.mean(values, axis=(0, 1), keepdims=True)
    drawn: Levels = np.clip((values - means) * kept + means, 0, 1) * 255
    return drawn


@corruption("elastic", "Elastic transform", "Moves small parts of the picture this way and that.", random=True)
def _elastic(picture: Bytes, severity: int, random: np.random.Generator) -> Levels:
    from idc_core.base.scipy_parts import ndimage

    strength = 250 * (0.05, 0.065, 0.085, 0.1, 0.12)[severity - 1]
    height, width, channels = picture.shape
    most = height * 0.005
    right, down = (
        (
            ndimage.gaussian_filter(
                random.uniform(-most, most, size=(height, width)),
                (height * 0.01, width * 0.01),
                mode="reflect",
                truncate=3,
            )
            * strength
        ).astype(np.float32)
        for _ in range(2)
    )
    rows, columns = np.arange(height)[:, None] + down, np.arange(width) + right
    values = picture.astype(np.float32) / 255
    moved = [
        ndimage.map_coordinates(values[:, :, one], (rows, columns), order=1, mode="reflect") for one in range(channels)
    ]
    changed: Levels = np.clip(np.stack(moved, 2), 0, 1) * 255
    return changed


@corruption("pixelate", "Pixelate", "Shrinks the picture and enlarges it again.")
def _pixelate(picture: Bytes, severity: int, random: np.random.Generator) -> Bytes:
    share = (0.6, 0.5, 0.4, 0.3, 0.25)[severity - 1]
    height, width = picture.shape[:2]
    small = _image(picture).resize((max(1, int(width * share)), max(1, int(height * share))), Image.Resampling.BOX)
    return np.asarray(small.resize((width, height), Image.Resampling.NEAREST), np.uint8).reshape(picture.shape)


@corruption("jpeg-compression", "JPEG compression", "Stores the picture with few bytes.")
def _jpeg(picture: Bytes, severity: int, random: np.random.Generator) -> Bytes:
    file = io.BytesIO()
    _image(picture).save(file, "JPEG", quality=(25, 18, 15, 10, 7)[severity - 1])
    return np.asarray(Image.open(file), np.uint8).reshape(picture.shape)


def _image(picture: Bytes) -> Image.Image:
    return Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture)
