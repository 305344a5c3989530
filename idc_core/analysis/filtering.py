"""Which tests are looked at: by class, prediction, confidence, cell, and what misclassified ones most likely are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError
from idc_core.evidence.mistakes import Mistakes, Reason

if TYPE_CHECKING:
    from idc_core.analysis.result import Analysis
    from idc_core.datasets import Dataset

SUSPECTS = (Reason.LABEL, Reason.OUTSIDE, Reason.AMBIGUOUS)
"""What makes a misclassified test a suspect: anything but the network's own error."""

ALL_CONFIDENCES = (0.0, 1.0)

CORRECT = {True: "correctly classified", False: "misclassified"}
"""What a person calls predictions that are right, and wrong."""


@dataclass(frozen=True)
class Conditions:
    """What a test must meet; empty, or the whole range of confidence, where everything passes.

    `classes` are names of true classes, `predicted` of predicted ones; `correct` says whether the prediction is right;
    `confidence` is the lowest and highest softmax probability of the predicted class, both included; `cell` holds one
    cluster per important neuron; `without` are the kinds of suspects that are left out.
    """

    classes: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()
    correct: bool | None = None
    confidence: tuple[float, float] = ALL_CONFIDENCES
    cell: tuple[int, ...] = ()
    without: tuple[Reason, ...] = ()

    @property
    def words(self) -> str:
        """The conditions as they are said behind "tests"; empty where everything passes."""
        low, high = self.confidence
        return ", ".join(
            text
            for is_set, text in (
                (self.classes, f"of class {', '.join(self.classes)}"),
                (self.predicted, f"classified as {', '.join(self.predicted)}"),
                (self.correct is not None, CORRECT[bool(self.correct)]),
                (self.confidence != ALL_CONFIDENCES, f"with confidence {low:g} to {high:g}"),
                (self.cell, f"in cell {'-'.join(map(str, self.cell))}"),
                (self.without, f"without suspects ({', '.join(self.without)})"),
            )
            if is_set
        )

    def positions(
        self, test: Dataset, analysis: Analysis, predictable: Sequence[str], mistakes: Mistakes | None = None
    ) -> NDArray[np.int64]:
        """Return the positions of the tests that meet all conditions, ascending.

        `predictable` are the names of the classes that the network predicts; `mistakes`, of all tests, are needed where
        suspects are left out, else SettingError. None meets a class that is not there, or a cell of another number of
        neurons.
        """
        inside = np.zeros(len(test), bool)
        inside[of_classes(test.targets, test.class_names, self.classes)] = True
        if self.predicted:
            inside &= np.isin(analysis.predictions, _numbers(self.predicted, predictable))
        if self.correct is not None:
            inside &= analysis.correct == self.correct
        if self.confidence != ALL_CONFIDENCES:
            low, high = self.confidence
            inside &= (analysis.confidence >= low) & (analysis.confidence <= high)
        if self.cell:
            fits = len(self.cell) == analysis.m
            inside &= (analysis.assignments == np.array(self.cell)).all(axis=1) if fits else False
        if self.without:
            if mistakes is None:
                raise SettingError("Suspects can be left out only where the mistakes are judged: pass them, too.")
            for reason in self.without:
                inside[mistakes.of(reason)] = False
        return np.flatnonzero(inside).astype(np.int64)


def of_classes(targets: NDArray[np.generic], known: Sequence[str], classes: Sequence[str]) -> NDArray[np.int64]:
    """Return the positions of the inputs whose true class is one of `classes`; of all inputs where none is named.

    `targets` (n,) are numbers of the `known` classes.
    """
    if not classes:
        return np.arange(len(targets), dtype=np.int64)
    return np.flatnonzero(np.isin(targets, _numbers(classes, known))).astype(np.int64)


def _numbers(names: Sequence[str], known: Sequence[str]) -> list[int]:
    return [known.index(name) for name in names if name in known]
