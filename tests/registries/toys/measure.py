"""A toy measure of a unit and a hypothesis: the absolute value of their correlation."""

from idc_core.inspection.measures import PAIR_MEASURES, PairMeasure, correlation
from idc_core.inspection.sums import Moments

PAIR_MEASURES["toy-measure"] = PairMeasure(
    "toy-measure",
    "Toy measure",
    "How far the unit rises or falls with the hypothesis.",
    "Nobody, 2026",
    ("binary", "number"),
    lambda x, y, classes, settings: Moments.of(x, y),
    "moments",
    lambda sums, encoder: abs(correlation(sums)),
)
