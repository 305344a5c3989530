"""Pictures of any usual format, brought to one size and number of channels."""

from __future__ import annotations

import io
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError
from idc_core.guarded.budget import Budget
from idc_core.guarded.pictures import FAILURES, MOST_SIDE, check_parts

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
"""Endings of the files that are taken for pictures."""

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")
_GREY = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L")
_ORIENTATION, _TURNED = 0x0112, (5, 6, 7, 8)
_TILE = (322, 323)
_BITS, _PHOTOMETRIC, _MIN_IS_WHITE = 258, 262, 0
_MOST_SAID = 200
# Several threads decode side by side: of pictures that take more, one at a time.
_LARGE = 64 << 20
_one_large = threading.Lock()


class PictureHeader(NamedTuple):
    """What the header of a picture says.

    Attributes
    ----------
    rows, columns : int
    is_grey : bool
    is_clear : bool
        Whether it has an alpha channel, or a transparent colour.
    is_deep : bool
        Whether it has more than 8 bits a channel.
    """

    rows: int
    columns: int
    is_grey: bool
    is_clear: bool
    is_deep: bool


def picture_header(stream: BinaryIO, where: str, *, turned: bool = True) -> PictureHeader:
    """Return what the header of a picture says; as it asks to be `turned`, for which a PNG is decoded.

    Raises
    ------
    DataError
        If it is no picture; `where` begins the sentence.
    """
    with _opened(stream, where) as image:
        columns, rows = image.size
        form, grey = _unpacked(image), _is_grey(image)
        deep = image.format in ("PNG", "TIFF") and (";16" in form or ";12" in form)
        if turned and image.getexif().get(_ORIENTATION) in _TURNED:
            rows, columns = columns, rows
        return PictureHeader(rows, columns, grey, image.has_transparency_data, deep)


def read_photo(
    content: bytes,
    where: str,
    *,
    channels: int,
    size: tuple[int, int] | None = None,
    fit: str | None = "stretch",
    resample: str = "bilinear",
    margin: int = 0,
    alpha: str = "drop",
    only_grey: bool = False,
) -> NDArray[np.uint8]:
    """Decode the first picture of a PNG, JPEG, BMP, GIF, WebP or TIFF file.

    It is turned as its Exif orientation says, and of more than 8 bits a channel the upper 8 are kept.

    Parameters
    ----------
    content : bytes
    where : str
        What is read, for messages: the beginning of a sentence.
    channels : {1, 3}
        Grey (ITU-R 601 luma) or RGB.
    size : (int, int), optional
        Rows and columns; default those that it has.
    fit : {"stretch", "crop", "pad"} or None
        Each side on its own; the shorter side, and the middle of the other; the longer side, and a black border. None
        refuses pictures of another size.
    resample : str
        Filter of Pillow, as in `Preparation`.
    margin : int
        Rows, and columns, that are cut off at the end.
    alpha : {"drop", "white"}
        Keep the colours that transparent parts have, or put them on white.
    only_grey : bool
        Refuse pictures with colours.

    Returns
    -------
    ndarray, uint8 (channels, rows, columns)

    Raises
    ------
    DataError
        If it is no whole picture, has no 8, 12 or 16 bits a channel, or takes more memory than is allowed.
    """
    from PIL import ImageOps

    with _opened(io.BytesIO(content), where) as image, ExitStack() as held:
        if only_grey and not _is_grey(image):
            raise DataError(f"{where} has colours and others are grey: give the channels of the preparation, 1 or 3.")
        taken = _take(image, Budget(where))
        if taken > _LARGE:
            held.enter_context(_one_large)
        if image.format == "PNG":
            check_parts(content, where)
        ImageOps.exif_transpose(image, in_place=True)
        picture = _plain(image, where, alpha).convert("L" if channels == 1 else "RGB")
        size = size or picture.size[::-1]
        if fit is None and picture.size != size[::-1]:
            raise DataError(
                f"{where} has {picture.size[1]} x {picture.size[0]} pixels (rows x columns) and others {size[0]} x "
                f"{size[1]}; networks take one size. Give it as the size of the preparation."
            )
        pixels = np.asarray(fitted(picture, size, fit, resample, margin))
        return np.ascontiguousarray(pixels[None] if channels == 1 else pixels.transpose(2, 0, 1))


@contextmanager
def _opened(stream: BinaryIO, where: str) -> Iterator[Picture]:
    """Open a picture; what goes wrong in the block is a `DataError`."""
    from PIL import Image, UnidentifiedImageError  # only here: a first look at networks needs no pictures

    try:
        with Image.open(stream, formats=_FORMATS) as image:
            if max(image.size) > MOST_SIDE:
                raise DataError(f"{where} is {image.size[0]:,}x{image.size[1]:,} pixels; at most {MOST_SIDE:,} a side.")
            yield image
    except (*FAILURES, struct.error, Image.DecompressionBombError) as error:
        reason = "of an unknown kind" if isinstance(error, UnidentifiedImageError) else str(error)[:_MOST_SAID]
        raise DataError(f"{where} is not a whole picture ({reason}): copy it again, or take it out.") from error


def _take(image: Picture, budget: Budget) -> int:
    """Count what a picture takes once decoded, converted and as an array; return it."""
    size = image.size[0] * image.size[1] * 4 * 3
    tags = getattr(image, "tag_v2", {})
    width, length = (tags.get(tag, 0) for tag in _TILE)
    if isinstance(width, int) and isinstance(length, int):
        # A tile is decoded whole, however small the picture.
        size += width * length * 8
    budget.take(size, "its pixels")
    return size


def _unpacked(image: Picture) -> str:
    """Return how Pillow unpacks a picture that is not decoded yet, which tells bits that its mode does not."""
    return str([part[3] for part in getattr(image, "tile", ())])


def _is_grey(image: Picture) -> bool:
    """Return whether a picture that is not decoded yet is grey; Pillow makes RGBA of grey with alpha in 16 bits."""
    return image.mode in _GREY or "LA;16B" in _unpacked(image)


def _plain(image: Picture, where: str, alpha: str) -> Picture:
    """Return a picture in 8 bits a channel, whose transparent parts are what they become."""
    from PIL import Image

    if image.mode in ("I", "F"):
        kind = "fractions" if image.mode == "F" else "more than 16 bits, or signs,"
        raise DataError(
            f"{where} has {kind} as pixels; expected 8, 12 or 16 bits a channel. Save such pictures as arrays of "
            "numbers from 0 to 1 (.npz)."
        )
    if image.mode.startswith("I;16"):
        tags = getattr(image, "tag_v2", {})
        (bits,) = tags.get(_BITS, (16,))
        values = np.asarray(image) >> (bits - 8)
        # Pillow turns these round in 8 bits alone.
        values = 255 - values if tags.get(_PHOTOMETRIC) == _MIN_IS_WHITE else values
        return Image.fromarray(values.astype(np.uint8))
    if alpha == "white" and image.has_transparency_data:
        grey = image.mode in _GREY
        clear = image.convert("LA" if grey else "RGBA")
        white = Image.new("L" if grey else "RGB", clear.size, "white")
        white.paste(clear.convert(white.mode), mask=clear.getchannel("A"))
        return white
    image.info.pop("transparency", None)  # Pillow would look for it among the colours
    return image


def fitted(image: Picture, size: tuple[int, int], fit: str | None, resample: str, margin: int) -> Picture:
    """Bring a picture to a size and a margin, by a filter of Pillow; then cut the margin off, and what is too much.

    Parameters are as in `read_photo`.
    """
    from PIL import Image, ImageOps

    filter = Image.Resampling[resample.upper()]
    columns, rows = size[1] + margin, size[0] + margin
    if fit == "pad":
        image = ImageOps.pad(image, (columns, rows), filter, color=0)
    elif fit == "crop":
        # The longer side is rounded down, as torchvision and transformers do.
        larger = max(columns / image.size[0], rows / image.size[1])
        wide, high = (max(1, int(side * larger + 1e-9)) for side in image.size)
        image = image.resize((max(wide, columns), max(high, rows)), filter)
    else:
        image = image.resize((columns, rows), filter)
    left, top = (image.size[0] - size[1]) // 2, (image.size[1] - size[0]) // 2
    return image.crop((left, top, left + size[1], top + size[0]))
