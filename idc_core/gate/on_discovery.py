"""The limit "new-cell": the chance that the next test reaches a cell that no test reaches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from idc_core.base.parameters import Parameter
from idc_core.coverage.discovery import FEWEST, second_half
from idc_core.evidence.discovery import Discovery
from idc_core.gate.limits import Limit, decimals, exact, judged, limit, number
from idc_core.gate.verdicts import Measured, Value, Verdict

if TYPE_CHECKING:
    from idc_core.gate.bench import Bench


@limit("new-cell")
@dataclass(frozen=True, kw_only=True)
class NewCell(Limit):
    """A limit on how much the tests leave to be found: broken where the chance of a new cell is above `at_most`.

    The chance is of IDC with the check's layer and settings, as `idc_core.discovery` estimates it.
    """

    at_most: float

    def __post_init__(self) -> None:
        """Refuse a bound that can never be kept or never be broken."""
        Parameter("at_most", "", "", 0.0, 0, 1).check(self.at_most)

    @property
    def label(self) -> str:
        """What is limited."""
        return "chance of a new cell"

    @property
    def needs_baseline(self) -> bool:
        """It compares with a number of the file."""
        return False

    def measure(self, bench: Bench) -> Measured:
        """Return the chance; its interval, what more tests would reach, and what one half of them says of the other."""
        analysis = bench.analysis
        left = Discovery.of_counts(np.unique(analysis.codes, return_counts=True)[1], analysis.total)
        expected, low, high = left.new(left.inputs)
        lines = (
            f"Its 95 % interval is {left.low:.4f} to {left.high:.4f}.",
            f"{left.inputs:,} more tests would reach about {expected:.0f} new cells ({low:,} to {high:,}).",
        )
        halves = (second_half(analysis.codes),) if len(analysis.codes) >= FEWEST else ()
        return Measured(left.chance, lines, halves)

    def judge(self, measured: Measured, before: Value | None) -> Iterator[Verdict]:
        """Yield the verdict."""
        value = number(measured.value, self.label)
        now = decimals(value, self.at_most)
        sentence = f"{self.label} is {now}, above its maximum of {self.at_most:g}."
        broken = exact(value) > exact(self.at_most)
        yield judged(self.label, f"at most {self.at_most:g}", broken, now, "", sentence, measured.lines)
