"""Gzip files from outside: one compressed stream with nothing behind it, expanded as far as it is asked for."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from idc_core.errors import DataError
from idc_core.guarded.opening import File, opened

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 16
_WITH_HEADER = 16 + zlib.MAX_WBITS


class _Expanded(io.RawIOBase):
    """What a gzip stream expands to; CRC and length are compared at its end.

    Python's own way reads any number of zeros behind it one by one.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._inflate = zlib.decompressobj(_WITH_HEADER)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while not self._inflate.eof:
            given = self._inflate.unconsumed_tail or self._stream.read(_BLOCK)
            content = self._inflate.decompress(given, len(view))
            view[: len(content)] = content
            if content:
                return len(content)
            if not given:
                raise EOFError("it ends before its end is marked")
        if self._inflate.unused_data or self._stream.read(1):
            raise EOFError("something follows its end")
        return 0


@contextmanager
def open_gzip(file: File, where: str) -> Iterator[io.BufferedReader]:
    """Open a gzip file for reading what it expands to, which has no bound: ask for no more than is expected.

    Raises
    ------
    DataError
        If it cannot be read, is cut off, damaged or no gzip file, or something follows its end. `where` is the
        beginning of a sentence.
    """
    try:
        with opened(file, where) as stream:
            yield io.BufferedReader(_Expanded(stream), _BLOCK)
    except (EOFError, zlib.error) as error:
        raise DataError(f"{where} is cut off or not a gzip file ({error}): copy it again.") from error
    except OSError as error:
        raise DataError(f"{where} cannot be read ({error}).") from error
