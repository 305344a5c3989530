"""Pairs of classes on the Class errors page: finding, map of distances, ranked table, cost-effectiveness."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.confusion.distance import cluster_order, neighbours
from idc_core.confusion.evaluation import Curve, Evaluation, cost_effectiveness
from idc_core.confusion.scaled_activation import countable_layers
from idc_core.errors import IdcError
from idc_core.figures import classes as figures
from studio.classes import class_bias, class_errors
from studio.classes.class_errors import Looked, Settings
from studio.engine.results import View
from studio.state.selection import Selection, picked_row
from studio.text import literal, percent, plural, signed
from studio.widgets import layout
from studio.widgets.downloads import csv

MOST_PAIRS = 500
"""Pairs in the ranked list at most; all are in the file for download."""

NEAR = 24
"""Classes drawn around the chosen pair where there are too many to draw all."""

SHOWN = (
    "first",
    "second",
    "distance",
    "suspicion",
    "reported",
    "labels",
    "confusion (%)",
    "first as second (%)",
    "second as first (%)",
    "average bias",
)
"""Columns of the table of pairs, what matters most first: a narrow window cuts off the last ones."""


def sentence(looked: Looked) -> str:
    """Put the finding on confusion into words."""
    found = looked.found
    first = found.suspected[0]
    pair: tuple[int, int] = (int(first[0]), int(first[1]))
    reported = int((found.distance[tuple(found.suspected.T)] < found.confusion_cutoff).sum())
    text = f"**Without labels, {looked.pair_name(pair)} are the pair most suspected of confusion"
    true = found.truly_confused(found.suspected[:1])
    if true is not None and found.confusion is not None:
        text += f"; labels {'confirm' if true[0] else 'do not confirm'} it (confusion {percent(found.confusion[pair])})"
    text += f".** {plural(reported, 'pair')} of {len(found.suspected):,} {'is' if reported == 1 else 'are'} reported"
    one = found.confusion_found
    if one is not None:
        text += f"; {one.at_deviations.true_positives} of {one.true_pairs} truly confused are among them"
        if np.isfinite(one.spearman):
            text += f" (Spearman's correlation of distance and confusion {signed(one.spearman, '.2f')})"
    return f"{text}.{class_bias.sentence(looked)}"


def _marks(looked: Looked) -> dict[str, Any]:
    """Sort the pairs by whether they are reported, and whether labels confirm them."""
    found = looked.found
    pairs = found.suspected
    reported = found.distance[pairs[:, 0], pairs[:, 1]] < found.confusion_cutoff
    true = found.truly_confused(pairs)
    if true is None:
        return {"reported": pairs[reported]}
    return {"hit": pairs[reported & true], "false": pairs[reported & ~true], "missed": pairs[~reported & true]}


def draw_map(looked: Looked, one: View, key: str, pair: tuple[int, int] | None) -> None:
    """Draw the distances of all classes, and where they are many those around the pair."""
    order = cluster_order(looked.found.distance)
    first = looked.found.suspected[0].tolist()
    title = f"{looked.pair_name((first[0], first[1]))} activate the neurons most similarly"
    many = len(order) > figures.MOST_CLICKABLE
    read = (
        "each square is one pair of classes. The stronger the colour, the smaller their distance and the more likely "
        "their confusion. Similar classes are neighbours. "
    )
    if many:
        if len(order) > figures.MOST_ROWS:
            read += f"Up to {-(-len(order) // figures.MOST_ROWS)} classes share a row, which shows their closest pair. "
        read += "Class names are in the map around the chosen pair below."
    else:
        read += "Filled circle: reported, confirmed by labels; empty circle: reported, not confirmed (or no labels); "
        read += "cross: confused by labels, not reported."
    clickable = key == "distances"
    _draw_distances(looked, one, key, order, title, read, pair, clickable and not many)
    if many and pair is not None:
        near = order[np.isin(order, neighbours(looked.found.distance, *pair, NEAR))]
        title = f"The {len(near)} classes closest to {looked.pair_name(pair)}"
        read = "as above, for the chosen pair and the classes closest to either of the two."
        _draw_distances(looked, one, f"{key}-near", near, title, read, pair, clickable)


def _draw_distances(
    looked: Looked,
    one: View,
    key: str,
    order: Any,
    title: str,
    read: str,
    pair: tuple[int, int] | None,
    clickable: bool,
) -> None:
    def clicked(points: list[dict[str, Any]]) -> None:
        if (told := points[0].get("customdata")) is not None:
            class_errors.keep_pair(*map(int, str(np.ravel(told)[0]).split("-")))

    layout.chart(
        one,
        key,
        lambda dark: figures.distance_map(
            looked.found.distance, order, looked.names, _marks(looked), title, selected=pair, dark=dark
        ),
        alt=title,
        read=read + (" Click a square to select its pair." if clickable else ""),
        depends=(looked.key, pair),
        clicked=clicked if clickable else None,
    )


def pair_table(looked: Looked, most: int) -> pd.DataFrame:
    """List the most suspected pairs."""
    found = looked.found
    pairs = found.suspected[:most]
    a, b = pairs.T
    names = np.asarray(looked.names)
    table = {
        "place": np.arange(1, len(pairs) + 1),
        "first": names[a],
        "second": names[b],
        "distance": found.distance[a, b],
        "suspicion": found.suspicion[a, b],
    }
    if found.bias is not None:
        table["average bias"] = found.bias[a, b]
    reported = found.distance[a, b] < found.confusion_cutoff
    table["reported"] = np.where(reported, "yes", "no")
    true = found.truly_confused(pairs)
    if true is not None and found.directional is not None and found.confusion is not None:
        table["first as second (%)"] = 100 * found.directional[a, b]
        table["second as first (%)"] = 100 * found.directional[b, a]
        table["confusion (%)"] = 100 * found.confusion[a, b]
        table["labels"] = np.select(
            [reported & true, reported, true], ["confirmed", "not confirmed", "not reported"], ""
        )
    return pd.DataFrame(table)


def all_pairs(looked: Looked) -> bytes:
    """Write all pairs as a table; made only when it is asked for, as there can be half a million."""
    return csv(pair_table(looked, len(looked.found.suspected))).encode()


def draw_pairs(looked: Looked) -> None:
    """Show the ranked pairs; choosing one selects it."""
    key = "pairs"
    pairs = looked.found.suspected

    def picked() -> None:
        row = picked_row(key, len(pairs))
        if row is not None:
            class_errors.keep_pair(*pairs[row].tolist())

    table = pair_table(looked, MOST_PAIRS)
    st.dataframe(
        table.style.format({"suspicion": signed}),
        hide_index=True,
        height=320,
        key=key,
        on_select=picked,
        selection_mode="single-row",
        column_order=[name for name in SHOWN if name in table],
        column_config={
            "distance": st.column_config.NumberColumn(format="%.2f"),
            "average bias": st.column_config.NumberColumn(format="%.3f"),
            "confusion (%)": st.column_config.NumberColumn(format="%.2f"),
            "first as second (%)": st.column_config.NumberColumn("1st as 2nd (%)", format="%.2f"),
            "second as first (%)": st.column_config.NumberColumn("2nd as 1st (%)", format="%.2f"),
        },
        alt="Pairs of classes, most suspected first; choose a row to select the pair",
    )
    first = f"The first {MOST_PAIRS} of {len(pairs):,} pairs; all are in the file below. " * (len(pairs) > MOST_PAIRS)
    st.caption(
        f"{first}Suspicion: standard deviations below the mean distance. Choose a row to select its pair (by keyboard: "
        "arrows, then Shift and Space)."
    )


def draw_effectiveness(looked: Looked, one: View) -> None:
    """Draw the cost-effectiveness curves of inspecting the most suspected pairs first."""
    found = looked.found
    curves: dict[str, Curve] = {}
    searches: tuple[tuple[str, Any, Any, Literal["low", "high"], Evaluation | None], ...] = (
        ("confused pairs", found.distance, found.confusion, "low", found.confusion_found),
        ("unequally treated pairs", found.bias, found.disparity, "high", found.bias_found),
    )
    for name, score, truth, errors, beside in searches:
        if score is not None and truth is not None and beside is not None and beside.true_pairs:
            curves[name] = cost_effectiveness(score, truth, errors, found.deviations)
    if not curves:
        st.caption("There are no labels, or no truly confused pair: cost-effectiveness is not defined.")
        return
    title = _effect(found.confusion_found, found.bias_found)
    layout.chart(
        one,
        "effectiveness",
        lambda dark: figures.cost_effectiveness(curves, title, dark=dark),
        alt=title,
        read="x: share of the pairs inspected, most suspected first; y: share of the pairs confirmed by labels among "
        "them. Dotted: random order; dashed: best possible order. Gain: additional area under the curve compared with "
        "a random order.",
        depends=looked.key,
    )


def _effect(confusion: Evaluation | None, bias: Evaluation | None) -> str:
    parts = [
        f"{100 * one.gain:.0f}\u00a0% (at best {100 * one.optimal_gain:.0f}\u00a0%) for {name}".replace("-", "\u2212")
        for name, one in (("confused pairs", confusion), ("unequally treated ones", bias))
        if one is not None and np.isfinite(one.gain)
    ]
    return f"Inspecting the most suspected pairs first gains over a random order {' and '.join(parts)}"


def draw_side(settings: Settings, own: View, shown: View, chosen: Selection, key: str) -> None:
    """Draw the distances of one of two setups."""
    try:
        draw_map(_other_look(settings, own, shown), shown, f"distances-{key}", None)
    except IdcError as error:
        st.caption(literal(error))


def _other_look(settings: Settings, own: View, shown: View) -> Looked:
    """Find the errors of a setup with the settings of this page; of another network with its own layers."""
    offered = countable_layers(shown.model)
    layers = tuple(name for name in settings.layers if name in offered) or offered
    groups = settings.groups if shown.train.class_names == own.train.class_names else ""
    return class_errors.look(shown, replace(settings, layers=layers, groups=groups), None)


def compare(settings: Settings, own: View, here: View, there: View) -> str:
    """Compare the most suspected pairs of two setups."""
    try:
        sides = [_other_look(settings, own, one) for one in (here, there)]
    except IdcError as error:
        return literal(error)
    told = [one.pair_name((int(one.found.suspected[0][0]), int(one.found.suspected[0][1]))) for one in sides]
    if told[0] == told[1]:
        return f"In both setups {told[0]} are the most suspected pair."
    return f"Most suspected pair here: {told[0]}; in the pinned setup: {told[1]}."
