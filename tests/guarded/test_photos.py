"""Pictures of every usual format and colour form, brought to one size; what is damaged or too large is refused."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from idc_core.errors import DataError
from idc_core.guarded import picture_header, read_photo
from tests.guarded.hostile import png

COLOURS = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
GREY = COLOURS[..., 0]


def saved(image, form="PNG", **options):
    """The bytes of a picture."""
    stream = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(stream, form, **options)
    return stream.getvalue()


def photo(content, channels=3, size=(5, 7), fit=None, **options):
    return read_photo(content, "x.png", channels=channels, size=size, fit=fit, **options)


def header(content):
    return picture_header(io.BytesIO(content), "x.png")[:3]


@pytest.mark.parametrize(
    ("form", "options"), [("PNG", {}), ("BMP", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}), ("WEBP", {})]
)
def test_lossless_formats_give_the_pixels(form, options):
    content = saved(COLOURS, form, **options | ({"lossless": True} if form == "WEBP" else {}))
    assert header(content) == (5, 7, False)
    np.testing.assert_array_equal(photo(content), COLOURS.transpose(2, 0, 1))


def test_jpeg_gives_what_pillow_gives():
    content = saved(COLOURS, "JPEG")
    expected = np.asarray(Image.open(io.BytesIO(content))).transpose(2, 0, 1)
    np.testing.assert_array_equal(photo(content), expected)


def test_of_a_gif_the_first_frame_is_taken():
    content = saved(Image.fromarray(GREY), "GIF", save_all=True, append_images=[Image.fromarray(255 - GREY)])
    np.testing.assert_array_equal(photo(content, 1)[0], GREY)


def test_a_palette_gives_its_colours():
    image = Image.new("P", (7, 5), 1)
    image.putpalette([0, 0, 0, 10, 20, 30])
    assert photo(saved(image))[:, 0, 0].tolist() == [10, 20, 30]
    assert header(saved(image))[2] is False


def test_one_bit_is_black_and_white():
    content = saved(Image.fromarray(GREY > 127))
    np.testing.assert_array_equal(photo(content, 1)[0], np.where(GREY > 127, 255, 0))


def part(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


DEEP = np.random.default_rng(1).integers(0, 1 << 16, (5, 7, 4)).astype(np.uint16)


def deep_png(kind, channels):
    """A PNG of 16 bits a channel, which Pillow writes of grey alone."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in DEEP[..., :channels])
    header = struct.pack(">2I5B", 7, 5, 16, kind, 0, 0, 0)
    parts = part(b"IHDR", header) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def deep_tiff(order, bits, photometric, values):
    """A TIFF of one strip; `values` (5, 7) or (5, 7, 3) of 16 bits, or bytes."""
    channels = 3 if photometric == 2 else 1
    data = values if isinstance(values, bytes) else values.astype(f"{order}u2").tobytes()
    tags = {256: 7, 257: 5, 258: bits, 259: 1, 262: photometric, 273: 300, 277: channels, 278: 5, 279: len(data)}
    kinds = {tag: (4, 1, struct.pack(f"{order}I", value)) for tag, value in tags.items()}
    kinds[258] = (3, channels, struct.pack(f"{order}I", 250) if channels == 3 else struct.pack(f"{order}2H", bits, 0))
    kinds[262] = (3, 1, struct.pack(f"{order}2H", photometric, 0))
    entries = b"".join(struct.pack(f"{order}2HI", tag, *kind[:2]) + kind[2] for tag, kind in kinds.items())
    start = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(tags)) + entries + bytes(4)
    return start.ljust(250, b"\0") + struct.pack(f"{order}3H", *[bits] * 3).ljust(50, b"\0") + data


PACKED = np.packbits(np.unpackbits(np.pad(DEEP[..., 0] >> 4, ((0, 0), (0, 1))).astype(">u2").view(np.uint8)
                                   .reshape(5, 8, 2), axis=2)[:, :7, 4:].reshape(5, 84), axis=1).tobytes()  # fmt: skip
G16 = DEEP[..., :1]


@pytest.mark.parametrize(
    ("content", "channels", "values", "grey", "clear"),
    [
        (saved(Image.fromarray(DEEP[..., 0])), 1, G16, True, False),
        (saved(Image.fromarray(DEEP[..., 0]), "TIFF", compression="tiff_lzw"), 1, G16, True, False),
        (deep_png(0, 1), 3, G16.repeat(3, 2), True, False),
        (deep_png(2, 3), 3, DEEP[..., :3], False, False),
        (deep_png(4, 2), 1, G16, True, True),
        (deep_png(6, 4), 3, DEEP[..., :3], False, True),
        (deep_tiff("<", 16, 1, DEEP[..., 0]), 1, G16, True, False),
        (deep_tiff(">", 16, 1, DEEP[..., 0]), 1, G16, True, False),
        (deep_tiff("<", 16, 0, DEEP[..., 0]), 1, 65535 - G16, True, False),
        (deep_tiff("<", 16, 2, DEEP[..., :3]), 3, DEEP[..., :3], False, False),
        (deep_tiff(">", 16, 2, DEEP[..., :3]), 3, DEEP[..., :3], False, False),
        (deep_tiff("<", 12, 1, PACKED), 1, G16, True, False),
    ],
)
def test_of_more_than_eight_bits_the_upper_eight_are_kept_and_it_is_told(content, channels, values, grey, clear):
    seen = picture_header(io.BytesIO(content), "x.png")
    assert seen == (5, 7, grey, clear, True)
    np.testing.assert_array_equal(photo(content, channels), values.transpose(2, 0, 1) >> 8)


def test_grey_becomes_rgb_and_rgb_grey_by_luma():
    np.testing.assert_array_equal(photo(saved(GREY)), np.stack([GREY] * 3))
    luma = COLOURS @ np.array([0.299, 0.587, 0.114])
    np.testing.assert_allclose(photo(saved(COLOURS), 1)[0], luma, atol=1)


def _palette(*transparency):
    image = Image.fromarray(COLOURS).quantize(8)
    return saved(image, transparency=transparency[0]) if transparency else saved(image)


SEEN = Image.fromarray(np.concatenate([COLOURS, 255 - COLOURS[..., :1]], -1))
MODES = {
    "1": saved(Image.fromarray(GREY > 127)),
    "1 with a transparent colour": saved(Image.fromarray(GREY > 127), transparency=0),
    "L": saved(GREY),
    "L with a transparent colour": saved(GREY, transparency=int(GREY[0, 0])),
    "LA": saved(SEEN.convert("LA")),
    "LA in TIFF": saved(SEEN.convert("LA"), "TIFF"),
    "P": _palette(),
    "P with a transparent colour": _palette(2),
    "P with an alpha for each colour": _palette(bytes([0, 9, 255, 128])),
    "P in GIF with a transparent colour": saved(Image.fromarray(COLOURS).quantize(8), "GIF", transparency=1),
    "PA in TIFF": saved(Image.fromarray(COLOURS).quantize(8).convert("PA"), "TIFF"),
    "RGB": saved(COLOURS),
    "RGB with a transparent colour": saved(COLOURS, transparency=tuple(COLOURS[1, 1].tolist())),
    "RGBA": saved(SEEN),
    "RGBA in TIFF": saved(SEEN, "TIFF"),
    "RGBA in WebP": saved(SEEN, "WEBP", lossless=True, exact=True),
    "CMYK": saved(Image.fromarray(COLOURS).convert("CMYK"), "TIFF"),
    "CMYK in JPEG": saved(Image.fromarray(COLOURS).convert("CMYK"), "JPEG"),
    "YCbCr": saved(Image.fromarray(COLOURS).convert("YCbCr"), "TIFF"),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:Palette images with Transparency")  # Pillow's own, not ours
def test_every_mode_gives_what_convert_of_pillow_gives_and_white_what_it_composes(mode, channels):
    image = Image.open(io.BytesIO(MODES[mode]))
    form = "L" if channels == 1 else "RGB"
    expected = np.asarray(image.convert(form)).reshape(5, 7, -1).transpose(2, 0, 1)
    np.testing.assert_array_equal(photo(MODES[mode], channels), expected)
    clear = any(word in mode for word in ("transparent", "alpha", "LA", "PA", "RGBA"))
    assert picture_header(io.BytesIO(MODES[mode]), "x.png").is_clear == clear
    white = photo(MODES[mode], channels, alpha="white")
    if not clear:
        np.testing.assert_array_equal(white, expected)
        return
    layer = image.convert("RGBA")
    over = Image.alpha_composite(Image.new("RGBA", (7, 5), "white"), layer).convert(form)
    np.testing.assert_allclose(white, np.asarray(over).reshape(5, 7, -1).transpose(2, 0, 1), atol=1)


@pytest.mark.parametrize("channels", [1, 3])
def test_transparent_parts_become_white(channels):
    clear = np.concatenate([COLOURS, np.where(GREY > 127, 255, 0)[..., None].astype(np.uint8)], -1)
    found = photo(saved(Image.fromarray(clear)), channels, alpha="white").min(0)
    assert (found[GREY <= 127] == 255).all()
    np.testing.assert_array_equal(
        photo(saved(Image.fromarray(clear)), alpha="white")[:, GREY > 127], COLOURS[GREY > 127].T
    )


def test_grey_with_transparency_stays_grey():
    content = saved(Image.fromarray(np.stack([GREY, np.where(GREY > 9, 255, 0).astype(np.uint8)], -1)))
    assert header(content) == (5, 7, True)
    np.testing.assert_array_equal(photo(content, 1, alpha="white")[0], np.where(GREY > 9, GREY, 255))


def test_cmyk_is_understood():
    content = saved(Image.new("CMYK", (7, 5), (255, 0, 0, 0)), "TIFF")
    assert photo(content)[:, 0, 0].tolist() == [0, 255, 255]


def test_a_photo_is_turned_as_its_orientation_says():
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    content = saved(COLOURS, exif=exif)
    assert header(content) == (7, 5, False)
    np.testing.assert_array_equal(photo(content, size=(7, 5)), np.rot90(COLOURS, -1).transpose(2, 0, 1))


def test_stretch_crop_and_pad():
    white = saved(np.full((4, 8), 255, np.uint8))
    assert (photo(white, 1, (6, 6), "stretch") == 255).all()
    assert (photo(white, 1, (4, 4), "crop") == 255).all()
    padded = photo(white, 1, (8, 8), "pad")[0]
    assert (padded[:2] == 0).all()
    assert (padded[2:6] == 255).all()
    steps = np.arange(8, dtype=np.uint8)[None].repeat(4, 0)
    np.testing.assert_array_equal(photo(saved(steps), 1, (4, 4), "crop")[0], steps[:, 2:6])


def test_another_size_or_colours_among_grey_are_refused_where_they_were_not_asked_for():
    with pytest.raises(DataError, match=r"^x.png has 5 x 7 pixels \(rows x columns\) and others 5 x 5"):
        photo(saved(COLOURS), size=(5, 5))
    with pytest.raises(DataError, match="has colours and others are grey"):
        photo(saved(COLOURS), 1, only_grey=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a whole picture"),
        (b"<svg/>", "of an unknown kind"),
        (saved(COLOURS, "JPEG")[:-40], "truncated"),
        (saved(COLOURS)[:60], "not a whole PNG"),
        (saved(COLOURS, "GIF")[:-30], "not a whole picture"),
        (saved(COLOURS, "BMP")[:-30], "truncated"),
        (saved(COLOURS).replace(b"IDAT", b"IDAX"), "not a whole picture"),
        (png(31_623, 31_623), r"not a whole picture \(Image size"),
        (png(1, 100_000), "at most 32,768 a side"),
        (png(9_500, 9_500), "its pixels would take"),
        (saved(Image.fromarray(np.zeros((5, 7), np.float32)), "TIFF"), "fractions as pixels"),
        (saved(Image.fromarray(np.full((5, 7), 1 << 20, np.int32)), "TIFF"), "more than 16 bits, or signs, as pixels"),
        (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">2I5B", 7, 5, 8, 9, 0, 0, 0)), "x.png"),
    ],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_what_is_damaged_or_too_large_is_refused_by_name(content, message):
    with pytest.raises(DataError, match=f"(?s)^x.png.*{message}" if message != "x.png" else "^x.png"):
        photo(content)


def test_a_tile_that_is_larger_than_its_picture_counts():
    tags = {256: 7, 257: 5, 258: 8, 259: 8, 262: 1, 277: 1, 322: 20_000, 323: 20_000, 324: 200, 325: 20}
    entries = b"".join(struct.pack("<2H2I", tag, 4, 1, value) for tag, value in tags.items())
    content = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)
    content = content.ljust(200, b"\0") + zlib.compress(bytes(50_000))
    assert header(content) == (5, 7, True)
    with pytest.raises(DataError, match=r"^x.png: its pixels would take"):
        photo(content)
