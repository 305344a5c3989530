"""The limit "accuracy": the share of tests that are classified correctly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from idc_core.gate.limits import NumberLimit, interval_line, limit
from idc_core.gate.verdicts import Measured

if TYPE_CHECKING:
    from idc_core.gate.bench import Bench


@limit("accuracy")
@dataclass(frozen=True, kw_only=True)
class Accuracy(NumberLimit):
    """A limit on the accuracy on the tests."""

    @property
    def label(self) -> str:
        """What is limited."""
        return "accuracy"

    def measure(self, bench: Bench) -> Measured:
        """Return the accuracy."""
        bench.check_classes("accuracy")
        correct = bench.predictions.correct
        lines = (f"{int(correct.sum()):,} of {len(correct):,} tests are correct.", interval_line(correct))
        return Measured(float(correct.mean()), lines)
