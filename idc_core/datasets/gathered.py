"""A torch Dataset, or any sequence of (input, target), read item by item; many pictures go to disk, not to memory."""

from __future__ import annotations

import secrets
import shutil
import weakref
from collections.abc import Iterator
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from idc_core.base.files import cache_folder
from idc_core.base.progress import Progress, report
from idc_core.datasets.dataset import Items
from idc_core.datasets.own_arrays import as_array, checked_inputs
from idc_core.datasets.row_cache import Put, RowCache, digest
from idc_core.datasets.streamed import IN_MEMORY, StreamedInputs
from idc_core.errors import DataError

_REPORTED = 64


class _Listed(Protocol):
    """A torch Dataset, or any sequence."""

    def __getitem__(self, place: int, /) -> object:
        """Return an item, (input, target)."""

    def __len__(self) -> int:
        """Return how many there are."""


def gathered(found: _Listed, where: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Read the items of a sequence.

    Parameters
    ----------
    found : sequence
        Of (input, target).
    where : str
        What it is, for messages.
    limit : int or None
        Only the first ones.
    on_progress : Progress or None

    Returns
    -------
    Items
        Inputs are an array, unchecked; pictures that would take more than `IN_MEMORY` are a `StreamedInputs`, checked.

    Raises
    ------
    DataError
        If it is empty, an item is no pair, inputs differ in their shape, or the disk has no room for pictures.
    CancelledError
        If `on_progress` returned False.
    """
    count = len(found) if limit is None else min(limit, len(found))
    if not count:
        raise DataError(f"{where} is empty; expected at least one input.")
    pairs = _Pairs(found, where)
    first, _ = pairs[0]
    if first.ndim == 3 and count * first.size * StreamedInputs.itemsize > IN_MEMORY:
        rows = _GatheredRows(pairs, first, count)
        targets = rows.make(on_progress)
        return Items(cast("NDArray[np.generic]", StreamedInputs(rows, np.arange(count))), np.stack(targets))
    inputs = np.empty((count, *first.shape), first.dtype)
    labels = []
    for place, (value, label) in pairs.read(count, on_progress):
        inputs[place] = value
        labels.append(label)
    return Items(inputs, np.stack(labels))


class _Pairs:
    """Inputs and targets of a sequence, as arrays; all inputs have the shape of the one that was read first."""

    def __init__(self, found: _Listed, where: str) -> None:
        self.found, self.where = found, where
        self.shape: tuple[int, ...] | None = None

    def __getitem__(self, place: int) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
        item = self.found[place]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise DataError(f"{self.where}: item {place} is a {type(item).__name__}; expected (input, target).")
        array = as_array(item[0])
        self.shape = self.shape or array.shape
        if array.shape != self.shape:
            raise DataError(
                f"{self.where}: item {place} has the shape {array.shape} and the first one {self.shape}; make all "
                "inputs equally large."
            )
        return array, as_array(item[1])

    def read(
        self, count: int, on_progress: Progress | None
    ) -> Iterator[tuple[int, tuple[NDArray[np.generic], NDArray[np.generic]]]]:
        """Yield the numbers of the first items with the items."""
        for place in range(count):
            yield place, self[place]
            if place % _REPORTED == 0:
                report(on_progress, place, count, "items read")


class _GatheredRows:
    """Pictures of a sequence on disk, for as long as somebody has this object; the disk may lose any of them.

    Kept are bytes where the sequence gives bytes, else float32. What the sequence reads from can change, so they are of
    no use to another process.
    """

    def __init__(self, pairs: _Pairs, first: NDArray[np.generic], count: int) -> None:
        self.where, self.shape, self._pairs = pairs.where, first.shape, pairs
        self._dtype = np.dtype(np.uint8 if first.dtype == np.uint8 else np.float32)
        folder = cache_folder() / "pictures" / f"read-{secrets.token_hex(8)}"
        self._cache = RowCache(folder, count, first.size * self._dtype.itemsize)
        self._digests = np.zeros((count, len(digest(np.zeros(0, np.uint8)))), np.uint8)
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def make(self, on_progress: Progress | None) -> list[NDArray[np.generic]]:
        """Read all items, keep their pictures, and return their targets."""
        targets = []
        with self._cache.writing(len(self._digests)) as put:
            for place, (value, target) in self._pairs.read(len(self._digests), on_progress):
                self._digests[place] = self._kept(put, place, value)
                targets.append(target)
        return targets

    def read(self, numbers: NDArray[np.int64]) -> NDArray[np.generic]:
        """Return some pictures, (k, C, H, W); what is damaged or gone on disk is read from the sequence again."""
        self._cache.used()
        digests = self._digests[numbers]
        rows, good = self._cache.read(numbers, digests)
        if not good.all():
            lost = np.unique(numbers[~good]).tolist()
            with self._cache.writing(len(lost)) as put:
                for place in lost:
                    if self._kept(put, place, self._pairs[place][0]).tobytes() != self._digests[place].tobytes():
                        raise DataError(
                            f"{self.where}: item {place} is another one than when it was read first; give equal items "
                            "each time, without random changes."
                        )
            rows, good = self._cache.read(numbers, digests)
        if not good.all():
            raise DataError(
                f"{self.where}: pictures cannot be kept in {self._cache.folder}, or are changed there by another "
                "program: name another folder by the environment variable IDC_HOME."
            )
        return rows.view(self._dtype).reshape(len(numbers), *self.shape)

    def digest(self, numbers: NDArray[np.int64]) -> bytes:
        """Return the digests of some pictures' bytes, one after the other."""
        return repr((self.shape, self._dtype.str)).encode() + self._digests[numbers].tobytes()

    def _kept(self, put: Put, place: int, one: NDArray[np.generic]) -> NDArray[np.uint8]:
        """Check a picture, write it, and return its digest."""
        checked = checked_inputs(one[None], f"{self.where}: item {place}")[0]
        if (one.dtype == np.uint8) != (self._dtype == np.uint8):
            raise DataError(f"{self.where}: item {place} is of type {one.dtype}, unlike the first one; give one type.")
        content = np.ascontiguousarray(one if one.dtype == np.uint8 else checked).reshape(-1).view(np.uint8)
        put(place, content)
        return np.frombuffer(digest(content), np.uint8)
