"""Blocks that are read again: in memory as far as the budget goes, on disk beyond."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.errors import DataError
from idc_core.files import cache_folder
from idc_core.inspection.rows import UnitRows, pieces

Place = tuple[str, str]
"""A model's name and a layer's."""

BUDGET = 512 * 2**20
"""Bytes of blocks that stay in memory."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Some records of a block: which rows theirs are, how many they are, and what a layer's units did at these rows."""

    rows: slice
    records: int
    units: UnitRows


@dataclass(frozen=True, eq=False)
class Block:
    """What units and hypotheses did on some records.

    Attributes
    ----------
    positions : ndarray, int64 (n,)
        The records' positions in the data set.
    units : dict of Place to Tensor, float32 (rows, units)
        Rows of padding left out.
    shapes : dict of Place to tuple of int
        The layer's places.
    about : mapping of Place to Tensor, float32 (units,)
        What the units' moments are counted from.
    """

    positions: NDArray[np.int64]
    units: dict[Place, Tensor]
    shapes: dict[Place, tuple[int, ...]]
    about: Mapping[Place, Tensor]
    _pieces: dict[Place, list[Piece]] = field(default_factory=dict, init=False)

    def pieces(self, place: Place) -> list[Piece]:
        """Cut a layer's rows between records; whoever asks again gets the same pieces."""
        if place not in self._pieces:
            units, places = self.units[place], int(np.prod(self.shapes[place]))
            # Nobody knows it before the first row, and without one it is nothing that counts.
            about = self.about.get(place, torch.zeros(units.shape[1]))
            self._pieces[place] = [
                Piece(rows, records, UnitRows(units[rows], about))
                for rows, records in pieces(len(self.positions), len(units), places)
            ]
        return self._pieces[place]


Key = tuple[object, ...]


class BlockStore:
    """Keeps arrays until it is closed.

    Parameters
    ----------
    budget : int
        Bytes that stay in memory; later arrays go to files of a temporary folder in IDC_HOME.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.in_memory = 0
        self._memory: dict[Key, list[Tensor]] = {}
        self._files: dict[Key, list[Path]] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Forget everything, in memory and on disk."""
        self._memory.clear()
        self._files.clear()
        self.in_memory = 0
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __contains__(self, key: Key) -> bool:
        return key in self._memory or key in self._files

    def put(self, key: Key, arrays: Iterable[Tensor]) -> None:
        """Keep arrays under a key.

        Raises
        ------
        DataError
            If the disk has no room for them.
        """
        given = list(arrays)
        size = sum(array.nbytes for array in given)
        if self.in_memory + size <= self.budget:
            self._memory[key] = given
            self.in_memory += size
            return
        self._write(key, given)

    def rest(self) -> None:
        """Put everything on disk until it is asked for again.

        Raises
        ------
        DataError
            If the disk has no room for it.
        """
        while self._memory:
            key, arrays = next(iter(self._memory.items()))
            self._write(key, arrays)
            del self._memory[key]
        self.in_memory = 0

    def _write(self, key: Key, given: list[Tensor]) -> None:
        paths = [self._file(len(self._files), number) for number in range(len(given))]
        try:
            for path, array in zip(paths, given, strict=True):
                np.save(path, array.numpy())
        except OSError as error:
            raise DataError(
                f"The units' behaviours do not fit on disk ({error}): make room in {cache_folder()}, or name another "
                "folder by the environment variable IDC_HOME."
            ) from error
        self._files[key] = paths

    def get(self, key: Key) -> list[Tensor]:
        """Return what was kept under a key."""
        if key in self._memory:
            return self._memory[key]
        # Read rather than mapped: pages of a mapped file count as this process's memory.
        return [torch.from_numpy(np.load(path, allow_pickle=False)) for path in self._files[key]]

    def _file(self, index: int, number: int) -> Path:
        if self._folder is None:
            parent = cache_folder() / "inspection"
            parent.mkdir(parents=True, exist_ok=True)
            self._folder = tempfile.TemporaryDirectory(prefix="blocks.", dir=parent)
        return Path(self._folder.name) / f"{index}-{number}.npy"
