"""Compare other ways to cluster by the number of cells, computed from the traces that are there."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from idc_core.analysis.cluster_choices import ClusterChoice, try_choices
from idc_core.base.progress import Progress
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage.idc_settings import CONTROLS
from idc_core.figures.clusters import choices
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state.selection import Point, carried, select
from studio.text import lower
from studio.widgets import layout

_LABELS = {name: entry.label for name, entry in CLUSTERINGS.items()}


def draw(view: View) -> None:
    """Show how many cells every choice makes, and how many of them the tests cover."""
    others = st.toggle(
        "Add the other clustering methods",
        key="other-ways",
        bind="query-params",
        help="Adds all clustering methods, which takes seconds to minutes on large training sets. Default off.",
    )
    own = view.setup.options["clustering"]
    names = [own, *(name for name in CLUSTERINGS if name != own)] if others else [own]
    waiting = Waiting(2 * len(names))
    outcomes = [outcome for name in names for drop in (False, True) for outcome in _outcomes(waiting, view, name, drop)]
    drawn = [outcome for outcome in outcomes if outcome.index == "silhouette"]
    present = next(outcome for outcome in drawn if _settings(outcome).items() <= view.setup.options.items())
    title = layout.topic("Cells, and covered cells, of every way to cluster")
    table = pd.DataFrame([_row(outcome) for outcome in outcomes])
    layout.chart(
        view,
        "choices",
        lambda dark: choices(drawn, _LABELS, title, present, dark=dark),
        alt=title,
        read="Each point is one choice. x: number of clusters; shape: clustering method; filled: zeros kept, open: "
        "zeros "
        "dropped; ring: this setup. Click a point to use it on all pages.",
        depends=tuple(names),
        clicked=lambda points: _choose(drawn, points),
        table=table,
    )
    with st.expander("All choices in a table"):
        st.dataframe(table, hide_index=True)
    layout.computed(view, "Every choice clusters the training activations anew and counts the cells that tests reach.")


def _outcomes(waiting: Waiting, view: View, name: str, drop: bool) -> tuple[ClusterChoice, ...]:
    analysis, chosen, label = view.analysis, view.chosen, lower(_LABELS[name])

    def work(report: Progress) -> tuple[ClusterChoice, ...]:
        tests = analysis.test_activations[chosen]
        return try_choices(analysis.train_activations, tests, name, drop, on_progress=report)

    key = (*view.key, analysis.layer, analysis.m, view.chosen_key, name, drop)
    doing = f"trying {label} with zeros {'dropped' if drop else 'kept'}"
    return waiting.get(JobKind("alternatives", kept=64), key, doing, work)


def _settings(one: ClusterChoice) -> dict[str, str]:
    """Return a choice as the setup writes it."""
    return {
        "k": str(CONTROLS["k"].default) if one.k is None else str(one.k),
        "zeros": "dropped" if one.drop_zeros else "kept",
        "clustering": one.clustering,
    }


def _choose(found: list[ClusterChoice], points: Sequence[Point]) -> None:
    """Use the choice that was clicked; the ring carries none."""
    for point in points:
        if numbers := carried(point):
            select(**_settings(found[int(numbers[0])]))
            return


def _row(one: ClusterChoice) -> dict[str, object]:
    return {
        "clustering method": _LABELS[one.clustering],
        "zeros": "dropped" if one.drop_zeros else "kept",
        "k": str(one.k) if one.k is not None else f"automatic by {one.index}",
        "clusters per neuron": "-".join(map(str, one.sizes)),
        "cells": one.total,
        "covered": one.covered,
        "IDC in %": round(100 * one.score, 4),
        "mean silhouette": round(one.silhouette, 4),
        "Calinski-Harabasz": round(one.calinski_harabasz, 1),
        "Davies-Bouldin": round(one.davies_bouldin, 4),
    }
