"""Inputs that never have to be in memory: an array of pictures that reads what it is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from idc_core.base.config import config, config_file
from idc_core.errors import DataError

IN_MEMORY = 256 << 20
"""Inputs that take at most so many bytes as float32 are arrays in memory; what takes more is read when it is needed."""

_BLOCK = 8 << 20
_MAX = np.float32(255)


class _Rows(Protocol):
    """Pictures as bytes, or as float32 in 0..1, by number; `where` names them in messages."""

    where: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one picture."""

    def read(self, numbers: NDArray[np.int64]) -> NDArray[np.generic]:
        """Return some pictures, uint8 or float32 (k, C, H, W)."""

    def digest(self, numbers: NDArray[np.int64]) -> bytes:
        """Return the digests of some pictures' bytes, one after the other."""


class StreamedInputs:
    """Pictures as float32 (n, C, H, W) in 0..1, read-only, of which only what is asked for is in memory.

    Slices and index arrays give an array, or, where that would take more than `IN_MEMORY`, another `StreamedInputs`.
    Whatever else an array can do reads all of it, and is a DataError where that takes more memory than is allowed.

    Parameters
    ----------
    source : Rows
        Where they are read from.
    numbers : ndarray of int64, shape (n,)
        Which of them, in which order.
    """

    dtype = np.dtype(np.float32)
    ndim = 4
    itemsize = 4

    def __init__(self, source: _Rows, numbers: NDArray[np.int64]) -> None:
        self._source, self._numbers = source, numbers
        self._range: tuple[float, float] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (n, C, H, W)."""
        return (len(self), *self._source.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes that all of it would take in memory."""
        return self.size * self.itemsize

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and key and key[0] is not Ellipsis and key[0] is not None:
            rows = self[key[0]]
            return rows[key[1:]] if isinstance(key[0], int | np.integer) else np.asarray(rows)[slice(None), *key[1:]]
        if key is Ellipsis or key is None or isinstance(key, tuple):
            return np.asarray(self)[key]
        numbers = self._numbers[key]
        if numbers.ndim == 0:
            return self._values(numbers[None])[0]
        if numbers.ndim > 1:
            return np.asarray(self)[key]
        part = StreamedInputs(self._source, numbers)
        return part if part.nbytes > IN_MEMORY else np.asarray(part)

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        for numbers in self._blocks():
            yield from self._values(numbers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        most = config().memory
        if self.nbytes > most:
            form = " x ".join(map(str, self._source.shape))
            raise DataError(
                f"{self._source.where}: this needs {len(self):,} inputs of {form} in memory at once, {self.nbytes:,} "
                f"bytes; at most {most:,} are allowed. Take fewer inputs or smaller pictures, or raise memory_mib in "
                f"the section limits of {config_file()}."
            )
        return self._values(self._numbers).astype(dtype or self.dtype, copy=False)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"streamed inputs have no {name}")
        return getattr(np.asarray(self), name)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """Return the lowest value, or, given an axis, what an array returns."""
        return np.asarray(self).min(*args, **kwargs) if args or kwargs else np.float32(self._limits()[0])

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """Return the highest value, or, given an axis, what an array returns."""
        return np.asarray(self).max(*args, **kwargs) if args or kwargs else np.float32(self._limits()[1])

    def setflags(self, **flags: bool) -> None:
        """Do nothing: it is read-only as it is."""

    def digest(self) -> bytes:
        """Return the SHA-256 over the digests of all pictures: equal pictures in equal order, equal digest."""
        return hashlib.sha256(self._source.digest(self._numbers)).digest()

    def _limits(self) -> tuple[float, float]:
        """Return the lowest and the highest value."""
        if self._range is None:
            ends = [(block.min(), block.max()) for block in map(self._values, self._blocks())]
            self._range = min(float(low) for low, _ in ends), max(float(high) for _, high in ends)
        return self._range

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        """Cut the numbers into blocks of a few megabytes."""
        step = max(1, _BLOCK // max(1, int(np.prod(self._source.shape))))
        for start in range(0, len(self), step):
            yield self._numbers[start : start + step]

    def _values(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Read some pictures and scale them."""
        scaled = np.empty((len(numbers), *self._source.shape), np.float32)
        done = 0
        for block in StreamedInputs(self._source, numbers)._blocks():
            pixels = self._source.read(block)
            divisor = _MAX if pixels.dtype == np.uint8 else np.float32(1)
            np.divide(pixels, divisor, out=scaled[done : done + len(block)], dtype=np.float32)
            done += len(block)
        return scaled
