"""The budget by which a grid is filled. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

from idc_core.base.parameters import Parameter, option, options_among
from idc_core.base.ranges import ITERATIONS, SEED, STARTS

_CHANGED = Parameter("changed", "Changed tests", "More tests reach more cells and take longer.", 2_000, 0, 1_000_000)

_CHANGE = Parameter("largest_change", "Largest change", "Of a value in 0..1 in the directed search.", 0.3, 1 / 255, 1)

_CELLS = Parameter("cells", "Cells", "How many uncovered cells are tried at most.", 2_000, 1, 1_000_000)

_KEPT = Parameter("kept", "Inputs per cell", "How many inputs of a cell are kept.", 4, 1, 1_000)


@dataclass(frozen=True, kw_only=True)
class FillSettings:
    """The budget: what is tried for a cell before it counts as not reached; SettingError where a value is out of range.

    Transforms, noise and blends change `changed` tests, drawn by the `seed`. The directed search starts from the
    `starts` tests closest to a cell, takes at most `iterations` steps and changes a value by at most `largest_change`.
    Of more than `cells` uncovered cells those that border on most covered ones are tried. `kept` inputs of a cell are
    kept, those with the highest p-values.
    """

    seed: int = option(0, "of everything that is random", SEED)
    changed: int = option(2_000, "tests that transforms, noise and blends change", _CHANGED)
    starts: int = option(16, "closest tests from which the directed search for a cell starts", STARTS)
    iterations: int = option(40, "most steps of the directed search", ITERATIONS)
    largest_change: float = option(0.3, "largest change of a value in the directed search", _CHANGE)
    cells: int = option(2_000, "most uncovered cells that are tried", _CELLS)
    kept: int = option(4, "inputs of a cell that are kept", _KEPT)

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for one in FILL:
            if one.parameter is not None:
                one.parameter.check(getattr(self, one.name))

    @property
    def words(self) -> str:
        """The budget for a person."""
        return (
            f"{self.changed:,} changed tests per transform, then {self.iterations} steps from {self.starts} tests per "
            f"cell with changes of at most {self.largest_change:g}"
        )


FILL = options_among(FillSettings)
"""The options of filling a grid."""
