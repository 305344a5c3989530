"""Blocks that are read again: in memory as far as the budget goes, on disk beyond."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idc_core.datasets.sources import cache_folder
from idc_core.errors import DataError

Place = tuple[str, str]
"""A model's name and a layer's."""

BUDGET = 512 * 2**20
"""Bytes of blocks that stay in memory."""


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
    """

    positions: NDArray[np.int64]
    units: dict[Place, Tensor]
    shapes: dict[Place, tuple[int, ...]]


class BlockStore:
    """Keeps blocks for the time of a `with` statement.

    Parameters
    ----------
    budget : int
        Bytes that stay in memory; later blocks go to files of a temporary folder in IDC_HOME.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.in_memory = 0
        self.on_disk = 0
        self._memory: dict[int, Block] = {}
        self._known: dict[int, Block] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._memory.clear()
        if self._folder is not None:
            self._folder.cleanup()

    def put(self, index: int, block: Block) -> None:
        """Keep a block.

        Raises
        ------
        DataError
            If the disk has no room for it.
        """
        size = sum(units.nbytes for units in block.units.values())
        if self.in_memory + size <= self.budget:
            self._memory[index] = block
            self.in_memory += size
            return
        try:
            for number, units in enumerate(block.units.values()):
                np.save(self._file(index, number), units.numpy())
        except OSError as error:
            raise DataError(
                f"The units' behaviours do not fit on disk ({error}): make room in {cache_folder()}, or name another "
                "folder by the environment variable IDC_HOME."
            ) from error
        empty = {place: torch.empty(0) for place in block.units}
        self._known[index] = Block(block.positions, empty, block.shapes)
        self.on_disk += size

    def get(self, index: int) -> Block:
        """Return a block that was kept."""
        if index in self._memory:
            return self._memory[index]
        known = self._known[index]
        # Read rather than mapped: pages of a mapped file count as this process's memory.
        units = {
            place: torch.from_numpy(np.load(self._file(index, number), allow_pickle=False))
            for number, place in enumerate(known.units)
        }
        return Block(known.positions, units, known.shapes)

    def _file(self, index: int, number: int) -> Path:
        if self._folder is None:
            parent = cache_folder() / "inspection"
            parent.mkdir(parents=True, exist_ok=True)
            self._folder = tempfile.TemporaryDirectory(prefix="blocks.", dir=parent)
        return Path(self._folder.name) / f"{index}-{number}.npy"
