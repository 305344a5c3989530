"""Profiles: the targets that each input covers; scores of subsets, growth and orders are counted from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Profiles:
    """The targets that each input covers by one criterion."""

    starts: Ints  # (n + 1,), input i covers ``targets[starts[i]:starts[i + 1]]``
    targets: NDArray[np.int32]
    """(entries,), numbers of the covered targets, ascending within an input, each at most once per input."""
    total: int | None
    """How many targets there are, which can be more than have a number (cells of IDC); None where there is no end to
    them (patterns, clusters), 0 where the criterion has none (NLC)."""
    values: NDArray[np.float64] | None = None
    """(n,), the number behind the targets, where there is one: surprise, or what the input adds to NLC."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of_mask(cls, mask: NDArray[np.bool_]) -> Self:
        """Return the profiles that a boolean array (n, targets) holds."""
        counts = mask.sum(1)
        return cls(_starts(counts), np.nonzero(mask)[1].astype(np.int32), mask.shape[1])

    @classmethod
    def of_codes(cls, codes: NDArray[Any], total: int | None, values: NDArray[np.float64] | None = None) -> Self:
        """Return the profiles of inputs that each reach the targets in a row of `codes` (n, m); -1 is none."""
        reached = codes >= 0
        return cls(_starts(reached.sum(1)), codes[reached].astype(np.int32), total, values)

    @classmethod
    def joined(cls, parts: Sequence["Profiles"]) -> Self:
        """Return the profiles of several batches of inputs, one after the other."""
        counts = np.concatenate([part.counts for part in parts])
        values = [part.values for part in parts if part.values is not None]
        targets = np.concatenate([part.targets for part in parts])
        return cls(_starts(counts), targets, parts[0].total, np.concatenate(values) if values else None)

    @property
    def counts(self) -> Ints:
        """How many targets each input covers, int64 (n,)."""
        return np.diff(self.starts)

    @property
    def dense(self) -> NDArray[np.bool_]:
        """The same as a boolean array (n, total), or as wide as the largest number where there is no end."""
        width = self.total if self.total is not None else int(self.targets.max(initial=-1)) + 1
        mask = np.zeros((len(self), width), bool)
        mask[np.repeat(np.arange(len(self)), self.counts), self.targets] = True
        return mask

    def gains(self, order: NDArray[Any] | None = None) -> Ints:
        """Count the targets that each input is the first to cover, int64 (k,), in an order (k,) of inputs.

        Their cumulative sum is the growth of the coverage in that order; the default order is as given.
        """
        order = np.arange(len(self)) if order is None else np.asarray(order)
        counts = self.counts[order]
        places = np.repeat(self.starts[order] - _starts(counts)[:-1], counts) + np.arange(counts.sum())
        visits = self.targets[places]
        # Written from the last visit to the first: of several the one written last stays, and nothing is sorted.
        first = np.full(int(visits.max(initial=-1)) + 1, len(order))
        first[visits[::-1]] = np.repeat(np.arange(len(order)), counts)[::-1]
        return np.bincount(first[first < len(order)], minlength=len(order)).astype(np.int64)

    def covered(self, chosen: NDArray[Any] | None = None) -> int:
        """Count the targets that the chosen inputs (positions (k,); default all) cover together."""
        return int(self.gains(chosen).sum())

    def coverage(self, chosen: NDArray[Any] | None = None) -> float:
        """Return the criterion's score for the chosen inputs: the share of targets, or their number without limit."""
        if self.total == 0:
            raise SettingError("This criterion has no targets to count: score other inputs with its update.")
        return self.covered(chosen) / (self.total or 1)


def _starts(counts: NDArray[Any]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
