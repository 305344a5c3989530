"""Pictures as the image processor of a Hugging Face folder makes them: pixels for the data, a scaling for the network.

What a processor makes of a picture is split without looking at its class: each of its channels is a straight line of
pixels of 8 bits, which is fitted to pictures of one grey, undone, and compared for every picture. A processor that does
anything else, such as to cut pictures into patches, is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets.pretrained import explained, open_pretrained
from idc_core.errors import DataError
from idc_core.guarded import Budget, read_photo

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_GREYS = range(0, 256, 15)
_TRIED = ((48, 48), (40, 60), (60, 40))
"""Columns and rows of pictures that tell whether all are brought to one size."""

_SLACK = 1e-6
_OFF = 0.02
"""How far from a whole number a pixel of 0 to 255 may be: the rounding of float32, many times over."""

_BYTES = 24
"""That a pixel takes while it is resized and scaled: three channels twice, as float32."""


class PictureProcessor:
    """The image processor of a folder, taken apart into pixels and ``slope * pixels + offset``.

    Parameters
    ----------
    folder : Path
    channels : {1, 3}
        Of the pictures that it is given: grey or RGB.

    Attributes
    ----------
    name : str
        Its class.
    size : (int, int) or None
        Rows and columns that pictures are brought to; None where they follow from each picture.
    slope, offset : ndarray, float64 (channels,)
        What is done to pixels of 0..1 behind that, in the order of the network's channels.
    numbers : frozenset of float
        All that its settings say, among which the mean and the deviation are, as a fit alone cannot tell to the bit.
    is_reversed : bool
        Whether the network takes blue first.

    Raises
    ------
    DataError
        If the folder has none, it is damaged, or does anything to pictures that cannot be split.
    """

    def __init__(self, folder: Path, channels: int = 3) -> None:
        from PIL import Image

        self._made = open_pretrained(folder, "AutoImageProcessor")
        self.name = type(self._made).__name__.removesuffix("Pil")
        self._where, self._channels = f"The {self.name} in {folder}", channels
        settings = explained(self._where, self._made.to_dict)
        if any("patch" in name for name in settings):
            raise self._refused("cuts pictures into patches")
        self.numbers = frozenset(_numbers(settings))
        # What crop_pct cuts off is added before.
        self._largest = max(map(abs, self.numbers)) / min(1, max(1e-6, float(settings.get("crop_pct") or 1)))
        mode = "L" if channels == 1 else "RGB"
        greys = [self._middle(Image.new(mode, _TRIED[0], (level,) * channels)) for level in _GREYS]
        levels, values = np.array(_GREYS) / 255, np.stack(greys)
        self.slope, self.offset = np.polyfit(levels, values, 1)
        apart = np.abs(levels[:, None] * self.slope + self.offset - values).max()
        if not np.isfinite(values).all() or apart > _SLACK * max(1, np.abs(values).max()) or not self.slope.all():
            raise self._refused("does not scale pixels by a mean and a deviation per channel")
        places = self._middle(Image.new(mode, _TRIED[0], (255, 0, 0)[:channels])) - self.offset
        (red,) = np.nonzero(np.abs(places) > abs(self.slope) / 2) if channels == 3 else ([0],)
        if len(red) != 1 or red[0] == 1:
            raise self._refused("mixes the channels of pictures")
        self.is_reversed = bool(red[0] == 2)
        sizes = {self._values(Image.new(mode, tried)).shape[1:] for tried in _TRIED}
        self.size: tuple[int, int] | None = sizes.pop() if len(sizes) == 1 else None

    def __call__(self, pixels: NDArray[np.uint8], where: str) -> NDArray[np.uint8]:
        """Return a picture as the network takes it but for the scaling.

        Parameters
        ----------
        pixels : ndarray, uint8 (channels, rows, columns)
        where : str
            What is read, for messages: the beginning of a sentence.

        Returns
        -------
        ndarray, uint8 (channels, rows, columns)
            In the order RGB.
        """
        from PIL import Image

        picture = Image.fromarray(pixels[0] if self._channels == 1 else pixels.transpose(1, 2, 0))
        sides = sorted(picture.size)
        Budget(where).take(int(_BYTES * self._largest**2 * sides[1] / sides[0]), f"the size of the {self.name}")
        slope, offset = self.slope[:, None, None], self.offset[:, None, None]
        levels = 255 * (self._values(picture) - offset) / slope
        whole = np.rint(levels)
        if not (np.abs(levels - whole).max() < _OFF and whole.min() >= 0 and whole.max() <= 255):
            raise self._refused(f"makes of {where} what are no pixels of 8 bits")
        return np.ascontiguousarray((whole[::-1] if self.is_reversed else whole).astype(np.uint8))

    def photo(self, content: bytes, where: str, alpha: str, size: tuple[int, int] | None = None) -> NDArray[np.uint8]:
        """Decode a picture as `read_photo` does, and return what is made of it; DataError where that has another size.

        `alpha` is as there; `size` is what others have, rows and columns; None for the first one.
        """
        made = self(read_photo(content, where, channels=self._channels, alpha=alpha), where)
        rows, columns = made.shape[1:]
        if size is not None and (rows, columns) != size:
            raise DataError(
                f"{where} becomes {rows} x {columns} by the {self.name}, and others {size[0]} x {size[1]}; networks "
                "take one size. Give one as the size of the preparation, which takes the processor's place."
            )
        return made

    def _middle(self, picture: Picture) -> NDArray[np.float64]:
        """Return the values in the middle of what is made of a picture, float64 (channels,)."""
        Budget(self._where).take(int(_BYTES * self._largest**2), "its size")
        values = self._values(picture)
        return values[:, values.shape[1] // 2, values.shape[2] // 2]

    def _values(self, picture: Picture) -> NDArray[np.float64]:
        """Return what the processor makes of a picture, float64 (channels, rows, columns)."""
        made: Any = explained(self._where, lambda: self._made(picture, return_tensors="np"))
        values = np.asarray(made["pixel_values"] if isinstance(made, Mapping) and "pixel_values" in made else ())
        if values.shape[:2] != (1, self._channels) or values.ndim != 4 or not values.size:
            raise self._refused(f"makes arrays of shape {values.shape} of a picture")
        return np.array(values[0], np.float64)

    def _refused(self, why: str) -> DataError:
        return DataError(
            f"{self._where} {why}, which is not followed. Build the network in a setup file, and prepare its pictures "
            "there."
        )


def _numbers(settings: object) -> Iterator[float]:
    """Yield 1 and all numbers of a processor's settings."""
    yield float(settings) if isinstance(settings, int | float) else 1.0
    inner = list(settings.values()) if isinstance(settings, dict) else settings
    for value in inner if isinstance(inner, list | tuple) else ():
        yield from _numbers(value)
