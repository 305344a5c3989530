"""Reading zip files, and pictures in them, that may be damaged or hostile: checked first, never written to disk."""

import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from idc_core.errors import DataError
from idc_core.progress import Progress, report

# Pictures do not compress and text compresses tenfold at most; what expands a hundredfold is a trap. Small
# members are let through: they cannot do harm, and a short repetitive text is not an attack.
_MAX_EXPANSION = 100
_SMALL = 100_000
_MAX_MEMBER = 64 << 20
_REPORT_EVERY = 500
_MAX = np.float32(255)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Archive:
    """An opened zip file whose member names and sizes have been checked; `names` has no folders, and is sorted."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive
        self._members = _checked(path, archive)
        self.names = tuple(sorted(self._members))

    def read(self, name: str) -> bytes:
        """Return the content of a member; DataError where its length or CRC is not the one the archive gives."""
        if name not in self._members:
            raise DataError(f"{self.path} has no member {name}.")
        member = self._members[name]
        try:
            with self._archive.open(member) as stream:
                # Never read without a bound: a member may expand to more than its header says.
                content = stream.read(member.file_size)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OSError) as error:
            raise DataError(f"{self.path}: the member {name} is damaged ({error}); copy the file again.") from error
        if len(content) != member.file_size:
            raise DataError(
                f"{self.path}: the member {name} has {len(content):,} bytes where the archive says "
                f"{member.file_size:,}; copy the file again."
            )
        return content


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a zip file for reading.

    Raises
    ------
    DataError
        If the file is cut off or not a zip file; if a member's name is absolute, leaves the folder (`..`) or
        comes twice; if a member is encrypted, compressed in an unusual way, or expands implausibly.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"{path} is cut off or not a zip file ({error}): copy it again.") from error
    with archive:
        yield Archive(path, archive)


def _checked(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename
        if name.startswith("/") or "\\" in name or ":" in name or ".." in PurePosixPath(name).parts:
            raise DataError(f"{path} holds the member {name!r}, whose name leads out of its folder: refused.")
        if member.is_dir():
            continue
        if name in members:
            raise DataError(f"{path} holds the member {name} twice: refused.")
        if member.compress_type not in _METHODS or member.flag_bits & 1:
            raise DataError(
                f"{path}: the member {name} is encrypted or compressed in an unusual way; "
                "expected a plain zip file, stored or deflated."
            )
        if member.file_size > min(_MAX_MEMBER, max(_SMALL, _MAX_EXPANSION * member.compress_size)):
            raise DataError(
                f"{path}: the member {name} expands from {member.compress_size:,} to {member.file_size:,} "
                f"bytes, more than {_MAX_EXPANSION} times or over {_MAX_MEMBER:,}: refused as a trap."
            )
        members[name] = member
    total, size = sum(member.file_size for member in members.values()), path.stat().st_size
    if total > max(_SMALL, _MAX_EXPANSION * size):
        raise DataError(f"{path} expands from {size:,} to {total:,} bytes in all: refused as a trap.")
    return members


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
