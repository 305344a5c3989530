"""Which part of an input a position of a layer, or a neuron, looks at, and boxes of one size around it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from idc_core.errors import UnsupportedOperationError
from idc_core.tracing.neurons import axis_in, neuron_axes
from idc_core.tracing.patches import patch_grid
from idc_core.tracing.trace import trace

_MOST_LINES = 32
"""Lines of an input that are tried one by one; of more, several neighbours count as one."""


SHARE = 0.8
"""Share of an input's positive relevance that a box around it holds."""

_ROUNDING = 1e-9
"""By which sums of all of an input may miss its total."""


@dataclass(frozen=True, eq=False)
class Fields:
    """The receptive fields of a layer's positions.

    Attributes
    ----------
    rows, columns : ndarray of int64, shape (positions down, 2), (positions across, 2)
        From which row, and column, of the input up to which, the last not included.
    height, width : int
        Of the input.
    before : int
        Tokens before the first patch, whose boxes are as those of the first.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    height: int
    width: int
    before: int = 0

    @property
    def whole(self) -> bool:
        """Whether every position looks at the whole input."""
        return self.size == (self.height, self.width)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the largest field: those at the edge are cut off."""
        return int(np.ptp(self.rows, axis=1).max()), int(np.ptp(self.columns, axis=1).max())

    def boxes(self, places: NDArray[np.int64], size: tuple[int, int] | None = None) -> NDArray[np.int64]:
        """Return the box around each position's field: top and left, int64 (..., 2).

        All boxes have one `size`, by default the largest field's; at the edge they are moved inside. `places` count
        positions row by row.
        """
        height, width = size or self.size
        inside = np.maximum(places - self.before, 0)
        down, across = np.divmod(inside, len(self.columns))
        starts = []
        for fields, line, most, extent in (
            (self.rows, down, self.height, height),
            (self.columns, across, self.width, width),
        ):
            start = (fields[line].sum(-1) - extent + 1) // 2
            starts.append(np.clip(start, 0, most - extent))
        boxes: NDArray[np.int64] = np.stack(starts, -1)
        return boxes

    def crop(
        self, inputs: NDArray[Any], places: NDArray[np.int64], size: tuple[int, int] | None = None
    ) -> NDArray[Any]:
        """Cut the boxes of positions (n,) out of pictures (n, C, H, W)."""
        height, width = size or self.size
        cut = [
            picture[:, top : top + height, left : left + width]
            for picture, (top, left) in zip(inputs, self.boxes(places, size), strict=True)
        ]
        return np.stack(cut)


def receptive_fields(model: nn.Module, layer: str, like: NDArray[Any]) -> Fields:
    """Find the receptive fields of a layer's positions in pictures (C, H, W) or time series (C, steps).

    A row of the input that is no number makes every value that depends on it no number: what a position looks at is
    found whatever the network is made of. Of inputs with more than `_MOST_LINES` rows or columns, fields begin and end
    at multiples of a few. The fields of a transformer's tokens are their patches, although attention looks everywhere.

    Parameters
    ----------
    model, layer
        As in `trace`.
    like : ndarray of float32
        One input.

    Returns
    -------
    Fields

    Raises
    ------
    UnsupportedOperationError
        If the input is no picture and no time series.
    IdcError
        As `trace`.
    """
    if like.ndim not in (2, 3) or like.dtype.kind != "f":
        raise UnsupportedOperationError(
            f"Receptive fields need a picture (channels, height, width) or a time series (channels, steps), not an "
            f"input of shape {like.shape} and type {like.dtype}."
        )
    height, width = like.shape[1:] if like.ndim == 3 else (1, like.shape[1])
    axis = neuron_axes(model, [layer])[layer]
    shape = next(trace(model, like[None], [layer])).activations[layer].shape
    everything = np.array([[0, height]]), np.array([[0, width]])
    neurons = axis_in(len(shape), axis) if len(shape) > 1 else 1
    if len(shape) == like.ndim + 1 and neurons == 1:
        across = _lines(model, layer, like, like.ndim - 1)
        down = _lines(model, layer, like, 1) if like.ndim == 3 else everything[0]
        return Fields(down, across, height, width)
    tokens = int(np.prod(shape[1:])) // shape[neurons] if len(shape) > 1 else 1
    grid = patch_grid(tokens, height, width) if like.ndim == 3 else None
    if grid is None:
        return Fields(*everything, height, width, tokens)
    rows, columns, before = grid
    return Fields(_parts(height, rows), _parts(width, columns), height, width, before)


def relevant_boxes(maps: NDArray[np.floating], share: float = SHARE) -> NDArray[np.int64]:
    """Return the smallest boxes of one size that hold a share of the positive relevance of inputs, on average.

    The boxes are square as far as inputs are; each lies where it holds most of its input's. Inputs without positive
    relevance do not count.

    Parameters
    ----------
    maps : ndarray, float (n, C, H, W) or (n, C, steps)
        Relevance of the inputs.
    share : float
        0 to 1.

    Returns
    -------
    ndarray of int64, shape (n, 4)
        Top, bottom, left, right, the ends not included.

    Notes
    -----
    Crops as those of relevance maximisation (`idc_core.importance.maximisation`), where no receptive field says what a
    neuron looks at: a dense neuron's is the whole input.
    """
    heat = np.maximum(maps if maps.ndim == 4 else maps[:, :, None], 0).sum(1, dtype=np.float64)
    height, width = heat.shape[1:]
    sums = np.pad(heat.cumsum(1).cumsum(2), ((0, 0), (1, 0), (1, 0)))
    told = sums[:, -1, -1] > 0

    def held(side: int) -> tuple[int, int, NDArray[np.float64]]:
        """Return the size of the boxes of a side, and what each of them holds, (n, places down, places across)."""
        tall, wide = min(side, height), min(side, width)
        inside = sums[:, tall:, wide:] - sums[:, :-tall, wide:] - sums[:, tall:, :-wide] + sums[:, :-tall, :-wide]
        return tall, wide, inside

    def is_enough(side: int) -> bool:
        most = held(side)[2].max((1, 2))[told]
        return len(most) > 0 and bool((most / sums[told, -1, -1]).mean() >= share - _ROUNDING)

    side = bisect_left(range(max(height, width)), True, lo=1, key=is_enough)
    tall, wide, inside = held(side)
    top, left = np.divmod(inside.reshape(len(heat), -1).argmax(1), inside.shape[2])
    return np.stack([top, top + tall, left, left + wide], 1).astype(np.int64)


def _parts(extent: int, count: int) -> NDArray[np.int64]:
    """Return where equal parts begin and end, (count, 2)."""
    edges = np.arange(count + 1) * extent // count
    return np.stack([edges[:-1], edges[1:]], 1)


def _lines(model: nn.Module, layer: str, like: NDArray[Any], axis: int) -> NDArray[np.int64]:
    """Return from which line of an input along an axis each line of the layer's positions looks, and up to which."""
    extent = like.shape[axis]
    edges = np.unique(np.append(np.arange(0, extent, -(-extent // _MOST_LINES)), extent))
    tried = np.repeat(np.zeros_like(like)[None], len(edges) - 1, 0)
    for one, (start, end) in zip(tried, pairwise(edges), strict=True):
        np.moveaxis(one, axis, 0)[start:end] = np.nan
    reached = []
    with _plain_convolutions():
        for batch in trace(model, tried, [layer]):
            value = batch.activations[layer].isnan()
            others = tuple(d for d in range(1, value.dim()) if d != axis + 1)
            reached.append(value.any(others).cpu().numpy())
    depends = np.concatenate(reached)  # (lines of the input, lines of the layer)
    unseen = ~depends.any(0)
    first, last = depends.argmax(0), len(depends) - 1 - depends[::-1].argmax(0)
    first[unseen], last[unseen] = 0, len(depends) - 1
    return np.stack([edges[first], edges[last + 1]], 1)


@contextmanager
def _plain_convolutions() -> Iterator[None]:
    """Leave out fast convolutions: they work on several positions together, so that all show what one depends on."""
    kept = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)  # its own switch sets precisions, too, and warns of them
    try:
        with torch.backends.nnpack.flags(enabled=False), torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        torch._C._set_mkldnn_enabled(kept)
