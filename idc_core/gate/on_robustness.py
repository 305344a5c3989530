"""The limit "robust-accuracy": the share of tests that are classified correctly before and after an attack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from idc_core.base.parameters import settle, whole_number
from idc_core.base.ranges import ATTACKED, SEED
from idc_core.errors import CancelledError
from idc_core.gate.limits import NumberLimit, interval_line, labelled, limit
from idc_core.gate.verdicts import Measured
from idc_core.perturbation.attacks import ATTACKS

if TYPE_CHECKING:
    from idc_core.gate.bench import Bench


@limit("robust-accuracy")
@dataclass(frozen=True, kw_only=True)
class RobustAccuracy(NumberLimit):
    """A limit on the accuracy under an attack: of the first `inputs` tests, those correct before and after it."""

    attack: str
    parameters: dict[str, object] = field(default_factory=dict)
    inputs: int = int(ATTACKED.default)
    seed: int = int(SEED.default)

    def __post_init__(self) -> None:
        """Refuse an unknown attack and parameters outside their ranges."""
        super().__post_init__()
        chosen = ATTACKS[self.attack]
        settle(chosen.parameters, self.parameters, chosen.label)
        whole_number("inputs", self.inputs, 1, ATTACKED.high)
        SEED.check(self.seed)

    @property
    def label(self) -> str:
        """What is limited."""
        defaults = {parameter.name: parameter.default for parameter in ATTACKS[self.attack].parameters}
        more = (f"on {self.inputs} tests", *([f"seed={self.seed}"] if self.seed else []))
        return labelled(f"accuracy under {self.attack}", self.parameters, defaults, more)

    def measure(self, bench: Bench) -> Measured:
        """Attack the tests; return the share that is correct before and after."""
        bench.check_classes("robust-accuracy")
        result = bench.attack(self.attack, self.inputs, self.seed, self.parameters)
        if not result.complete:
            raise CancelledError(f"Stopped on request after {result.done:,} of {result.total:,} tests were attacked.")
        right = result.before == result.targets
        robust = right & (result.predictions == result.targets)
        line = f"{int((right & ~robust).sum()):,} of {int(right.sum()):,} correctly classified tests are misclassified."
        return Measured(float(robust.mean()), (line, interval_line(robust)))
