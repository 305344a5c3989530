"""Reading zip files that may be damaged or hostile: members are checked first and never written to disk."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from idc_core.errors import DataError

# Pictures do not compress and text compresses tenfold at most; what expands a hundredfold is a trap. Small
# members are let through: they cannot do harm, and a short repetitive text is not an attack.
_MAX_EXPANSION = 100
_SMALL = 100_000
_MAX_MEMBER = 64 << 20
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
