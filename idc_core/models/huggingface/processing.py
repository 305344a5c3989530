"""What a folder's image processor does to pictures: how they come to their size, and how they are scaled.

The defaults are those of `BaseImageProcessor` in transformers 5; `save_pretrained` writes every setting out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idc_core.errors import ModelError
from idc_core.models.huggingface.configuration import Configuration
from idc_core.models.huggingface.members import MOST_SAID, one_line, read_member
from idc_core.models.scaling import Scaling

_PROCESSOR = "preprocessor_config.json"
_RESAMPLES = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""Filters of Pillow by their number."""

_FOLLOWED = """
Beit Bit CLIP ChineseCLIP ConvNext DeiT EfficientNet Levit MobileNetV1 MobileNetV2 MobileViT Perceiver
PoolFormer Pvt Segformer Siglip ViT
"""
"""Classes of processors that are followed to the last pixel, as tests compare; of old folders the same names of feature
extractors."""

_BY_SHORTER = ("CLIP", "ChineseCLIP", "Bit", "Levit", "PoolFormer", "MobileViT", "MobileNet", "ConvNext", "TextNet")
"""Beginnings of the names of processors that take one number as the shorter side; others take it as both."""

_MOST_SIDE = 4_096
_WARPED = 384
"""Shorter side from which ConvNeXt's processor stretches pictures and cuts nothing off."""


@dataclass(frozen=True)
class _Processing:
    """How pictures become what a network takes.

    Attributes
    ----------
    size : (int, int) or None
        Rows and columns; None where the folder does not say.
    fit : {"stretch", "crop", "cut"}
        As in `Preparation`, as `margin`.
    resample : str
        One of `_RESAMPLES`.
    margin : int
    channels : {1, 3}
    scaling : Scaling
        Of pictures of 0..1.
    remark : str
        What the folder's processor may do otherwise; empty for one that is followed to the last pixel.
    """

    size: tuple[int, int] | None
    fit: str
    resample: str
    margin: int
    channels: int
    scaling: Scaling
    remark: str = ""


def read_processing(configuration: Configuration) -> _Processing:
    """Read `preprocessor_config.json`; without one, pictures have the size that the network says, and no scaling.

    Raises
    ------
    ModelError
        If it is damaged, or says what no picture is.
    """
    where = str(configuration.folder / _PROCESSOR)
    settings = read_member(configuration.folder, _PROCESSOR) if configuration.kind == "pictures" else None
    channels = configuration.values.get("num_channels", 3)
    if channels not in (1, 3):
        channels = 3
    if settings is None:
        size = _sides(configuration.values.get("image_size"), configuration.where)
        return _Processing(size, "stretch", "bilinear", 0, channels, Scaling())
    size, fit, margin = _fitting(settings, where)
    if size is None:
        size = _sides(configuration.values.get("image_size"), configuration.where)
    resample = settings.get("resample", 2)
    if type(resample) is not int or not 0 <= resample < len(_RESAMPLES):
        raise ModelError(f"{where} says resample {resample!r:.{MOST_SAID}}; expected 0 to {len(_RESAMPLES) - 1}.")
    remark = _remark(settings, size)
    return _Processing(size, fit, _RESAMPLES[resample], margin, channels, _scaling(settings, where), remark)


def _remark(found: dict[str, object], size: tuple[int, int] | None) -> str:
    """Say where pictures may differ from those that the folder's processor makes."""
    kind = _kind(found)
    name = kind.removesuffix("Fast").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    if kind and name not in _FOLLOWED.split():
        return (
            f"The folder's {one_line(kind, MOST_SAID)} is followed in its settings of size, filter, scaling and crop, "
            "and not in what else it does: compare the scores of a picture with transformers."
        )
    given = found.get("size")
    open_ended = isinstance(given, dict) and "shortest_edge" in given and "crop_pct" not in found
    if open_ended and found.get("do_resize", True) and not found.get("do_center_crop", False) and size is not None:
        return (
            f"The folder's processor keeps the proportions of pictures; here all are {size[0]} x {size[1]}, the middle "
            "of the longer side, as inputs have one size."
        )
    return ""


def _scaling(found: dict[str, object], where: str) -> Scaling:
    factor = found.get("rescale_factor", 1 / 255) if found.get("do_rescale", True) else 1.0
    if not isinstance(factor, int | float) or isinstance(factor, bool):
        raise ModelError(f"{where} says rescale_factor {factor!r:.{MOST_SAID}}; expected a number.")
    mean: tuple[float, ...] = (0.0,)
    deviation: tuple[float, ...] = (1.0,)
    never = _kind(found).startswith("MobileViT")  # whatever its settings say
    if found.get("do_normalize", True) and "image_mean" in found and not never:
        mean, deviation = (_numbers(found.get(name), name, where) for name in ("image_mean", "image_std"))
    if found.get("rescale_offset"):  # EfficientNet's pictures are -1..1 before their mean is subtracted
        mean = tuple(value + 1 for value in mean)
    if found.get("include_top"):  # and are divided by their deviation once more
        again = _numbers(found.get("image_std"), "image_std", where)
        deviation = tuple(
            one * other for one, other in zip(_wide(deviation, again), _wide(again, deviation), strict=True)
        )
    flipped = _kind(found).startswith("PPLCNet")  # behind its mean and deviation, and whatever its settings say
    if flipped:
        mean, deviation = mean[::-1], deviation[::-1]
    order: Literal["RGB", "BGR"] = "BGR" if flipped or found.get("do_flip_channel_order") else "RGB"
    try:
        return Scaling(mean, deviation, _rounded(255 * factor), order)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error


def _kind(found: dict[str, object]) -> str:
    """Return the name of the processor's class; empty where the file does not say it."""
    return str(found.get("image_processor_type") or found.get("feature_extractor_type") or "")


def _wide(values: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    """Return one number per channel where the other has them."""
    return values * len(other) if len(values) == 1 else values


def _rounded(factor: float) -> float:
    """Return a factor without what 255 * (1/255) leaves."""
    return 1.0 if abs(factor - 1) < 1e-12 else float(factor)


def _numbers(given: object, name: str, where: str) -> tuple[float, ...]:
    values = given if isinstance(given, list) else [given]
    numbers = [number for number in values if isinstance(number, int | float) and not isinstance(number, bool)]
    if not values or len(numbers) < len(values):
        raise ModelError(f"{where} says {name} {given!r:.{MOST_SAID}}; expected one number per channel.")
    return tuple(map(float, numbers))


def _fitting(found: dict[str, object], where: str) -> tuple[tuple[int, int] | None, str, int]:
    """Return size, fit and margin."""
    size = found.get("size") if found.get("do_resize", True) else None
    kind = _kind(found)
    shorter = size.get("shortest_edge") if isinstance(size, dict) else None
    if type(size) is int and kind.startswith(_BY_SHORTER):
        shorter = size
    if kind.startswith("PPLCNet"):
        shorter = found.get("resize_short", shorter)
    if kind.startswith("Levit") and type(shorter) is int:
        shorter = int(256 / 224 * shorter)
    divisor = found.get("size_divisor", 1)
    if kind.startswith("TextNet") and type(shorter) is int and type(divisor) is int and divisor > 0:
        shorter = -(-shorter // divisor) * divisor
    if kind.startswith("PoolFormer") and "crop_pct" in found:
        shorter = _enlarged(shorter if shorter is not None else size, found["crop_pct"], where)
    elif "crop_pct" in found and (shorter or isinstance(size, int)) and not found.get("do_center_crop"):
        return _convnext(shorter or size, found["crop_pct"], where)
    crop = _sides(found.get("crop_size"), where) if found.get("do_center_crop", False) else None
    if shorter is not None:
        before = _sides(shorter, where) or (0, 0)
        return (before, "crop", 0) if crop is None else (crop, "crop", before[0] - min(crop))
    whole = _sides(size, where)
    if kind.startswith("Perceiver") and crop is not None and whole is not None:  # it cuts before it resizes
        return whole, "cut", crop[0] - whole[0]
    if crop is None or whole is None:
        return crop or whole, "stretch" if crop is None else "crop", 0
    return crop, "stretch", whole[0] - crop[0]


def _enlarged(shorter: object, share: object, where: str) -> int | None:
    """Return the shorter side that PoolFormer's processor brings pictures to before it cuts off a share."""
    sides = _sides(shorter, where)
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0.1 <= share <= 1:
        raise ModelError(f"{where} says crop_pct {share!r:.{MOST_SAID}}; expected a number from 0.1 to 1.")
    return None if sides is None else int(sides[0] / share)


def _convnext(shorter: object, share: object, where: str) -> tuple[tuple[int, int] | None, str, int]:
    """Return what ConvNeXt's processor does: it enlarges small pictures by a share, which is then cut off."""
    size = _sides(shorter, where)
    if size is None or size[0] >= _WARPED:
        return size, "stretch", 0
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0.1 <= share <= 1:
        raise ModelError(f"{where} says crop_pct {share!r:.{MOST_SAID}}; expected a number from 0.1 to 1.")
    return size, "crop", int(size[0] / share) - size[0]


def _sides(given: object, where: str) -> tuple[int, int] | None:
    """Return rows and columns of a number, a pair or a dictionary; None for None."""
    if given is None:
        return None
    if isinstance(given, dict):
        given = [given.get("height"), given.get("width")]
    sides = given if isinstance(given, list) else [given, given]
    whole = [side for side in sides if type(side) is int and 1 <= side <= _MOST_SIDE]
    if len(sides) != 2 or len(whole) != 2:
        raise ModelError(
            f"{where} says the size {given!r:.{MOST_SAID}}; expected rows and columns from 1 to {_MOST_SIDE:,}."
        )
    return whole[0], whole[1]
