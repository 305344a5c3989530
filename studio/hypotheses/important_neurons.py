"""Compare how strongly important neurons and others correlate with hypotheses."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.figures import hypotheses as figures
from idc_core.inspection.hypothesis import Hypothesis
from idc_core.inspection.result import compare_importance
from studio.hypotheses import hypothesis_pair
from studio.hypotheses.inspections import SOURCE, Measured
from studio.neurons.neuron import told
from studio.text import signed
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.inspection.result import Grid, ImportanceComparison

_CHANCE = 0.05
"""Important neurons stand out where at most such a share of random sets reaches as much."""


def draw(measured: Measured, grid: Grid, layer: str, pair: tuple[int, int], hypothesis: Hypothesis, label: str) -> None:
    """Show whether important neurons correlate more strongly with hypotheses than others."""
    _draw_importance(measured, grid, layer, label)
    hypothesis_pair.draw_behind(measured, grid, layer, pair, hypothesis)
    layout.computed(measured.view, "A unit's strongest score is its largest one, in size, over all hypotheses.", SOURCE)


def _draw_importance(measured: Measured, grid: Grid, layer: str, label: str) -> None:
    """Say and draw whether important neurons correlate more strongly with hypotheses than others."""
    view = measured.view
    if layer != view.setup.layer:
        st.caption(
            f"Important neurons are known for the setup's layer {view.setup.layer}; {layer} is shown. Choose the other "
            "one under Shown layer, or make this one the setup's layer in the tab One unit."
        )
        return
    analysis = view.analysis
    compared = _compared((measured.key, view.setup, view.card.fingerprint, layer, label), measured, grid, layer)
    text = _importance_sentence(compared, len(analysis.important))
    st.markdown(text)
    more = "Important neurons correlate more" if compared.chance <= _CHANCE else "Important neurons are like others"
    title = f"{more}: {compared.important:.2f} on average against {compared.others:.2f}"
    layout.chart(
        view,
        "importance-and-scores",
        lambda dark: figures.importance_against(
            analysis.importance,
            compared.best,
            analysis.important,
            [grid.names[at] for at in compared.which],
            title,
            label,
            dark=dark,
        ),
        alt=title,
        read="each point is one unit. x: relevance summed over the training inputs; y: its strongest score. Diamonds: "
        "important neurons. Click a point to select its unit.",
        depends=(measured.key, layer, label),
        table=pd.DataFrame(
            {
                "unit": np.arange(len(compared.best)),
                "relevance": analysis.importance,
                "strongest score": compared.best,
                "hypothesis": [grid.names[at] for at in compared.which],
                "important": np.isin(np.arange(len(compared.best)), analysis.important),
            }
        ),
        clicked=lambda points: hypothesis_pair.pick(
            measured, grid, layer, int(compared.which[told(points)]), told(points)
        ),
    )


@st.cache_resource(max_entries=24, show_spinner=False)
def _compared(depends: Hashable, _measured: Measured, _grid: Grid, layer: str) -> ImportanceComparison:
    """Compare once: the random sets take longer than the rest of the page."""
    analysis = _measured.view.analysis
    changes = _measured.found.units[_measured.view.card.name, layer][:, 1] > 0
    return compare_importance(_grid, analysis.importance, analysis.important, changes)


def _importance_sentence(told: ImportanceComparison, m: int) -> str:
    """Compare important neurons with the others in words."""
    if not np.isfinite(told.important + told.others):
        return "All varying units of the layer are important, or none is: there is nothing to compare."
    more = told.chance <= _CHANCE
    return (
        f"**The {m} important neurons correlate {'more' if more else 'no more'} strongly with hypotheses than "
        f"{'other' if more else 'random'} units: mean strongest score {told.important:.2f}, others "
        f"{told.others:.2f}.** {100 * told.chance:.2g}\u00a0% of random sets of {m} units reach as much. Over all "
        f"units, Spearman's correlation of importance and strongest score is {signed(told.correlation, '.2f')}."
        + (f" Constant units are left out: {told.still}." if told.still else "")
    )
