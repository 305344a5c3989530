"""What tiles of a grid show: pictures of their typical tests, or the strongest words of texts, laid on one picture."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from idc_core.coverage.closest_inputs import spread
from idc_core.figures import input_images
from idc_core.figures.grid_axes import side_of
from idc_core.figures.input_texts import is_series, words_of
from idc_core.figures.palette import Palette

if TYPE_CHECKING:
    from idc_core.datasets import Dataset

_MOST_PIXELS: Final = 96  # sides of larger pictures are thinned out: no tile has more pixels
_MOST_WORDS: Final = 6
_LARGEST: Final = 1440  # pixels of a side of the picture of all tiles
_SIDE: Final = 120  # pixels of a tile on it, at most
_MOST_BYTES: Final = 250_000  # of it, up to which it is written exactly
_SCALE: Final = 2  # its pixels for one of a page, of words
_LETTERS: Final = 11  # pixels of words on a page
_LINE: Final = 13  # distance of their lines
_LONGEST: Final = 40  # letters of a word that can be seen in a tile


@dataclass(frozen=True, eq=False)
class TileContents:
    """What some tiles show: pictures, or of texts a few words each."""

    tile: NDArray[np.int64]  # (t,), counted row by row
    pictures: NDArray[np.uint8]  # (t, H, W, 3); (0, ...) of texts
    words: Sequence[Sequence[str]]  # of each tile; empty where there are pictures


def small_pictures(
    test: Dataset, train: Dataset, positions: NDArray[np.int64], *, dark: bool = False
) -> NDArray[np.uint8]:
    """Draw inputs that are no texts for tiles: pictures, lines of time series, bars of features, (k, H, W, 3)."""
    inputs = input_images.still(test.inputs[positions])
    if inputs.ndim == 4:
        every = -(-max(inputs.shape[2:]) // _MOST_PIXELS)
        return input_images.pictures(inputs[:, :, ::every, ::every], 1)
    if is_series(test):
        return input_images.lines(inputs, size=(_MOST_PIXELS, _MOST_PIXELS), dark=dark)
    return input_images.bars(inputs, train.inputs.mean(axis=0), spread(train.inputs), dark=dark)


def strongest_words(
    test: Dataset, positions: NDArray[np.int64], relevance: NDArray[np.floating] | None
) -> list[list[str]]:
    """Return the words of texts with the largest `relevance` (k, length); without any, the first ones."""
    words = [words_of(test, test.inputs[place]) for place in positions]
    if relevance is None:
        return ["".join(letters).split()[:_MOST_WORDS] for letters in words]
    found = []
    for place, text, values in zip(positions, words, relevance, strict=True):
        known = values[test.inputs[place] != test.padding][: len(text)]
        ranked = [text[i] for i in np.argsort(-known, kind="stable") if text[i] != "\u2026"]
        found.append(list(dict.fromkeys(ranked))[:_MOST_WORDS])
    return found


def picture_of_all(contents: TileContents, shape: tuple[int, int], colours: Palette) -> str:
    """Lay what tiles show on one picture of a grid of `shape` (rows, columns); return it as a data address (WebP).

    Each tile is a square; around its content it is transparent, so that the tile's own colour frames it. No side has
    more than 1,440 pixels, and pictures that need more than 250 kB exactly are written like a photograph.
    """
    drawn = list(contents.pictures) or [_written(words, shape, colours) for words in contents.words]
    room = min(_SIDE, _LARGEST // max(shape)) * 9 // 10
    longest = max((max(one.shape[:2]) for one in drawn), default=1)
    inner = longest * (room // longest) if longest <= room else room
    frame = max(2, inner // 18)
    side = inner + 2 * frame
    whole = Image.new("RGBA", (side * shape[1], side * shape[0]))
    for tile, pixels in zip(contents.tile.tolist(), drawn, strict=True):
        row, column = divmod(tile, shape[1])
        picture = _fitted(Image.fromarray(pixels), inner)
        left, top = (frame + (inner - extent) // 2 for extent in picture.size)
        whole.paste(picture, (column * side + left, row * side + top))
    content = input_images.webp(np.asarray(whole), _MOST_BYTES)
    return f"data:image/webp;base64,{base64.b64encode(content).decode()}"


def _fitted(picture: Image.Image, side: int) -> Image.Image:
    """Enlarge a picture by a whole number, or make it smaller, so that it fits a square."""
    longest = max(picture.size)
    wide, high = (extent * (side // longest) or extent * side // longest for extent in picture.size)
    smaller = Image.Resampling.BOX if longest > side else Image.Resampling.NEAREST
    return picture.resize((max(1, wide), max(1, high)), smaller)


def _written(words: Sequence[str], shape: tuple[int, int], colours: Palette) -> NDArray[np.uint8]:
    """Write words below each other, as many as there is room for; those too long say that they go on."""
    side = min(_SCALE * side_of(*shape), _LARGEST // max(shape) * 9 // 10)
    picture = Image.new("RGB", (side, side), colours.ground)
    pen, font = ImageDraw.Draw(picture), input_images.font(_SCALE * _LETTERS)
    for row, word in enumerate(words[: (side // _SCALE - 2) // _LINE]):
        whole = "".join(letter if letter.isprintable() else " " for letter in word[:_LONGEST])
        shown, letters = whole, len(whole)
        while letters > 1 and font.getlength(shown) > side - 3 * _SCALE:
            letters -= 1
            shown = f"{whole[:letters]}\u2026"
        pen.text((2 * _SCALE, _SCALE * (2 + _LINE * row)), shown, fill=colours.ink, font=font)
    return np.asarray(picture)
