"""How coverage grows with the number of tests, and where cells are left."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from idc_core.coverage.cell_table import gaps, state_counts
from idc_core.coverage.discovery import FEWEST, second_half
from idc_core.coverage.growth import Growth, growth
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Verdict
from idc_core.figures.coverage import growth_curve
from idc_core.report import sentences
from studio.jobs.results import View
from studio.shell import tabs
from studio.state.selection import select
from studio.text import cluster_name, count, percent, plural
from studio.widgets import grid_axes, layout

_LEFT = "left-over"
"""Key of the table of clusters."""


def draw(view: View) -> None:
    """Show how coverage grows with the tests, and in which clusters cells are left."""
    left = Discovery.of_counts(view.table.counts, view.table.total) if len(view.chosen) >= FEWEST else None
    if left is not None and view.table.covered < view.table.total:
        _say_left(view, left)
    _draw_growth(view, left)
    _draw_left(view)
    layout.computed(
        view,
        "Every order of the tests is passed once; a cell counts from its first test on.",
        "The chance of a new cell is the share of the tests that are alone in their cell (Good 1953; interval of Esty "
        "1983). New cells of more tests are those of Shen, Chao and Lin (2003). Both hold for tests drawn like these, "
        "not for generated ones.",
    )


def _say_left(view: View, left: Discovery) -> None:
    """Say how much is left, and beside it what one half of the tests says of the other."""
    check = second_half(view.analysis.codes[view.chosen])
    chance = layout.estimated(sentences.CHANCE, percent(left.chance), percent(left.low), percent(left.high))
    st.markdown(layout.lead(chance, sentences.more_tests(left)))
    differ = " The two halves differ, so the prediction is uncertain."
    st.caption(check.sentence + differ * (check.verdict is Verdict.STANDS_OUT))


def _draw_growth(view: View, left: Discovery | None) -> None:
    """Draw how many cells the first tests cover, and how many more tests would."""
    table = view.table
    grown = growth(view.analysis.codes[view.chosen])
    title = layout.topic("Covered cells by number of tests")
    layout.chart(
        view,
        "growth",
        lambda dark, log: growth_curve(grown, table.total, title, left=left, logarithmic=log, dark=dark),
        alt=title,
        read="Each curve is one order of the tests. If it still rises at its end, more tests would reach more cells. "
        f"Band: range of {grown.orders} shuffled orders (seed {grown.seed}). The greedy order takes the test that "
        "adds most, at most one cell per test."
        + (f" Dashed: expected with up to {plural(left.inputs, 'more test')}, with its 95 % range." if left else ""),
        table=_tabulate(grown, left),
        scale="linear",
    )


def _tabulate(grown: Growth, left: Discovery | None) -> pd.DataFrame:
    """Return one row per point of the curves; what more tests would reach comes last."""
    table = pd.DataFrame(
        {
            "tests": grown.tests,
            "given_order": grown.given,
            "shuffled_mean": grown.mean,
            "shuffled_low": grown.low,
            "shuffled_high": grown.high,
            "greedy_order": grown.greedy,
        }
    )
    if left is None:
        return table
    tests, cells = left.curve()
    more = pd.DataFrame(cells, columns=["expected", "expected_low", "expected_high"]).assign(tests=tests)
    return table.merge(more, "outer", "tests")


def _draw_left(view: View) -> None:
    """List every cluster of every neuron with the share of its cells that is covered, the smallest first."""
    table = view.table
    if table.covered == table.total:
        st.markdown("Every cell is covered.")
        return
    left, tests = gaps(table), state_counts(view.analysis.assignments[view.chosen], view.sizes)
    st.header(layout.counted("Left", table.total - table.covered, table.total, "cell"), anchor=False)

    def pick(row: int) -> None:
        gap = left[row]
        select(neuron=int(view.analysis.important[gap.position]), cluster=gap.cluster)
        grid_axes.fix(view, {gap.position: gap.cluster})
        tabs.open_at("coverage", "grid")

    layout.pick_table(
        pd.DataFrame(
            {
                "neuron": [view.neurons[gap.position] for gap in left],
                "cluster": [gap.cluster for gap in left],
                "position": [
                    cluster_name(gap.cluster, view.sizes[gap.position]).removesuffix(" cluster") for gap in left
                ],
                "tests": [int(tests[gap.position][gap.cluster]) for gap in left],
                "cells": [count(gap.total) for gap in left],
                "covered": [gap.covered for gap in left],
                "covered (%)": [100 * gap.covered / gap.total for gap in left],
            }
        ),
        _LEFT,
        pick,
        "Clusters with the share of their cells that is covered; choose a row to open its cells in the grid",
        "auto" if len(left) < 12 else 420,
        {
            "cells": st.column_config.TextColumn(alignment="right"),
            "covered (%)": st.column_config.NumberColumn(format="%.1f"),
        },
    )
    st.caption("Choose a row to open its cells in the grid.")
