"""Profiles: the targets that each input covers; scores of subsets, growth and orders are counted from them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array, Ints
from idc_core.errors import SettingError


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
    names: Array | None = None
    """(numbers, ...), what each number stands for, where targets get numbers as inputs reach them, at most one per
    input: the code of a cell, the neurons of a pattern. None where a number stands for the same target in any call."""
    chain: tuple[str, str] | None = None
    """What tells the clusters found before these inputs, and those after them, where inputs before decide what an input
    covers."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of_mask(cls, mask: NDArray[np.bool_]) -> Self:
        """Return the profiles that a boolean array (n, targets) holds."""
        counts = mask.sum(1)
        return cls(_starts(counts), np.nonzero(mask)[1].astype(np.int32), mask.shape[1])

    @classmethod
    def of_codes(
        cls, codes: NDArray[np.signedinteger], total: int | None, values: NDArray[np.float64] | None = None
    ) -> Self:
        """Return the profiles of inputs that each reach the targets in a row of `codes` (n, m); -1 is none."""
        reached = codes >= 0
        return cls(_starts(reached.sum(1)), codes[reached].astype(np.int32), total, values)

    @classmethod
    def of_names(cls, names: Array, total: int | None) -> Self:
        """Return the profiles of inputs that each cover the one target that a row of `names` (n, ...) stands for."""
        numbers = _numbers(names, {})
        first = np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))
        return cls(np.arange(len(names) + 1), numbers, total, names=names[first])

    @classmethod
    def joined(cls, parts: Sequence["Profiles"]) -> Self:
        """Return the profiles of several batches of inputs, or of several calls of `profile`, one after the other.

        The same target has the same number in all of them, as in one call on all inputs.

        Raises
        ------
        SettingError
            If there are none, if they are not of one criterion, or if what an input covers depends on the inputs
            before it, and these calls did not see each other's.
        """
        kinds = {(part.total, part.values is None, _form(part.names), part.chain is None) for part in parts}
        if len(kinds) != 1:
            raise SettingError(
                f"Expected profiles of one criterion to join, got {len(kinds)} kinds of them. Join each criterion's."
            )
        for before, other in pairwise(parts):
            if before.chain and other.chain and before.chain[1] != other.chain[0]:
                raise SettingError(
                    "What a test covers depends on the tests before it, and these profiles are of calls that started "
                    "anew. Profile all tests in one call, or call update with each part before the next is profiled."
                )
        if len(parts) == 1:
            return cls(**vars(parts[0]))
        counts = np.concatenate([part.counts for part in parts])
        values = [part.values for part in parts if part.values is not None]
        targets, names = _renumbered(parts)
        chain = (parts[0].chain[0], parts[-1].chain[1]) if parts[0].chain and parts[-1].chain else None
        return cls(_starts(counts), targets, parts[0].total, np.concatenate(values) if values else None, names, chain)

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

    def gains(self, order: Ints | None = None) -> Ints:
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

    def covered(self, chosen: Ints | None = None) -> int:
        """Count the targets that the chosen inputs (positions (k,); default all) cover together."""
        return int(self.gains(chosen).sum())

    def coverage(self, chosen: Ints | None = None) -> float:
        """Return the criterion's score for the chosen inputs: the share of targets, or their number without limit."""
        if self.total == 0:
            raise SettingError("This criterion has no targets to count: score other inputs with its update.")
        return self.covered(chosen) / (self.total or 1)


def _starts(counts: NDArray[np.integer]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _form(names: Array | None) -> tuple[int, ...] | None:
    """Return the shape of one name."""
    return None if names is None else names.shape[1:]


def _numbers(names: Array, known: dict[Hashable, int]) -> NDArray[np.int32]:
    """Return a number for each name (n, ...), int32 (n,); new ones are added to what is known."""
    rows = np.ascontiguousarray(names)
    keys = rows.tolist() if rows.ndim == 1 else rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int32, len(keys))


def _renumbered(parts: Sequence[Profiles]) -> tuple[NDArray[np.int32], Array | None]:
    """Return the targets of all parts, numbered alike, and what the numbers stand for where that has to be said."""
    known: dict[Hashable, int] = {}
    targets, names = [], []
    for part in parts:
        if part.names is None:
            targets.append(part.targets)
            continue
        before = len(known)
        numbers = _numbers(part.names, known)
        targets.append(numbers[part.targets])
        names.append(part.names[numbers >= before])
    return np.concatenate(targets), np.concatenate(names) if names else None
