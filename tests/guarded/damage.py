"""Copies of a file as a broken disk, a broken transfer or a careless program leaves them: bytes changed anywhere."""

import struct
import zipfile
from io import BytesIO

BYTES = (0, 1, 0x7F, 0x80, 0xFF)


def every_byte(content, heads, most, bits=1):
    """Flip bits one at a time: at every position of `heads`, elsewhere so evenly that there are about `most` copies."""
    step = max(1, len(content) // max(1, most))
    for place in sorted(heads.union(range(0, len(content), step))):
        for bit in range(bits):
            chosen = 1 << ((place + bit) % 8)
            yield f"bit {chosen} of byte {place} flipped", _with(content, place, content[place] ^ chosen)


def truncations(content, heads, most):
    """Cut the file off: everywhere in and about `heads`, elsewhere evenly."""
    step = max(1, len(content) // max(1, most))
    for place in sorted(set(list(heads)[:: max(1, len(heads) // max(1, most))]).union(range(0, len(content), step))):
        yield f"cut off after {place} bytes", content[:place]


def anything(content, random):
    """One copy with one to three changes of a random kind at random places."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = random.choice(_CHANGES)(content, random)
    return content


def _with(content, place, value):
    return content[:place] + bytes([value]) + content[place + 1 :]


def _span(content, random):
    start = random.randrange(len(content) + 1)
    return start, min(len(content), start + random.choice((1, 2, 4, 8, 16, 64, 512)))


def _flip(content, random):
    place = random.randrange(len(content)) if content else 0
    return _with(content, place, content[place] ^ (1 << random.randrange(8))) if content else b"\0"


def _value(content, random):
    place = random.randrange(len(content)) if content else 0
    return _with(content, place, random.choice(BYTES)) if content else b"\xff"


def _number(content, random):
    """A number of 2, 4 or 8 bytes where there may be one already."""
    size = random.choice((2, 4, 8))
    value = random.choice((0, 1, 2, (1 << (8 * size)) - 1, 1 << (8 * size - 1), (1 << (8 * size - 1)) - 1))
    place = random.randrange(max(1, len(content) - size))
    return content[:place] + value.to_bytes(size, random.choice(("little", "big"))) + content[place + size :]


def _fill(content, random):
    """A sector that reads as zeros, or as something else."""
    start, end = _span(content, random)
    return content[:start] + random.choice((b"\0", b"\xff", b"A")) * (end - start) + content[end:]


def _insert(content, random):
    start, _ = _span(content, random)
    return content[:start] + random.randbytes(random.choice((1, 2, 8, 64, 4096))) + content[start:]


def _remove(content, random):
    start, end = _span(content, random)
    return content[:start] + content[end:]


def _double(content, random):
    start, end = _span(content, random)
    return content[:end] + content[start:end] + content[end:]


def _swap(content, random):
    """Two blocks of the same size in each other's place."""
    size = random.choice((1, 4, 64, 512))
    first, second = sorted(random.randrange(max(1, len(content) - size)) for _ in range(2))
    if second < first + size:
        return content[first:] + content[:first]
    one, other = content[first : first + size], content[second : second + size]
    return content[:first] + other + content[first + size : second] + one + content[second + size :]


def _cut(content, random):
    return content[: random.randrange(max(1, len(content)))]


def _append(content, random):
    return content + random.choice((b"\0", content, b"\n", random.randbytes(100), b"\0" * 5000))


_CHANGES = (_flip, _flip, _value, _value, _number, _number, _fill, _insert, _remove, _double, _swap, _cut, _append)


def zip_heads(content):
    """Positions of everything but the members' contents in a zip file."""
    found = set()
    with zipfile.ZipFile(BytesIO(content)) as archive:
        found.update(range(archive.start_dir, len(content)))
        for member in archive.infolist():
            names = sum(struct.unpack_from("<HH", content, member.header_offset + 26))
            found.update(range(member.header_offset, member.header_offset + 30 + names))
    return found


def ends(content, first=128, last=32):
    """Positions at the beginning and the end."""
    return set(range(min(first, len(content)))) | set(range(max(0, len(content) - last), len(content)))


def all_of(content):
    """Every position."""
    return set(range(len(content)))
