"""Files of our own that carry a checksum: what a disk damaged is found when it is read, whatever its form.

JSON lies in an object beside its checksum; zip files carry theirs as the comment at their end. So both stay files that
any program reads.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from idc_core.errors import DataError
from idc_core.guarded.opening import File, opened, size_of

log = logging.getLogger("idc_core")

_DIGITS = 32
_BLOCK = 1 << 20
_MARK = b"idc-blake2b:"
_COMMENT = len(_MARK) + _DIGITS
_HEAD, _MIDDLE, _TAIL = b'{"checksum": "', b'", "content": ', b"}\n"


def seal_text(text: str) -> bytes:
    """Return JSON text with its checksum, as a JSON object."""
    content = text.encode()
    return _HEAD + _digest(content).encode() + _MIDDLE + content + _TAIL


def is_sealed(content: bytes) -> bool:
    """Return whether JSON text begins as `seal_text` writes it."""
    return content.startswith(_HEAD)


def open_sealed_text(content: bytes, where: str) -> bytes:
    """Return the JSON text that was sealed; raise `DataError` where the checksum is another one, or there is none."""
    start = len(_HEAD) + _DIGITS + len(_MIDDLE)
    inner, given = content[start : -len(_TAIL)], content[len(_HEAD) : len(_HEAD) + _DIGITS]
    whole = content.startswith(_HEAD) and content.endswith(_TAIL) and content[start - len(_MIDDLE) : start] == _MIDDLE
    if not whole or _digest(inner).encode() != given:
        raise DataError(f"{where} is damaged: its content does not have the checksum that it was written with.")
    return inner


def seal_zip(content: bytes) -> bytes:
    """Return a zip file without comment with its checksum as the comment."""
    if content[-22:-18] != b"PK\x05\x06" or content[-2:] != b"\0\0":
        raise ValueError("a zip file without a comment is sealed, and nothing else")
    body = content[:-2] + _COMMENT.to_bytes(2, "little")
    return body + _MARK + _digest(body).encode()


def check_sealed_zip(file: File, where: str) -> None:
    """Raise `DataError` unless a zip file has the checksum that it was sealed with; reads it block by block."""
    digest = hashlib.blake2b(digest_size=_DIGITS // 2)
    with opened(file, where) as stream:
        left = size_of(stream) - _COMMENT
        stream.seek(max(left, 0))
        given = stream.read(_COMMENT)
        stream.seek(0)
        # Without the mark at its end, a file need not be read.
        while given.startswith(_MARK) and left > 0 and (block := stream.read(min(_BLOCK, left))):
            digest.update(block)
            left -= len(block)
    if given != _MARK + digest.hexdigest().encode():
        raise DataError(f"{where} is damaged: its content does not have the checksum that it was written with.")


def damaged(path: Path, error: Exception) -> None:
    """Say in the log that an entry that was kept is damaged and is made again."""
    log.warning("%s is damaged and is made again (%s)", path, error)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest()
