"""Zip files that lie about their members."""

import io
import struct
import tracemalloc
import zipfile

import pytest

from idc_core.errors import DataError
from idc_core.guarded import open_archive
from tests.guarded.hostile import archive, by_message, entry, local

A = local(b"a", b"hello")


def names(content):
    with open_archive(content, "The file") as opened:
        return [opened.read(name) for name in opened.names]


def test_the_hand_written_archive_is_a_whole_one():
    crc = struct.unpack_from("<I", A, 14)[0]
    whole = bytearray(archive(A, [entry(b"a", 0, 5, content=5)]))
    struct.pack_into("<I", whole, len(A) + 16, crc)
    assert names(bytes(whole)) == [b"hello"]


def lzma():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("a", b"hello")
    return file.getvalue()


def wide(size):
    """An entry whose expanded size is told in the wide extra field."""
    extra = struct.pack("<2HQ", 1, 8, size)
    return archive(A, [entry(b"a", 0, 5, content=0xFFFFFFFF, extra=extra)])


def locator(record_size):
    """A wide end record before its locator, which points to another one that says less."""
    small, large = (struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, n, 0) for n in (46, record_size))
    told = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(A), 1)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return A + small + bytes(record_size) + large + told + end


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lzma(), "encrypted or compressed in an unusual way"),
        (archive(A, [entry(b"a", 0, 5, flags=1, content=5)]), "encrypted or compressed in an unusual way"),
        (archive(A, [entry(b"a", 0, 5, method=99, content=5)]), "encrypted or compressed in an unusual way"),
        (archive(A, [entry(b"a", 0, 5, content=5), entry(b"b", 0, 5, content=5)]), "lies over another one"),
        (archive(A, [entry(b"a", 0, 5, content=5), entry(b"b", 4, 5, content=5)]), "lies over another one"),
        (archive(A, [entry(b"a", 9999, 5, content=5)]), "member a is damaged"),
        (archive(A, [entry(b"b", 0, 5, content=5)]), "member b is damaged"),
        (archive(A, [entry(b"a", 0, 5, content=4_000_000_000)]), "a would take 4,000,00"),
        (wide(1 << 60), "a would take 1,152,921,504,6"),
        (archive(A, [entry(b"../a", 0, 5, content=5)]), "leads out of its folder"),
        (archive(local(b"a\0b", b"hello"), [entry(b"a\0b", 0, 5, content=5)]), "whose name leads out"),
        (
            lambda: archive(b"", [entry(b"x", 0, 0)] * 1_000_000),
            "the list of its members would take 1,175,000,000 bytes",
        ),
        (lambda: locator(45_000_000), "the list of its members would take 1,125,000,000 bytes"),
        (archive(A, [entry(b"a", 0, 5, content=5)]) + b"x", "more bytes follow its end"),
        (b"PK\x05\x06", "it has no list of members at its end"),
    ],
    ids=by_message,
)
def test_a_directory_that_lies_is_refused_before_it_takes_memory(content, message):
    content = content() if callable(content) else content
    tracemalloc.start()
    with pytest.raises(DataError, match=message) as caught:
        names(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value).startswith("The file")
    assert peak < len(content) + 3_000_000
