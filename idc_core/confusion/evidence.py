"""What is known of predictions, of a network here or from a person's own file; classes taken together in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.confusion.ground_truth import Labels, check_labels, check_together
from idc_core.confusion.probability_matrix import ActivationCounts
from idc_core.confusion.scaled_activation import Statistics
from idc_core.errors import DataError, SettingError

if TYPE_CHECKING:
    from idc_core.datasets import Dataset

_Groups = Mapping[str, Sequence[int]]

MOST_CLASSES = 5000
"""Classes at most: every two are compared."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Predictions, and how strongly the inputs behind them activate the neurons; DataError if the parts do not fit.

    `predicted` and `true` are classes, int64 (n,), or bool (n, classes) with several labels per input; None where not
    known. `values` (n, neurons) are mean scaled outputs; `probability` (neurons, classes) is given instead, with the
    `counts` that it was made from where they are known. `notes` say how a file was read, each in a few words.
    """

    class_names: tuple[str, ...]
    predicted: Labels | None = None
    true: Labels | None = None
    values: NDArray[np.floating] | None = None
    probability: NDArray[np.floating] | None = None
    counts: ActivationCounts | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        classes = len(self.class_names)
        check_count(classes)
        if len(set(self.class_names)) < classes or classes < 2:
            raise DataError(f"Expected two or more classes with different names; there are {classes}.")
        if (self.values is None) == (self.probability is None):
            raise DataError("Expected either activations of inputs or a probability matrix.")
        for name, what in (("predicted", "predictions"), ("true", "true labels")):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_labels(getattr(self, name), classes, what))
        if self.values is not None and (self.predicted is None or len(self.predicted) != len(self.values)):
            count = 0 if self.predicted is None else len(self.predicted)
            raise DataError(
                f"There are activations of {len(self.values):,} inputs and predictions of {count:,}; expected both of "
                "the same inputs."
            )
        if self.probability is not None and self.probability.shape[1:] != (classes,):
            raise DataError(
                f"The probability matrix has shape {self.probability.shape}; expected one row per neuron and one "
                f"column for each of {classes} classes."
            )
        if self.true is not None and self.predicted is not None:
            check_together(self.true, self.predicted)

    @property
    def several_labels(self) -> bool:
        """Whether an input can have several classes."""
        return self.predicted is not None and self.predicted.ndim == 2

    @property
    def neurons(self) -> int:
        """Number of neurons."""
        return self.values.shape[1] if self.values is not None else len(np.asarray(self.probability))

    def grouped(self, groups: _Groups) -> Evidence:
        """Return the evidence with some classes joined into named groups; the others stay, before the groups.

        Raises SettingError if a group is empty, a class is in two groups, or a name is there already; DataError if only
        a probability matrix is known, which does not tell how often each class was predicted.
        """
        if not groups:
            return self
        target, names = _mapping(self.class_names, groups)
        counts = None if self.counts is None else self.counts.together(target, len(names))
        if self.values is None and counts is None:
            raise DataError(
                "Classes cannot be taken together in a probability matrix: it does not say how often each was "
                "predicted. Load activations and predictions instead."
            )
        return replace(
            self,
            class_names=names,
            predicted=_together(self.predicted, target, len(names)),
            true=_together(self.true, target, len(names)),
            probability=None if counts is None else counts.probability,
            counts=counts,
        )


def check_count(classes: int, where: str = "") -> None:
    """Raise DataError, before anything is made of every two, where there are more than `MOST_CLASSES` classes."""
    if classes > MOST_CLASSES:
        raise DataError(
            f"{where}{': ' if where else ''}expected at most {MOST_CLASSES:,} classes, of which every two are "
            f"compared; there are {classes:,}."
        )


def network_evidence(statistics: Statistics, data: Dataset, class_names: Sequence[str]) -> Evidence:
    """Return the evidence of a network's own predictions on a data set, from its statistics on the same inputs.

    True classes are taken along only where the data set's classes are the network's. DataError if the network does not
    separate classes, or the statistics are of other inputs.
    """
    true = _true_classes(len(statistics.values), data, class_names)
    return Evidence(tuple(class_names), statistics.predictions, true, values=statistics.values)


def counted_evidence(
    counts: ActivationCounts, predicted: NDArray[np.int64], data: Dataset, class_names: Sequence[str]
) -> Evidence:
    """Return the evidence of counts over a data set, at their threshold; as `network_evidence`."""
    true = _true_classes(len(predicted), data, class_names)
    return Evidence(tuple(class_names), predicted, true, probability=counts.probability, counts=counts)


def _true_classes(count: int, data: Dataset, class_names: Sequence[str]) -> NDArray[np.generic] | None:
    """Return the true classes where they are the network's, of as many inputs as were run."""
    if len(class_names) < 2:
        raise DataError("This network answers with a number: there are no classes that it could confuse.")
    if count != len(data):
        raise DataError(f"There are activations of {count:,} inputs; expected the {len(data):,} tests.")
    return data.targets if tuple(class_names) == tuple(data.class_names) else None


def parse_groups(text: str, class_names: Sequence[str]) -> dict[str, list[int]]:
    """Read groups such as ``pets: cat, dog``, one per line or separated by semicolons; SettingError for others."""
    places = {name: index for index, name in enumerate(class_names)}
    groups: dict[str, list[int]] = {}
    for line in text.replace(";", "\n").splitlines():
        if not line.strip():
            continue
        name, colon, members = line.partition(":")
        classes = [part.strip() for part in members.split(",") if part.strip()]
        unknown = [class_name for class_name in classes if class_name not in places]
        if not colon or not name.strip() or not classes:
            raise SettingError(f"Expected a group as 'name: class, class', not {line.strip()!r}.")
        if unknown:
            some = ", ".join(class_names[:12]) + (" ..." if len(class_names) > 12 else "")
            raise SettingError(f"There is no class {unknown[0]!r}; the classes are {some}.")
        if name.strip() in groups:
            raise SettingError(f"Group {name.strip()!r} is there twice.")
        groups[name.strip()] = [places[class_name] for class_name in classes]
    return groups


def grouped_names(class_names: tuple[str, ...], groups: _Groups) -> tuple[str, ...]:
    """Return the names of the classes once some are joined into groups: the others, then the groups."""
    return _mapping(class_names, groups)[1]


def _mapping(class_names: tuple[str, ...], groups: _Groups) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the new class of every class, and the new names."""
    target = np.full(len(class_names), -1, np.int64)
    grouped = [member for members in groups.values() for member in members]
    rest = [index for index in range(len(class_names)) if index not in set(grouped)]
    names = (*(class_names[index] for index in rest), *groups)
    twice = next((member for member in grouped if grouped.count(member) > 1), None)
    if twice is not None:
        raise SettingError(f"Class {class_names[twice]!r} is in two groups, or twice in one; expected it once.")
    if len(set(names)) < len(names) or not all(len(members) for members in groups.values()):
        raise SettingError("Expected groups of at least one class, with names that no other class has.")
    target[rest] = np.arange(len(rest))
    for place, members in enumerate(groups.values(), len(rest)):
        target[list(members)] = place
    return target, names


def _together(
    labels: NDArray[np.generic] | None, target: NDArray[np.int64], classes: int
) -> NDArray[np.generic] | None:
    if labels is None or labels.ndim == 1:
        return None if labels is None else target[labels]
    joined = np.zeros((len(labels), classes), bool)
    for old, new in enumerate(target):
        joined[:, new] |= labels[:, old]
    return joined
