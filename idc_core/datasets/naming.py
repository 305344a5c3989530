"""Data of networks with several inputs: the main one is kept, the others follow from it or are always the same.

Everything that looks at inputs, changes them or shows them has one array per data set: token ids, say. What a network
reads beside it is a way of computing it again, found from the person's own arrays and checked on every row, so that
it fits inputs that were cut, noised or made anew as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import DataError

WAYS: dict[str, Callable[[Any, int], Any]] = {
    "mask": lambda main, padding: main != padding,
    "length": lambda main, padding: (main != padding).sum(1).clip(1),
    "zeros": lambda main, padding: main * 0,
}
"""What an input can be of the main one and the id of padding, arrays and tensors alike: what is no padding, how many of
each row is none, and nothing but zeros."""

SAME = "same"
"""The way of an input that is the same for every row."""


@dataclass(frozen=True)
class Other:
    """An input beside the main one: its name, the way it is computed, its type.

    `padding` is the id of padding, for ways that need it; `values` are those of each row where all rows are the same,
    of the shape `shape`.
    """

    name: str
    way: str
    dtype: str
    padding: int = 0
    values: tuple[float, ...] = ()
    shape: tuple[int, ...] = ()

    @property
    def said(self) -> str:
        """What it is, for people."""
        if self.way == SAME:
            return f"{self.name} is the same for every input"
        if self.way == "zeros":
            return f"{self.name} is 0"
        read = {"mask": "1 where the main input is not", "length": "the number of tokens, at least 1, that are not"}
        return f"{self.name} is {read[self.way]} {self.padding}, the id of padding"


@dataclass(frozen=True)
class Naming:
    """Names of a network's inputs: the main one, and what the others are."""

    main: str
    others: tuple[Other, ...] = ()

    @property
    def said(self) -> str:
        """What the others are, for people; empty where there are none."""
        return "; ".join(other.said for other in self.others)

    def padded(self, padding: int) -> Naming:
        """Return the same with another id of padding."""
        return Naming(self.main, tuple(replace(other, padding=padding) for other in self.others))


def apart(given: Mapping[str, object], padding: int, where: str) -> tuple[NDArray[np.generic], Naming]:
    """Take inputs by name apart.

    Parameters
    ----------
    given : mapping of str to ndarray, each (n, ...)
        The first is the main one.
    padding : int
        Token id of padding, where it cannot be seen from a mask.
    where : str
        What they are, for messages.

    Returns
    -------
    main : ndarray
    naming : Naming

    Raises
    ------
    DataError
        If they have different numbers of rows, or one of the others does not follow from the main one.
    """
    if not given:
        raise DataError(f"{where} has no inputs; expected arrays by name, the main one first.")
    (name, main), *others = ((str(name), np.asarray(value)) for name, value in given.items())
    for other, value in others:
        if value.shape[:1] != main.shape[:1]:
            raise DataError(
                f"{where} has inputs by name with different numbers of rows: {name!r} of shape {main.shape} and "
                f"{other!r} of shape {value.shape}."
            )
    return main, Naming(name, tuple(_other(name, main, other, value, padding, where) for other, value in others))


def _other(
    main_name: str, main: NDArray[np.generic], name: str, value: NDArray[np.generic], padding: int, where: str
) -> Other:
    """Return what an input is of the main one."""
    hidden = _hidden(main, value)
    padding = padding if hidden is None else hidden
    for way, computed in WAYS.items():
        if main.ndim < 2 or value.dtype.kind not in "fiub":
            continue
        expected = computed(main, padding)
        if expected.shape == value.shape and bool((expected == value).all()):
            return Other(name, way, value.dtype.name, padding)
    if len(value) and value.dtype.kind in "fiub" and bool((value == value[:1]).all()):
        return Other(name, SAME, value.dtype.name, values=tuple(value[0].ravel().tolist()), shape=value.shape[1:])
    raise DataError(
        f"{where} has the input {name!r}, which does not follow from {main_name!r}: expected a mask of what is no "
        "padding (1 and 0), the number of tokens, or the same values for every input. Let the network itself take one "
        "array and make of it what it needs."
    )


def _hidden(main: NDArray[np.generic], mask: NDArray[np.generic]) -> int | None:
    """Return the one token id that a mask hides everywhere and shows nowhere; None where there is none."""
    if main.dtype.kind not in "iu" or mask.shape != main.shape or mask.dtype.kind not in "fiub":
        return None
    values = np.unique(main[mask == 0])
    return int(values[0]) if len(values) == 1 else None
