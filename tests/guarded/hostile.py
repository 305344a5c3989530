"""Files that lie, written by hand."""

import struct
import zlib


def by_message(value):
    """Name a case by its message, never by a file of megabytes."""
    return value if isinstance(value, str) and len(value) < 200 else "file"


def npy(header, data=b"", version=1, length=None):
    """An npy file with any header; `length` is what it says of the header."""
    text = header.encode("latin-1")
    size = (len(text) if length is None else length).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def plain(shape="(3,)", kind="'<f8'", order="False", data=bytes(24)):
    """An npy file whose header has the usual form."""
    return npy(f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}\n", data)


def entry(name, offset, size, *, flags=0, method=0, content=0, extra=b""):
    """A member's entry in a zip file's directory; `content` is what it says that the member expands to."""
    fields = (b"PK\x01\x02", 20, 20, flags, method, 0, 0, 0, size, content, len(name), len(extra), 0, 0, 0, 0, offset)
    return struct.pack("<4s6H3I5H2I", *fields) + name + extra


def local(name, data, method=0):
    """A member's own header and data."""
    fields = (b"PK\x03\x04", 20, 0, method, 0, 0, zlib.crc32(data), len(data), len(data), len(name), 0)
    return struct.pack("<4s5H3I2H", *fields) + name + data


def archive(body, entries, count=None):
    """A zip file of members, the entries of its directory, and its end."""
    directory = b"".join(entries)
    many = min(len(entries) if count is None else count, 0xFFFF)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, many, many, len(directory), len(body), 0)
    return body + directory + end


def png(width, height):
    """A PNG picture without its pixels."""
    head = b"IHDR" + struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    data = struct.pack(">I", 0) + b"IDAT"
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + data
