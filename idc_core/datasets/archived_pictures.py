"""Pictures in zip files as a network takes them: decoded one after the other, scaled to 0..1."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idc_core.base.progress import Progress, report
from idc_core.guarded import Archive, read_picture

MAX_EXPANSION = 100
"""Pictures do not compress and text compresses tenfold at most: what expands a hundredfold is a trap."""

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
        where = f"{archive.where}: the member {name}"
        pixels = read_picture(archive.read(name), where, "JPEG", mode="RGB", size=(size, size), budget=archive.budget)
        scale(pixels.transpose(2, 0, 1), images[index])
    report(on_progress, len(names), len(names), label)
    return images
