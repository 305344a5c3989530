"""The misclassified tests as pictures: live, or for the default setup from a file made beforehand."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import streamlit as st

from idc_core.analysis.overview import Overview
from idc_core.base.files import SHIPPED
from studio.jobs.overview import misclassified
from studio.jobs.results import View
from studio.widgets.gallery import draw_tiles, make_tiles, note

_KEPT = SHIPPED / "assets" / "overview-tests.json"
"""The default setup's, beside the numbers of the Overview."""

_SHOWN, _SHOWN_TEXTS = 10, 3
"""Tests shown, and the same for texts."""


@dataclass(frozen=True)
class _WorstTests:
    """A gallery of misclassified tests, and what is said below it."""

    tiles: list[dict[str, Any]]
    sheet: dict[str, Any] | None
    note: str


def _find(view: View) -> _WorstTests | None:
    """Return the misclassified tests of a setup; None if there are none."""
    positions = misclassified(view)
    if not len(positions):
        return None
    shown = positions[: _SHOWN if view.test.inputs.ndim == 4 else _SHOWN_TEXTS]
    return _WorstTests(*make_tiles(view, shown), note(view, len(shown), len(positions)))


def write(view: View) -> None:
    """Keep those of the default setup for the Overview's first second."""
    _KEPT.write_text(json.dumps(asdict(_find(view) or _WorstTests([], None, ""))) + "\n", encoding="utf-8")


def draw(shown: View | Overview) -> None:
    """Show the misclassified tests; a click selects one."""
    worst = _find(shown) if isinstance(shown, View) else _WorstTests(**json.loads(_KEPT.read_text(encoding="utf-8")))
    if worst is None or not worst.tiles:
        return
    order = "First those in a cell that no correctly classified test reaches; then the most confident."
    st.header("Misclassified tests", anchor=False, help=order)
    draw_tiles(worst.tiles, worst.sheet, "worst-tests")
    st.caption(worst.note)
