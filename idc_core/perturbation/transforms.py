"""Changes that a camera or a hand could make: moved, brightened, blurred, covered or compressed pictures."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image

from idc_core.base.parameters import Parameter, settle
from idc_core.base.progress import Progress, report
from idc_core.base.registry import Registry
from idc_core.errors import SettingError
from idc_core.perturbation.inputs import Pictures, as_numbers, as_pictures, check_seed, stream

_BLOCK = 1024
"""Pictures that are changed at a time."""

_Apply = Callable[..., Pictures]
"""Called with (pictures, streams, **settings); `streams` gives one random stream a picture where it is asked."""

_Streams = Callable[[int], np.random.Generator]
"""The random stream of the picture in that row."""


@dataclass(frozen=True)
class Transform:
    """What a menu, the command line or the documentation says about a transform, and the function itself."""

    name: str
    label: str
    help: str
    parameters: tuple[Parameter, ...]
    apply: _Apply
    random: bool = False  # whether it draws from the streams; else the seed changes nothing


TRANSFORMS: Registry[Transform] = Registry("transform")
"""Transforms by name, entered by `register_transform`."""


def register_transform(
    name: str, label: str, help: str, *parameters: Parameter, random: bool = False
) -> Callable[[_Apply], _Apply]:
    """Enter the decorated function into `TRANSFORMS`; suites, menus and figures follow from its entry."""

    def enter(apply: _Apply) -> _Apply:
        TRANSFORMS[name] = Transform(name, label, help, parameters, apply, random)
        return apply

    return enter


def transform(
    inputs: object,
    name: str,
    *,
    seed: int = 0,
    numbers: object = None,
    on_progress: Progress | None = None,
    **settings: object,
) -> Pictures:
    """Change every picture, float (n, C, H, W) in 0..1, by a transform of `TRANSFORMS` with its settings.

    The place of an occlusion, which is random, depends on `seed` and on each input's number, `numbers` (n,), alone; its
    default is the input's position.

    Raises
    ------
    DataError, SettingError
        If the inputs are no pictures in 0..1, there is no such transform or parameter, or a value is outside its range.

    Notes
    -----
    After Y. Tian et al., "DeepTest: automated testing of deep-neural-network-driven autonomous cars", ICSE 2018. Where
    a moved picture leaves a gap, its edge is continued.
    """
    chosen = TRANSFORMS[name]
    values = settle(chosen.parameters, settings, chosen.label)
    pictures = as_pictures(inputs)
    seed, ids = check_seed(seed), as_numbers(numbers, len(pictures))
    changed = np.empty(pictures.shape, np.float32)
    for start in range(0, len(pictures), _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = chosen.apply(pictures[rows], lambda row, first=start: stream(seed, int(ids[first + row])), **values)
        np.clip(block, 0, 1, out=changed[rows])
        report(on_progress, min(start + _BLOCK, len(pictures)), len(pictures), f"pictures changed: {chosen.label}")
    return changed


@register_transform(
    "rotation",
    "Rotation",
    "Rotates the image about its centre.",
    Parameter("degrees", "Angle (degrees)", "Rotation angle, counter-clockwise.", 15.0, -180.0, 180.0),
)
def _rotation(pictures: Pictures, streams: _Streams, degrees: float) -> Pictures:
    height, width = pictures.shape[2:]
    angle = np.deg2rad(degrees)
    # In grid_sample's coordinates both sides of a picture have length 2, whatever its shape.
    turned = [
        [np.cos(angle), -np.sin(angle) * height / width, 0.0],
        [np.sin(angle) * width / height, np.cos(angle), 0.0],
    ]
    return sampled(pictures, turned)


@register_transform(
    "shift",
    "Shift",
    "Moves the image horizontally and vertically.",
    Parameter("right", "Right (pixels)", "Shift to the right; below 0 to the left.", 2.0, -32.0, 32.0),
    Parameter("down", "Down (pixels)", "Shift downwards; below 0 upwards.", 2.0, -32.0, 32.0),
)
def _shift(pictures: Pictures, streams: _Streams, right: float, down: float) -> Pictures:
    height, width = pictures.shape[2:]
    return sampled(pictures, [[1.0, 0.0, -2 * right / width], [0.0, 1.0, -2 * down / height]])


@register_transform(
    "scale",
    "Scale",
    "Enlarges or shrinks the image about its centre.",
    Parameter("factor", "Factor", "Above 1 enlarges, below 1 shrinks.", 1.2, 0.3, 3.0),
)
def _scale(pictures: Pictures, streams: _Streams, factor: float) -> Pictures:
    return sampled(pictures, [[1 / factor, 0.0, 0.0], [0.0, 1 / factor, 0.0]])


def sampled(pictures: Pictures, matrix: list[list[float]]) -> Pictures:
    """Return pictures whose every pixel is read, between neighbours, where the matrix sends it.

    The matrix is as `torch.nn.functional.affine_grid` takes it; past an edge, the edge is continued.
    """
    values = torch.tensor(pictures)
    theta = torch.tensor(matrix, dtype=torch.float32).expand(len(values), 2, 3)
    grid = F.affine_grid(theta, list(values.shape), align_corners=False)
    read: Pictures = F.grid_sample(values, grid, padding_mode="border", align_corners=False).numpy()
    return read


@register_transform(
    "brightness",
    "Brightness",
    "Adds the same amount to every value.",
    Parameter("amount", "Amount added", "Above 0 brighter, below 0 darker; share of the range.", 0.2, -1.0, 1.0),
)
def _brightness(pictures: Pictures, streams: _Streams, amount: float) -> Pictures:
    return pictures + np.float32(amount)


@register_transform(
    "contrast",
    "Contrast",
    "Scales values about the mean of the image.",
    Parameter("factor", "Factor", "Above 1 more contrast, below 1 less; 0 gives uniform grey.", 0.5, 0.0, 4.0),
)
def _contrast(pictures: Pictures, streams: _Streams, factor: float) -> Pictures:
    mean = pictures.mean((1, 2, 3), keepdims=True)
    return np.asarray(mean + (pictures - mean) * np.float32(factor), np.float32)


@register_transform(
    "blur",
    "Blur",
    "Blurs the image with a Gaussian kernel.",
    Parameter("width", "Width (pixels)", "Standard deviation of the kernel: larger blurs more.", 1.0, 0.1, 8.0),
)
def _blur(pictures: Pictures, streams: _Streams, width: float) -> Pictures:
    reach = max(1, int(np.ceil(3 * width)))
    bell = torch.exp(-0.5 * (torch.arange(-reach, reach + 1) / width) ** 2)
    bell /= bell.sum()
    count, channels, *sides = pictures.shape
    values = torch.tensor(pictures).reshape(count * channels, 1, *sides)
    values = F.pad(values, (reach,) * 4, mode="replicate")
    values = F.conv2d(F.conv2d(values, bell.view(1, 1, 1, -1)), bell.view(1, 1, -1, 1))
    blurred: Pictures = values.reshape(count, channels, *sides).numpy()
    return blurred


@register_transform(
    "occlusion",
    "Occlusion",
    "Covers a rectangle at a random position with one shade.",
    Parameter("share", "Side of the rectangle", "As a share of the width and height of the image.", 0.25, 0.02, 1.0),
    Parameter("shade", "Shade", "Fill value: 0 is black, 1 is white.", 0.5, 0.0, 1.0),
    random=True,
)
def _occlusion(pictures: Pictures, streams: _Streams, share: float, shade: float) -> Pictures:
    covered = pictures.copy()
    height, width = pictures.shape[2:]
    tall, wide = (max(1, round(share * side)) for side in (height, width))
    for row, picture in enumerate(covered):
        random = streams(row)
        top, left = int(random.integers(height - tall + 1)), int(random.integers(width - wide + 1))
        picture[:, top : top + tall, left : left + wide] = shade
    return covered


@register_transform(
    "jpeg",
    "JPEG",
    "Compresses the image as JPEG.",
    Parameter("quality", "Quality", "Lower values compress more and show more artefacts.", 30, 1, 95),
)
def _jpeg(pictures: Pictures, streams: _Streams, quality: int) -> Pictures:
    if pictures.shape[1] not in (1, 3):
        raise SettingError(f"JPEG stores grey or RGB pictures, 1 or 3 channels; these have {pictures.shape[1]}.")
    compressed = np.empty_like(pictures)
    bytes_of: NDArray[np.uint8] = np.rint(pictures * 255).astype(np.uint8)
    for row, values in enumerate(bytes_of):
        picture = Image.fromarray(values[0] if len(values) == 1 else values.transpose(1, 2, 0))
        file = io.BytesIO()
        picture.save(file, format="JPEG", quality=quality)
        read = np.asarray(Image.open(file), np.float32) / 255
        compressed[row] = read if read.ndim == 2 else read.transpose(2, 0, 1)
    return compressed
