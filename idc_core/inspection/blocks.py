"""Rows of units and hypotheses, and blocks of them: in memory as far as the budget goes, on disk beyond."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from idc_core.base.files import cache_folder, keeping, partial_folder
from idc_core.errors import DataError
from idc_core.guarded import opened
from idc_core.inspection.hypothesis import Hypothesis, Records
from idc_core.tracing.neurons import axis_in
from idc_core.tracing.patches import patch_grid

Place = tuple[str, str]
"""A model's name and a layer's."""

BUDGET = 512 * 2**20
"""Bytes of blocks that stay in memory."""


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some records of a block: which rows theirs are, how many they are, and what a layer's units did at these rows."""

    rows: slice
    records: int
    units: UnitRows


@dataclass(frozen=True, eq=False)
class Block:
    """Activations of some records: `units` are float32 (rows, units) without rows of padding."""

    positions: NDArray[np.int64]
    units: dict[Place, Tensor]
    shapes: dict[Place, tuple[int, ...]]
    about: Mapping[Place, Tensor]
    _pieces: dict[Place, list[_Piece]] = field(default_factory=dict, init=False)

    def pieces(self, place: Place) -> list[_Piece]:
        """Cut a layer's rows between records; whoever asks again gets the same pieces."""
        if place not in self._pieces:
            units, places = self.units[place], int(np.prod(self.shapes[place]))
            # Nobody knows it before the first row, and without one it is nothing that counts.
            about = self.about.get(place, torch.zeros(units.shape[1]))
            self._pieces[place] = [
                _Piece(rows, records, UnitRows(units[rows], about))
                for rows, records in pieces(len(self.positions), len(units), places)
            ]
        return self._pieces[place]


_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Spilled:
    """An array on disk: what it must be when it is read again is remembered, not read."""

    path: Path
    shape: tuple[int, ...]
    kind: np.dtype[np.generic]
    checksum: int

    def read(self) -> NDArray[np.generic]:
        """Return the array; DataError where the disk does not give back what was written."""
        # Read rather than mapped: pages of a mapped file count as this process's memory.
        values = np.empty(self.shape, self.kind)
        with opened(self.path, str(self.path)) as stream:
            size = cast("BufferedReader", stream).readinto(values.reshape(-1).view(np.uint8).data)
            if size != values.nbytes or stream.read(1) or zlib.crc32(values.data) != self.checksum:
                raise DataError(f"{self.path} is damaged: the disk does not give back what was written. Inspect again.")
        return values


class BlockStore:
    """Keep arrays until it is closed: up to `budget` bytes in memory, the rest in a temporary folder in IDC_HOME."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.in_memory = 0
        self._memory: dict[_Key, list[Tensor]] = {}
        self._files: dict[_Key, list[_Spilled]] = {}
        self._folder: TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Forget everything, in memory and on disk."""
        self._memory.clear()
        self._files.clear()
        self.in_memory = 0
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __contains__(self, key: _Key) -> bool:
        return key in self._memory or key in self._files

    def put(self, key: _Key, arrays: Iterable[Tensor]) -> None:
        """Keep arrays under a key; DataError if the disk has no room for them."""
        given = list(arrays)
        size = sum(array.nbytes for array in given)
        if self.in_memory + size <= self.budget:
            self._memory[key] = given
            self.in_memory += size
            return
        self._write(key, given)

    def rest(self) -> None:
        """Put everything on disk until it is asked for again."""
        while self._memory:
            key, arrays = next(iter(self._memory.items()))
            self._write(key, arrays)
            del self._memory[key]
        self.in_memory = 0

    def _write(self, key: _Key, given: list[Tensor]) -> None:
        kept = []
        try:
            for number, array in enumerate(given):
                values = np.ascontiguousarray(array.numpy())
                path = self._file(len(self._files), number)
                values.tofile(path)
                kept.append(_Spilled(path, values.shape, values.dtype, zlib.crc32(values.data)))
        except OSError as error:
            raise DataError(
                f"The units' behaviours do not fit on disk ({error}): make room in {cache_folder()}, or name another "
                "folder by the environment variable IDC_HOME."
            ) from error
        self._files[key] = kept

    def get(self, key: _Key) -> list[Tensor]:
        """Return what was kept under a key."""
        if key in self._memory:
            return self._memory[key]
        return [torch.from_numpy(spilled.read()) for spilled in self._files[key]]

    def _file(self, index: int, number: int) -> Path:
        if self._folder is None:
            parent = cache_folder() / "inspection"
            with keeping(parent, "The units' behaviours"):
                self._folder = partial_folder(parent)
        return Path(self._folder.name) / f"{index}-{number}.npy"


_PIECES = 4
"""Groups that a block of records is cut into: more, smaller groups tell the error more sharply."""


@dataclass(eq=False)
class UnitRows:
    """Activations of a layer's units, float32 (rows, units), and the values (units,) that moments are taken about."""

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
        return np.stack([total.double().numpy() for total in (moved.sum(0), moved.square_().sum(0))])


def pieces(records: int, rows: int, places: int) -> list[tuple[slice, int]]:
    """Cut a block between records: the rows of each piece, and its records. Uneven records stay in one piece."""
    if rows != records * places:
        return [(slice(0, rows), records)]
    ends = [records * at // _PIECES for at in range(_PIECES + 1)]
    return [
        (slice(first * places, end * places), end - first) for first, end in itertools.pairwise(ends) if end > first
    ]


def unit_rows(value: Tensor, axis: int) -> tuple[Tensor, tuple[int, ...]]:
    """Return a layer's output (n, ...) as float32 (n * places, units) and its places: (), (symbols,) or (H, W)."""
    last = value.movedim(axis_in(value.dim(), axis), -1)
    shape = tuple(last.shape[1:-1])
    return last.reshape(-1, last.shape[-1]).float(), shape


def _behaviour_rows(values: NDArray[np.generic], hypothesis: Hypothesis, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """Return a behaviour, bool or float32, at a layer's places, (n * places,).

    A value per record holds at all its places. A value per place is brought to a coarser layer by what each of its
    places covers: whether it is true anywhere (binary), the mean (numbers), or the class in the middle. Tokens of a
    picture are places in its grid of patches; what comes before them, such as the class token, covers all of it.
    """
    own = values.shape[1:]
    if own == shape:
        return values.reshape(-1)
    if not own:
        return np.repeat(values, int(np.prod(shape)))
    if len(shape) == 1 and len(own) == 2 and (grid := patch_grid(shape[0], *own)) is not None:
        rows, columns, before = grid
        patches = _pooled(values, hypothesis, (rows, columns)).reshape(len(values), -1)
        whole = _pooled(values, hypothesis, (1, 1)).reshape(len(values), 1)
        return np.concatenate([whole.repeat(before, 1), patches], 1).reshape(-1)
    if shape and len(shape) != len(own):
        raise DataError(
            f"Hypothesis {hypothesis.name!r} has a value at each of {own} places, the layer one at each of {shape}: "
            "these do not lie on one another. Choose a layer whose places follow those of the input."
        )
    target = shape or (1,) * len(own)
    return _pooled(values, hypothesis, target).reshape(-1)


def _pooled(values: NDArray[np.generic], hypothesis: Hypothesis, shape: tuple[int, ...]) -> NDArray[np.generic]:
    if hypothesis.kind == "classes":
        for axis, (size, target) in enumerate(zip(values.shape[1:], shape, strict=True), start=1):
            middle = ((np.arange(target) + 0.5) * size / target).astype(np.int64)
            values = values.take(middle, axis)
        return values
    given = torch.from_numpy(values.astype(np.float32, copy=False))[:, None]
    pools: dict[tuple[int, bool], Callable[..., Tensor]] = {
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
    values: Sequence[NDArray[np.generic]],
    hypotheses: Sequence[Hypothesis],
    shape: tuple[int, ...],
    rows: NDArray[np.int64] | None,
    kind: type[np.uint8] | type[np.float32] = np.float32,
) -> Tensor:
    """Return all behaviours at a layer's places, (rows, hypotheses); each one's lie side by side in memory."""
    columns = []
    for value, hypothesis in zip(values, hypotheses, strict=True):
        column = _behaviour_rows(value, hypothesis, shape)
        columns.append(column if rows is None else column[rows])
    return torch.from_numpy(np.stack(columns, dtype=kind, casting="unsafe")).T
