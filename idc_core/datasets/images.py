"""From bytes and JPEG files to float images."""

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from idc_core.datasets.zip_archive import Archive
from idc_core.errors import DataError
from idc_core.progress import Progress, report

_REPORT_EVERY = 500
_MAX = np.float32(255)


def scale(pixels: NDArray[np.uint8], out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Map grey levels 0..255, uint8, to float32 in 0..1, into `out` where it is given."""
    return np.divide(pixels, _MAX, out=out, dtype=np.float32)


def decode_jpegs(
    archive: Archive, names: Sequence[str], size: int, on_progress: Progress | None, label: str
) -> NDArray[np.float32]:
    """Decode RGB JPEG members of an archive: float32 (n, 3, size, size) in 0..1.

    One thread: opening such small images takes longer than decoding them, and holds the interpreter's lock;
    two threads were measured slower.

    Raises
    ------
    DataError
        If a member is missing, is not a whole JPEG, or is not RGB of that size.
    """
    images = np.empty((len(names), 3, size, size), np.float32)
    for index, name in enumerate(names):
        if index % _REPORT_EVERY == 0:
            report(on_progress, index, len(names), label)
        _decode(archive, name, images[index])
    report(on_progress, len(names), len(names), label)
    return images


def _decode(archive: Archive, name: str, out: NDArray[np.float32]) -> None:
    content = archive.read(name)
    expected = (out.shape[2], out.shape[1])
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
            # Size and mode are known from the header: nothing large is decoded before they are checked.
            if image.size != expected or image.mode != "RGB":
                raise DataError(
                    f"{archive.path}: the member {name} is {image.size[0]}x{image.size[1]} pixels, mode "
                    f"{image.mode}; expected {expected[0]}x{expected[1]}, RGB."
                )
            pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{archive.path}: the member {name} is not a whole JPEG image ({error}).") from error
    scale(pixels.transpose(2, 0, 1), out)
