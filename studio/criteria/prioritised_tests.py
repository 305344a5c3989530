"""Which tests an order runs first, and how early each order meets the misclassified ones."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.figures import criteria as figures
from studio.criteria import criterion_scores
from studio.engine.results import View
from studio.widgets import layout
from studio.widgets.text import lower, plural, signed

if TYPE_CHECKING:
    from idc_core.coverage.prioritisation import Finding, Order

PICKS, TEXTS = 20, 6
"""First tests of an order that are shown: pictures, and texts, which take a row each."""


def choose_order(orders: dict[str, Order]) -> Order:
    """Choose whose first tests are shown."""
    key = st.selectbox(
        "Order by",
        list(orders),
        format_func=lambda key: criterion_scores.order_label(orders[key]),
        key="order",
        bind="query-params",
        width=320,
        help="The criterion whose order stands out in the figure, and whose first tests are shown. Most new "
        "coverage takes the test that adds most to those before it. Default IDC, most new coverage.",
    )
    return orders[key]


def draw_mistakes(
    view: View, found: Finding, orders: dict[str, Order], chosen: Order, depends: Hashable
) -> pd.DataFrame:
    """Draw how early every order meets the misclassified tests. Returns the table."""
    ranked = sorted(found.apfd, key=lambda key: -found.apfd[key])
    low, mean, high = found.random.min(), found.random.mean(), found.random.max()
    mistakes = 0 if view.correct is None else int((~view.correct[view.chosen]).sum())
    better = sum(value > high for value in found.apfd.values())
    title = (
        f"{better} of {len(ranked)} orders meet the {plural(mistakes, 'misclassified test')} earlier than every random "
        f"one; {criterion_scores.order_label(orders[ranked[0]])} first (APFD {found.apfd[ranked[0]]:.3f})"
    )
    marked = list(dict.fromkeys((chosen.key, "idc", ranked[0])))
    labels = {key: criterion_scores.order_label(order) for key, order in orders.items()}
    layout.chart(
        view,
        "mistakes",
        lambda dark: figures.mistakes(found, labels, marked, title, dark=dark),
        alt=title,
        read="the curve shows which share of the misclassified tests are among the first ones run in an order; the "
        "earlier it rises, the fewer tests have to be labelled to find them. The band holds the random orders. APFD is "
        "the area below a curve, 0.5 for a random order and close to 1 at best.",
        depends=(depends, chosen.key),
    )
    table = pd.DataFrame(
        [{"order": labels[key], "APFD": found.apfd[key], "against random": found.apfd[key] - mean} for key in ranked]
    )
    number = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        table.style.format({"against random": lambda value: signed(value, "+.3f")}),
        hide_index=True,
        height=320,
        column_config={"APFD": number},
        alt="APFD of every order",
    )
    st.caption(
        f"{len(found.random)} random orders (seeds 0 to {len(found.random) - 1}): {mean:.3f} on average, from "
        f"{low:.3f} to {high:.3f}."
    )
    return table


def draw_first(view: View, chosen: Order) -> None:
    """Show the first tests of an order."""
    most = PICKS if view.test.inputs.ndim == 4 else TEXTS
    picks = view.chosen[chosen.positions[:most]]
    text = f"Shown are the first {plural(len(picks), 'test')} in this order"
    if view.correct is not None:
        text += f", misclassified among them: {int((~view.correct[picks]).sum())}"
    place = np.flatnonzero(view.chosen[chosen.positions] == view.position) if view.position is not None else []
    if len(place):
        text += f". The selected test is number {place[0] + 1} of {len(chosen.positions)}"
    st.subheader(f"The first tests by {lower(criterion_scores.order_label(chosen))}", anchor=False)
    st.caption(f"{text}.")
    layout.gallery(view, picks, most, key="first-picks")
    layout.take_inputs(view, picks)
