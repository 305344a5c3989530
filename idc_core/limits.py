"""Ranges of the numbers that the command line, Python functions and addresses share. Needs no torch.

A number that only one function takes has its range there. Upper ends are far above what is of use: they tell a slip,
such as a zero too many, before the work instead of after hours, or of memory that is not there.
"""

from __future__ import annotations

from idc_core.parameters import MOST_WHOLE, Parameter

M = Parameter("m", "Important neurons", "More neurons make more cells.", 6, 1, 100_000)

SEED = Parameter("seed", "Seed", "The same seed gives the same result.", 0, 0, MOST_WHOLE)

INPUTS = Parameter("limit", "Inputs", "How many inputs are used.", 1_000, 1, 1_000_000_000)

DRAWS = Parameter("seeds", "Seeds", "How often what is random is repeated.", 5, 1, 10_000)

ROWS = Parameter("rows", "Rows", "How many rows are printed.", 20, 0, 1_000_000)

STARTS = Parameter("seeds", "Seeds", "How many tests a search starts from.", 50, 1, 1_000_000)

ITERATIONS = Parameter("iterations", "Steps", "How far a search goes from one seed.", 50, 1, 100_000)

STEP = Parameter("step", "Step", "Length of a step of a search, in grey levels.", 10.0, 0.001, 10_000)

WEIGHT = Parameter("weight", "Weight", "How much a part of what a search raises counts.", 1.0, 0, 1e6)

BOUND = Parameter("bound", "Bound", "By how much predictions of a regression differ.", 0.2, 1e-6, 1e6)

ACTIVATION = Parameter("threshold", "Threshold", "Activation above which a neuron is active.", 0.0, -1e6, 1e6)

SHARE = Parameter("share", "Share", "Share of an input that is changed.", 0.02, 1e-6, 1)

SCALED = Parameter("threshold", "Threshold", "Scaled output above which a neuron is active.", 0.5, 0, 1)

ERROR = Parameter("error", "Error", "Largest distance of a score from its final value.", 0.05, 1e-6, 10)

RATE = Parameter("rate", "Rate", "Share of false discoveries that is allowed.", 0.05, 1e-9, 1)

UNITS = Parameter("units", "Units", "How many units are looked at.", 10, 1, 100_000)

PAIRS = Parameter("pairs", "Pairs", "How many swaps of each kind are compared.", 200, 10, 500)

SETS = Parameter("sets", "Sets", "How many random sets of units are drawn.", 99, 1, 100_000)

ATTACKED = Parameter("attacked", "Attacked tests", "How many tests are attacked.", 512, 0, 1_000_000)

EPOCH = Parameter("epoch", "Epoch", "After which epoch weights are kept.", 1, 0, 100_000)

BITS = Parameter("bits per weight", "Bits", "Fewer bits make coarser weights.", 4, 2, 16)

SIDE = Parameter("size", "Size", "Rows or columns of pictures.", 224, 1, 4_096)

MARGIN = Parameter("margin", "Margin", "Rows and columns cut off at the end.", 0, 0, 4_096)

TOKENS = Parameter("length", "Length", "Tokens that a text is cut or padded to.", 200, 1, 100_000)

TEST_SHARE = Parameter("test share", "Test share", "Part of the inputs that become tests.", 0.2, 0.001, 0.999)

CLUSTERS = Parameter("clusters", "Clusters", "How many clusters a neuron has.", 3, 2, 256)
"""Cluster indices are kept as uint8."""

EPSILON = Parameter(
    "epsilon",
    "Epsilon",
    "Damps sums that nearly cancel; larger values give sparser heatmaps.",
    1e-6,
    offered=(1e-9, 1e-6, 1e-3, 0.01, 0.1, 0.25, 1.0),
)
