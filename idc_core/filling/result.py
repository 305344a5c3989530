"""What filling a grid has made: inputs with their cells, how each came to be, and how it was judged."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from idc_core.base.arrays import Array, Floats, Ints
from idc_core.coverage.cells import Codes, decode, encode
from idc_core.datasets import Dataset
from idc_core.errors import DataError
from idc_core.evidence.validity import REJECTED, Validity
from idc_core.filling.common import Common, in_common
from idc_core.filling.settings import FillSettings
from idc_core.suites.custom_tests import SuiteFormat, suite_from_arrays
from idc_core.suites.suite import ProvenanceStep, Suite


@dataclass(frozen=True, eq=False)
class Filling:
    """Inputs made for uncovered cells.

    Attributes
    ----------
    layer : str
    important : ndarray, int64 (m,)
        The important neurons, most important first.
    sizes : tuple of int
        Clusters of each.
    covered : ndarray, int64 or object (covered cells,)
        Codes of the cells that the tests reach, ascending.
    cells : ndarray, uint8 (c, m)
        Uncovered cells that were tried.
    left_out : int
        Uncovered cells that were not, for the budget.
    inputs : ndarray, float32 (n, C, H, W)
        Pictures of 8 bits; those of a cell one after the other, the highest p-value first.
    cell : ndarray, int64 (n,)
        Row in `cells` of the cell that each lies in; ascending.
    way : ndarray, int64 (n,)
        Which of `ways` has made it.
    ways : tuple of ProvenanceStep
        In the order in which they were tried.
    origin : ndarray, int64 (n,)
        Number of the test that each was made of.
    partner : ndarray, int64 (n,)
        Number of the test that was blended with it; -1 of inputs that are no blends.
    targets : ndarray (n,)
        True class, or value, of that test.
    predictions : ndarray, int64 (n,)
        Predicted class; 0 for regression.
    change : ndarray, float64 (n,)
        Largest change of a value, 0..1.
    p : ndarray, float64 (n,)
        Conformal p-value.
    votes : ndarray, int64 (n,)
        Class for which more than half of the voters are; -1 without one.
    voters : tuple of str
        Names of the networks that voted.
    validity : Validity
        What is known of the detector.
    other_detectors : tuple of Validity
    passes : int
        Inputs that went through the network; one with its way back counts three times.
    seconds : float
    done : int
        Ways that were tried to their end.
    settings : FillSettings
        The budget.
    """

    layer: str
    important: Ints
    sizes: tuple[int, ...]
    covered: Codes
    cells: NDArray[np.uint8]
    left_out: int
    inputs: NDArray[np.float32]
    cell: Ints
    way: Ints
    ways: tuple[ProvenanceStep, ...]
    origin: Ints
    partner: Ints
    targets: Array
    predictions: Ints
    change: Floats
    p: Floats
    votes: Ints
    voters: tuple[str, ...]
    validity: Validity
    other_detectors: tuple[Validity, ...]
    passes: int
    seconds: float
    done: int
    settings: FillSettings

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def stopped(self) -> bool:
        """Whether something was left to try."""
        return self.done < len(self.ways)

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which inputs the detector accepts, (n,)."""
        return np.asarray(self.p > REJECTED)

    @property
    def labels(self) -> Array:
        """The class of each input, (n,): that of the vote, -1 without one; without voters its test's."""
        return self.votes if self.voters else self.targets

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Which inputs are valid and have a class, or a value, (n,)."""
        return self.valid & (self.labels >= 0) if self.voters else self.valid

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Which cells an input reaches, (c,)."""
        return self._holding(np.ones(len(self), bool))

    @property
    def reached_validly(self) -> NDArray[np.bool_]:
        """Which cells a valid input reaches, (c,)."""
        return self._holding(self.valid)

    @property
    def valid_codes(self) -> Codes:
        """Codes of the cells that valid inputs reach and tests do not, ascending."""
        return np.sort(self._codes(self.reached_validly))

    @property
    def best(self) -> Ints:
        """The input with the highest p-value of each cell, (c,); -1 where none reaches it."""
        best = np.full(len(self.cells), -1, np.int64)
        best[self.cell[::-1]] = np.arange(len(self))[::-1]
        return best

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """What names each input, whatever else is made: 16 hexadecimal digits of its values, (n,)."""
        return tuple(hashlib.blake2b(one.tobytes(), digest_size=8).hexdigest() for one in self.inputs)

    @cached_property
    def by_cell(self) -> dict[tuple[int, ...], Ints]:
        """The inputs that lie in each cell that some reach, (k,), the highest p-value first."""
        ends = np.searchsorted(self.cell, np.arange(len(self.cells) + 1))
        return {
            tuple(cell): np.arange(start, end, dtype=np.int64)
            for cell, start, end in zip(self.cells.tolist(), ends[:-1], ends[1:], strict=True)
            if end > start
        }

    @property
    def common(self) -> list[Common]:
        """What the cells that nothing reached have in common, against those that something does."""
        known = np.concatenate([decode(self.covered, self.sizes), self.cells[self.reached]])
        return in_common(self.cells[~self.reached], known)

    def common_words(self) -> list[str]:
        """Say what cells that nothing reached have in common, a sentence part for each condition."""
        missing = int((~self.reached).sum())
        return [
            f"{one.words(self.important.tolist(), self.sizes)}: {one.cells:,} of {missing:,} cells that nothing "
            f"reached, {one.others:,} of the reached ones"
            for one in self.common
        ]

    def _holding(self, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        holding = np.zeros(len(self.cells), bool)
        holding[self.cell[which]] = True
        return holding

    def _codes(self, which: NDArray[np.bool_]) -> Codes:
        return encode(self.cells[which], self.sizes)


def records(filling: Filling) -> list[dict[str, object]]:
    """Return one row per input, as plain values."""
    return [
        {
            "cell": "-".join(map(str, filling.cells[filling.cell[row]].tolist())),
            "test": int(filling.origin[row]),
            "blended_with": int(filling.partner[row]) if filling.partner[row] >= 0 else None,
            "way": filling.ways[filling.way[row]].label,
            "target": filling.targets[row].item(),
            "prediction": int(filling.predictions[row]),
            "vote": int(filling.votes[row]) if filling.votes[row] >= 0 else None,
            "p": float(filling.p[row]),
            "valid": bool(filling.valid[row]),
            "linf": float(filling.change[row]),
        }
        for row in range(len(filling))
    ]


def packed(filling: Filling) -> bytes:
    """Return the inputs with their cells and judgements as the content of an npz file."""
    content = io.BytesIO()
    np.savez_compressed(
        content,
        inputs=filling.inputs,
        cells=filling.cells[filling.cell],
        tests=filling.origin,
        partners=filling.partner,
        targets=filling.targets,
        predictions=filling.predictions,
        votes=filling.votes,
        p=filling.p,
        ways=np.array([filling.ways[way].label for way in filling.way], np.str_),
        valid_codes=filling.valid_codes,
    )
    return content.getvalue()


def suite_of(
    filling: Filling,
    test: Dataset,
    which: NDArray[np.bool_] | None = None,
    labels: Array | None = None,
    label: str = "Made for uncovered cells",
) -> Suite:
    """Return made inputs as a suite with how they came to be.

    Parameters
    ----------
    filling : Filling
    test : Dataset
        The tests that they were made of.
    which : ndarray of bool, shape (n,), optional
        Which inputs; default the `usable` ones.
    labels : ndarray, shape (n,), optional
        Their classes or values; default `Filling.labels`.
    label : str
        Its name.

    Raises
    ------
    DataError
        If none is left, or one of them has no class.
    """
    chosen = np.flatnonzero(filling.usable if which is None else which)
    if not len(chosen):
        raise DataError("No made input is valid and has a class: there is nothing to save.")
    partner = filling.partner[chosen]
    names = np.unique(np.concatenate([filling.origin[chosen], partner[partner >= 0]]))
    start = ProvenanceStep(
        "original", f"{len(names):,} of {len(test):,} tests of {test.name}", {"fingerprint": test.fingerprint}
    )
    used = [filling.ways[place] for place in np.unique(filling.way[chosen])]
    return suite_from_arrays(
        filling.inputs[chosen],
        np.asarray((filling.labels if labels is None else labels)[chosen]),
        SuiteFormat.of(test),
        label=label,
        origin=filling.origin[chosen],
        partner=partner,
        provenance=(start, *used),
        where="The made inputs",
    )
