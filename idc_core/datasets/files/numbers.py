"""Arrays of numbers as files hold them, made pictures, feature vectors, series or token ids; what was done is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.picture_processor import PictureProcessor
from idc_core.datasets.preparation import CHANNELS, FITS, Preparation
from idc_core.errors import DataError
from idc_core.guarded.photos import fitted

_BLOCK = 1 << 22
_SLACK = 1e-6
_SMALLEST = 8
"""Floats (n, rows, columns) of fewer rows or columns are series."""
_GREY = np.array([0.299, 0.587, 0.114], np.float32)
_DEEP = (1 << 16) - 1
"""The highest value of 16 bits."""
_COUNTED = ("first", "last")


class Numbers:
    """How the arrays of a data set become inputs, decided from all of them, so that both splits are treated alike.

    Parameters
    ----------
    given : sequence of ndarray (n, ...)
        Numbers, one array per split.
    preparation : Preparation
    where : str
        What is read, for messages: the beginning of a sentence.
    names : tuple of str
        Words by token id, or names of features.

    Attributes
    ----------
    notes : tuple of str
        What `convert` does, each in a few words.
    bytes_each : int
        Memory that one input takes.
    """

    def __init__(
        self, given: Sequence[NDArray[np.generic]], preparation: Preparation, where: str, names: tuple[str, ...] = ()
    ) -> None:
        self._given, self._preparation, self._where, self._names = given, preparation, where, names
        shape, kind = given[0].shape[1:], given[0].dtype.kind
        for array in given:
            if array.shape[1:] != shape or (array.dtype.kind == "f") != (kind == "f"):
                raise DataError(
                    f"{where} has training inputs of shape {shape}, {given[0].dtype}, and tests of shape "
                    f"{array.shape[1:]}, {array.dtype}; expected the same."
                )
            if array.dtype.kind not in "biuf" or not array.ndim or not all(shape):
                raise DataError(f"{where} has inputs of type {array.dtype} and shape {array.shape}; expected numbers.")
        ways: dict[int, Callable[[], Callable[[NDArray[np.generic]], NDArray[np.generic]]]] = {
            1: self._vectors,
            2: self._planes,
            3: self._pictures,
        }
        if len(shape) not in ways:
            line = "" if shape else "; where each item is one feature, save inputs[:, None]"
            raise DataError(
                f"{where} has inputs of shape {shape}; expected pictures (n, rows, columns), (n, rows, columns, "
                "channels) or (n, channels, rows, columns), vectors (n, features), series (n, channels, length) or "
                f"token ids (n, length){line}."
            )
        self.notes: tuple[str, ...] = ()
        self.convert = ways[len(shape)]()
        size = preparation.size or ()
        self.bytes_each = 8 * max(int(np.prod(shape)), int(np.prod(size)) * 3 if size else 0)

    def _vectors(self) -> Callable[[NDArray[np.generic]], NDArray[np.generic]]:
        """Plan for (n, length): grey pictures of a size that was given, token ids, or features."""
        width, kind = self._given[0].shape[1], self._given[0].dtype
        size = self._preparation.size
        if size is not None:
            if width != size[0] * size[1]:
                raise DataError(
                    f"{self._where} has {width:,} values per item; expected {size[0] * size[1]:,} for grey pictures of "
                    f"{size[0]} x {size[1]}."
                )
            scaled = self._scaled(f"grey pictures of {size[0]} x {size[1]}, row by row")
            return lambda array: self._coloured(scaled(array).reshape(len(array), 1, *size))
        if kind == np.uint8:
            side = int(width**0.5)
            line = f", such as --size {side}x{side}" if side * side == width else " by --size"
            raise DataError(
                f"{self._where} has {width:,} bytes per item: give the size of the pictures that they are{line}, or "
                "save features as float32 and token ids as int64."
            )
        if kind.kind not in "iu":
            self.notes = (f"{width:,} features as they are",)
            return lambda array: np.ascontiguousarray(array, np.float32)
        low, high = self._range()
        if low < 0 or (self._names and high >= len(self._names)):
            expected = f"0 to {len(self._names) - 1}" if self._names else "whole numbers from 0 (padding)"
            raise DataError(
                f"{self._where} has token ids from {low:.0f} to {high:.0f}; expected {expected}. Save features as "
                "float32."
            )
        self.notes = (f"{width:,} token ids as they are",)
        return lambda array: np.ascontiguousarray(array, np.int64)

    def _planes(self) -> Callable[[NDArray[np.generic]], NDArray[np.generic]]:
        """Plan for (n, rows, columns): grey pictures, or series."""
        rows, columns = self._given[0].shape[1:]
        kind, (low, high) = self._given[0].dtype, self._range()
        pixels = kind == np.uint8 or (
            kind.kind == "f"
            and min(rows, columns) >= _SMALLEST
            and low >= 0
            and (high <= 1 or (high <= 255 and self._all(_is_whole)))
        )
        given = self._preparation.read_as
        if (pixels and given != "series") or given == "pictures" or self._preparation.size is not None:
            scaled = self._scaled(f"grey pictures of {rows} x {columns}")
            return lambda array: self._finished(scaled(array)[:, None])
        self.notes = (f"series of {rows:,} x {columns:,} numbers, as they are",)
        return lambda array: np.ascontiguousarray(array, np.float32)

    def _pictures(self) -> Callable[[NDArray[np.generic]], NDArray[np.generic]]:
        """Plan for pictures with channels, first or last."""
        shape = self._given[0].shape[1:]
        allowed = (1, 3, 4) if self._preparation.channels == 3 else (1, 3)
        place = next((axis for axis in (0, 2) if shape[axis] in allowed), None)
        if place is None:
            remedy = "; --channels 3 leaves the fourth channel out" if 4 in (shape[0], shape[2]) else ""
            raise DataError(f"{self._where} has pictures of shape {shape}; expected 1 or 3 channels{remedy}.")
        rows, columns = shape[1:] if place == 0 else shape[:2]
        kind = "grey" if shape[place] == 1 else "RGB"
        scaled = self._scaled(f"{kind} pictures of {rows} x {columns}, channels {_COUNTED[place // 2]}")
        if shape[place] == 4:
            self.notes = (*self.notes, "the fourth channel left out")

        def convert(array: NDArray[np.generic]) -> NDArray[np.generic]:
            first = array if place == 0 else array.transpose(0, 3, 1, 2)
            return self._finished(scaled(first[:, :3]))

        return convert

    def _scaled(self, what: str) -> Callable[[NDArray[np.generic]], NDArray[np.float32]]:
        """Plan the scale of pixels, from their range."""
        low, high = self._range()
        if low >= -_SLACK and high <= 1 + _SLACK:
            self.notes = (what, "values 0..1 as they are")
            return lambda array: np.clip(array, 0, 1, dtype=np.float32, casting="unsafe")
        if low >= 0 and high <= 255 and self._all(_is_whole):
            self.notes = (what, "values divided by 255")
            return lambda array: np.divide(array, np.float32(255), dtype=np.float32)
        raise DataError(
            f"{self._where} has pictures with values in {low:.4g}..{high:.4g}; expected 0..1, or whole numbers in "
            f"0..255: {_remedy(low, high)}. Mean and deviation belong to the network."
            + " Where rows and columns are a series, say so with --read-as series."
            * (len(self._given[0].shape) == 3)
        )

    def _finished(self, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        """Bring pictures (n, C, H, W) to the size and the channels that were asked for."""
        given = self._preparation
        if given.processor is not None and pictures.shape[2:] != given.size:
            self._note(f"made by the image processor {given.processor.name}")
            return _processed(self._coloured(pictures), given.processor, self._where)
        if given.size is not None and pictures.shape[2:] != given.size:
            self._note(f"resized to {given.size[0]} x {given.size[1]}, {FITS[given.fit]}")
            pictures = _resized(pictures, given.size, given)
        return self._coloured(pictures)

    def _coloured(self, pictures: NDArray[np.float32]) -> NDArray[np.float32]:
        channels = self._preparation.channels
        if channels is None or pictures.shape[1] == channels:
            return np.ascontiguousarray(pictures)
        self._note(f"made {CHANNELS[channels]}")
        if channels == 3:
            return np.repeat(pictures, 3, axis=1)
        return np.ascontiguousarray(np.einsum("nchw,c->nhw", pictures, _GREY)[:, None], np.float32)

    def _note(self, said: str) -> None:
        self.notes = (*(note for note in self.notes if note != said), said)

    def _blocks(self) -> Iterator[tuple[int, NDArray[np.generic]]]:
        """Yield some items at a time with the number of the first, so that no test of values needs a copy of all."""
        for array in self._given:
            step = max(1, _BLOCK // max(array.nbytes // max(len(array), 1), 1))
            for first in range(0, len(array), step):
                yield first, array[first : first + step]

    def _all(self, test: Callable[[NDArray[np.generic]], bool]) -> bool:
        return all(test(block) for _, block in self._blocks())

    def _range(self) -> tuple[float, float]:
        return min(float(array.min()) for array in self._given), max(float(array.max()) for array in self._given)


def _remedy(low: float, high: float) -> str:
    """Say what to save instead of pixels in this range."""
    if -1 <= low < 0 and high <= 1:
        return "where they were brought to -1..1, save (inputs + 1) / 2"
    if low < 0 or high > _DEEP:
        return "save the pixels as they were before"
    top = 255 if high <= 255 else _DEEP
    return f"divide them by {top}, and save inputs / {top}"


def _is_whole(block: NDArray[np.generic]) -> bool:
    return block.dtype.kind != "f" or bool((block == np.rint(block)).all())


def _resized(pictures: NDArray[np.float32], size: tuple[int, int], preparation: Preparation) -> NDArray[np.float32]:
    """Bring pictures (n, C, H, W) to a size, as those of files are."""
    from PIL import Image  # only here: most data need none

    ways = preparation.fit, preparation.resample, preparation.margin
    resized = np.empty((*pictures.shape[:2], *size), np.float32)
    for place in np.ndindex(pictures.shape[:2]):
        resized[place] = np.asarray(fitted(Image.fromarray(pictures[place]), size, *ways))
    return np.clip(resized, 0, 1, out=resized)  # bicubic goes beyond


def _processed(pictures: NDArray[np.float32], folder: Path, where: str) -> NDArray[np.float32]:
    """Return pictures (n, C, H, W) as an image processor makes them of pixels of 8 bits."""
    processor = PictureProcessor(folder, pictures.shape[1])
    made = [processor(np.rint(255 * picture).astype(np.uint8), where) for picture in pictures]
    return np.divide(np.stack(made), np.float32(255), dtype=np.float32)
