"""Test sets: suites side by side, by the cells that each adds to the original tests."""

from __future__ import annotations

from functools import partial

from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.testsets import added_inputs, comparison_charts, own_suites, suite_controls

PAGE = PageEntry(
    "Test sets",
    ":material/science:",
    "Which additional tests are worth having?",
    "Noise, transforms, attacks, subsets and your own tests, compared by the cells that each adds.",
    section="Challenge",
    place=100,
    tabs={"compare": "Compare", "overlap": "Overlap", "adding": "Inputs that add cells", "own": "Your suites"},
    controls={"shown": "adding", "cells-m": "adding", "pick": "adding"},
    selects=("pick",),
    opens=("comparisons",),
)

_view = current_view()
_names = suite_controls.choose(_view)
tabs.draw(
    "testsets",
    {
        "compare": partial(comparison_charts.draw_compared, _view, _names),
        "overlap": partial(comparison_charts.draw_overlap, _view, _names),
        "adding": partial(added_inputs.draw, _view, _names),
        "own": partial(own_suites.draw, _view, _names),
    },
)
