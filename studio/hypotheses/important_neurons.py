"""What scores say beyond single pairs: of important neurons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idc_core.figures import hypotheses as figures
from idc_core.inspection.result import compare_importance
from studio.hypotheses import hypothesis_pair
from studio.hypotheses.inspections import Measured
from studio.widgets import layout
from studio.widgets.text import plural, signed

if TYPE_CHECKING:
    from idc_core.inspection.result import Grid, ImportanceComparison

CHANCE = 0.05
"""Important neurons stand out where at most such a share of random sets reaches as much."""


def draw_meaning(measured: Measured, grid: Grid, layer: str, label: str) -> None:
    """Say and draw whether important neurons go with hypotheses more than others."""
    view = measured.view
    if layer != view.bench.layer:
        return
    st.header("Do important neurons mean something?", anchor=False)
    analysis = view.analysis
    changes = measured.found.units[view.model.card.name, layer][:, 1] > 0
    told = compare_importance(grid, analysis.importance, analysis.important, changes)
    text = meaning_sentence(told, len(analysis.important))
    st.markdown(text)
    more = "Important neurons go more with hypotheses" if told.chance <= CHANCE else "Important neurons are like others"
    title = f"{more}: {told.important:.2f} on average against {told.others:.2f}"
    layout.chart(
        view,
        "meaning",
        lambda dark: figures.importance_against(
            analysis.importance,
            told.best,
            analysis.important,
            [grid.names[at] for at in told.which],
            title,
            label,
            dark=dark,
        ),
        alt=title,
        read="a mark is a unit; farther right the network's answers owe more to it, higher up it goes more with the "
        "hypothesis that suits it best. Diamonds are the bench's important neurons. Click a mark to look at its unit.",
        depends=(measured.key, layer, label),
        clicked=lambda points: hypothesis_pair.pick(
            measured,
            grid,
            layer,
            int(told.which[int(np.ravel(points[0]["customdata"])[0])]),
            int(np.ravel(points[0]["customdata"])[0]),
        ),
    )


def meaning_sentence(told: ImportanceComparison, m: int) -> str:
    """Compare important neurons with the others in words."""
    if not np.isfinite(told.important + told.others):
        return "All units of the layer that change are important ones, or none is: there is nothing to compare."
    more = told.chance <= CHANCE
    return (
        f"**The {m} important neurons go {'more' if more else 'no more than chance'} with something that can be named: "
        f"their strongest associations are {told.important:.2f} on average, those of the other units "
        f"{told.others:.2f}.** Of random sets of {m} units, {100 * told.chance:.2g} % reach as much. Over all units, "
        f"the rank correlation of importance and strongest association is {signed(told.correlation, '.2f')}."
        + (
            f" Left out {'are' if told.still > 1 else 'is'} {plural(told.still, 'unit')} that never change"
            f"{'' if told.still > 1 else 's'}."
            if told.still
            else ""
        )
    )
