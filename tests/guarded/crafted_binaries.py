"""gzip, safetensors and PNG files whose checksums are right and whose content is not."""

import gzip
import json
import random as chance
import struct
import zlib

from tests.guarded import crafted_texts, damage

NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0xFFFF, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


def zipped(change):
    """A gzip file whose content is changed by a function and compressed anew, or that several members make up."""

    def craft(content, random):
        inner = gzip.decompress(content)
        kind = random.randrange(8)
        if kind == 0:
            half = len(inner) // 2
            return gzip.compress(inner[:half], 1, mtime=0) + gzip.compress(inner[half:], 1, mtime=0)
        if kind == 1:
            return content + random.choice((b"\0", b"\0" * 5000, b"\x1f\x8b", content, b"x"))
        if kind == 2:
            return content[:3] + bytes([random.randrange(256)]) + content[4:]
        if kind == 3:
            return gzip.compress(inner + b"\0" * random.choice((1, 1000, 1 << 21)), 1, mtime=0)
        return gzip.compress(change(inner, random), 1, mtime=0)

    return craft


def idx(content, random):
    """An IDX file with another number in its header, or a body of another length."""
    if random.randrange(4) == 0:
        return damage.anything(content, random)
    place = random.choice(range(0, min(16, len(content) - 4), 4))
    return content[:place] + struct.pack(">I", random.choice(NUMBERS)) + content[place + 4 :]


def safetensors(content, random):
    """A safetensors file with another length of header, another header, or other values."""
    (length,) = struct.unpack("<Q", content[:8])
    header, body = content[8 : 8 + length], content[8 + length :]
    kind = random.randrange(8)
    if kind == 0:
        wrong = random.choice((0, 1, length - 1, length + 1, len(content), 1 << 31, 1 << 40, (1 << 64) - 1))
        return struct.pack("<Q", wrong) + header + body
    if kind == 1:
        body = damage.anything(body, random)
    elif kind == 2:
        body = random.choice((b"", body[:-1], body + b"\0", body * 2))
    elif kind == 3:
        header = _other_tensor(header, random)
    else:
        header = crafted_texts.json_text(header, random)
    return struct.pack("<Q", len(header)) + header + body


KINDS = ("F32", "F16", "BF16", "F64", "I8", "I64", "U8", "BOOL", "F8_E4M3", "X", "")


def _other_tensor(header, random):
    """Offsets that overlap or leave the file, shapes and types that do not fit them."""
    described = json.loads(header)
    name = random.choice([name for name in described if name != "__metadata__"])
    one = described[name]
    kind = random.randrange(5)
    if kind == 0:
        one["dtype"] = random.choice(KINDS)
    elif kind == 1:
        one["shape"] = random.choice(([], one["shape"][::-1], [0], [-1], [1 << 40], [1, *one["shape"]], [1] * 100))
    elif kind == 2:
        one["data_offsets"] = random.choice(([0, 0], [0, 1 << 62], one["data_offsets"][::-1], [0, 4], [0], [-1, 3]))
    elif kind == 3:
        other = random.choice(list(described))
        described[name], described[other] = described[other], described[name]
    else:
        described[name + random.choice(("x", "", ".weight"))] = described.pop(name)
    return json.dumps(described).encode()


def chunks(content):
    """The parts of a PNG file: pairs of name and content."""
    place, found = 8, []
    while place + 12 <= len(content):
        (size,) = struct.unpack_from(">I", content, place)
        found.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    return found


def png_of(parts):
    """A PNG file of parts, each with its right checksum."""
    content = b"\x89PNG\r\n\x1a\n"
    for name, inner in parts:
        content += struct.pack(">I", len(inner)) + name + inner + struct.pack(">I", zlib.crc32(name + inner))
    return content


_NAMES = (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"iCCP", b"zTXt", b"iTXt", b"tEXt", b"acTL", b"fcTL",
          b"fdAT", b"eXIf", b"pHYs", b"sRGB", b"cHRM", b"\0\0\0\0", b"abcd", b"ABCD")  # fmt: skip
_BOMB = b"x\0\0" + zlib.compress(b"\0" * (8 << 20), 9)
_NOISE = chance.Random(0).randbytes(300)


def png(content, random):
    """A PNG file with other numbers in its head, other pixels, and parts that are missing, twice, or strange."""
    parts = chunks(content)
    for _ in range(random.choice((1, 1, 2))):
        _CHANGES[random.randrange(len(_CHANGES))](parts, random)
    return png_of(parts) + random.choice((b"", b"", b"", b"\0", content))


def _head(parts, random):
    name, inner = parts[0] if parts else (b"IHDR", b"\0" * 13)
    if name == b"IHDR" and len(inner) == 13:
        values = list(struct.unpack(">IIBBBBB", inner))
        place = random.randrange(7)
        top = 1 << (32 if place < 2 else 8)
        values[place] = random.choice((0, 1, 2, 3, 4, 6, 8, 16, 27, 29, 32_768, 40_000, top - 1, top >> 1)) % top
        parts[0] = (name, struct.pack(">IIBBBBB", *values))


def _pixels(parts, random):
    place = next((place for place, (name, _) in enumerate(parts) if name == b"IDAT"), None)
    if place is None:
        return
    inner = parts[place][1]
    try:
        raw = zlib.decompress(inner)
    except zlib.error:
        return
    changed = random.choice((damage.anything(raw, random), raw[:-1], raw + b"\0" * 100, raw * 2, b""))
    packed = zlib.compress(changed, 1)
    parts[place] = (b"IDAT", random.choice((packed, packed, packed[:-4] + b"abcd", packed[: len(packed) // 2])))


def _less(parts, random):
    if parts:
        del parts[random.randrange(len(parts))]


def _twice(parts, random):
    if parts:
        parts.insert(random.randrange(len(parts) + 1), random.choice(parts))


def _strange(parts, random):
    inner = random.choice((b"", b"\0", b"\xff" * 4, b"\0" * 13, b"a\0b", _BOMB, _NOISE, b"icc\0\0" + _BOMB[3:]))
    parts.insert(random.randrange(len(parts) + 1), (random.choice(_NAMES), inner))


_CHANGES = (_head, _head, _pixels, _pixels, _less, _twice, _strange, _strange)
