"""The limit "confused-pairs": pairs of classes that the network confuses, and did not in the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from idc_core.base.parameters import whole_number
from idc_core.base.ranges import SCALED
from idc_core.base.registry import Registry
from idc_core.confusion import ClassErrors
from idc_core.errors import DataError, SettingError
from idc_core.gate.limits import Limit, labelled, limit
from idc_core.gate.verdicts import Measured, Value, Verdict

_Ints = NDArray[np.int64]

if TYPE_CHECKING:
    from idc_core.gate.bench import Bench


def _by_labels(found: ClassErrors) -> _Ints:
    pairs = np.argwhere(np.triu(np.ones_like(found.distance), 1))  # also of classes that are never predicted
    certain = found.certainly_confused(pairs)
    if certain is None:
        raise DataError(
            "No pair of classes can be compared by labels: the tests have other classes than the network, or tests of "
            'too few of them. by = "activations" needs no labels.'
        )
    confused: _Ints = pairs[certain]
    return confused


def _by_activations(found: ClassErrors) -> _Ints:
    reported: _Ints = found.suspected[found.distance[tuple(found.suspected.T)] < found.confusion_cutoff]
    return reported


_WAYS: Registry[Callable[[ClassErrors], _Ints]] = Registry(
    "way to tell confused pairs", {"labels": _by_labels, "activations": _by_activations}
)
"""Which pairs of classes count as confused, int64 (k, 2)."""


@limit("confused-pairs")
@dataclass(frozen=True, kw_only=True)
class ConfusedPairs(Limit):
    """A limit on the number of confused pairs that the baseline does not have.

    By labels, a pair is confused where it is certainly so (`ClassErrors.certainly_confused`); by activations, where it
    is reported without labels.
    """

    at_most_new: int = 0
    by: str = "labels"
    threshold: float = float(SCALED.default)
    layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers outside their ranges."""
        _ = _WAYS[self.by]
        whole_number("at_most_new", self.at_most_new)
        SCALED.check(self.threshold)
        if self.by == "labels" and (self.layers or self.threshold != SCALED.default):
            raise SettingError('layers and threshold are for by = "activations"')

    @property
    def label(self) -> str:
        """What is limited."""
        more = [f"({', '.join(self.layers)})"] if self.layers else []
        given: dict[str, object] = {"by": self.by, "threshold": self.threshold}
        return labelled("confused pairs", given, {"by": "labels", "threshold": SCALED.default}, more)

    @property
    def needs_baseline(self) -> bool:
        """What is new is told by a baseline."""
        return True

    def measure(self, bench: Bench) -> Measured:
        """Return the confused pairs, by the names of their classes."""
        errors = bench.class_errors(self.layers, self.threshold)
        pairs = _WAYS[self.by](errors)
        names = errors.class_names
        value = sorted((names[a], names[b]) for a, b in pairs.tolist())
        found = [errors.pair_finding((a, b)) for a, b in pairs.tolist()]
        if self.by == "activations":
            found.append(errors.report_finding)
        return Measured(value, findings=tuple(finding for finding in found if finding is not None))

    def judge(self, measured: Measured, before: Value | None) -> Iterator[Verdict]:
        """Yield the verdict: how many pairs are new."""
        if not isinstance(before, list) or not isinstance(measured.value, list):
            raise DataError(f"The baseline holds no pairs for {self.label}: write it again with --write-baseline.")
        known = {frozenset(pair) for pair in before}
        new = [pair for pair in measured.value if frozenset(pair) not in known]
        bound = f"at most {self.at_most_new} new"
        shown = f"{len(measured.value)}, {len(new)} new"
        if len(new) <= self.at_most_new:
            yield Verdict(self.label, bound, "kept", shown, str(len(before)))
            return
        listed = "; ".join(f"{a} and {b}" for a, b in new)
        sentence = f"{shown} {self.label}; at most {self.at_most_new} may be new: {listed}."
        yield Verdict(self.label, bound, "broken", shown, str(len(before)), sentence, measured.lines)
