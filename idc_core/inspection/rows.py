"""Rows of a layer's units, a record's side by side, and their moments, which several ask for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from idc_core.errors import DataError
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.records import Records

PIECES = 4
"""Groups that a block of records is cut into: more, smaller groups tell the error more sharply."""


@dataclass(eq=False)
class UnitRows:
    """What a layer's units did at some rows.

    Attributes
    ----------
    values : Tensor, float32 (rows, units)
    about : Tensor, float32 (units,)
        What moments are counted from, so that single precision is exact enough.
    """

    values: Tensor
    about: Tensor

    def __len__(self) -> int:
        return len(self.values)

    def moved(self) -> Tensor:
        """Return the values less what moments are counted from: float32 (rows, units)."""
        return self.values - self.about

    @cached_property
    def moments(self) -> NDArray[np.float64]:
        """Sums of the moved values and of their squares: float64 (2, units)."""
        moved = self.moved()
        return np.stack([one.double().numpy() for one in (moved.sum(0), moved.square_().sum(0))])


def pieces(records: int, rows: int, places: int) -> list[tuple[slice, int]]:
    """Cut a block between records: the rows of each piece, and its records. Uneven records stay in one piece."""
    if rows != records * places:
        return [(slice(0, rows), records)]
    ends = [records * at // PIECES for at in range(PIECES + 1)]
    return [
        (slice(first * places, end * places), end - first) for first, end in itertools.pairwise(ends) if end > first
    ]


def unit_rows(value: Tensor, axis: int) -> tuple[Tensor, tuple[int, ...]]:
    """Return a layer's output (n, ...) as float32 (n * places, units) and its places: (), (symbols,) or (H, W)."""
    last = value.movedim(axis, -1)
    shape = tuple(last.shape[1:-1])
    return last.reshape(-1, last.shape[-1]).float(), shape


def behaviour_rows(values: NDArray[Any], hypothesis: Hypothesis, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a behaviour, bool or float32, at a layer's places, (n * places,).

    A value a record holds at all its places. A value a place is brought to a layer with fewer places by what each of
    them covers: whether the thing is there at all (binary), the mean (numbers), or the class in its middle; a layer
    with one value a record covers all places.

    Raises
    ------
    DataError
        If the layer's places cannot be those of the hypothesis: a symbol is no pixel.
    """
    own = values.shape[1:]
    if own == shape:
        return values.reshape(-1)
    if not own:
        return np.repeat(values, int(np.prod(shape)))
    if shape and len(shape) != len(own):
        raise DataError(
            f"Hypothesis {hypothesis.name!r} has a value at each of {own} places, the layer one at each of {shape}: "
            "these do not lie on one another. Choose a layer whose places follow those of the input."
        )
    target = shape or (1,) * len(own)
    return _pooled(values, hypothesis, target).reshape(-1)


def _pooled(values: NDArray[Any], hypothesis: Hypothesis, shape: tuple[int, ...]) -> NDArray[Any]:
    if hypothesis.kind == "classes":
        for axis, (size, wanted) in enumerate(zip(values.shape[1:], shape, strict=True), start=1):
            middle = ((np.arange(wanted) + 0.5) * size / wanted).astype(np.int64)
            values = values.take(middle, axis)
        return values
    given = torch.from_numpy(values.astype(np.float32, copy=False))[:, None]
    pools: dict[tuple[int, bool], Callable[[Tensor, Any], Tensor]] = {
        (1, True): F.adaptive_max_pool1d,
        (1, False): F.adaptive_avg_pool1d,
        (2, True): F.adaptive_max_pool2d,
        (2, False): F.adaptive_avg_pool2d,
    }
    pooled: NDArray[np.float32] = pools[len(shape), hypothesis.kind == "binary"](given, shape).numpy()[:, 0]
    return pooled


def present_rows(records: Records, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
    """Return which of the n * places rows look at anything but padding; None where all do."""
    if not records.is_text or not shape or len(shape) != 1:
        return None
    present = records.present
    if present.all():
        return None
    if shape != records.symbols:
        given = torch.from_numpy(present.astype(np.float32))[:, None]
        present = F.adaptive_max_pool1d(given, shape[0]).numpy()[:, 0] > 0
    return np.flatnonzero(present)


def stack_rows(
    values: Sequence[NDArray[Any]],
    hypotheses: Sequence[Hypothesis],
    shape: tuple[int, ...],
    rows: NDArray[np.int64] | None,
    kind: type[np.uint8] | type[np.float32] = np.float32,
) -> Tensor:
    """Return all behaviours at a layer's places, (rows, hypotheses); each one's lie side by side in memory."""
    columns = []
    for value, hypothesis in zip(values, hypotheses, strict=True):
        column = behaviour_rows(value, hypothesis, shape)
        columns.append(column if rows is None else column[rows])
    return torch.from_numpy(np.stack(columns, dtype=kind, casting="unsafe")).T
