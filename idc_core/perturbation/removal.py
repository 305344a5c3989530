"""Inputs with parts removed in order of relevance: patches of pictures, words of texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array, Floats
from idc_core.base.parameters import whole_number
from idc_core.datasets import Dataset
from idc_core.errors import DataError, SettingError


@dataclass(frozen=True, eq=False)
class Parts:
    """Inputs (n, ...) cut into parts that can be removed.

    Of pictures (n, C, H, W) a part is a square of `side` pixels, and a removed one has the colour `fill` (C,). Of texts
    (n, length) it is a word, and a removed one is the token of unknown words; padding and marks stay.
    """

    inputs: Array
    removable: NDArray[np.bool_]
    """(n, parts)."""
    side: int
    fill: Array

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of parts of each input that can be removed, (n,)."""
        return np.asarray(self.removable.sum(1), np.int64)

    def relevance(self, values: NDArray[np.floating]) -> Floats:
        """Return the sum of each part, (n, parts), from values in the inputs' shape."""
        if values.shape != self.inputs.shape:
            raise DataError(f"Expected values of the inputs' shape {self.inputs.shape}, not {values.shape}.")
        if values.ndim == 2:
            return values.astype(np.float64)
        n, channels, height, width = values.shape
        cut = (n, channels, height // self.side, self.side, width // self.side, self.side)
        return np.asarray(values.reshape(cut).sum((1, 3, 5), dtype=np.float64).reshape(n, -1), np.float64)

    def places(self, relevance: Floats) -> NDArray[np.int64]:
        """Return each part's place in the order of relevance, most relevant 0, (n, parts); what stays comes last."""
        ranked = np.argsort(np.where(self.removable, -relevance, np.inf), axis=1, kind="stable")
        places = np.empty_like(ranked)
        np.put_along_axis(places, ranked, np.arange(ranked.shape[1])[None], axis=1)
        return places.astype(np.int64)

    def without(self, removed: NDArray[np.bool_]) -> Array:
        """Return the inputs with these parts, (n, parts), removed."""
        if self.inputs.ndim == 2:
            return np.where(removed, self.fill, self.inputs)
        n, _, height, width = self.inputs.shape
        pixels = removed.reshape(n, 1, height // self.side, width // self.side)
        pixels = pixels.repeat(self.side, axis=2).repeat(self.side, axis=3)
        return np.where(pixels, self.fill[:, None, None], self.inputs)


def with_parts(data: Dataset) -> Dataset:
    """Return a data set without texts that have no words: nothing can be removed from them."""
    if data.inputs.ndim != 2 or not data.vocabulary:
        return data
    worded = ~np.isin(data.inputs, data.special).all(1)
    return data if worded.all() else data.only(np.flatnonzero(worded).astype(np.int64))


def parts_of(data: Dataset, side: int, colour: NDArray[np.generic] | None = None) -> Parts:
    """Cut the inputs of a data set into parts: squares of pictures, removed to a colour (C,), or words of texts."""
    inputs = np.asarray(data.inputs)
    if data.vocabulary and inputs.ndim == 2 and inputs.dtype.kind in "iu":
        removable = ~np.isin(inputs, data.special)
        if not removable.any(1).all():
            raise DataError(f"Text {int(data.ids[~removable.any(1)][0])} of {data.name} has no words to remove.")
        return Parts(inputs, removable, 1, np.asarray(data.special[1], inputs.dtype))
    if inputs.ndim != 4:
        raise DataError(
            f"Parts are removed from pictures (n, C, H, W) or texts (n, length), not from inputs of shape "
            f"{inputs.shape}."
        )
    height, width = inputs.shape[2:]
    whole_number("side", side, 1)
    if height % side or width % side:
        raise SettingError(f"side must divide pictures of {height} x {width} pixels into squares, not be {side}.")
    if colour is None:
        colour = inputs.mean((0, 2, 3), dtype=np.float64)
    removable = np.ones((len(inputs), (height // side) * (width // side)), np.bool_)
    return Parts(inputs, removable, side, np.asarray(colour, inputs.dtype))
