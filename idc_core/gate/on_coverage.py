"""The limit "coverage": IDC, or any other coverage criterion, of the tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from idc_core.base.parameters import shown
from idc_core.coverage import CRITERIA
from idc_core.coverage.uncovered import find_uncovered
from idc_core.errors import SettingError
from idc_core.gate.limits import NumberLimit, labelled, limit
from idc_core.gate.verdicts import Measured

if TYPE_CHECKING:
    from torch import nn

    from idc_core.coverage.registry import Criterion
    from idc_core.gate.bench import Bench


@limit("coverage")
@dataclass(frozen=True, kw_only=True)
class Coverage(NumberLimit):
    """A limit on a criterion's score, in the criterion's own unit.

    IDC is that of the check's layer and settings. Others have `parameters` of their own, and look at `layers`: by
    default the check's layer where the criterion usually looks at one, else all layers that are offered.
    """

    criterion: str = "idc"
    parameters: dict[str, object] = field(default_factory=dict)
    layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an unknown criterion and parameters that it does not have."""
        super().__post_init__()
        card = CRITERIA[self.criterion].card
        own = () if self.is_idc else tuple(name for name in card.defaults if name != "batch_size")
        unknown = next((name for name in self.parameters if name not in own), None)
        if unknown is not None:
            known = "are those of the check" if self.is_idc else f"are {', '.join(own) or 'none'}"
            raise SettingError(f"{self.criterion} has no parameter {shown(unknown)}; its parameters {known}")
        if self.is_idc and self.layers:
            raise SettingError("idc looks at the layer of the check; layers are for other criteria")

    @property
    def highest(self) -> float:
        """The largest value that the score can have."""
        return math.inf if CRITERIA[self.criterion].card.unit else 1.0

    @property
    def is_idc(self) -> bool:
        """Whether this is IDC itself, which the check's own settings describe."""
        return self.criterion == "idc"

    @property
    def label(self) -> str:
        """What is limited."""
        more = [f"({', '.join(self.layers)})"] if self.layers else []
        return labelled(self.criterion, self.parameters, CRITERIA[self.criterion].card.defaults, more)

    def made(self, model: nn.Module, layer: str, layers: tuple[str, ...]) -> Criterion:
        """Return the criterion, which has learned nothing yet."""
        make: Callable[..., Criterion] = CRITERIA[self.criterion]  # each has a constructor of its own
        chosen = self.layers or ((layer,) if CRITERIA[self.criterion].card.one_layer else layers)
        return make(model, chosen, **self.parameters)

    def measure(self, bench: Bench) -> Measured:
        """Return the score; of IDC with the first uncovered cells."""
        if not self.is_idc:
            return Measured(bench.scores[self.label])
        analysis = bench.analysis
        missing = find_uncovered(
            analysis.test_activations,
            analysis.assignments,
            analysis.centroids,
            analysis.important,
            analysis.train_activations,
        )
        return Measured(analysis.score, tuple(missing.lines()))
