"""Class errors: which classes the network seems to confuse, and between which it seems unfair, without labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.confusion.class_order import cluster_order, neighbours
from idc_core.confusion.evaluation import Evaluation, cost_effectiveness
from idc_core.errors import CancelledError, IdcError
from idc_core.figures import classes as figures
from studio.classes import class_bias, class_errors, class_pair, retraining
from studio.classes.class_errors import Looked, Settings
from studio.engine.results import View
from studio.shell import pins
from studio.shell.frame import current_view
from studio.shell.selection import Selection, picked_row
from studio.widgets import layout
from studio.widgets.downloads import csv
from studio.widgets.text import percent, plural, signed

view = current_view()
finding = st.empty()


MOST_PAIRS = 500
"""Pairs in the ranked list at most; all are in the file that can be taken away."""

NEAR = 24
"""Classes drawn around the chosen pair where there are too many to draw all."""

SHOWN = (
    "first",
    "second",
    "distance",
    "suspicion",
    "reported",
    "seen",
    "confusion (%)",
    "first as second (%)",
    "second as first (%)",
    "average bias",
)
"""Columns of the table of pairs, what matters most first: a narrow window cuts off the last ones."""

SOURCE = (
    "Y. Tian, Z. Zhong, V. Ordonez, G. Kaiser, B. Ray, Testing DNN Image Classifiers for Confusion & Bias Errors, ICSE "
    "2020 (DeepInspect)"
)


def sentence(looked: Looked) -> str:
    """Put the finding on confusion into words."""
    found = looked.found
    first = found.suspected[0]
    pair: tuple[int, int] = (int(first[0]), int(first[1]))
    reported = int((found.distance[tuple(found.suspected.T)] < found.confusion_cutoff).sum())
    text = f"**Without looking at a label, {looked.pair_name(pair)} are the most suspected of being confused"
    hits = found.truly_confused(found.suspected[:1])
    if hits is not None and found.confusion is not None:
        text += f"; labels {'confirm' if hits[0] else 'do not confirm'} it (confusion {percent(found.confusion[pair])})"
    text += f".** {plural(reported, 'pair')} of {len(found.suspected):,} {'is' if reported == 1 else 'are'} reported"
    one = found.confusion_found
    if one is not None:
        hits = one.at_deviations.true_positives
        text += (
            f"; {hits} of the {one.true_pairs} truly confused are among them"
            if one.true_pairs != 1
            else f"; the one that is truly confused is {'' if hits else 'not '}among them"
        )
        if np.isfinite(one.spearman):
            text += f" (rank correlation of distance and confusion {signed(one.spearman, '.2f')})"
    return f"{text}.{class_bias.sentence(looked)}"


def marks(looked: Looked) -> dict[str, Any]:
    """Sort the pairs by what was reported, and by what labels say."""
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
    title = f"{looked.pair_name((first[0], first[1]))} activate the neurons most alike"
    many = len(order) > figures.MOST_CLICKABLE
    read = (
        "a square is a pair of classes, the stronger the more alike the two activate the neurons, so the more likely "
        "they are confused; close classes are next to each other. "
    )
    if many:
        read += f"With more than {figures.MOST_CLICKABLE} classes single ones have no name here"
        if len(order) > figures.MOST_ROWS:
            read += f", and up to {-(-len(order) // figures.MOST_ROWS)} share a row, which shows their closest pair"
        read += "; the classes around the chosen pair are below."
    else:
        read += "A full circle marks a reported pair that is truly confused, an empty one a reported pair that is not "
        read += "(or of which nothing is known), a cross one that was missed."
    clickable = key == "distances"
    _draw_distances(looked, one, key, order, title, read, pair, clickable and not many)
    if many and pair is not None:
        near = order[np.isin(order, neighbours(looked.found.distance, *pair, NEAR))]
        title = f"The {len(near)} classes closest to {looked.pair_name(pair)}"
        read = "as above, for the chosen pair and the classes that lie closest to either of the two."
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
        told = np.ravel(points[0].get("customdata"))[0]
        if told is not None:
            class_errors.keep_pair(*map(int, str(told).split("-")))

    layout.chart(
        one,
        key,
        lambda dark: figures.distance_map(
            looked.found.distance, order, looked.names, marks(looked), title, selected=pair, dark=dark
        ),
        alt=title,
        read=read + (" Click a square to look at its pair." if clickable else ""),
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
        table["seen"] = np.select([reported & true, reported, true], ["hit", "false alarm", "missed"], "clear")
    return pd.DataFrame(table)


def all_pairs() -> bytes:
    """Write all pairs as a table; made only when it is asked for, as there can be half a million."""
    return csv(pair_table(looked, len(looked.found.suspected))).encode()


def draw_pairs(looked: Looked) -> None:
    """Show the ranked pairs; choosing one looks at it."""
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
        alt="Pairs of classes from the most suspected on; choose a row to look at the pair",
    )
    first = f"The first {MOST_PAIRS} of {len(pairs):,} pairs; all are in the file below. " * (len(pairs) > MOST_PAIRS)
    st.caption(
        f"{first}Suspicion counts standard deviations below the mean distance. Choose a row to look at its pair (by "
        "keyboard: arrows, then Shift and Space)."
    )


def draw_effectiveness(looked: Looked, one: View) -> None:
    """Draw what inspecting pairs in the order of the scores would find."""
    found = looked.found
    curves = {}
    for name, score, truth, errors, beside in (
        ("confused pairs", found.distance, found.confusion, "low", found.confusion_found),
        ("unequally treated pairs", found.bias, found.disparity, "high", found.bias_found),
    ):
        if score is not None and truth is not None and beside is not None and beside.true_pairs:
            curves[name] = cost_effectiveness(score, truth, errors, found.deviations)
    if not curves:
        st.caption("There are no labels, or no pair is truly confused, so that nothing can be said of the cost.")
        return
    title = _effect(found.confusion_found, found.bias_found)
    layout.chart(
        one,
        "effectiveness",
        lambda dark: figures.cost_effectiveness(curves, title, dark=dark),
        alt=title,
        read="the curve shows which share of the pairs that labels prove confused, or treated unequally, is found when "
        "the most suspected pairs are inspected first; the dotted line is a random order, the dashed one the best "
        "possible. The gain is how much more area a curve has than the random one.",
        depends=looked.key,
    )


def _effect(confusion: Evaluation | None, bias: Evaluation | None) -> str:
    parts = [
        f"{100 * one.gain:.0f}\u00a0% (at best {100 * one.optimal_gain:.0f}\u00a0%) for {name}".replace("-", "\u2212")
        for name, one in (("confused pairs", confusion), ("unequally treated ones", bias))
        if one is not None and np.isfinite(one.gain)
    ]
    return f"Inspecting the most suspected first gains over a random order {' and '.join(parts)}"


def draw_side(shown: View, chosen: Selection, key: str) -> None:
    """Draw the distances of one of two benches."""
    try:
        draw_map(other_look(shown), shown, f"distances-{key}", None)
    except IdcError as error:
        st.caption(str(error))


def other_look(shown: View) -> Looked:
    """Look at a bench with the settings of this page; another network's own layers."""
    from dataclasses import replace

    from idc_core.confusion.scaled_activation import countable_layers

    offered = countable_layers(shown.model)
    layers = tuple(name for name in settings.layers if name in offered) or offered
    groups = settings.groups if shown.train.class_names == view.train.class_names else ""
    return class_errors.look(shown, replace(settings, layers=layers, groups=groups), None)


def compare(here: View, there: View) -> str:
    """Say how the most suspected pairs of two benches differ."""
    try:
        mine, theirs = other_look(here), other_look(there)
    except IdcError as error:
        return str(error)
    told = [one.pair_name(tuple(one.found.suspected[0].tolist())) for one in (mine, theirs)]
    if told[0] == told[1]:
        return f"On both benches {told[0]} are the most suspected pair."
    return f"The most suspected pair here is {told[0]}; on the pinned bench it is {told[1]}."


with st.expander("Own predictions, and groups of classes"):
    left, right = st.columns([3, 2], gap="large")
    with left:
        try:
            own = class_errors.choose_own()
        except CancelledError:
            st.stop()
        except IdcError as error:
            st.warning(str(error))
            own = None
    with right:
        groups = class_errors.choose_groups()
if own is None and not view.is_classifier:
    finding.markdown("**This network answers with a number, so there are no classes that it could confuse.**")
    st.caption("Choose a network with classes in the sidebar, or load predictions of another one above.")
    st.stop()
layers = class_errors.choose_layers(view) if own is None else ()
numbers = class_errors.choose_numbers(own is not None and own.several_labels)
settings = Settings(layers=layers, groups=groups, **numbers)
try:
    looked = class_errors.look(view, settings, own)
except CancelledError:
    st.stop()
except IdcError as error:
    st.warning(str(error))
    st.stop()
if own is not None:
    st.info("Shown are your own predictions, not the bench's network.")
if looked.found.unseen:
    st.caption(
        f"No input is predicted as {class_errors.named(looked.found.unseen)}: nothing can be said of "
        f"{'this class' if len(looked.found.unseen) == 1 else 'these classes'}."
    )
finding.markdown(sentence(looked))
place = st.container()
st.header("The most suspected pairs", anchor=False)
draw_pairs(looked)
pair = class_errors.choose_pair(looked)
with place:
    draw_map(looked, view, "distances", pair)

st.header(f"Behind {looked.pair_name(pair)}", anchor=False)
class_pair.draw_inputs(view, looked, pair)
st.subheader("Neurons that both activate", anchor=False)
neuron_table = class_pair.draw_neurons(view, looked, pair)
class_pair.draw_cells(view, looked, pair)
st.subheader("The two on a plane", anchor=False)
class_pair.draw_plane(view, looked, pair)

st.header("For whom is it unfair?", anchor=False)
third_table = class_bias.draw_pair(view, looked, pair, settings.filtered)
st.subheader("The most unequal triplets of all", anchor=False)
triplet_table = class_bias.draw_triplets(view, looked, settings.filtered)

st.header("What would inspecting them find?", anchor=False)
draw_effectiveness(looked, view)

if own is None:
    retraining.draw(view, looked)
    pins.beside(view, draw_side, compare)

layout.computed(
    view,
    "Every input is passed through the network once. A layer's output before its activation function is scaled to 0..1 "
    "over that input and layer; a neuron is active where the mean of its scaled output is above "
    f"{settings.threshold:g}. For each class, the share of the inputs *predicted* as it that activate each neuron "
    "makes a vector; the distance of two classes is that of their vectors (equation 2 of the paper). Small distances "
    "are suspected of confusion.",
    "The bias of a third class towards one of a pair is the difference of its two distances divided by their sum "
    "(equation 3), the average bias of a pair the mean over all third classes (equation 4). No label enters a distance "
    "or a bias. Labels enter only what is compared with them: confusion is the share of inputs of one class predicted "
    "as the other, mean of both directions; disparity the mean difference of two classes' confusion with third ones.",
    f"Source: {SOURCE}. The published program departs from its paper in its bias, which uses labels; its form is in "
    "the engine as an option, for reproducing the published tables.",
)
tables = {"shared-neurons": neuron_table}
for name, table in (("third-classes", third_table), ("triplets", triplet_table)):
    if table is not None:
        tables[name] = table
layout.take_away(tables, {"All pairs (CSV)": ("idc-class-pairs.csv", "text/csv", all_pairs)})
