"""Pictures of inputs: sharp, whole, and readable when they lie on one sheet."""

import io

import numpy as np
import pytest
from PIL import Image

from idc_core.errors import SettingError
from idc_core.figures import input_images, palette


def opened(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)))


def test_pictures_grow_by_whole_numbers_and_stay_sharp():
    inputs = np.linspace(0, 1, 2 * 28 * 28).reshape(2, 1, 28, 28)
    shown = input_images.pictures(inputs)
    assert shown.shape == (2, 84, 84, 3)
    assert shown.dtype == np.uint8
    assert (shown[:, ::3, ::3, 0] == (inputs[:, 0] * 255).round()).all()
    assert input_images.pictures(np.zeros((1, 3, 100, 100))).shape == (1, 100, 100, 3)
    two = np.stack([np.zeros((1, 4, 4)), np.full((1, 4, 4), 0.4)], 1)
    assert (input_images.pictures(two) == 51).all()
    assert [input_images.factor(width) for width in (8, 28, 32, 84, 100)] == [11, 3, 3, 1, 1]
    with pytest.raises(SettingError, match="shape"):
        input_images.pictures(np.zeros((2, 5)))


def test_heatmaps_give_each_input_its_own_scale():
    relevance = np.zeros((2, 3, 2, 2))
    relevance[0, :, 0, 0] = 5.0, -1.0, 0.0
    relevance[1, :, 1, 1] = -0.1
    shown = input_images.heatmaps(relevance, smallest=4)
    assert shown.shape == (2, 4, 4, 3)
    ends = palette.relevance_colours(np.array([[1.0, -1.0]]), 1.0)[0]
    assert (shown[0, :2, :2] == ends[0]).all()
    assert (shown[1, 2:, 2:] == ends[1]).all()
    assert (shown[0, 2:] == 255).all()
    assert (input_images.heatmaps(np.zeros((1, 1, 2, 2)), 1) == 255).all()
    assert (input_images.heatmaps(np.zeros((1, 1, 2, 2)), 1, dark=True)[0, 0, 0] == (0x12, 0x16, 0x1A)).all()
    with pytest.raises(SettingError, match="shape"):
        input_images.heatmaps(np.zeros((2, 5)))


@pytest.mark.parametrize("n", [1, 3, 4, 7])
def test_one_sheet_holds_every_tile_at_its_place(n):
    tiles = np.random.default_rng(n).integers(0, 256, (n, 4, 5, 3), dtype=np.uint8)
    sheet = input_images.side_by_side(tiles, 3)
    assert sheet.shape == (4 * -(-n // 3), 15, 3)
    for i, tile in enumerate(tiles):
        top, left = 4 * (i // 3), 5 * (i % 3)
        assert (sheet[top : top + 4, left : left + 5] == tile).all()
    assert (input_images.apart(sheet, 3, n) == tiles).all()


@pytest.mark.parametrize("n", [1, 11, 40])
def test_contact_sheet_shows_every_picture_whole_above_its_caption(n):
    colours = [(shade, 0, 255) for shade in np.linspace(20, 200, n).round().astype(int)]  # letters are grey
    tiles = [np.full((84, 84, 3), colour, dtype=np.uint8) for colour in colours]
    sheet = input_images.contact_sheet(tiles, [f"{i}: automobile → truck \u00d7" for i in range(n)])
    assert sheet.shape[1] <= 1200
    for colour in colours:
        rows, columns = np.nonzero((sheet == colour).all(axis=2))
        inside = sheet[rows.min() : rows.min() + 84, columns.min() : columns.min() + 84]
        assert (inside == colour).all()
        below = sheet[rows.min() + 84 : rows.min() + 140, columns.min() : columns.min() + 84]
        assert (below < 128).any(), "its caption is written below"
    border = np.concatenate([sheet[:, -2:].ravel(), sheet[:, :2].ravel()])
    assert (border == 255).all(), "no caption runs out of the sheet"


def test_spaced_pictures_do_not_touch():
    tiles = np.full((2, 4, 4, 3), 200, np.uint8)
    sheet = input_images.side_by_side(input_images.spaced(tiles), 2)
    inside = sheet[..., 3] == 255
    assert inside.sum() == 2 * 16
    assert not inside[:, 4 : 4 + input_images.GAP].any()
    assert (sheet[inside][:, :3] == 200).all()


def test_contact_sheet_takes_pictures_of_any_size_and_leaves_holes_white():
    hole = np.zeros((6, 300, 4), dtype=np.uint8)
    hole[:, :100] = 7, 8, 9, 255
    sheet = input_images.contact_sheet([hole, np.full((50, 20, 3), 100, dtype=np.uint8)], ["a", "b"])
    assert (sheet == (7, 8, 9)).all(axis=2).sum() == 600
    assert (sheet == 100).all(axis=2).sum() >= 1000
    assert (sheet[0] == 255).all()


def test_captions_have_arrows_and_crosses():
    blank = [np.full((84, 84, 3), 255, dtype=np.uint8)]

    def drawn(text):
        return input_images.contact_sheet(blank, [text])

    box = drawn("\U0010fffe")  # no letter at all: drawn as an empty box
    assert len({drawn(letter).tobytes() for letter in "→\u00d7…ä"} - {box.tobytes()}) == 4


@pytest.mark.parametrize("captions", [[], ["a", "b"]])
def test_contact_sheet_wants_a_caption_for_each_picture(captions):
    with pytest.raises(SettingError, match="caption"):
        input_images.contact_sheet([np.zeros((2, 2, 3), dtype=np.uint8)], captions)
    with pytest.raises(SettingError, match="0 pictures"):
        input_images.contact_sheet([], [])


def test_files_hold_the_picture_exactly():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    assert (opened(input_images.png(image)) == image).all()
    exact = input_images.webp(image, 10_000)
    assert (opened(exact) == image).all()


def test_a_large_sheet_is_written_like_a_photograph():
    ramp = np.linspace(0, 200, 400)
    noise = np.random.default_rng(0).integers(0, 40, (400, 400, 3))
    image = (ramp[:, None, None] + noise).astype(np.uint8)
    content = input_images.webp(image, 100_000)
    assert len(content) < len(input_images.webp(image, 10**9)) / 2
    assert np.abs(opened(content).astype(int) - image).mean() < 15


def test_a_png_carries_what_is_said_of_it():
    file = input_images.png(np.zeros((2, 2, 3), np.uint8), "LeNet-5 · digits")
    assert Image.open(io.BytesIO(file)).text == {"Description": "LeNet-5 · digits"}
