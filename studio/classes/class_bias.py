"""Between which classes the network is unfair: third classes of a pair, ranked triplets, and what they look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.confusion.bias import most_biased, third_classes
from idc_core.errors import IdcError
from idc_core.figures import classes as figures
from studio.classes import class_errors
from studio.classes.class_errors import Looked
from studio.engine.jobs import Waiting
from studio.engine.results import View
from studio.shell import address
from studio.shell.selection import picked_row
from studio.widgets import layout

TRIPLETS = 50
EXAMPLES = 3
THIRD = "third"
"""Name in the address: the third class that is looked at."""


def sentence(looked: Looked) -> str:
    """Say between which two classes third ones are treated most unequally."""
    found = looked.found
    if found.bias is None or not len(found.biased):
        return ""
    a, b = found.biased[0].tolist()
    text = f" Most unequal are {looked.pair_name((a, b))} (average bias {found.bias[a, b]:.2f})"
    hits = found.truly_biased(found.biased[:1])
    if hits is not None:
        text += f", and labels {'confirm it' if hits[0] else 'do not confirm it'}"
    return f"{text}."


def draw_pair(view: View, looked: Looked, pair: tuple[int, int], filtered: bool) -> pd.DataFrame | None:
    """Draw towards which of the two each third class leans. Returns the table; None where bias is undefined."""
    found = looked.found
    if found.bias is None:
        st.caption("Bias compares two classes with third ones, so it needs three classes that are predicted.")
        return None
    bias = third_classes(found.distance, *pair, filtered=filtered)
    names = (looked.names[pair[0]], looked.names[pair[1]])
    place = int(np.flatnonzero((found.biased == sorted(pair)).all(1))[0]) + 1
    known = np.flatnonzero(np.isfinite(bias) & (bias != 0))
    st.markdown(
        f"{looked.pair_name(pair)} have an average bias of **{found.bias[pair]:.3f}**, place {place:,} of "
        f"{len(found.biased):,}" + _truth(looked, pair) + "."
    )
    if not len(known):
        st.caption("No third class is near enough to either of the two to count.")
        return pd.DataFrame({"third class": looked.names, "bias": bias})
    most = int(known[np.argmax(np.abs(bias[known]))])
    closer, other = names if bias[most] > 0 else names[::-1]
    title = f"{looked.names[most]} leans most: it lies closer to {closer} than to {other} (bias {abs(bias[most]):.2f})"

    def clicked(points: list[dict[str, Any]]) -> None:
        address.keep(THIRD, str(int(np.ravel(points[0]["customdata"])[0])))

    layout.chart(
        view,
        "third-classes",
        lambda dark: figures.third_classes(bias, looked.names, names, title, dark=dark),
        alt=title,
        read=f"a bar is a third class: to the right it lies closer to {names[0]}, to the left closer to {names[1]}, "
        "and the longer the bar the more unequally, so the more likely it is mistaken for one of the two rather than "
        "for the other. Click a bar to see inputs of the three.",
        depends=(looked.key, pair, filtered),
        clicked=clicked,
    )
    said = address.read(THIRD)
    third = int(said) if said.isascii() and said.isdigit() and len(said) < 7 and int(said) in known.tolist() else most
    _pictures(view, looked, pair, third)
    return pd.DataFrame({"third class": looked.names, "bias": bias})


def _truth(looked: Looked, pair: tuple[int, int]) -> str:
    found = looked.found
    hits = found.truly_biased(np.array([pair]))
    if found.disparity is None or hits is None or not np.isfinite(found.disparity[pair]):
        return ""
    return f"; labels show a disparity of {found.disparity[pair]:.3f}, {'above' if hits[0] else 'below'} the cut-off"


def _pictures(view: View, looked: Looked, pair: tuple[int, int], third: int) -> None:
    """Show a few inputs of the pair and of the third class."""
    if looked.positions is None:
        return
    for column, one in zip(st.columns(3, gap="medium"), (pair[0], third, pair[1]), strict=True):
        with column:
            st.markdown(f"Answered as **{looked.names[one]}**")
            rows = looked.positions[looked.of_class(one)]
            layout.gallery(view, rows, EXAMPLES, key=f"bias-{one}")


def draw_triplets(view: View, looked: Looked, filtered: bool) -> pd.DataFrame | None:
    """Show the triplets of largest bias among all; choosing one opens its pair. Returns the table."""
    distance = looked.found.distance

    def work(report: Any) -> Any:
        return most_biased(distance, TRIPLETS, filtered=filtered)

    try:
        triplets = Waiting(1).get(
            "class-errors", (looked.key, "triplets", filtered), "ranking all triplets", work, kept=48
        )
    except IdcError as error:
        st.caption(str(error))
        return None
    names, confusion = looked.names, looked.found.confusion
    rows = [
        {
            "third class": names[one.third],
            "closer to": names[one.near],
            "than to": names[one.far],
            "bias": one.bias,
            **(
                {}
                if confusion is None
                else {
                    "confused with the closer (%)": 100 * confusion[one.third, one.near],
                    "with the farther (%)": 100 * confusion[one.third, one.far],
                }
            ),
        }
        for one in triplets
    ]
    if not rows:
        st.caption("No third class leans to either side of any pair.")
        return None
    table = pd.DataFrame(rows)
    key = "triplets"

    def picked() -> None:
        row = picked_row(key, len(triplets))
        if row is not None:
            one = triplets[row]
            class_errors.keep_pair(one.near, one.far)
            address.keep(THIRD, str(one.third))

    percents = st.column_config.NumberColumn(format="%.2f")
    st.dataframe(
        table,
        hide_index=True,
        height=320,
        key=key,
        on_select=picked,
        selection_mode="single-row",
        column_config={"bias": st.column_config.NumberColumn(format="%.3f")}
        | {name: percents for name in table.columns if name.endswith("(%)")},
        alt="Triplets of classes with the largest bias",
    )
    return table
