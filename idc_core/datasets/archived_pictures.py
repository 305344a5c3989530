"""Pictures in zip files as a network takes them: decoded one after the other, kept as pixels, scaled to 0..1."""

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.base.files import cache_folder
from idc_core.base.progress import Progress, report
from idc_core.errors import DataError
from idc_core.guarded import Archive, read_picture
from idc_core.store.cache import ArrayFolder

_log = logging.getLogger(__name__)

MAX_EXPANSION = 100
"""Pictures do not compress and text compresses tenfold at most: what expands a hundredfold is a trap."""

_REPORT_EVERY = 500

_WORTH = 1_000
"""Pictures from which on the decoded ones are kept: fewer are decoded in a second."""

_MOST_BYTES = 1 << 30
"""Of all kept pixels; above it those go that were not used for longest."""

_MAX = np.float32(255)


def scale(pixels: NDArray[np.uint8], out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Map grey levels 0..255, uint8, to float32 in 0..1, into `out` where it is given."""
    return np.divide(pixels, _MAX, out=out, dtype=np.float32)


def decode_jpegs(
    archive: Archive, names: Sequence[str], size: int, on_progress: Progress | None, label: str
) -> NDArray[np.float32]:
    """Return RGB JPEG members of an archive, float32 (n, 3, size, size) in 0..1, decoded once on a computer.

    The pixels of many are kept in the cache folder, by names and by the archive's path, length and time of change.

    Raises
    ------
    DataError
        If a member is missing, is not a whole JPEG, or is not RGB of that size.
    """
    if len(names) < _WORTH:
        return scale(_decode(archive, names, size, on_progress, label))
    kept, key = ArrayFolder(cache_folder() / "decoded", "Decoded pictures", _MOST_BYTES), _mark(archive, names, size)
    try:
        pixels = kept[key]["pixels"]
    except KeyError:
        pixels = _decode(archive, names, size, on_progress, label)
        try:
            kept[key] = {"pixels": pixels}
        except DataError as error:
            _log.warning("%s", error)
    return scale(pixels)


def _mark(archive: Archive, names: Sequence[str], size: int) -> str:
    """Return what tells these pictures of this file from others."""
    file = Path(archive.where).resolve()
    found = file.stat()
    told = (file, found.st_size, found.st_mtime_ns, size, *names)
    return hashlib.blake2b("\n".join(map(str, told)).encode(), digest_size=16).hexdigest()


def _decode(
    archive: Archive, names: Sequence[str], size: int, on_progress: Progress | None, label: str
) -> NDArray[np.uint8]:
    """Decode members of an archive: uint8 (n, 3, size, size).

    One thread: opening such small images takes longer than decoding them, and holds the interpreter's lock;
    two threads were measured slower.
    """
    images = np.empty((len(names), 3, size, size), np.uint8)
    for index, name in enumerate(names):
        if index % _REPORT_EVERY == 0:
            report(on_progress, index, len(names), label)
        where = f"{archive.where}: the member {name}"
        pixels = read_picture(archive.read(name), where, "JPEG", mode="RGB", size=(size, size), budget=archive.budget)
        images[index] = pixels.transpose(2, 0, 1)
    report(on_progress, len(names), len(names), label)
    return images
