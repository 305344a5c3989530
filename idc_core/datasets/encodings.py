"""Texts in the encodings that people's files have, as UTF-8."""

from __future__ import annotations

import codecs

from idc_core.errors import DataError
from idc_core.guarded import Budget

_BLOCK = 1 << 20
_LATIN = "cp1252"
"""What Windows calls latin-1: the same letters, and some signs more."""
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_MARK = b"\xef\xbb\xbf"
_SEEN = 200
"""Bytes that tell UTF-16 without its mark: every other one is zero."""


def as_utf_8(content: bytes, where: str, budget: Budget) -> tuple[bytes, tuple[str, ...]]:
    """Return a text in UTF-8, and what it came in; DataError where it is neither UTF-8, UTF-16 nor latin-1."""
    wide = _wide(content)
    if wide:
        budget.take(3 * len(content), "its characters")
        try:
            text = content.decode(wide).removeprefix("\ufeff")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            return text.encode("utf-8", "replace"), ("read as UTF-16",)
    if b"\0" in content:
        raise DataError(f"{where} is no text but binary, or cut off: it holds a zero byte; save it as UTF-8.")
    content = content.removeprefix(_MARK)
    decoder, position = codecs.getincrementaldecoder("utf-8")(), 0
    try:
        for position in range(0, len(content), _BLOCK):  # a table as one text would take several times its memory
            decoder.decode(content[position : position + _BLOCK])
        decoder.decode(b"", final=True)
        return content, ()
    except UnicodeDecodeError as error:
        position += error.start
    try:
        text = content.decode(_LATIN)
    except UnicodeDecodeError:
        text = "\0"
    if any(ord(letter) < 32 and letter not in "\t\r\n" for letter in set(text)):
        raise DataError(f"{where} is no text in UTF-8, nor in latin-1 (byte {position:,}); save it as UTF-8.")
    return text.encode(), ("read as latin-1",)


def _wide(content: bytes) -> str:
    """Return which UTF-16 a text comes in, by its mark or by the zeros of its letters, or ""."""
    if content[:2] in _MARKS:
        return _MARKS[content[:2]]
    odd, even = content[1:_SEEN:2], content[:_SEEN:2]
    for zeros, letters, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if len(zeros) > 2 and not any(zeros) and all(letters):
            return name
    return ""
