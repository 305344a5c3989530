"""Arrays and zip files whose checksums are right and whose headers are not: as somebody would make them on purpose."""

import io
import re
import struct
import zipfile

import numpy as np

DIGITS = "9" * 5000
NUMBERS = (
    "-1",
    "0",
    "1",
    "2",
    "7",
    "1000000000",
    "1" + "0" * 18,
    "9223372036854775807",
    "18446744073709551616",
    DIGITS,
)
KINDS = (
    "O", "|O8", "V8", "|V0", "<V999999999", "<f2", "<f4", ">f4", "<f8", ">f8", "<f16", "f", "<c8", "<c16", "<i1", "<i8",
    "<u2", "|u1", "|i1", "|b1", "?", "M8", "<M8[ns]", "m8", "<U1", "<U0", "<U999999999", "|S0", "|S999999999", "S5",
    "<U536870912", "<f3", "<f0", "<i16", "=f4", "x4", "<99999999999999999999f", "i4,f8", "(2,)f4", "a", "", "\u0661",
)  # fmt: skip
WHOLE = (
    "",
    "{",
    "}",
    "None",
    "(((",
    "[" * 2000,
    "(" * 9000,
    "{'descr': '<f4', 'fortran_order': False, 'shape': (",
    "  {\n   'descr': '<f4'\n  }\n x",
    "\tif True:\n  x",
    "'''",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\\",
    "{'descr': '<f4', 'fortran_order': False, 'shape': 2, }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': [2], }",
    "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
    "{'descr': '<f4', 'fortran_order': None, 'shape': (2,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (True,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': ('2',), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1e3,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 40 + "), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "0, 1000000000000000000," * 10 + "), }",
    "{'descr': '<f4', 'fortran_order': False, }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (3,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1, }",
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
    "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (2,), }",
    "{'descr': {'names': ['a'], 'formats': ['|O']}, 'fortran_order': False, 'shape': (2,), }",
    "{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (2,), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (9**9**9,), }",
    "\0" * 100,
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" + " " * 20_000,
)  # fmt: skip


class _Trap:
    """What runs a command where it is unpickled."""

    def __reduce__(self):
        import os

        return os.mkdir, ("unpickled",)


def npy(array, **settings):
    """The content of an npy file."""
    file = io.BytesIO()
    np.save(file, array, **settings)
    return file.getvalue()


OTHERS = (
    npy(np.array([_Trap()], object), allow_pickle=True),
    npy(np.zeros(0, np.float32)),
    npy(np.float64(1)),
    npy(np.full((3, 2), np.nan)),
    npy(np.array(["a", "b"])),
    npy(np.zeros((2, 2), "V8")),
    npy(np.zeros(2, "M8[s]")),
    npy(np.zeros(2, [("a", "<f4")])),
    npy(np.zeros((1,) * 32, np.uint8)),
    npy(np.zeros((0, 1 << 40), np.float32)),
    npy(np.array([-1, 1 << 62])),
    npy(np.array([1 << 63, (1 << 64) - 1], np.uint64)),
    b"",
    b"\x93NUMPY",
    b"\x93NUMPY\x01\x00\xff\xff",
    b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    b"\x80\x04.",
    b"PK\x03\x04",
)


def array(content, random):
    """An npy file with one or two words of its header changed, another header, or another array altogether."""
    if random.randrange(8) == 0 or not content.startswith(b"\x93NUMPY"):
        return random.choice(OTHERS)
    version = content[6]
    wide = 2 if version == 1 else 4
    start = 8 + wide
    length = int.from_bytes(content[8:start], "little")
    text, body = content[start : start + length].decode("latin-1"), content[start + length :]
    for _ in range(random.choice((1, 1, 1, 2))):
        text = random.choice(_HEADER_CHANGES)(text, random)
    if random.randrange(6) == 0:
        body = random.choice((b"", body[:-1], body + b"\0", body * 2, body[: len(body) // 2]))
    if random.randrange(8) == 0:
        version = random.choice((0, 1, 2, 3, 4, 255))
    wide = 2 if version == 1 else 4
    head = text.encode("latin-1", "replace")
    length = len(head) if random.randrange(10) else random.choice((0, 1, len(head) - 1, len(head) + 9, 1 << 15, 9_999))
    length = max(0, min(length, (1 << (8 * wide)) - 1))
    return b"\x93NUMPY" + bytes([version, random.choice((0, 0, 0, 1))]) + length.to_bytes(wide, "little") + head + body


def _other_number(text, random):
    found = list(re.finditer(r"\d+(?=[,)])", text))
    if not found:
        return text
    one = random.choice(found)
    return text[: one.start()] + random.choice(NUMBERS) + text[one.end() :]


def _other_sides(text, random):
    """The same number of values in other sides, or more sides."""
    found = re.search(r"\(([\d, ]*)\)", text)
    if not found:
        return text
    sides = [side for side in found[1].replace(" ", "").split(",") if side]
    changed = random.choice((sides[::-1], sides[1:], [*sides, "1"], ["1", *sides], ["-" + side for side in sides], []))
    return text[: found.start(1)] + "".join(f"{side}, " for side in changed) + text[found.end(1) :]


def _other_kind(text, random):
    return re.sub(r"('descr': )'[^']*'", lambda found: f"{found[1]}'{random.choice(KINDS)}'", text, count=1)


def _other_order(text, random):
    one, other = random.choice((("False", "True"), ("True", "False"), ("False", "false"), ("False", "1")))
    return text.replace(one, other)


def _whole(text, random):
    return random.choice(WHOLE)


_HEADER_CHANGES = (_other_number, _other_number, _other_sides, _other_kind, _other_kind, _other_order, _whole)

NAMES = (
    "../x.npy", "/x.npy", "C:/x.npy", "a\\b.npy", "x.npy/", "", ".npy", "inputs", "inputs.npy.npy", "a/../b.npy",
    "é.npy", "x" * 60_000, "about.json ", "ABOUT.JSON", "targets.npy", "class_names.npy", "predicted.npy",
)  # fmt: skip
BOMB = npy(np.zeros(8 << 20, np.uint8))


def unpacked(content):
    """The members of a zip file by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {one.filename: archive.read(one) for one in archive.infolist()}


def packed(members, method=zipfile.ZIP_DEFLATED, comment=b""):
    """A zip file of members, pairs of name and content, with right checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            information = zipfile.ZipInfo(name)
            information.compress_type = method
            archive.writestr(information, content)
        archive.comment = comment
    return file.getvalue()


def members(crafts):
    """A zip file whose members are changed by these functions and packed anew; by name, then by ending."""

    def craft(content, random):
        listed = list(unpacked(content).items())
        place = random.randrange(len(listed))
        name, inner = listed[place]
        change = crafts.get(name) or crafts.get(name.rpartition(".")[2])
        listed[place] = (name, change(inner, random) if change else random.randbytes(30))
        method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        return packed(listed, method)

    return craft


def archive(content, random):
    """A zip file with a field of its directory changed, or with other members, names, methods and surroundings."""
    if random.randrange(2):
        for _ in range(random.choice((1, 1, 2))):
            content = _field(content, random)
        return content
    listed = list(unpacked(content).items())
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    kind = random.choice(_ARCHIVE_CHANGES)
    return kind(listed, random, method)


_LOCAL = ((4, 2), (6, 2), (8, 2), (10, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2))
_ENTRY = (
    (4, 2),
    (6, 2),
    (8, 2),
    (10, 2),
    (16, 4),
    (20, 4),
    (24, 4),
    (28, 2),
    (30, 2),
    (32, 2),
    (34, 2),
    (38, 4),
    (42, 4),
)
_END = ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2))


def _field(content, random):
    fields = []
    for mark, known in ((b"PK\x03\x04", _LOCAL), (b"PK\x01\x02", _ENTRY), (b"PK\x05\x06", _END)):
        fields += [(found.start() + at, size) for found in re.finditer(re.escape(mark), content) for at, size in known]
    place, size = random.choice(fields or [(0, 4)])
    if place + size > len(content):
        return content
    (now,) = struct.unpack_from("<I" if size == 4 else "<H", content, place)
    top = (1 << (8 * size)) - 1
    values = (0, 1, 9, 12, 14, 99, top, top >> 1, top - 1, now + 1, now - 1, now ^ 1, now ^ 0x800, now * 2, now ^ 8)
    return content[:place] + (random.choice(values) & top).to_bytes(size, "little") + content[place + size :]


def _without(listed, random, method):
    del listed[random.randrange(len(listed))]
    return packed(listed, method)


def _twice(listed, random, method):
    name, content = random.choice(listed)
    return packed([*listed, (name, random.choice((content, content[::-1], b"")))], method)


def _renamed(listed, random, method):
    place = random.randrange(len(listed))
    listed[place] = (random.choice(NAMES), listed[place][1])
    return packed(listed, method)


def _exchanged(listed, random, method):
    one, other = random.randrange(len(listed)), random.randrange(len(listed))
    first, second = listed[one], listed[other]
    listed[one], listed[other] = (first[0], second[1]), (second[0], first[1])
    return packed(listed, method)


def _more(listed, random, method):
    return packed([*listed, (random.choice(NAMES), random.choice(OTHERS))], method)


def _many(listed, random, method):
    return packed([*listed, *((f"{number}.npy", b"") for number in range(random.choice((100, 500))))], method)


def _unusual(listed, random, method):
    """bzip2 or LZMA, whole or with a byte changed."""
    content = packed(listed, random.choice((zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)))
    place = random.randrange(len(content))
    return random.choice((content, content[:place] + b"\xff" + content[place + 1 :]))


def _between(listed, random, method):
    """Something before, behind, or as a comment: the end of another zip file too."""
    content = packed(listed, method, random.choice((b"", b"x" * 60_000, b"PK\x05\x06" + b"\0" * 18)))
    extra = random.choice((b"#!/bin/sh\n", b"\0" * 1000, content, b"PK\x06\x07" + b"\xff" * 16))
    return random.choice((extra + content, content + extra, content + content[-22:]))


def _huge(listed, random, method):
    """A member that is much larger than it looks; seldom, as it takes longest."""
    if random.randrange(10):
        return _without(listed, random, method)
    place = random.randrange(len(listed))
    listed[place] = (listed[place][0], BOMB)
    return packed(listed)


_ARCHIVE_CHANGES = (
    _without, _twice, _renamed, _renamed, _exchanged, _exchanged, _more, _many, _unusual, _between, _between, _huge,
)  # fmt: skip
