"""One hypothesis and one unit on the Hypotheses page: their ranks, single records, clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idc_core.errors import CancelledError
from studio.hypotheses import inspections
from studio.hypotheses.inspections import Measured, quoted
from studio.shell import tabs
from studio.state import address, choices
from studio.state.selection import select, selected
from studio.widgets import layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from idc_core.inspection import Hypothesis
    from idc_core.inspection.result import Grid

_HYPOTHESIS, _UNIT = "hypothesis", "unit"
"""Names in the address; the unit is the selected neuron where the layer is the setup's."""

_BEHIND, _TEXTS = 10, 3
"""Tests shown of a selected unit: pictures, and texts, which take a row each."""


def choose(measured: Measured, grid: Grid, layer: str) -> tuple[int, int]:
    """Return the selected hypothesis and unit; the strongest ones where none is chosen."""
    known = grid.score.shape[1]
    new, name = address.is_new(_HYPOTHESIS), address.read(_HYPOTHESIS)
    chosen = grid.names.index(name) if name in grid.names else None
    choices.not_there("Hypothesis", [name] if new and chosen is None else [])
    own = layer == measured.view.setup.layer
    unit = selected().neuron if own else address.position(address.read(_UNIT))
    if unit is not None and unit >= known:
        unit = None
    if chosen is None and unit is None:
        return grid.strongest()
    if chosen is None:
        return int(grid.hypotheses_of(int(unit or 0))[0]), int(unit or 0)
    return chosen, int(grid.units_of(chosen)[0]) if unit is None else unit


def pick(measured: Measured, grid: Grid, layer: str, hypothesis: int | None = None, unit: int | None = None) -> None:
    """Select another hypothesis, another unit, or both; for callbacks."""
    if hypothesis is not None:
        address.keep(_HYPOTHESIS, grid.names[hypothesis])
    if unit is None:
        return
    if layer == measured.view.setup.layer:
        select(neuron=unit)
    else:
        address.keep(_UNIT, str(unit))


def draw_behind(measured: Measured, grid: Grid, layer: str, pair: tuple[int, int], one: Hypothesis) -> None:
    """Show the tests that activate the selected unit most, and open the tab with more of the pair."""
    hypothesis, unit = pair
    positions = shown_records(measured)
    try:
        seen = inspections.look(measured.view, layer, unit, one, positions)
    except CancelledError:
        st.caption("Stopped before single tests were ready.")
        return
    strongest = positions[np.argsort(-seen.mean, kind="stable")]
    with st.container(horizontal=True, vertical_alignment="center"):
        pair_name = layout.label(f"Neuron {unit} and {quoted(grid.names[hypothesis])}")
        st.markdown(f"{pair_name}: {score_text(grid, hypothesis, unit)}", width="content")
        st.button("Open this neuron", key="open-unit", on_click=tabs.open_at, args=("hypotheses", "unit"))
    st.markdown(f"Tests that activate neuron {unit} most, of the first {len(positions)}:")
    layout.gallery(measured.view, strongest, _BEHIND if measured.view.has_pictures else _TEXTS, key="behind")


def significant(grid: Grid) -> NDArray[np.bool_]:
    """Return which associations are significant; all that have a score where the measure has no test."""
    return grid.passes if grid.tested else np.isfinite(grid.score)


def score_text(grid: Grid, hypothesis: int, unit: int) -> str:
    """Write a score with its confidence interval."""
    at = hypothesis, unit
    if not np.isfinite(grid.score[at]):
        return "without a score"
    text = f"{grid.score[at]:.2f}"
    return f"{text} ({grid.low[at]:.2f} to {grid.high[at]:.2f})" if np.isfinite(grid.low[at]) else text


def shown_records(measured: Measured) -> NDArray[np.int64]:
    """Return the tests on which a pair is shown: the first ones, and the selected one."""
    view, positions = measured.view, measured.view.chosen[: inspections.SHOWN_RECORDS]
    if view.position is not None and view.position not in positions:
        positions = np.append(positions, view.position)
    return np.asarray(positions, np.int64)
