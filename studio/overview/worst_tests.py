"""The misclassified tests as pictures: live, or for a shipped setup from a file made beforehand."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.analysis.overview import worst_tests
from idc_core.coverage.cell_table import among
from idc_core.coverage.cells import encode
from studio.jobs.overview import Snapshot
from studio.jobs.results import View
from studio.widgets.gallery import draw_tiles, make_tiles, note

PART = "tests"
"""The part of a shipped Overview that holds them."""

_SHOWN, _SHOWN_TEXTS = 7, 2
"""Tests shown, one row of pictures, and the same for texts."""


@dataclass(frozen=True)
class _WorstTests:
    """A gallery of misclassified tests, and what is said below it."""

    tiles: list[dict[str, object]]
    sheet: dict[str, object] | None
    note: str


def _find(view: View) -> _WorstTests | None:
    """Return the misclassified tests of a setup; None if there are none."""
    positions = _misclassified(view)
    if not len(positions):
        return None
    shown = positions[: _SHOWN if view.has_pictures else _SHOWN_TEXTS]
    return _WorstTests(*make_tiles(view, shown), note(view, len(shown), len(positions)))


def _misclassified(view: View) -> NDArray[np.int64]:
    """Return the positions of the misclassified tests, the most telling first; none where none can be misclassified."""
    if view.correct is None:
        return view.chosen[:0]
    lonely = among(view.analysis.codes, encode(view.table.cells[view.errors_only], view.sizes))
    return worst_tests(view.chosen, view.correct, view.analysis.confidence, lonely)


def part(view: View) -> dict[str, object]:
    """Return what the file of a view's misclassified tests holds."""
    return asdict(_find(view) or _WorstTests([], None, ""))


def draw(shown: View | Snapshot) -> None:
    """Show the misclassified tests; a click selects one."""
    worst = _find(shown) if isinstance(shown, View) else _WorstTests(**shown.part(PART))
    if worst is None or not worst.tiles:
        return
    order = "First those in a cell that no correctly classified test reaches; then the most confident."
    st.header("Misclassified tests", anchor=False, help=order)
    draw_tiles(worst.tiles, worst.sheet, "worst-tests")
    st.caption(worst.note)
