"""Pictures from outside: their size and mode are known from the header before a pixel is decoded."""

from __future__ import annotations

import io
import zlib

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError
from idc_core.guarded.budget import Budget

MOST_SIDE = 1 << 15
"""Pixels that a side of a picture has at most."""

_PNG = b"\x89PNG\r\n\x1a\n"
# What the library raises on damaged files, beyond its own errors.
FAILURES = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    EOFError,
    MemoryError,
    ZeroDivisionError,
)


def read_picture(
    content: bytes,
    where: str,
    form: str,
    *,
    mode: str | None = None,
    size: tuple[int, int] | None = None,
    convert: str | None = None,
    budget: Budget | None = None,
) -> NDArray[np.uint8]:
    """Decode a picture.

    Parameters
    ----------
    content : bytes
    where : str
        What is read, for messages: the beginning of a sentence.
    form : str
        The only format that is tried, as Pillow names it: "PNG", "JPEG".
    mode, size : str, tuple of int, optional
        Refuse any other mode, or width and height.
    convert : str, optional
        Mode to convert to; default what the file has.
    budget : Budget, optional
        Default a new one.

    Returns
    -------
    ndarray, uint8 (height, width) or (height, width, channels)

    Raises
    ------
    DataError
        If it is no whole picture of that format, mode and size, or takes more memory than is allowed.
    """
    from PIL import Image  # only here: a first look at networks needs no pictures

    budget = budget or Budget(where)
    try:
        with Image.open(io.BytesIO(content), formats=(form,)) as image:
            if (size is not None and image.size != size) or (mode is not None and image.mode != mode):
                expected = [part for part in ("x".join(map(str, size or ())), mode) if part]
                raise DataError(
                    f"{where} is {image.size[0]}x{image.size[1]} pixels, mode {image.mode}; expected "
                    f"{', '.join(expected)}."
                )
            if max(image.size) > MOST_SIDE:
                raise DataError(f"{where} is {image.size[0]}x{image.size[1]} pixels; at most {MOST_SIDE:,} a side.")
            held = image.size[0] * image.size[1] * 4 * 3  # decoded, converted, and as an array
            budget.take(held, "its pixels")
            if form == "PNG":
                check_parts(content, where)
            pixels = np.asarray(image if convert in (None, image.mode) else image.convert(convert))
            budget.give(held)
    except (*FAILURES, Image.DecompressionBombError) as error:
        raise DataError(f"{where} is not a whole {form} picture ({error}).") from error
    if pixels.dtype != np.uint8:
        raise DataError(f"{where} has pixels of type {pixels.dtype}; expected 8 bits a channel.")
    return pixels


def check_parts(content: bytes, where: str) -> None:
    """Compare the checksums of a PNG file's parts: the library leaves those of the pixels alone."""
    place, name = len(_PNG), b""
    while name != b"IEND" and place < len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        name, end = content[place + 4 : place + 8], place + 8 + size
        if zlib.crc32(content[place + 4 : end]).to_bytes(4, "big") != content[end : end + 4]:
            raise DataError(f"{where} is not a whole PNG picture: a part of it does not have its checksum.")
        place = end + 4
    if name != b"IEND" or not content.startswith(_PNG):
        raise DataError(f"{where} is not a whole PNG picture.")
