"""Records: some inputs of a data set with all that is known of them, which is what a hypothesis looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idc_core.datasets import Dataset

PADDING = 0
"""The token id that stands where a text has ended."""

PARSES = "parses"
"""The key under which records remember their parses."""


@dataclass(frozen=True)
class Records:
    """Some inputs of a data set, in any order.

    Attributes
    ----------
    dataset : Dataset
    positions : ndarray, int64 (n,)
        Which of the data set's inputs, and in which order.
    """

    dataset: Dataset
    positions: NDArray[np.int64]
    memo: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """Return what `make` makes of these records; what several hypotheses look at is made for the first of them."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def __len__(self) -> int:
        return len(self.positions)

    @cached_property
    def inputs(self) -> NDArray[Any]:
        """The inputs, (n, ...)."""
        found: NDArray[Any] = self.dataset.inputs[self.positions]
        return found

    @cached_property
    def tokens(self) -> NDArray[Any]:
        """The token ids of texts in the smallest type that holds them, (n, symbols): compared several times as fast."""
        return self.inputs.astype(np.min_scalar_type(self.inputs.max(initial=0)))

    @cached_property
    def targets(self) -> NDArray[Any]:
        """The targets, (n,)."""
        found: NDArray[Any] = self.dataset.targets[self.positions]
        return found

    @property
    def ids(self) -> NDArray[np.int64]:
        """The inputs' positions in their split's own order, (n,)."""
        found: NDArray[np.int64] = self.dataset.ids[self.positions]
        return found

    @property
    def is_text(self) -> bool:
        """Whether the inputs are token ids, (n, symbols)."""
        return is_text(self.dataset)

    @property
    def symbols(self) -> tuple[int, ...]:
        """Shape of a behaviour that has a value at every place of an input: (symbols,), or (height, width)."""
        return places(self.dataset)

    @cached_property
    def present(self) -> NDArray[np.bool_]:
        """Where there is something at all: not at a text's padding; bool (n, symbols) or (n, height, width)."""
        if self.is_text:
            return np.asarray(self.inputs != PADDING)
        return np.ones((len(self), *self.symbols), bool)


def is_text(dataset: Dataset) -> bool:
    """Whether a data set's inputs are token ids, (n, symbols)."""
    return dataset.inputs.ndim == 2 and dataset.inputs.dtype.kind in "iu"


def places(dataset: Dataset) -> tuple[int, ...]:
    """Return the places of one input: (symbols,) of a text, (height, width) of a picture, () of anything else."""
    if is_text(dataset):
        return (int(dataset.inputs.shape[1]),)
    return tuple(int(size) for size in dataset.inputs.shape[2:]) if dataset.inputs.ndim == 4 else ()
