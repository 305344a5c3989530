"""Rows that a pass has found: held in memory or in files, and kept piece by piece, so that a stopped pass goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from idc_core.base.arrays import Array
from idc_core.base.growing import GrowingArrays
from idc_core.errors import DataError
from idc_core.store import MISSING, Unfinished

log = logging.getLogger("idc_core")

_Name = tuple[str, str]
"""What is held, and of which layer: ("activations", "fc2")."""

_EVERY_S = 5.0
"""Seconds of work after which what is new is kept; a pass that takes less leaves no file."""

_PIECE = 64 << 20
"""Bytes of a piece from which on it is kept at once."""


class PassRows:
    """One row per input and array, and the shapes of layers.

    Parameters
    ----------
    in_memory : int, optional
        As for `GrowingArrays`.
    unfinished : Unfinished, optional
        Where pieces are kept; what lies there is taken over.

    Attributes
    ----------
    held : GrowingArrays
    shapes : dict
        Shape of each layer's output for one input.
    done : int
        Inputs whose rows are held.
    """

    def __init__(self, in_memory: int | None, unfinished: Unfinished | None) -> None:
        self.held, self.done = GrowingArrays(in_memory), 0
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._unfinished = unfinished
        self._new: list[Mapping[_Name, Array]] = []
        while unfinished is not None and (piece := unfinished.find(self.done)) is not MISSING:
            for arrays in piece["arrays"]:
                self._hold(arrays)
            self.shapes = piece["shapes"]
        self._kept, self._since = self.done, time.monotonic()

    def append(self, arrays: Mapping[_Name, Array]) -> None:
        """Add the rows of some inputs."""
        self._hold(arrays)
        if self._unfinished is None:
            return
        self._new.append(arrays)
        held = sum(array.nbytes for part in self._new for array in part.values())
        if held > _PIECE or time.monotonic() - self._since > _EVERY_S:
            self.keep()

    def keep(self) -> None:
        """Keep what is new as a piece; where that fails, the log says so, and the pass goes on without."""
        if self._unfinished is None or not self._new:
            return
        try:
            self._unfinished.keep(self._kept, {"arrays": self._new, "shapes": self.shapes})
        except DataError as error:
            log.warning("%s", error)
            self._unfinished = None
        self._new, self._kept, self._since = [], self.done, time.monotonic()

    def finish(self) -> None:
        """Keep the last piece, if there are others."""
        if self._kept:
            self.keep()

    def _hold(self, arrays: Mapping[_Name, Array]) -> None:
        for name, array in arrays.items():
            self.held.append(name, array)
        self.done += len(next(iter(arrays.values())))
