"""The limit "faults": which share of the distinct faults the tests are expected to find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from idc_core.gate.limits import NumberLimit, limit
from idc_core.gate.verdicts import Measured

if TYPE_CHECKING:
    from idc_core.gate.bench import Bench


@limit("faults")
@dataclass(frozen=True, kw_only=True)
class PredictedFaults(NumberLimit):
    """A limit on the share of distinct faults that the tests are expected to find, by their mutation score."""

    @property
    def label(self) -> str:
        """What is limited."""
        return "predicted share of faults"

    def measure(self, bench: Bench) -> Measured:
        """Mutate the network; return the share that the kept relation gives the tests' mutation score."""
        from idc_core.worth.fault_suites import mutation_score
        from idc_core.worth.published import kept_relation

        bench.check_classes("faults")
        relation = kept_relation(bench.model.card.name)
        score = mutation_score(bench.model, bench.train, bench.test, on_progress=bench.on_progress)
        found = relation.predict(score)
        lines = (
            f"The tests kill {100 * score:.1f} % of the mutants that they or training inputs kill.",
            f"Its interval is {found.low:.4f} to {found.high:.4f}: of a further network like the {relation.networks} "
            "that it is learned on, it holds 90 % of the suites with a probability of about 80 %.",
        )
        return Measured(found.share, lines)
