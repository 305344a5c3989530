"""Ranges of the numbers, and options, that the command line, Python functions and addresses share. Needs no torch.

A number that only one function takes has its range there. Upper ends are far above what is of use: they tell a slip,
such as a zero too many, before the work instead of after hours, or of memory that is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from idc_core.base.parameters import MOST_WHOLE, Parameter, is_number, option, options_among, shown, whole_number
from idc_core.errors import SettingError

M = Parameter("m", "Important neurons", "More neurons make more cells.", 6, 1, 100_000)

SEED = Parameter("seed", "Seed", "The same seed gives the same result.", 0, 0, MOST_WHOLE)

INPUTS = Parameter("limit", "Inputs", "How many inputs are used.", 1_000, 1, 1_000_000_000)

DRAWS = Parameter("seeds", "Seeds", "How often what is random is repeated.", 5, 1, 10_000)

ROWS = Parameter("rows", "Rows", "How many rows are printed.", 20, 0, 1_000_000)

STARTS = Parameter("seeds", "Seeds", "How many tests a search starts from.", 50, 1, 1_000_000)

ITERATIONS = Parameter("iterations", "Maximum number of steps", "Per seed.", 50, 1, 100_000)

_DIFFERENCE = Parameter(
    "lambda1",
    "Weight of the difference (λ1)",
    "Weight of the model that is to lose the class, relative to the models that keep it.",
    1.0,
    0,
    1e6,
)

_GUIDANCE = Parameter("lambda2", "Weight of the guidance (λ2)", "Weight of the pull to uncovered targets.", 0.1, 0, 1e6)

_STEP = Parameter("step", "Step in grey levels", "Change of a picture in one step, of 255 levels.", 10.0, 0.001, 10_000)

_ACTIVATION = Parameter(
    "threshold", "Threshold of neuron coverage", "An activation above it counts as covered.", 0.0, -1e6, 1e6
)

_BOUND = Parameter(
    "bound",
    "Smallest disagreement",
    "Smallest difference of two predictions, in the targets' unit, that counts as a disagreement.",
    0.2,
    1e-6,
    1e6,
)

SHARE = Parameter("share", "Share", "Share of an input that is changed.", 0.02, 1e-6, 1)

SCALED = Parameter(
    "threshold",
    "Activation threshold",
    "A neuron is active where its output, scaled to 0..1 per layer, is above this.",
    0.5,
    0,
    1,
)

_ERROR = Parameter("error", "Error", "Largest distance of a score from its final value.", 0.05, 1e-6, 10)

RATE = Parameter("rate", "Rate", "Share of false discoveries that is allowed.", 0.05, 1e-9, 1)

UNITS = Parameter("units", "Units", "How many units are looked at.", 10, 1, 100_000)

PAIRS = Parameter("pairs", "Pairs", "How many swaps of each kind are compared.", 200, 10, 500)

SETS = Parameter("sets", "Sets", "How many random sets of units are drawn.", 99, 1, 100_000)

ATTACKED = Parameter("attacked", "Attacked tests", "How many tests are attacked.", 512, 0, 1_000_000)

EPOCH = Parameter("epoch", "Epoch", "After which epoch weights are kept.", 1, 0, 100_000)

BITS = Parameter("bits per weight", "Bits", "Fewer bits make coarser weights.", 4, 2, 16)

SIDE = Parameter("size", "Size", "Rows or columns of pictures.", 224, 1, 4_096)

MARGIN = Parameter("margin", "Margin", "Rows and columns cut off.", 0, 0, 4_096)

TOKENS = Parameter("length", "Length", "Tokens that a text is cut or padded to.", 200, 1, 100_000)

TEST_SHARE = Parameter("test share", "Test share", "Part of the inputs that become tests.", 0.2, 0.001, 0.999)

CLUSTERS = Parameter("clusters", "Clusters", "How many clusters a neuron has.", 3, 2, 256)
"""Cluster indices are kept as uint8."""

EPSILON = Parameter(
    "epsilon",
    "Epsilon",
    "Damps sums that nearly cancel; larger values give sparser heatmaps.",
    1e-6,
    1e-12,
    offered=(1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.25, 1.0),
)
"""Of 0 nothing is left that damps: that rule is called z."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How a differential search climbs.

    The `seed` is of the random choices: the model that is to lose the class, and the uncovered targets. The weights are
    lambda1 and lambda2 of the paper, at least 0; `step` is in grey levels of 255 (root mean square over what the
    constraint leaves free); `iterations` are the most steps from one seed. Where no guidance is given, a neuron counts
    as covered above `threshold`. Predictions of a regression differ by more than `bound`, in their unit. `objective` is
    a name from `OBJECTIVES`; "scores" is the paper's.
    """

    seed: int = option(0, "of everything that is random", SEED)
    weight_difference: float = option(
        1.0, "weight of the difference", _DIFFERENCE, "lambda1", key="search-weight_difference", slider=(0, 5, 0.1)
    )
    weight_coverage: float = option(
        0.1, "weight of the guidance", _GUIDANCE, "lambda2", key="search-weight_coverage", slider=(0, 5, 0.1)
    )
    step: float = option(10.0, "length of a step in grey levels", _STEP, key="search-step", slider=(1, 100, 1))
    iterations: int = option(50, "most steps from one seed", ITERATIONS, key="search-iterations", slider=(1, 200, 1))
    threshold: float = option(0.0, "of neuron coverage", _ACTIVATION, key="search-threshold", slider=(0, 5, 0.05))
    bound: float = option(
        0.2, "by how much predictions of a regression differ", _BOUND, key="search-bound", slider=(0.01, 1, 0.01)
    )
    objective: str = option("margin", "%(choices)s; scores is the paper's", "objectives")

    @property
    def options(self) -> dict[str, Any]:
        """The options alone, by name."""
        return {option.name: getattr(self, option.name) for option in SEARCH}


SEARCH = options_among(SearchOptions)
"""The options of a differential search."""


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """How an inspection reads records and trains probes; SettingError where a value is out of range.

    Reading stops once every score is within `error` of its value on all records, or has none because what it needs is
    in surely fewer than 1 in 100 records; None reads all. `confidence` is of this, and of intervals. At most `records`
    are read, drawn at random: the first ones of the order, which `seed` fixes, and with it thresholds and held-out
    records. The first `pilot` records give thresholds, bins, ranks and ranges. A probe is trained in at most `passes`
    over its records.
    """

    error: float | None = option(
        None, "stop once every score is within X of its final value (95 %% simultaneous confidence)", _ERROR
    )
    confidence: float = 0.95
    records: int | None = None
    seed: int = option(0, "fixes the order of the records", SEED)
    pilot: int = 1024
    passes: int = 300

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        if self.error is not None and not (is_number(self.error) and self.error > 0):
            raise SettingError(f"The error must be above 0, or None to read everything, not {shown(self.error)}.")
        if not (is_number(self.confidence, 0.5, 1) and self.confidence < 1):
            raise SettingError(f"The confidence must be at least 0.5 and below 1, not {shown(self.confidence)}.")
        SEED.check(self.seed)
        whole_number("pilot", self.pilot, 1)
        whole_number("passes", self.passes, 1)
        if self.records is not None:
            whole_number("records", self.records, 1)


INSPECT = options_among(InspectOptions)
"""Those of an inspection that the command line takes."""
