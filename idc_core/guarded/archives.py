"""Zip files that may be damaged or hostile: their directory is checked before anything is read from them."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from idc_core.errors import DataError
from idc_core.guarded.budget import Budget
from idc_core.guarded.opening import File, opened, size_of

# Python holds about a kilobyte per member, whose entry in the directory has 46 bytes at least.
_DIRECTORY_COPIES = 25
_UTF_8 = 0x800
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FAILURES = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    OSError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    struct.error,
)
_END, _END_64, _LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_END_SIZE, _END_64_SIZE, _LOCATOR_SIZE, _MOST_COMMENT = 22, 56, 20, (1 << 16) - 1
_WIDE = (1 << 32) - 1
"""What stands for a size that is told in the wide record."""


class Archive:
    """An opened zip file whose members' names, methods and sizes have been checked.

    Attributes
    ----------
    where : str
        What is read, for messages.
    budget : Budget
        What is read from it counts here.
    names : tuple of str
        Its members without folders, sorted.
    """

    def __init__(self, archive: zipfile.ZipFile, where: str, budget: Budget, expansion: int | None) -> None:
        self.where, self.budget = where, budget
        self._archive = archive
        self._members = _checked(archive, where, expansion)
        self.names = tuple(sorted(self._members))

    def size(self, name: str) -> int:
        """Return the bytes of a member once read; raise `DataError` where there is none."""
        return self._member(name).file_size

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a member; whatever goes wrong in the block is a `DataError` that names it.

        Its CRC is compared once the stream was read to its end.
        """
        member = self._member(name)
        try:
            with self._archive.open(member) as stream:
                yield stream
        except _FAILURES as error:
            raise DataError(
                f"{self.where}: the member {name} is damaged ({str(error)[:_MOST_SAID]}); copy the file again."
            ) from error

    def read(self, name: str) -> bytes:
        """Return the content of a member; `DataError` where its length or CRC is not what the directory says."""
        size = self.size(name)
        self.budget.take(size, name)
        with self.open(name) as stream:
            # Never without a bound: a member may expand to more than the directory says.
            content = stream.read(size)
            more = stream.read(1)
        self.budget.give(size)
        if len(content) != size or more:
            raise DataError(
                f"{self.where}: the member {name} has {'more' if more else f'{len(content):,}'} bytes where the "
                f"directory says {size:,}; copy the file again."
            )
        return content

    def unpack(self, folder: Path) -> None:
        """Write all members below an empty folder, block by block, as plain files.

        Raises
        ------
        DataError
            If a member is a link, is damaged, holds more than the directory says, or cannot be written.
        """
        for name in self.names:
            if stat.S_ISLNK(self._member(name).external_attr >> 16):
                raise DataError(f"{self.where}: the member {name[:_MOST_SAID]} is a link; expected plain files.")
            path = folder.joinpath(*PurePosixPath(name).parts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    self._write(name, file)
            except OSError as error:
                raise DataError(
                    f"{self.where}: the member {name[:_MOST_SAID]} cannot be unpacked: {error.strerror}."
                ) from error

    def _write(self, name: str, file: BinaryIO) -> None:
        left = self.size(name)
        with self.open(name) as stream:
            # One byte more than the directory says would be read: then it is refused.
            while block := stream.read(min(_BLOCK, left + 1)):
                left -= len(block)
                if left < 0:
                    break
                file.write(block)
        if left:
            raise DataError(
                f"{self.where}: the member {name[:_MOST_SAID]} is not as long as the directory says; copy it again."
            )

    def _member(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise DataError(f"{self.where} has no member {name[:_MOST_SAID]}.")
        return self._members[name]


@contextmanager
def open_archive(
    file: File, where: str, *, kind: str = "a zip file", expansion: int | None = None, budget: Budget | None = None
) -> Iterator[Archive]:
    """Open a zip file for reading.

    Parameters
    ----------
    file : Path, bytes or binary file
    where : str
        What is read, for messages: the beginning of a sentence.
    kind : str
        What it should be, for messages.
    expansion : int, optional
        Refuse what takes over 100 kB, and expands more often than this: pictures and texts do not.
    budget : Budget, optional
        Default a new one.

    Raises
    ------
    DataError
        If it is cut off or no zip file; if a member's name is absolute, leaves the folder (`..`) or comes twice; if a
        member is encrypted, compressed in an unusual way, lies over another one, or expands implausibly.
    """
    budget = budget or Budget(where)
    with opened(file, where) as stream:
        try:
            size, counts = _directory(stream)
            budget.take(_DIRECTORY_COPIES * size, "the list of its members")
            archive = zipfile.ZipFile(stream)
            if len(archive.infolist()) not in counts:
                raise zipfile.BadZipFile(f"it lists {len(archive.infolist())} members where its end says {counts[-1]}")
        except _FAILURES as error:
            raise DataError(
                f"{where} is cut off or not {kind} ({str(error)[:_MOST_SAID]}): write or copy it again."
            ) from error
        with archive:
            yield Archive(archive, where, budget, expansion)


def _directory(stream: BinaryIO) -> tuple[int, list[int]]:
    """Return the bytes of a zip file's directory, and how many members it may have, from the records at its end."""
    size = size_of(stream)
    start = max(0, size - _END_SIZE - _MOST_COMMENT - _LOCATOR_SIZE)
    stream.seek(start)
    tail = stream.read(size - start)
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_SIZE:
        raise zipfile.BadZipFile("it has no list of members at its end")
    count, narrow, comment = struct.unpack_from("<HI4xH", tail, at + 10)
    if len(tail) != at + _END_SIZE + comment:
        raise zipfile.BadZipFile("more bytes follow its end")
    sizes, counts = [] if narrow == _WIDE else [narrow], [count]
    locator = tail[max(0, at - _LOCATOR_SIZE) : at]
    if locator.startswith(_LOCATOR_64):
        # Libraries differ in where they look for the wide record: in the place that is told, or before the locator.
        for place in (struct.unpack_from("<Q", locator, 8)[0], start + at - _LOCATOR_SIZE - _END_64_SIZE):
            stream.seek(max(0, min(place, size)))
            record = stream.read(_END_64_SIZE)
            if record.startswith(_END_64) and len(record) == _END_64_SIZE:
                members, bytes_of = struct.unpack_from("<QQ", record, 32)
                sizes.append(bytes_of)
                counts.append(members)
    stream.seek(0)
    # More than the file holds is refused by the library; less would be read than it says.
    return int(min(max(sizes, default=size), size)), counts


_SMALL = 100_000
_BLOCK = 1 << 20
_MOST_NAME, _MOST_SAID = 1000, 200
_PLAIN = re.compile(r"(?!/|[A-Za-z]:)[^\\\0]+\Z")
_LOCAL_SIZE = 30


def _check_local(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> None:
    """Compare a member's name with the one beside its content: a damaged one would seem to be another member's."""
    stream = archive.fp
    if stream is not None and member.header_offset >= 0:
        stream.seek(member.header_offset)
        size = int.from_bytes(stream.read(_LOCAL_SIZE)[26:28], "little")
        beside = stream.read(size).decode("utf-8" if member.flag_bits & _UTF_8 else "cp437", "replace")
        if beside == member.orig_filename:
            return
    name = member.filename[:_MOST_SAID]
    raise DataError(f"{where}: the member {name} is damaged: another one lies where it should; copy the file again.")


def _checked(archive: zipfile.ZipFile, where: str, expansion: int | None) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    end = -1
    for member in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = member.filename
        # The library cuts a name off at a zero byte, where other programs do not: what the file says is looked at.
        given = member.orig_filename
        if not name or len(given) > _MOST_NAME or not _PLAIN.match(given) or ".." in PurePosixPath(given).parts:
            raise DataError(
                f"{where} holds the member {given[:_MOST_SAID]!r}, whose name leads out of its folder, or is none: "
                "refused."
            )
        if name in members:
            raise DataError(f"{where} holds the member {name} twice: refused.")
        if member.compress_type not in _METHODS or member.flag_bits & 1:
            raise DataError(
                f"{where}: the member {name} is encrypted or compressed in an unusual way; expected a plain zip file, "
                "stored or deflated."
            )
        if member.header_offset < end:
            raise DataError(f"{where}: the member {name} lies over another one: refused as a trap.")
        end = member.header_offset + member.compress_size
        if expansion is not None and member.file_size > max(_SMALL, expansion * member.compress_size):
            raise DataError(
                f"{where}: the member {name} expands from {member.compress_size:,} to {member.file_size:,} bytes, more "
                f"than {expansion} times: refused as a trap."
            )
        if not member.is_dir():
            members[name] = member
    for member in archive.infolist():
        _check_local(archive, member, where)
    total, size = (sum(getattr(info, of) for info in members.values()) for of in ("file_size", "compress_size"))
    if expansion is not None and total > max(_SMALL, expansion * size):
        raise DataError(f"{where} expands from {size:,} to {total:,} bytes in all: refused as a trap.")
    return members
