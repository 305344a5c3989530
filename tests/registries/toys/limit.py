"""A toy kind of limit: the mean confidence of the predictions."""

from dataclasses import dataclass

from idc_core.gate.limits import NumberLimit, limit
from idc_core.gate.verdicts import Measured


@limit("toy-confidence")
@dataclass(frozen=True, kw_only=True)
class Confidence(NumberLimit):
    """A limit on the mean confidence."""

    @property
    def label(self) -> str:
        return "confidence"

    def measure(self, bench) -> Measured:
        return Measured(float(bench.predictions.confidence.mean()))
