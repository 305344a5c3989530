"""Arrays of npz and npy files: checked by their headers before anything is allocated, and never unpickled."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from idc_core.errors import DataError
from idc_core.guarded.archives import Archive, open_archive
from idc_core.guarded.budget import Budget
from idc_core.guarded.opening import File, opened, size_of

_BLOCK = 1 << 20
_MAGIC = b"\x93NUMPY"
_MOST_HEADER = 10_000
_MOST_DIMENSIONS = 32
_ENTRY = (
    r"""\s*['"](?:descr['"]\s*:\s*['"](?P<kind>[<>=|]?[a-zA-Z?]\d{0,9}(?:\[\w{1,9}\])?)['"]"""
    r"""|fortran_order['"]\s*:\s*(?P<fortran>True|False)"""
    r"""|shape['"]\s*:\s*\((?P<shape>[\d\s,L]{0,1000})\))\s*,?"""
)
_ENTRIES = re.compile(_ENTRY)
_READ = "biufU"
_OBJECTS = (
    "holds Python objects, which are not read; expected an array of numbers or text. Where you trust it, save in its "
    "place numpy.array(array.tolist())."
)
_RECORDS = (
    "holds records with named fields, which are not read; save in its place "
    "numpy.stack([array[name] for name in array.dtype.names], -1)."
)
_INSTEAD = {
    **dict.fromkeys("SMm", ", such as array.astype(str)"),
    "c": ", such as numpy.stack([array.real, array.imag], -1)",
    "f": ", such as array.astype(float)",
}
"""What can be saved in place of arrays of these kinds."""
_LAST_CHARACTER, _FIRST_SURROGATE, _LAST_SURROGATE = 0x10FFFF, 0xD800, 0xDFFF


@dataclass(frozen=True)
class ArrayHeader:
    """What an array's header says: its shape, its type as it lies in the file, and the order of its axes."""

    shape: tuple[int, ...]
    kind: np.dtype[np.generic]
    fortran: bool = False

    @property
    def items(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


class ArrayFile:
    """An opened npz file, whose arrays' headers are known before any array is read.

    Attributes
    ----------
    where : str
        What is read, for messages.
    budget : Budget
        What is read from it counts here.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.where, self.budget = archive.where, archive.budget
        self._member = {name.removesuffix(".npy"): name for name in archive.names}
        if len(self._member) < len(archive.names):
            raise DataError(f"{self.where} holds an array twice, with and without the ending .npy: refused.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the members, those that are no arrays included."""
        return tuple(self._member)

    def require(self, names: Sequence[str]) -> None:
        """Raise `DataError` unless all these arrays are there."""
        missing = [name for name in names if name not in self._member]
        if missing:
            raise DataError(
                f"{self.where} lacks {' and '.join(missing)}: expected an npz file with the arrays "
                f"{' and '.join(names)}, found {', '.join(self._member)[:500] or 'nothing'}."
            )

    def header(self, name: str) -> ArrayHeader:
        """Return what an array's header says; `DataError` where it is none, or holds Python objects."""
        self.require([name])
        with self._archive.open(self._member[name]) as stream:
            return _header(stream, self._archive.size(self._member[name]), f"{self.where}: {name}")

    def read(self, name: str, kind: DTypeLike | None = None) -> NDArray[Any]:
        """Read an array, converted to `kind` block by block where one is given, so that no copy is held.

        Its length and CRC are compared with what the file says.
        """
        self.require([name])
        member = self._member[name]
        with self._archive.open(member) as stream:
            return _read(stream, self._archive.size(member), f"{self.where}: {name}", self.budget, kind)

    def content(self, name: str) -> bytes:
        """Return a member that is no array, such as a text."""
        return self._archive.read(name)


@contextmanager
def open_arrays(
    file: File, where: str, budget: Budget | None = None, *, kind: str = "an npz file"
) -> Iterator[ArrayFile]:
    """Open an npz file, whose headers can be looked at before anything is read.

    `kind` is what it should be, for messages.

    Raises
    ------
    DataError
        If it is no such file. `where` is the beginning of a sentence.
    """
    with open_archive(file, where, kind=kind, budget=budget) as archive:
        yield ArrayFile(archive)


def read_arrays(file: File, where: str, wanted: Sequence[str] | None = None) -> dict[str, NDArray[np.generic]]:
    """Read arrays of an npz file, all together within the limit of memory; default all that there are.

    Raises
    ------
    DataError
        If it is no such file, lacks an array, holds pickled objects, or would take more memory than is allowed.
    """
    with open_arrays(file, where) as arrays:
        names = arrays.names if wanted is None else wanted
        arrays.require(names)
        return {name: arrays.read(name) for name in names}


def read_array(
    file: File, where: str, shape: tuple[int, ...] | None = None, budget: Budget | None = None
) -> NDArray[np.generic]:
    """Read an npy file, of a certain shape where one is given; raise `DataError` where it is none.

    `budget` is what it counts in; default a new one.
    """
    budget = budget or Budget(where)
    with opened(file, where) as stream:
        size = size_of(stream)
        if stream.read(2) == b"PK":
            raise DataError(f"{where} holds several arrays; save a single one with numpy.save.")
        stream.seek(0)
        try:
            if shape is not None:
                held = _header(stream, size, where).shape
                if held != shape:
                    raise DataError(f"{where} has the shape {held}; expected {shape}.")
                stream.seek(0)
            return _read(stream, size, where, budget, None)
        except OSError as error:
            raise DataError(f"{where} cannot be read: {error.strerror}.") from error


def pack_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Return the content of a compressed npz file."""
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _header(stream: IO[bytes], size: int, where: str) -> ArrayHeader:
    """Parse an array's header strictly: NumPy's own way hands it to Python's parser, which fails in many ways."""
    head = stream.read(len(_MAGIC) + 2)
    if not head.startswith(_MAGIC) or len(head) < len(_MAGIC) + 2 or head[6] not in (1, 2, 3):
        raise DataError(f"{where} is no NumPy array; write it with numpy.save or numpy.savez.")
    wide = 2 if head[6] == 1 else 4
    length = int.from_bytes(stream.read(wide), "little")
    if length > min(_MOST_HEADER, size):
        raise DataError(f"{where} has a header of {length:,} bytes; at most {_MOST_HEADER:,} are read.")
    # Long stretches of spaces would be gone over again and again.
    text = " ".join(stream.read(length).decode("latin-1").split())
    entries = list(_ENTRIES.finditer(text[1:-1]))
    given = {name: value for entry in entries for name, value in entry.groupdict().items() if value is not None}
    rest = _ENTRIES.sub("", text[1:-1]).strip()
    if text[:1] + text[-1:] != "{}" or rest or len(entries) != 3 or len(given) != 3:
        if "'O'" in text or "|O" in text:
            raise DataError(f"{where} {_OBJECTS}")
        if re.search(r"""['"]descr['"]\s*:\s*\[""", text):
            raise DataError(f"{where} {_RECORDS}")
        raise DataError(f"{where} has a header that is damaged, or no plain array; write it again with numpy.savez.")
    kind = _kind(given["kind"], where)
    sides = [side.strip() for side in given["shape"].replace("L", "").split(",")]
    if sides[-1] == "":
        sides.pop()
    if len(sides) > _MOST_DIMENSIONS or not all(side.isdigit() and len(side) <= 18 for side in sides):
        raise DataError(f"{where} has a shape that is damaged: ({given['shape'][:60]}).")
    shape = tuple(int(side) for side in sides)
    if math.prod(max(side, 1) for side in shape) * max(kind.itemsize, 1) >= 1 << 62:
        raise DataError(f"{where} has the shape {shape}, which no memory holds.")
    return ArrayHeader(shape, kind, given["fortran"] == "True")


def _kind(name: str, where: str) -> np.dtype[np.generic]:
    try:
        kind = np.dtype(name)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{where} has values of the unknown type {name!r}.") from error
    if kind.hasobject:
        raise DataError(f"{where} {_OBJECTS}")
    if kind.kind not in _READ or not 0 < kind.itemsize <= (8 if kind.kind != "U" else kind.itemsize):
        raise DataError(
            f"{where} has values of type {kind}; expected numbers, truth values or text{_INSTEAD.get(kind.kind, '')}."
        )
    return kind


def _read(stream: IO[bytes], most: int, where: str, budget: Budget, wanted: DTypeLike | None) -> NDArray[np.generic]:
    """Read one array of a file of at most so many bytes, in blocks; byte order and type are turned on the way."""
    header = _header(stream, most, where)
    size = header.items * header.kind.itemsize
    # What a header promises is not reserved before the file is known to be as long.
    if size > most:
        raise DataError(f"{where} ends early: its header says {size:,} bytes, the file has {most:,}; write it again.")
    kind = np.dtype(wanted) if wanted is not None else header.kind.newbyteorder("=")
    budget.take(header.items * kind.itemsize, "the array")
    flat = np.empty(header.items, kind)
    step = max(1, _BLOCK // max(header.kind.itemsize, 1))
    for first in range(0, header.items, step):
        count = min(step, header.items - first)
        content = stream.read(count * header.kind.itemsize)
        if len(content) < count * header.kind.itemsize:
            done = first * header.kind.itemsize + len(content)
            raise DataError(f"{where} ends early, after {done:,} of {size:,} bytes; write it again.")
        _check(content, header.kind, where)
        with np.errstate(over="ignore"):  # too large for the type is infinite, which whoever asked refuses
            flat[first : first + count] = np.frombuffer(content, header.kind)
    if stream.read(1):
        raise DataError(f"{where} has more bytes than its header says; write it again.")
    if not header.fortran or len(header.shape) < 2:
        return flat.reshape(header.shape)
    budget.take(flat.nbytes, "the array in the order of its axes")
    turned = np.ascontiguousarray(flat.reshape(header.shape[::-1]).T)
    budget.give(flat.nbytes)
    return turned


def _check(content: bytes, kind: np.dtype[np.generic], where: str) -> None:
    """Refuse bytes that are no values of their type: truth values beyond 1, characters beyond Unicode."""
    if kind.kind == "b" and np.frombuffer(content, np.uint8).max(initial=0) > 1:
        raise DataError(f"{where} holds truth values that are neither true nor false; write it again.")
    if kind.kind == "U":
        points = np.frombuffer(content, np.dtype(np.uint32).newbyteorder(kind.byteorder))
        surrogates = (points >= _FIRST_SURROGATE) & (points <= _LAST_SURROGATE)
        if points.max(initial=0) > _LAST_CHARACTER or surrogates.any():
            raise DataError(f"{where} holds text with characters that do not exist; write it again.")
