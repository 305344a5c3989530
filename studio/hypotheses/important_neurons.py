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


def draw(measured: Measured, grid: Grid, layer: str, pair: tuple[int, int], hypothesis: Hypothesis, label: str) -> None:
    """Show whether important neurons correlate more strongly with hypotheses than others."""
    _draw_importance(measured, grid, layer, label)
    hypothesis_pair.draw_behind(measured, grid, layer, pair, hypothesis)
    layout.computed(
        measured.view, "A neuron's strongest score is its largest one, in size, over all hypotheses.", SOURCE
    )


def _draw_importance(measured: Measured, grid: Grid, layer: str, label: str) -> None:
    """Say and draw whether important neurons correlate more strongly with hypotheses than others."""
    view = measured.view
    if layer != view.setup.layer:
        st.caption(
            f"Important neurons are known for the setup's layer {view.setup.layer}; {layer} is shown. Choose the other "
            "one under Shown layer, or make this one the setup's layer in the tab One neuron."
        )
        return
    analysis = view.analysis
    compared = _compared((measured.key, view.setup, view.card.fingerprint, layer, label), measured, grid, layer)
    finding = compared.finding
    title = layout.topic("Importance and strongest score of the neurons")
    if finding is None:
        st.markdown("All varying neurons of the layer are important, or none is: there is nothing to compare.")
    else:
        title = layout.claim(finding)
        st.markdown(_on_all_units(compared))
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
        read="each point is one neuron. x: relevance summed over the training inputs; y: its strongest score. "
        "Diamonds: "
        "important neurons. Click a point to select its neuron.",
        depends=(measured.key, layer, label),
        table=pd.DataFrame(
            {
                "neuron": np.arange(len(compared.best)),
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


def _on_all_units(told: ImportanceComparison) -> str:
    """Say how importance and strongest score are correlated."""
    still = f" Constant neurons are left out: {told.still}." if told.still else ""
    related = signed(told.correlation, ".2f")
    return f"Over all neurons, Spearman's correlation of importance and strongest score is {related}.{still}"
