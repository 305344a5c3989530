"""The order in which each criterion would run the tests, and how early each order detects the misclassified ones."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.coverage import CRITERIA
from idc_core.coverage.prioritisation import UNCERTAINTIES, Order, detect_faults, earliest
from idc_core.errors import CancelledError
from idc_core.figures import criteria as figures
from studio.criteria import criterion_scores
from studio.criteria.criterion_scores import MeasuredCriteria
from studio.jobs.results import View
from studio.state.choices import choose_one
from studio.text import lower
from studio.widgets import layout

_PICKS, _TEXTS = 20, 6
"""First tests of an order that are shown: pictures, and texts, which take a row each."""


def draw(view: View, measured: MeasuredCriteria) -> None:
    """Show which tests each criterion would run first, and how early that detects the misclassified ones."""
    try:
        orders = criterion_scores.order_tests(view, measured)
    except CancelledError:
        st.caption("Stopped before the tests were ordered.")
        return
    order = _choose_order(orders)
    _draw_faults(view, orders, order, measured.key)
    _draw_first(view, order)
    layout.computed(
        view,
        "An order by new coverage always runs the test next that adds most to those before it. Surprise criteria also "
        f"give an order by surprise; {layout.names([way.label for way in UNCERTAINTIES.values()])} run the least "
        "confident predictions first. MC-dropout is for networks with dropout and up to "
        f"{criterion_scores.MOST_DROPPED:,} tests; it compares 20 passes from seed 0."
        + (
            " APFD counts every misclassified test as a fault of its own (Rothermel et al. 2001; Feng et al., ISSTA "
            "2020)."
            if view.correct is not None
            else ""
        ),
        "\n".join(f"* {way.label}: {way.help} {way.citation}" for way in UNCERTAINTIES.values()),
    )


def _order_label(order: Order) -> str:
    """Name an order for a person."""
    if order.by == "uncertainty":
        return UNCERTAINTIES[order.name].label
    how = {"additional": "most new coverage", "total": "most coverage", "value": CRITERIA[order.name].card.by_value}
    return f"{order.name.upper()}, {how[order.by]}"


def _choose_order(orders: dict[str, Order]) -> Order:
    """Choose whose first tests are shown."""
    key = choose_one(
        st.selectbox,
        "Order by",
        {key: _order_label(order) for key, order in orders.items()},
        next(iter(orders)),
        "order",
        width=320,
        help="The order that is highlighted in the chart, and whose first tests are shown. Most new coverage always "
        "runs the test next that adds most to those before it; most coverage begins with the test that covers most by "
        "itself. Default IDC, most new coverage.",
    )
    return orders[key]


def _draw_faults(view: View, orders: dict[str, Order], chosen: Order, depends: Hashable) -> None:
    """Draw how early every order detects the misclassified tests, or say why none does."""
    if view.correct is None or view.correct[view.chosen].all():
        why = "accuracy is not defined for these tests" if view.correct is None else "no test is misclassified"
        st.markdown(f"Orders cannot be compared: {why}.")
        return
    misclassified = ~view.correct[view.chosen]
    found = detect_faults(list(orders.values()), misclassified)
    ranked = sorted(found.apfd, key=lambda key: -found.apfd[key])
    low, mean, high = (100 * float(end) for end in (found.random.min(), found.random.mean(), found.random.max()))
    labels, less = {key: _order_label(order) for key, order in orders.items()}, "points above random"
    title = layout.claim(earliest(found, misclassified, labels))
    marked = list(dict.fromkeys((chosen.key, "idc", ranked[0])))
    table = pd.DataFrame(
        [
            {"order": labels[key], "APFD (%)": 100 * found.apfd[key], less: 100 * found.apfd[key] - mean}
            for key in ranked
        ]
    )
    layout.chart(
        view,
        "mistakes",
        lambda dark, log: figures.fault_curves(found, labels, marked, title, logarithmic=log, dark=dark),
        alt=title,
        read="Each curve is an order of the tests. APFD is the area below a curve: 50 % for a random order, close to "
        f"100 % at best. The random orders (seeds 0 to {len(found.random) - 1}) have a mean APFD of {mean:.1f} %, "
        f"range {low:.1f} to {high:.1f} %.",
        depends=(depends, chosen.key),
        table=table,
        scale="linear",
    )
    with st.expander("Table"):
        st.dataframe(
            table,
            hide_index=True,
            height=320,
            column_config={
                "APFD (%)": st.column_config.NumberColumn(format="%.1f"),
                less: st.column_config.NumberColumn(format="%+.1f"),
            },
            alt="APFD of every order",
        )


def _draw_first(view: View, chosen: Order) -> None:
    """Show the first tests of an order."""
    most = _PICKS if view.has_pictures else _TEXTS
    picks = view.chosen[chosen.positions[:most]]
    st.header(layout.topic("First tests by {}", lower(_order_label(chosen))), anchor=False)
    if view.correct is not None:
        st.markdown(layout.counted("Misclassified", int((~view.correct[picks]).sum()), len(picks), "test") + ".")
    place = np.flatnonzero(view.chosen[chosen.positions] == (-1 if view.position is None else view.position))
    if len(place):
        st.caption(f"The selected test is number {place[0] + 1} of {len(chosen.positions)}.")
    layout.gallery(view, picks, most, key="first-picks")
    layout.take_inputs(view, picks)
