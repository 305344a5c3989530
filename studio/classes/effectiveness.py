"""What inspecting the most suspected pairs first saves, where labels tell which pairs are truly confused."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.confusion.evaluation import Curve, Evaluation, cost_effectiveness
from idc_core.figures import classes as figures
from studio.classes.class_errors import SOURCE, Looked
from studio.jobs.results import View
from studio.text import signed
from studio.widgets import layout

_Search = tuple[NDArray[np.float64] | None, NDArray[np.float64] | None, Literal["low", "high"], Evaluation | None]

_CONFUSED, _UNEQUAL = "confused pairs", "unequally treated pairs"


def draw(view: View, looked: Looked) -> None:
    """Show what inspecting the most suspected pairs first saves."""
    _draw_curves(view, looked)
    layout.computed(
        view,
        f"Reported are pairs {looked.found.deviations:g} SD below the mean distance, or above the mean bias. True are "
        "pairs whose confusion, or disparity, is as far above the mean of all pairs. That counts pairs by the paper's "
        "cut-off, also where a single misclassified input confirms one. Truly confused pairs are certain as well.",
        SOURCE,
    )


def _draw_curves(view: View, looked: Looked) -> None:
    """Draw the cost-effectiveness curves of inspecting the most suspected pairs first, and count what is reported."""
    result = looked.found
    searches: dict[str, _Search] = {
        _CONFUSED: (result.distance, result.confusion, "low", result.confusion_found),
        _UNEQUAL: (result.bias, result.disparity, "high", result.bias_found),
    }
    curves: dict[str, Curve] = {}
    evaluations: dict[str, Evaluation] = {}
    for name, (score, truth, errors, evaluation) in searches.items():
        if score is not None and truth is not None and evaluation is not None and evaluation.true_pairs:
            curves[name] = cost_effectiveness(score, truth, errors, result.deviations)
            evaluations[name] = evaluation
    if not curves:
        st.caption("There are no labels, or no truly confused pair: cost-effectiveness is not defined.")
        return
    finding = result.report_finding
    title = layout.topic("Pairs found by inspecting the most suspected first")
    if finding is not None:
        title = layout.claim(finding)
    layout.chart(
        view,
        "effectiveness",
        lambda dark: figures.cost_effectiveness(curves, title, dark=dark),
        alt=title,
        read="x: share of the pairs inspected, most suspected first; y: share of the truly confused (or unequally "
        "treated) pairs among them. Gain: additional area under the curve compared with a random order.",
        depends=looked.key,
        table=pd.concat([_points(name, curve) for name, curve in curves.items()]),
    )
    st.markdown("**Reported pairs, compared with labels by the paper's cut-offs**")
    st.dataframe(
        pd.DataFrame([_row(name, one) for name, one in evaluations.items()]),
        hide_index=True,
        height="content",
        alt="Reported pairs compared with labels, for confusion and for unequal treatment",
    )


def _points(name: str, curve: Curve) -> pd.DataFrame:
    return pd.DataFrame(
        {"search": name, "inspected": curve.inspected, "found": curve.found, "best possible": curve.optimal}
    )


def _row(name: str, one: Evaluation) -> dict[str, str | int]:
    """Count what the cut-off reports."""
    reported = one.at_deviations
    return {
        "search": name,
        "pairs": one.pairs,
        "true": one.true_pairs,
        "reported": reported.reported,
        "of them true": reported.true_positives,
        "precision": "" if np.isnan(reported.precision) else _percent(reported.precision),
        "recall": "" if np.isnan(reported.recall) else _percent(reported.recall),
        "Spearman's correlation": "" if np.isnan(one.spearman) else signed(one.spearman, ".2f"),
        "gain": _percent(one.gain),
        "best possible gain": _percent(one.optimal_gain),
    }


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%".replace("-", "\u2212")
